use super::*;

const MINUTE_NS: u64 = 60 * SECOND_NS;
const OFF: State = State { model_loaded: false, power_state: Some(8) };
const LOADED: State = State { model_loaded: true, power_state: Some(8) };
const AWAKE: State = State { model_loaded: true, power_state: Some(0) };

fn watts(watts: u64) -> u64 {
    watts * 1_000_000
}

/// A tick that begins then.
fn tick(state: State, from_ns: u64, length_ns: u64, power_w: u64) -> Stretch {
    let counted_uj = watts(power_w) * (length_ns / 1000) / 1_000_000;
    let from = Point { at_ns: from_ns, energy_uj: 5, ..Point::default() };
    let to = Point { at_ns: from_ns + length_ns, energy_uj: 5 + counted_uj, ..from };
    Stretch { from, to, drawn_from_ns: from_ns, drawn_to_ns: to.at_ns, state }
}

/// Ten quiet ticks in a second that begins then; the look after them finds the same.
fn rests(floors: &mut Floors, from_ns: u64, state: State, power_w: u64) {
    for number in 0..10 {
        floors.quiet(tick(state, from_ns + number * SECOND_NS / 10, SECOND_NS / 10, power_w));
    }
    floors.learn(|_, _| Some(true));
}

fn rest(floors: &Floors, state: State, now_ns: u64) -> Option<(u64, Option<u64>)> {
    floors.at_rest(state, now_ns).rest.map(|rest| {
        assert_eq!(rest.model_loaded, state.model_loaded);
        (rest.power_uw, rest.off_uw)
    })
}

fn stored(off_w: Option<f64>, loaded_w: Option<f64>, unix_s: u64) -> Floors {
    let floor = |watts: f64, model_loaded| profile::Floor {
        watts,
        spread_watts: 0.5,
        unix_s,
        seconds: 2.0,
        readings: 20,
        backend: "nvml_counter".into(),
        scope: joulebook_core::Scope::Gpu,
        model_loaded,
    };
    let off = off_w.and_then(|watts| Known::stored(&floor(watts, false)));
    let loaded = loaded_w.and_then(|watts| Known::stored(&floor(watts, true)));
    Floors { stored: [off, loaded], ..Floors::default() }
}

#[test]
fn declared_wins_then_learnt_then_stored() {
    let now_s = unix_s(MINUTE_NS);
    let mut floors = stored(Some(20.0), Some(70.0), now_s);
    assert_eq!(rest(&floors, LOADED, MINUTE_NS), Some((watts(70), Some(watts(20)))));
    assert_eq!(floors.at_rest(LOADED, MINUTE_NS).spread_uw, 500_000);
    rests(&mut floors, MINUTE_NS, LOADED, 64);
    rests(&mut floors, 2 * MINUTE_NS, OFF, 17);
    assert_eq!(rest(&floors, LOADED, 2 * MINUTE_NS), Some((watts(64), Some(watts(17)))));
    assert_eq!(rest(&floors, OFF, 2 * MINUTE_NS), Some((watts(17), Some(watts(17)))));
    assert_eq!(floors.at_rest(LOADED, 2 * MINUTE_NS).flags, Flags::NONE);
    floors.declared_uw = Some(watts(80));
    assert_eq!(rest(&floors, LOADED, 2 * MINUTE_NS), Some((watts(80), Some(watts(17)))));
}

#[test]
fn nothing_known_is_nothing_and_a_model_is_not_charged_against_an_empty_card() {
    let mut floors = Floors::default();
    assert_eq!(floors.at_rest(LOADED, MINUTE_NS), AtRest::default());
    rests(&mut floors, MINUTE_NS, OFF, 17);
    assert_eq!(rest(&floors, LOADED, 2 * MINUTE_NS), None);
    // What was stored without a model stands in, as it does for windows.
    let floors = stored(Some(20.0), None, unix_s(MINUTE_NS));
    assert_eq!(rest(&floors, LOADED, MINUTE_NS), Some((watts(20), None)));
}

#[test]
fn power_states_are_kept_apart_and_stand_in_for_each_other_as_suspect() {
    let mut floors = Floors::default();
    rests(&mut floors, MINUTE_NS, LOADED, 25);
    let at_rest = floors.at_rest(AWAKE, 2 * MINUTE_NS);
    assert_eq!(at_rest.rest.map(|rest| rest.power_uw), Some(watts(25)));
    assert_eq!(at_rest.flags, Flags::BASELINE_SUSPECT);
    rests(&mut floors, 2 * MINUTE_NS, AWAKE, 60);
    let now_ns = 3 * MINUTE_NS;
    assert_eq!(rest(&floors, AWAKE, now_ns), Some((watts(60), None)));
    assert_eq!(rest(&floors, LOADED, now_ns), Some((watts(25), None)));
    assert_eq!(floors.at_rest(AWAKE, now_ns).flags, Flags::NONE);
}

#[test]
fn what_is_old_is_kept_and_said_to_be_stale() {
    let mut floors = stored(None, Some(70.0), 0);
    assert_eq!(floors.at_rest(LOADED, MINUTE_NS).flags, Flags::BASELINE_STALE);
    rests(&mut floors, MINUTE_NS, LOADED, 64);
    let fresh = floors.said(LOADED, 2 * MINUTE_NS).unwrap();
    assert_eq!((fresh.watts, fresh.from, fresh.is_stale()), (64.0, FloorFrom::Learnt, false));
    assert_eq!((fresh.ticks, fresh.age_seconds), (Some(5), Some(59.0)));
    let stale = floors.said(LOADED, MINUTE_NS + SECOND_NS + REMEMBERED_NS + 1).unwrap();
    assert_eq!((stale.watts, stale.is_stale()), (64.0, true));
}

#[test]
fn a_tick_teaches_when_the_next_look_finds_the_card_as_it_was() {
    let mut floors = Floors::default();
    for second in 0..20 {
        floors.quiet(tick(LOADED, second * SECOND_NS, SECOND_NS, 40));
    }
    floors.learn(|_, _| None);
    assert_eq!(floors.learnt.len(), 0);
    floors.learn(|from_ns, _| Some(from_ns < SECOND_NS));
    assert!(floors.learnt.is_empty() && floors.pending.is_empty(), "one tick is no floor");
    for _ in 0..2 * MOST_PENDING {
        floors.quiet(tick(LOADED, 0, SECOND_NS, 40));
    }
    assert_eq!(floors.pending.len(), MOST_PENDING);
}

#[test]
fn a_wavering_rest_has_a_spread() {
    let mut floors = Floors::default();
    for second in 0..40 {
        rests(&mut floors, second * SECOND_NS, LOADED, 68 + second % 5);
    }
    let at_rest = floors.at_rest(LOADED, MINUTE_NS);
    assert_eq!(at_rest.rest.map(|rest| rest.power_uw), Some(watts(70)));
    assert_eq!(at_rest.spread_uw, watts(1));
}

#[test]
fn short_ticks_are_taken_together_until_their_instants_matter_little() {
    // 60 W on a register of 20 ms that is seen now 3 ms late, now on time.
    let mut floors = Floors::default();
    let point = |number: u64| Point {
        at_ns: number * 20_000_000 + number % 2 * 3_000_000,
        energy_uj: number * 1_200_000,
        uncertainty_ns: 3_000_000,
        ..Point::default()
    };
    for number in 0..200 {
        let (from, to) = (point(number), point(number + 1));
        let (drawn_from_ns, drawn_to_ns) = (from.at_ns, to.at_ns);
        floors.quiet(Stretch { from, to, drawn_from_ns, drawn_to_ns, state: LOADED });
    }
    floors.learn(|_, _| Some(true));
    let at_rest = floors.at_rest(LOADED, MINUTE_NS);
    assert!(at_rest.rest.is_some_and(|rest| rest.power_uw.abs_diff(watts(60)) < 2_000_000));
    assert!(at_rest.spread_uw < 2_000_000, "{at_rest:?}");
    // Six of them make 120 ms; what somebody's work has cut in two is not joined.
    let mut cut = Floors::default();
    for number in (0..200).filter(|number| number % 5 != 0) {
        let (from, to) = (point(number), point(number + 1));
        let (drawn_from_ns, drawn_to_ns) = (from.at_ns, to.at_ns);
        cut.quiet(Stretch { from, to, drawn_from_ns, drawn_to_ns, state: LOADED });
    }
    assert!(cut.pending.is_empty());
}
