use proptest::prelude::*;

use super::*;
use crate::scenario::Scenario;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1000 * MS;

fn card(text: &str) -> Model {
    let scenario = Scenario::parse(&format!("card 0\n{text}"));
    let mut scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    Model::new(0, scenario.cards.remove(0), None)
}

fn energy(model: &Model, t_ns: i64) -> u64 {
    model.energy_mj(t_ns, false).value.expect("the counter answers")
}

#[test]
fn a_counter_moves_at_its_publishes_and_shows_the_truth_as_of_its_lag() {
    let model = card("idle 100\ncounter period_ms=100 lag_ms=30 phase_ms=20 base_mj=5000");
    assert_eq!(
        energy(&model, 10 * MS),
        0,
        "publish −1 is before the epoch and lags on top: 5 J less 11 J"
    );
    assert_eq!(energy(&model, SECOND), 5000 + 89_000);
    assert_eq!(energy(&model, SECOND + 20 * MS - 1), 5000 + 89_000);
    assert_eq!(energy(&model, SECOND + 20 * MS), 5000 + 99_000);
}

#[test]
fn gain_and_resolution_shape_the_value() {
    let model = card("idle 100\ncounter gain=1.05 res_mj=1000 base_mj=400");
    assert_eq!(energy(&model, 10 * SECOND), 1_050_000);
    assert_eq!(energy(&model, 11 * SECOND), 1_155_000);
    let fine = card("idle 70\ncounter period_ms=0");
    assert_eq!(energy(&fine, SECOND), 70_000);
}

#[test]
fn jitter_stays_within_its_bound_and_is_spread_evenly() {
    let model = card("idle 70\ncounter period_ms=100 jitter_ms=10");
    let counter = model.card().counter;
    let mut sum = 0;
    let mut seen = std::collections::BTreeSet::new();
    for publish in 0..2000 {
        let due = publish * 100 * MS;
        let came = counter::publish_ns(&counter, 0, due + 50 * MS);
        assert!((came - due).abs() <= 10 * MS, "publish {publish} came {} ns off", came - due);
        assert_eq!(counter::publish_ns(&counter, 0, came), came);
        assert!(counter::publish_ns(&counter, 0, came - 1) < came);
        sum += came - due;
        seen.insert((came - due) / MS);
    }
    assert!((sum / 2000).abs() < MS / 2, "mean displacement {} ns", sum / 2000);
    assert!(seen.len() >= 19, "only {} of 21 ms classes were drawn", seen.len());
    let other = counter::publish_ns(&counter, 1, 150 * MS);
    assert_ne!(other, counter::publish_ns(&counter, 0, 150 * MS), "cards draw on their own");
}

#[test]
fn a_restart_counts_from_zero_and_a_finite_one_is_a_glitch() {
    let model = card(
        "idle 100\ncounter base_mj=1000000\nfault 2 2.15 energy setto 200000\n\
         fault 5 inf energy reset\nfault 8 inf energy jump +7000",
    );
    assert_eq!(energy(&model, 2 * SECOND - 1), 1_190_000);
    assert_eq!(energy(&model, 2 * SECOND), 200_000);
    assert_eq!(energy(&model, 2 * SECOND + 100 * MS), 210_000);
    assert_eq!(energy(&model, 2 * SECOND + 150 * MS), 1_210_000, "back on the old line");
    assert_eq!(energy(&model, 5 * SECOND), 0);
    assert_eq!(energy(&model, 7 * SECOND), 200_000);
    assert_eq!(energy(&model, 8 * SECOND), 307_000);
}

#[test]
fn a_restart_that_the_lag_hides_shows_zero_first() {
    let model = card("idle 100\ncounter lag_ms=50\nfault 1.02 inf energy reset");
    assert_eq!(energy(&model, SECOND + 30 * MS), 0);
    assert_eq!(energy(&model, SECOND + 100 * MS), 3_000);
}

#[test]
fn stuck_value_error_and_hang_do_what_they_say() {
    let model = card(
        "idle 100\nfault 2 4 energy stuck\nfault 5 6 energy value 42\nfault 6 7 energy lost\n\
         fault 7 8 all hang 250\nfault 8 9 fields timeout\nfault 9 10 power stuck\nstep 9.5 300",
    );
    assert_eq!(energy(&model, 3 * SECOND + 999 * MS), 200_000);
    assert_eq!(energy(&model, 4 * SECOND), 400_000);
    assert_eq!(energy(&model, 5 * SECOND), 42);
    assert_eq!(model.energy_mj(6 * SECOND, false).value, Err(Refusal::Lost));
    assert_eq!(model.energy_mj(7 * SECOND, false).hang_ns, 250 * MS);
    assert_eq!(model.memory(7 * SECOND).hang_ns, 250 * MS);
    assert_eq!(model.energy_mj(8 * SECOND, true).value, Err(Refusal::Timeout));
    assert_eq!(energy(&model, 8 * SECOND), 800_000);
    let average = |t_ns| model.power_mw(PowerRegister::Average, t_ns, false).value;
    assert_eq!(average(10 * SECOND - 1), Ok(100_000));
    assert_eq!(average(10 * SECOND), Ok(200_000));
}

#[test]
fn an_unsupported_register_says_so() {
    let model = card("counter supported=0\nsensor supported=0\ninstant supported=0");
    assert_eq!(model.energy_mj(0, false).value, Err(Refusal::NotSupported));
    for register in [PowerRegister::Average, PowerRegister::Instant] {
        assert_eq!(model.power_mw(register, 0, true).value, Err(Refusal::NotSupported));
    }
}

#[test]
fn the_averaged_register_shows_the_last_second_and_the_instant_one_the_moment() {
    let model = card("idle 70\nstep 1 400\nstep 1.3 70\nsensor gain=1.1");
    let average = |t_ns| model.power_mw(PowerRegister::Average, t_ns, false).value.expect("power");
    let instant = |t_ns| model.power_mw(PowerRegister::Instant, t_ns, true).value.expect("power");
    assert_eq!(average(SECOND), 77_000);
    assert_eq!(
        average(SECOND + 199 * MS),
        (1100.0 * (70.0 * 0.9 + 400.0 * 0.1_f64)).round() as u32
    );
    assert_eq!(
        average(SECOND + 300 * MS),
        (1100.0 * (70.0 * 0.7 + 400.0 * 0.3_f64)).round() as u32
    );
    assert_eq!(average(3 * SECOND), 77_000);
    assert_eq!((instant(SECOND - 1), instant(SECOND)), (70_000, 400_000));
    assert_eq!((instant(SECOND + 299 * MS), instant(SECOND + 300 * MS)), (400_000, 70_000));
}

#[test]
fn a_counter_of_the_sensor_sums_what_the_sensor_showed() {
    let text = "idle 70\nstep 0.5 400\nstep 1.2 90\nsquare 2 inf period_ms=470 w=300\n\
                sensor window_ms=300 period_ms=70 phase_ms=11 gain=1.1\n\
                counter mode=sensor period_ms=0";
    let model = card(text);
    // The slow way: the register is constant between its publishes, so small steps sum it exactly.
    let mut sum = 0.0;
    for ms in 0..30_000_i64 {
        if ms % 5_000 == 0 {
            let shown = energy(&model, ms * MS) as f64 / 1e3;
            assert!((shown - sum).abs() < 0.002, "{ms} ms: {shown} and {sum}");
        }
        sum += gauge::shown_w(&model.card().sensor, model.load(), ms * MS) / 1e3;
    }
    // Another order of questions gets the same answers.
    let fresh = card(text);
    for ms in [29_000, 3, 12_345, 7_000, 29_000] {
        assert_eq!(energy(&fresh, ms * MS), energy(&model, ms * MS), "{ms} ms");
    }
}

#[test]
fn memory_processes_and_utilisation_follow_the_scenario() {
    let model = card(
        "mem total_mib=1000 base_mib=10\nutil gpu=55 mem=5\nproc 1 3 10 100 a\nproc 2 3 11 -1 b c\n\
         fault 2.5 3 util value 99\nfault 2.5 3 procs value 1\nfault 2.5 3 name nodata",
    );
    let used = |t_ns| model.memory(t_ns).value.expect("memory").used_mib;
    assert_eq!((used(0), used(SECOND), used(3 * SECOND)), (10, 110, 10));
    let names = |t_ns: i64| -> Vec<String> {
        let residents = model.residents(t_ns).value.expect("processes");
        residents.iter().map(|resident| resident.name.clone()).collect()
    };
    assert_eq!(names(0), Vec::<String>::new());
    assert_eq!(names(2 * SECOND), ["a", "b c"]);
    assert_eq!(names(2 * SECOND + 600 * MS), ["a"]);
    assert_eq!(model.utilization(2 * SECOND).value.expect("util").gpu, 55);
    assert_eq!(model.utilization(2 * SECOND + 600 * MS).value.expect("util").gpu, 99);
    assert_eq!(model.name(2 * SECOND + 600 * MS).value, Err(Refusal::NoData));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The last publish, against a search through all of them.
    #[test]
    fn the_last_publish_is_the_last_that_came(
        period_ms in 1_i64..200, jitter_ms in 0_i64..300, phase_ms in 0_i64..200,
        reads in proptest::collection::vec(0_i64..5_000_000_000, 1..40),
    ) {
        let (period_ns, jitter_ns, phase_ns) = (period_ms * MS, jitter_ms * MS, phase_ms * MS);
        let counter = crate::scenario::Counter { period_ns, jitter_ns, phase_ns, ..Default::default() };
        let model = Model::new(0, Card { counter, ..Card::default() }, None);
        let mut reads = reads;
        reads.sort_unstable();
        let mut last = (0, i64::MIN);
        for t_ns in reads {
            let came = counter::publish_ns(&counter, 0, t_ns);
            prop_assert!(came <= t_ns);
            let all = (-700..6000).map(|index| counter::instant_ns(&counter, 0, index));
            prop_assert_eq!(Some(came), all.filter(|instant_ns| *instant_ns <= t_ns).max());
            prop_assert!(came >= last.1);
            let shown = energy(&model, t_ns);
            prop_assert!(shown >= last.0);
            prop_assert_eq!(shown, (model.load().joules(came).max(0.0) * 1e3 + 1e-6) as u64);
            last = (shown, came);
        }
    }
}
