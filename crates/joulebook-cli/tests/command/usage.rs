//! What the asker gets wrong: what, where and what to do, and code 2; before a command starts.

use super::bench::{Bench, QUICK, said};

#[test]
fn a_card_that_does_not_exist_names_those_that_do() {
    let bench = Bench::with("card 0\nname First Card\ncard 1\nname Second Card\n");
    let mark = bench.path("ran");
    let run = ["run", "--gpu", "7", "--", "touch", mark.to_str().unwrap()];
    for said in
        [bench.say(["probe", "--gpu", "7"]), bench.say(["idle", "--gpu", "7"]), bench.say(run)]
    {
        assert_eq!(said.code, Some(2), "{}", said.err);
        for word in ["there is no card \"7\"", "0 First Card", "1 Second Card"] {
            assert!(said.err.contains(word), "{word}: {}", said.err);
        }
    }
    assert!(!mark.exists(), "the command did not start");
}

#[test]
fn an_unknown_flag_shows_the_way() {
    let said = Bench::without_cards().say(["run", "--tokns", "3", "--", "true"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("--tokens"), "{}", said.err);
    assert!(said.err.contains("--help"), "{}", said.err);
}

#[test]
fn values_that_are_none_are_refused() {
    let bench = Bench::with(QUICK);
    for (arguments, word) in [
        (&["run", "--idle", "-3", "true"][..], "--idle"),
        (&["run", "--idle=nan", "true"], "0 or more"),
        (&["run", "--idle", "60,70", "true"], "2 floors for 1 cards"),
        (&["run", "--for", "soon"], "1m30s"),
        (&["run", "--pid", "4000000000"], "there is no process 4000000000"),
        (&["run"], "COMMAND"),
        (&["run", "--pid", "1", "--", "true"], "cannot be used with"),
        (&["probe", "--seconds", "1"], "from 6"),
        (&["idle", "--seconds", "0"], "from 1"),
        (&["brew"], "unrecognized subcommand"),
    ] {
        let mut command = bench.joulebook([]);
        let said = said(command.args(arguments));
        assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(word), "{arguments:?}: {}", said.err);
    }
}

#[test]
fn a_broken_driver_library_is_named() {
    let bench = Bench::with(QUICK);
    let text = bench.path("libnvidia-ml.so.1");
    std::fs::write(&text, "not a library\n").unwrap();
    for command in ["probe", "idle"] {
        let said = said(bench.joulebook([command]).env("JOULEBOOK_NVML", &text));
        assert_eq!(said.code, Some(1), "{}", said.err);
        assert!(said.err.contains(text.to_str().unwrap()), "{}", said.err);
        assert!(said.err.contains("JOULEBOOK_NVML"), "{}", said.err);
    }
    // It costs a command its figure, not its run.
    let run = ["run", "--", "sh", "-c", "exit 3"];
    let said = said(bench.joulebook(run).env("JOULEBOOK_NVML", &text));
    assert_eq!(said.code, Some(3));
    assert!(said.err.contains(text.to_str().unwrap()), "{}", said.err);
}

#[test]
fn help_is_help_and_no_error() {
    let said = Bench::without_cards().say(["--help"]);
    assert_eq!(said.code, Some(0));
    for command in ["demo", "probe", "idle", "run", "read", "audit", "config"] {
        assert!(said.out.contains(command), "{command}: {}", said.out);
    }
    assert!(!said.out.contains('\u{1b}'), "no colours where no terminal is");
}
