use proptest::prelude::*;

use super::*;
use crate::{
    Clock,
    scenario::{Knot, Scenario, Span},
};

const SECOND: i64 = 1_000_000_000;

fn load(text: &str) -> Load {
    let scenario = Scenario::parse(&format!("card 0\n{text}")).expect("it parses");
    Load::new(&scenario.cards[0], None)
}

fn close(left: f64, right: f64) {
    assert!((left - right).abs() <= 1e-9 * left.abs().max(right.abs()).max(1.0), "{left} {right}");
}

#[test]
fn jumps_and_lines_are_what_the_grammar_says() {
    let load = load("idle 70\nstep 1 300\npoint 2 100\nstep 4 50");
    assert_eq!(load.watts(SECOND - 1), 70.0);
    assert_eq!(load.watts(SECOND), 300.0);
    assert_eq!(load.watts(SECOND + SECOND / 2), 200.0);
    assert_eq!(load.watts(3 * SECOND), 100.0);
    close(load.energy(0, 5 * SECOND), 70.0 + 200.0 + 200.0 + 50.0);
    close(load.joules(-SECOND), -70.0);
}

#[test]
fn a_first_point_is_reached_from_idle_at_the_epoch() {
    let load = load("idle 70\npoint 2 170");
    assert_eq!(load.watts(SECOND), 120.0);
    close(load.energy(0, 3 * SECOND), 240.0 + 170.0);
}

#[test]
fn knots_before_the_epoch_do_not_move_its_zero() {
    let load = load("idle 70\nstep -2 100\nstep 1 10");
    assert_eq!(load.joules(0), 0.0);
    close(load.energy(-3 * SECOND, 2 * SECOND), 70.0 + 300.0 + 10.0);
}

#[test]
fn a_square_adds_the_first_part_of_each_period_and_its_phase_moves_it() {
    let load = load("idle 10\nsquare 1 3 period_ms=1000 duty=0.25 w=100 phase_ms=500");
    assert_eq!(load.watts(SECOND + SECOND / 4), 10.0);
    assert_eq!(load.watts(SECOND + SECOND / 2), 110.0);
    assert_eq!(load.watts(SECOND + 3 * SECOND / 4), 10.0);
    close(load.energy(0, 10 * SECOND), 100.0 + 50.0);
}

#[test]
fn a_sine_sums_to_nothing_over_its_periods() {
    let load = load("idle 100\nsine 0 inf period_ms=100 w=50");
    close(load.energy(0, 10 * SECOND), 1000.0);
    close(load.energy(0, SECOND / 20), 5.0 + 50.0 * 0.1 / std::f64::consts::PI);
    assert_eq!(load.watts(SECOND / 40), 150.0);
}

#[test]
fn a_long_way_from_the_epoch_the_last_joule_is_still_there() {
    let load = load("idle 70\nsquare 0 inf period_ms=47 duty=0.5 w=300");
    let year = 31_536_000 * SECOND;
    let window = load.energy(year, year + 47_000_000);
    assert!((window - 0.047 * 220.0).abs() < 1e-5, "{window}");
}

#[test]
fn a_live_load_is_summed_as_it_was_set() {
    let clock = Clock::simulated();
    let live = LiveLoad::new(clock.clone());
    let card = Card { dynamic: true, ..Card::default() };
    let load = Load::new(&card, Some(Arc::new(live.clone())));
    close(load.energy(0, SECOND), 70.0);
    clock.set_ns(SECOND);
    live.set_watts(400.0).expect("400 W are a power");
    clock.advance_ns(SECOND / 1000);
    live.set_watts(100.0).expect("100 W are a power");
    close(load.energy(0, 2 * SECOND), 70.0 + 0.4 + 99.9);
    assert_eq!(load.watts(SECOND), 400.0);
    assert_eq!(load.watts(SECOND - 1), 70.0);
    let error = live.set_watts_at(SECOND, 1.0).expect_err("time went back");
    assert!(matches!(error, LiveLoadError::Backwards { .. }));
    assert!(live.set_watts(f64::NAN).is_err());
}

fn knots() -> impl Strategy<Value = Vec<Knot>> {
    let knot = (-2_000_000_000_i64..4_000_000_000, 0.0_f64..700.0, any::<bool>())
        .prop_map(|(t_ns, w, linear)| Knot { t_ns, w, linear });
    proptest::collection::vec(knot, 0..8).prop_map(|mut knots| {
        knots.sort_by_key(|knot| knot.t_ns);
        knots
    })
}

fn waves() -> impl Strategy<Value = Vec<Wave>> {
    let part = (
        -1_000_000_000_i64..3_000_000_000,
        0_i64..3_000_000_000,
        1_000_000_i64..500_000_000,
        0.0_f64..=1.0,
        -300_000_000_i64..300_000_000,
        0.0_f64..300.0,
        any::<bool>(),
    );
    let wave = part.prop_map(|(start_ns, length, period_ns, duty, phase_ns, w, sine)| {
        let span = Span { start_ns, end_ns: start_ns + length };
        let on_ns = (period_ns as f64 * duty) as i64;
        if sine {
            Wave::Sine { span, period_ns, w }
        } else {
            Wave::Square { span, period_ns, on_ns, phase_ns, w }
        }
    });
    proptest::collection::vec(wave, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The closed form against a sum of small midpoint rectangles, which knows nothing but the
    /// power at an instant; each jump costs it at most one rectangle of the jump's height.
    #[test]
    fn the_integral_is_the_sum_of_the_power(
        knots in knots(), waves in waves(), start in -1_500_000_000_i64..3_000_000_000,
        length in 0_i64..2_000_000_000,
    ) {
        let card = Card { knots, waves, ..Card::default() };
        let load = Load::new(&card, None);
        let parts = 20_000;
        let width = length as f64 / f64::from(parts);
        let slow: f64 = (0..parts)
            .map(|part| load.watts(start + ((f64::from(part) + 0.5) * width) as i64) * width / 1e9)
            .sum();
        let jumps: f64 = card.knots.len() as f64 * 700.0
            + card.waves.iter().map(|wave| match wave {
                Wave::Square { period_ns, w, .. } => w * (2.0 * length as f64 / *period_ns as f64 + 4.0),
                Wave::Sine { w, .. } => w * 4.0,
            }).sum::<f64>();
        let exact = load.energy(start, start + length);
        let allowed = jumps * width / 1e9 + 1e-6 * exact.abs() + 1e-6;
        prop_assert!((slow - exact).abs() <= allowed, "{slow} {exact} allowed {allowed}");
    }

    #[test]
    fn windows_add_up(knots in knots(), waves in waves(), a in -2_000_000_000_i64..2_000_000_000,
        b in 0_i64..2_000_000_000, c in 0_i64..2_000_000_000) {
        let load = Load::new(&Card { knots, waves, ..Card::default() }, None);
        let whole = load.energy(a, a + b + c);
        let parts = load.energy(a, a + b) + load.energy(a + b, a + b + c);
        prop_assert!((whole - parts).abs() < 1e-9 * whole.abs().max(1.0));
        prop_assert_eq!(load.joules(0), 0.0);
    }
}
