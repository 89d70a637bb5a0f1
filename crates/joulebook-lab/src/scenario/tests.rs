use super::*;

fn card(text: &str) -> Card {
    let text = format!("card 0\n{text}\n");
    Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}")).cards.remove(0)
}

fn refused(text: &str) -> ParseError {
    Scenario::parse(text).expect_err(text)
}

#[test]
fn a_card_without_statements_is_the_default_one() {
    assert_eq!(card(""), Card::default());
    assert_eq!(card("").limit, Limit { w: 700.0, min_w: 200.0, max_w: 700.0 });
}

#[test]
fn a_machine_without_cards_has_none() {
    assert_eq!(Scenario::parse("# nothing\n\n").expect("it is empty"), Scenario::default());
}

#[test]
fn every_statement_of_the_grammar_is_read() {
    let text = include_str!("../../testdata/everything.scenario");
    let scenario = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(scenario.clock, ClockKind::Realtime);
    assert_eq!(scenario.epoch_ns, Some(1_700_000_000_000_000_000));
    assert_eq!(scenario.control.as_deref(), Some(Path::new("/dev/shm/with space #1")));
    assert_eq!(scenario.driver, "580.82.07");
    assert_eq!(scenario.smi, Smi { spawn_ns: 35_500_000, spend: Spend::Spin });
    let cost = Cost { energy_ns: 120_000, power_ns: 1_500, spend: Spend::Sleep };
    assert_eq!(scenario.cost, cost);
    assert_eq!(scenario.cards.len(), 3);
    let first = &scenario.cards[0];
    assert_eq!(first.name, "NVIDIA A100-SXM4-80GB # not a comment");
    assert_eq!(first.pci.to_string(), "00000001:4B:00.0");
    assert_eq!((first.architecture, first.compute_capability), (7, (8, 0)));
    assert_eq!(first.memory, Memory { total_mib: 81_920, base_mib: 512 });
    assert_eq!(first.limit, Limit { w: 400.0, min_w: 100.0, max_w: 400.0 });
    assert_eq!(first.mig, Some(true));
    assert_eq!(first.clocks.reasons, 0x84);
    assert_eq!(first.utilization, Utilization { gpu: 97, mem: 40 });
    let w: Vec<f64> = first.knots.iter().map(|knot| knot.w).collect();
    assert_eq!(w, [400.0, 250.5, 90.0], "knots stand in the order of their instants");
    assert!(first.knots[1].linear && !first.knots[0].linear);
    let square = Wave::Square {
        span: Span { start_ns: 0, end_ns: i64::MAX },
        period_ns: 47_000_000,
        on_ns: 11_750_000,
        phase_ns: -3_000_000,
        w: 300.0,
    };
    assert_eq!(first.waves[0], square);
    assert!(matches!(first.waves[1], Wave::Sine { period_ns: 1_000_000_000, .. }));
    assert!(first.dynamic);
    assert_eq!(first.counter.lag_ns, 20_500_000);
    assert_eq!(first.counter.mode, CounterMode::Sensor);
    assert_eq!(first.counter.base_mj, 123_456_789);
    assert_eq!(first.sensor.window_ns, 500_000_000);
    assert!(!first.instant.supported);
    assert_eq!(first.residents[0].name, "/opt/run, v2/serve --ids 1,2 # all of it");
    assert_eq!(first.residents[0].sm_percent, Some(40));
    assert_eq!((first.residents[1].used_mib, first.residents[1].sm_percent), (None, None));
    assert_eq!(scenario.cards[1], Card::numbered(1), "a skipped number is a default card");
    assert_eq!(scenario.cards[2].mig, None);
    assert_eq!(scenario.cards[2].limit, Limit { w: 150.0, min_w: 150.0, max_w: 150.0 });
}

#[test]
fn every_fault_of_the_grammar_is_read() {
    let text = include_str!("../../testdata/everything.scenario");
    let scenario = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let effects: Vec<Effect> = scenario.cards[2].faults.iter().map(|fault| fault.effect).collect();
    assert_eq!(
        effects.get(..6).expect("six"),
        [
            Effect::Set(0),
            Effect::Set(200_000),
            Effect::Jump(-500),
            Effect::Jump(500),
            Effect::Stuck,
            Effect::Value(42.0),
        ]
    );
    let refusals = effects.iter().filter(|effect| matches!(effect, Effect::Refuse(_))).count();
    assert_eq!(refusals, Refusal::WORDS.len());
    for (_, target) in Target::WORDS {
        assert!(scenario.cards[2].faults.iter().any(|fault| fault.target == *target));
    }
    let smi: Vec<&SmiEffect> =
        scenario.cards[2].smi_faults.iter().map(|fault| &fault.effect).collect();
    assert_eq!(
        smi,
        [
            &SmiEffect::Exit { code: 9, text: "NVIDIA-SMI has failed # because".to_owned() },
            &SmiEffect::Exit { code: 0, text: String::new() },
            &SmiEffect::Hang(1_500_000_000),
            &SmiEffect::Garbage("half a li".to_owned()),
            &SmiEffect::Empty,
            &SmiEffect::Die,
            &SmiEffect::Pause,
            &SmiEffect::Field { field: "power.draw".to_owned(), text: "[N/A]".to_owned() },
        ]
    );
}

#[test]
fn a_bad_line_is_named_with_its_word_and_what_would_be_right() {
    let bad: &[(&str, usize, &str, &str)] = &[
        ("colck monotonic", 1, "colck", "clock"),
        ("clock tai", 1, "tai", "monotonic or realtime"),
        ("\nepoch_ns 1.5", 2, "1.5", "whole nanoseconds"),
        ("control", 1, "control", "path"),
        ("smi spawn=3", 1, "spawn=3", "spawn_ms="),
        ("cost mode=wait", 1, "mode=wait", "spin or sleep"),
        ("cost energy_us=-1", 1, "energy_us=-1", "not below 0"),
        ("card x", 1, "x", "number"),
        ("card", 1, "card", "number"),
        ("card 0 1", 1, "1", "nothing more"),
        ("idle 70", 1, "idle", "`card N` must stand before"),
        ("card 0\nidle", 2, "idle", "watts"),
        ("card 0\nidle -1", 2, "-1", "not below 0"),
        ("card 0\nidle NaN", 2, "NaN", "watts"),
        ("card 0\nidle 70 W", 2, "W", "nothing more"),
        ("card 0\nstep 1s 5", 2, "1s", "seconds"),
        ("card 0\nsquare 5 1 w=3", 2, "1", "T0 stands first"),
        ("card 0\nsquare 0 1 duty=50", 2, "duty=50", "0 … 1"),
        ("card 0\nsquare 0 1 period_ms=0", 2, "period_ms=0", "above 0"),
        ("card 0\nsquare 0 1 300", 2, "300", "period_ms="),
        ("card 0\n\nidle 10\nsine 0 1 w=20", 4, "sine 0 1 w=20", "below 0 W"),
        ("card 0\ncounter perid_ms=20", 2, "perid_ms=20", "period_ms="),
        ("card 0\ncounter supported=maybe", 2, "supported=maybe", "0 or 1"),
        ("card 0\ncounter mode=exact", 2, "mode=exact", "true or sensor"),
        ("card 0\nsensor window_ms=-5", 2, "window_ms=-5", "not below 0"),
        ("card 0\nmig 2", 2, "2", "0 (off)"),
        ("card 0\ncc nine", 2, "nine", "major.minor"),
        ("card 0\npci 1:2:3:4", 2, "1:2:3:4", "bus:device"),
        ("card 0\nclocks reasons=cap", 2, "reasons=cap", "bit mask"),
        ("card 0\nproc 0 1 12 some x", 2, "some", "MiB"),
        ("card 0\nproc 0 1 12 500", 2, "proc", "name"),
        ("card 0\nproc 0 1 12 500 sm=x y", 2, "sm=x", "PER CENT"),
        ("card 0\nfault 0 1 enery reset", 2, "enery", "energy, power"),
        ("card 0\nfault 0 1 power reset", 2, "reset", "stuck"),
        ("card 0\nfault 0 1 energy setto", 2, "fault", "mJ"),
        ("card 0\nfault 0 1 energy jump x", 2, "x", "mJ"),
        ("card 0\nfault 0 1 power gone", 2, "gone", "notsupported, lost"),
        ("card 0\nfault 0 1 smi.exit x", 2, "x", "exit code"),
        ("card 0\nfault 0 1 smi.hang 5", 2, "5", "`x`"),
        ("card 0\nfault 0 1 smi.power.draw [N/A]", 2, "[N/A]", "`text`"),
    ];
    for (text, line, token, wanted) in bad {
        let error = refused(text);
        assert_eq!((error.line, error.token.as_str()), (*line, *token), "{text:?}: {error}");
        assert!(error.wanted.contains(wanted), "{text:?}: {error}");
    }
}

#[test]
fn a_scalar_holds_as_said_last_and_lists_add_up() {
    let card = card("idle 50\nidle 60\nstep 1 100\nstep 2 200");
    assert_eq!((card.idle_w, card.knots.len()), (60.0, 2));
}

#[test]
fn times_keep_their_nanoseconds() {
    let card = card("step 1700000000.123456789 100\nsquare 0 inf period_ms=0.5");
    let t_ns = card.knots[0].t_ns;
    // A double of that size tells 240 ns apart.
    assert!((t_ns - 1_700_000_000_123_456_789).abs() < 240, "{t_ns}");
    assert!(matches!(card.waves[0], Wave::Square { period_ns: 500_000, .. }));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Scenario::read(Path::new("/nonexistent/x.scenario")).expect_err("no such file");
    assert!(error.to_string().contains("/nonexistent/x.scenario"), "{error}");
}
