//! The suite itself, measured: on a simulated card it must find what the scenario says.
//!
//! Figures are compared within the uncertainty that the suite itself states, so a machine that polls
//! late makes them vaguer and not wrong.

use std::io::Write;

use joulebook::{
    core::{Fault, estimate::Rule},
    nvml::{Driver, cards},
};

use super::{
    edges::About,
    lab::{self, LabWork},
    report,
    suite::{self, Found, Plan},
    windows::Window,
};

/// The same parts as in full, as short as they can be.
const BRIEF: Plan = Plan {
    grid_s: 1.5,
    cost_reads: 50,
    pulses: 1,
    stretch_s: 1.3,
    rates: &[(Some(10.0), 1.5), (Some(100.0), 1.0), (None, 0.4)],
    lengths_ms: &[20, 250],
    repeats: 1,
    rest_s: 0.6,
};

fn measure(loaded_w: f64) -> Found {
    let driver = Driver::shared();
    let work = LabWork::new(70.0, loaded_w);
    let info = cards(&driver).unwrap().cards.swap_remove(0);
    let found = suite::card(&driver, &info, Ok(Box::new(work)), &BRIEF);
    let text = report::text(std::slice::from_ref(&found));
    let _ = writeln!(std::io::stderr(), "{text}");
    assert!(text.contains("not the system's"), "a report of no real card says so: {text}");
    assert_eq!(found.work_error, None);
    found
}

fn holds(about: Option<About>, truth_s: f64, most_s: f64) {
    let about = about.unwrap();
    assert!((about.value - truth_s).abs() <= about.uncertainty, "{about:?} is not {truth_s}");
    assert!(about.uncertainty <= most_s, "{about:?} says too little");
}

#[test]
fn it_finds_what_the_scenario_says() {
    const SCENARIO: &str = "card 0\n idle 70\n dynamic\n \
        counter period_ms=100 lag_ms=20 jitter_ms=1 phase_ms=37\n \
        sensor window_ms=1000 period_ms=100\n instant window_ms=0 period_ms=100";
    let name = concat!(module_path!(), "::it_finds_what_the_scenario_says");
    lab::run(name, SCENARIO, || {
        let found = measure(400.0);
        let [counter, instant, average] = found.registers.as_slice() else { panic!() };

        let grid = counter.grid.unwrap();
        assert!((grid.period_s / 0.1 - 1.0).abs() <= 0.02, "{grid:?}");
        // Each of its publishes lies within 1 ms of the grid, and they are not all on it.
        assert!(grid.jitter_s <= 0.001 + 2.0 * grid.uncertainty_s, "{grid:?}");
        assert!(grid.jitter_s >= 0.0002, "{grid:?}");
        holds(counter.lag, 0.02, 0.015);

        let response = average.response.unwrap();
        holds(Some(response.averaging_s), 1.0, 0.2);
        holds(Some(response.lag_s), 0.0, 0.15);
        let at_once = instant.response.unwrap();
        holds(Some(at_once.averaging_s), 0.0, 0.06);
        assert!((at_once.low_w - 70.0).abs() < 0.1 && (at_once.high_w - 400.0).abs() < 0.1);

        for rate in &found.rates {
            let truth_w = if rate.is_loaded { 400.0 } else { 70.0 };
            let open_w = rate.slope_uncertainty_w.unwrap();
            assert!((rate.slope_w.unwrap() - truth_w).abs() <= open_w + 0.02 * truth_w, "{rate:?}");
            assert!((rate.mean_w.unwrap() - truth_w).abs() <= 0.1, "{rate:?}");
            assert!((rate.ratio().unwrap() - 1.0).abs() <= 0.02 + open_w / truth_w, "{rate:?}");
            assert_eq!((rate.failed, rate.odd), (0, 0), "{rate:?}");
        }
        assert!(counter.cost.unwrap().reads == BRIEF.cost_reads);

        assert_eq!(found.windows.len(), BRIEF.lengths_ms.len());
        // On a machine that is too busy a short window may show nothing, and then says so.
        let is_figure = |window: &&Window| window.settled.joules.is_some();
        assert!(found.windows.iter().any(|window| is_figure(&window)), "{:?}", found.windows);
        for window in &found.windows {
            let Window { settled, worked_s, truth_j, .. } = window;
            assert!(settled.settled && matches!(settled.rule, Some(Rule::Alone | Rule::Shared)));
            let Some(joules) = settled.joules else {
                assert_eq!(settled.error, Some(Fault::BelowIdle), "{window:?}");
                continue;
            };
            // The floor is the suite's own, so its error belongs to the figure.
            let floor_j = (found.idle_w.unwrap() - 70.0).abs() * worked_s + 0.05;
            let error_j = (joules - truth_j.unwrap()).abs();
            assert!(error_j <= settled.bound_joules.unwrap() + floor_j, "{window:?}");
        }
    });
}

#[test]
fn a_card_without_a_counter_is_measured_by_what_it_has() {
    const SCENARIO: &str = "card 0\n name Tesla P100-PCIE-16GB\n arch 4\n cc 6.0\n idle 70\n \
        dynamic\n counter supported=0\n instant supported=0\n sensor window_ms=20 period_ms=20";
    let name = concat!(module_path!(), "::a_card_without_a_counter_is_measured_by_what_it_has");
    lab::run(name, SCENARIO, || {
        let found = measure(200.0);
        assert!(found.is_read());
        let [counter, instant, _] = found.registers.as_slice() else { panic!() };
        assert!(counter.cost.is_none() && counter.grid.is_none() && counter.lag.is_none());
        assert!((instant.response.unwrap().high_w - 200.0).abs() < 0.1, "the plain call stands in");
        assert_eq!(found.windows[1].settled.rule, Some(Rule::Gauge));
        let text = report::text(&[found]);
        assert!(text.contains("energy counter (not_supported)"), "{text}");
    });
}
