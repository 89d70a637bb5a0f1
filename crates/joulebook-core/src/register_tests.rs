use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;
const CEILING: Power = Power::from_microwatts(400_000_000);

fn nvml() -> Register {
    Register::new(Scale::MILLIJOULES, Modulus::None, CEILING, SECOND)
}

fn delta(step: Step) -> Option<u64> {
    match step {
        Step::Advanced(advance) => Some(advance.delta.microjoules()),
        _ => None,
    }
}

#[test]
fn the_first_reading_books_nothing_and_a_repeat_is_no_zero() {
    let mut register = nvml();
    assert!(matches!(register.advance(0, Ok(5_000_000)), Step::Anchored(_)));
    assert_eq!(register.advance(SECOND, Ok(5_000_000)), Step::Unchanged);
    let step = register.advance(2 * SECOND, Ok(5_300_000));
    assert_eq!(delta(step), Some(300_000_000), "the interval stayed open: 150 W over 2 s");
}

#[test]
fn the_bracket_is_the_pair_of_polls_around_the_change() {
    let mut register = nvml();
    register.advance(0, Ok(0));
    register.advance(10, Ok(0));
    let Step::Advanced(advance) = register.advance(14, Ok(1)) else { panic!() };
    assert_eq!(advance.published, Bracket { after_ns: 10, by_ns: 14 });
    assert_eq!((advance.published.middle_ns(), advance.published.uncertainty_ns()), (12, 2));
}

#[test]
fn a_glitch_loses_and_books_nothing() {
    let mut register = Register::new(
        Scale { numerator: 1_000_000, denominator: 1 },
        Modulus::None,
        Power::from_microwatts(253_000_000),
        SECOND,
    );
    register.advance(0, Ok(31_200_000));
    assert_eq!(delta(register.advance(5 * SECOND, Ok(31_200_260))), Some(260_000_000));
    assert_eq!(register.advance(10 * SECOND, Ok(187)), Step::Provisional);
    let Step::Advanced(advance) = register.advance(15 * SECOND, Ok(31_200_780)) else { panic!() };
    assert_eq!((advance.delta.microjoules(), advance.glitches), (520_000_000, 1));
}

#[test]
fn a_long_glitch_that_looked_like_a_restart_is_not_booked_twice() {
    let mut register = nvml();
    register.advance(0, Ok(9_000_000));
    register.advance(SECOND, Ok(1000));
    let Step::Restarted { counted, then, .. } = register.advance(2 * SECOND, Ok(1200)) else {
        panic!()
    };
    assert_eq!(counted.map(Energy::microjoules), Some(1_000_000));
    assert_eq!(then.delta.microjoules(), 200_000);
    let back = register.advance(3 * SECOND, Ok(9_300_000));
    assert_eq!(delta(back), Some(300_000_000 - 1_200_000));
}

#[test]
fn a_restart_counts_from_zero_where_it_can_only_restart() {
    let mut register = nvml();
    register.advance(0, Ok(5_000_000));
    register.advance(SECOND, Ok(5_100_000));
    assert_eq!(register.advance(2 * SECOND, Ok(1200)), Step::Provisional);
    let Step::Restarted { restarted, counted, then } = register.advance(3 * SECOND, Ok(101_200))
    else {
        panic!()
    };
    assert_eq!(restarted, Bracket { after_ns: SECOND, by_ns: 2 * SECOND });
    assert_eq!(counted.map(Energy::microjoules), Some(1_200_000));
    assert_eq!(then.delta.microjoules(), 100_000_000);
}

#[test]
fn a_fall_of_unknown_modulus_counts_only_what_follows() {
    let mut register = Register::new(Scale::MICROJOULES, Modulus::Unknown, DEFAULT_CEILING, SECOND);
    register.advance(0, Ok(4_000_000_000));
    register.advance(10 * SECOND, Ok(10_000));
    let Step::Restarted { counted, then, .. } = register.advance(20 * SECOND, Ok(500_010_000))
    else {
        panic!()
    };
    assert_eq!((counted, then.delta.microjoules()), (None, 500_000_000));
}

#[test]
fn a_wrap_uses_the_registers_own_modulus() {
    let mut register =
        Register::new(Scale::MICROJOULES, Modulus::At(262_143_328_850), DEFAULT_CEILING, SECOND);
    register.advance(0, Ok(262_100_000_000));
    let Step::Advanced(advance) = register.advance(20 * SECOND, Ok(1_500_000_000)) else {
        panic!()
    };
    assert_eq!((advance.delta.microjoules(), advance.wrapped), (1_543_328_850, true));
}

#[test]
fn a_rise_that_stays_is_set_and_not_booked() {
    let mut register = nvml();
    register.advance(0, Ok(1000));
    assert_eq!(register.advance(SECOND, Ok(1_000_001_000)), Step::Provisional);
    let Step::Set { then, .. } = register.advance(2 * SECOND, Ok(1_000_101_000)) else { panic!() };
    assert_eq!(then.delta.microjoules(), 100_000_000);
}

#[test]
fn fractional_units_are_carried() {
    // AMD: 2^-16 J a unit, 15625/1024 µJ.
    let mut register = Register::new(
        Scale { numerator: 15625, denominator: 1024 },
        Modulus::None,
        CEILING,
        SECOND,
    );
    register.advance(0, Ok(0));
    let total: u64 =
        (1..=65_536).filter_map(|unit| delta(register.advance(unit * 1000, Ok(unit)))).sum();
    assert_eq!(total, 1_000_000);
}

/// What happens at one poll of the property test.
#[derive(Clone, Debug)]
enum Event {
    /// The card drew this many units since the poll before.
    Draw(u64),
    Stuck,
    Hole,
    /// The poll shows this instead of the register.
    Glitch(u64),
    /// Two polls in a row show nonsense, the second a little above the first.
    TwoGlitches(u64, u64),
    /// The register started again and has counted this much since; what it drew before is lost.
    Restart(u64),
    /// The register was set up by this much.
    Set(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (1u64..200_000).prop_map(Event::Draw),
        1 => Just(Event::Stuck),
        1 => Just(Event::Hole),
        1 => (0u64..4_000_000).prop_map(Event::Glitch),
        1 => ((0u64..4_000_000), (1u64..200_000)).prop_map(|(a, b)| Event::TwoGlitches(a, b)),
        1 => (1u64..200_000).prop_map(Event::Restart),
        1 => (10_000_000_000u64..20_000_000_000).prop_map(Event::Set),
    ]
}

/// The oracle: it knows the register's whole story, keeps the true energy since the first poll in
/// one sum and takes out what no reader can know (what a restart lost, since the poll before it).
struct Oracle {
    register: u64,
    known: u64,
    /// Drawn while the polls could not see it; known at the next good poll.
    pending: u64,
}

fn total(step: Step) -> u64 {
    match step {
        Step::Advanced(advance) => advance.delta.microjoules(),
        Step::Restarted { counted, then, .. } => {
            counted.map_or(0, Energy::microjoules) + then.delta.microjoules()
        }
        Step::Set { then, .. } => then.delta.microjoules(),
        _ => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Faults anywhere: what is accepted is exactly the true energy less what nobody can know.
    /// After each event a few plain polls follow, so that they tell which it was.
    #[test]
    fn accepted_energy_is_the_true_energy_a_reader_can_know(
        events in proptest::collection::vec(event(), 1..60),
    ) {
        let mut register = nvml();
        let mut oracle = Oracle { register: 5_000_000_000, known: 0, pending: 0 };
        let mut now = 0;
        let mut accepted = 0;
        register.advance(now, Ok(oracle.register));
        let poll = |register: &mut Register, now: &mut u64, reading| {
            *now += SECOND;
            total(register.advance(*now, reading))
        };
        for event in events {
            match event {
                Event::Draw(units) => {
                    oracle.register += units;
                    oracle.pending += units;
                    accepted += poll(&mut register, &mut now, Ok(oracle.register));
                }
                Event::Stuck => accepted += poll(&mut register, &mut now, Ok(oracle.register)),
                Event::Hole => {
                    accepted += poll(&mut register, &mut now, Err(Fault::Timeout));
                }
                Event::Glitch(shown) => {
                    // Near the line it would be no glitch.
                    if shown + 3_000_000 >= oracle.register {
                        continue;
                    }
                    accepted += poll(&mut register, &mut now, Ok(shown));
                }
                Event::TwoGlitches(first, rise) => {
                    if first + rise + 3_000_000 >= oracle.register {
                        continue;
                    }
                    accepted += poll(&mut register, &mut now, Ok(first));
                    accepted += poll(&mut register, &mut now, Ok(first + rise));
                }
                Event::Restart(counted) => {
                    // A second restart in the same small register could pass for its old line.
                    if oracle.register < 4_000_000_000 {
                        continue;
                    }
                    oracle.pending += counted;
                    oracle.register = counted;
                    accepted += poll(&mut register, &mut now, Ok(oracle.register));
                }
                Event::Set(jump) => {
                    oracle.register += jump;
                    accepted += poll(&mut register, &mut now, Ok(oracle.register));
                }
            }
            // Draws that any card could supply, and enough of them to pay what a false restart
            // may have booked too early.
            for _ in 0..20 {
                oracle.register += 90_000;
                oracle.pending += 90_000;
                accepted += poll(&mut register, &mut now, Ok(oracle.register));
            }
            oracle.known += oracle.pending * 1000;
            oracle.pending = 0;
            prop_assert_eq!(accepted, oracle.known, "after {:?}", event);
        }
    }

    /// Any readings at all: accepted energy never passes what the card could have drawn.
    #[test]
    fn nothing_a_card_cannot_supply_is_ever_booked(
        readings in proptest::collection::vec(proptest::option::of(any::<u64>()), 1..80),
    ) {
        let mut register = nvml();
        let mut accepted: u128 = 0;
        for (second, reading) in (0u64..).zip(&readings) {
            let step = register.advance(second * SECOND, reading.ok_or(Fault::Unknown));
            accepted += u128::from(total(step));
            // One period of grace for each reading taken.
            let most = u128::from(CEILING.microwatts()) * u128::from(2 * second + 2);
            prop_assert!(accepted <= most, "{accepted} after {second} s");
        }
    }

    /// A modulus anywhere: wraps change nothing of the total.
    #[test]
    fn wraps_lose_nothing(
        modulus in 1_000_000u64..10_000_000,
        start in 0u64..1_000_000,
        draws in proptest::collection::vec(1u64..300_000, 1..200),
    ) {
        let mut register =
            Register::new(Scale::MILLIJOULES, Modulus::At(modulus), CEILING, SECOND);
        let mut truth = start;
        register.advance(0, Ok(start));
        let mut accepted = 0;
        for (second, draw) in (1u64..).zip(&draws) {
            truth += draw;
            accepted += total(register.advance(second * SECOND, Ok(truth % modulus)));
        }
        prop_assert_eq!(accepted, (truth - start) * 1000);
    }
}

/// A reader that was not let run for a second: the call was made when it went on, long after the
/// middle of the time in which it may have been.
#[test]
fn what_a_long_call_may_have_read_late_is_no_glitch() {
    let period = SECOND / 10;
    let of = || Register::new(Scale::MILLIJOULES, Modulus::None, CEILING, period);
    // 350 W of at most 400, a publish each 100 ms; the last but one poll at 100 ms.
    let at_ns = 100_000_000 + SECOND / 2;
    let slack_ns = SECOND / 2;
    let begun = |register: &mut Register| {
        register.advance(0, Ok(0));
        register.advance(SECOND / 10, Ok(35_000))
    };
    let mut register = of();
    assert_eq!(delta(begun(&mut register)), Some(35_000_000));
    let step = register.advance_within(at_ns, slack_ns, Ok(385_000));
    assert_eq!(delta(step), Some(350_000_000), "350 W over the second until the call's end");
    // The same from a call that may have read as early as it began.
    let mut register = of();
    register.advance_within(at_ns, slack_ns, Ok(0));
    register.advance_within(at_ns + slack_ns, 0, Ok(1));
    let step = register.advance(at_ns + slack_ns + period, Ok(385_000));
    assert_eq!(delta(step), Some(384_999_000));
    // More than a card can supply in all that time stays out.
    let mut register = of();
    begun(&mut register);
    assert_eq!(register.advance_within(at_ns, slack_ns, Ok(600_000)), Step::Provisional);
    // And where it is known when it was read, the time of the call is no excuse.
    let mut register = of();
    begun(&mut register);
    assert_eq!(register.advance(at_ns, Ok(385_000)), Step::Provisional);
}
