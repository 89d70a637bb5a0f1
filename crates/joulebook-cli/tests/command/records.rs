//! `bench compare`, `check`, `fit` and `show` on records that lie on the disk.

use joulebook::books::Rhos;
use joulebook_cli::bench::{
    output,
    record::{
        Baseline, Counter, FORM, Kind, Outcome, Record, Repeat, Request, Rung, Settings, Source,
        Target, Tokens,
    },
};

use super::bench::{Bench, Said, number};

const IDLE_W: f64 = 70.0;
const PREFILL_J: f64 = 0.02;

/// A repeat of 10 s with so many tokens; their energy and the idle's.
fn tokens_of(prompt: u64, completion: u64, first: u64) -> Tokens {
    let (prompt, cached, first) = (Some(prompt), Some(0), Some(first));
    Tokens { prompt, cached, completion, first, ..Tokens::default() }
}

fn repeat(rung: Kind, number: u32, tokens: Tokens, active: f64) -> Repeat {
    let counter = Counter {
        energy_uj: ((active + IDLE_W * 10.0) * 1e6) as u64,
        window_ns: 10_000_000_000,
        samples: 100,
        bound_uj: Some(100_000),
    };
    let request = Request {
        rung: rung.to_string(),
        repeat: number,
        number: 1,
        outcome: Outcome::Done,
        sent_ns: 1_000_000,
        content_ns: vec![20_000_000, 27_000_000, 34_000_000],
        ended_ns: 35_000_000,
        prompt_tokens: Some(128),
        completion_tokens: Some(3),
        token_source: "usage".to_owned(),
        ..Request::default()
    };
    Repeat {
        number,
        seed: Some(u64::from(number)),
        window_ns: 10_000_000_000,
        completed: tokens.first,
        tokens: Some(tokens),
        counter: Some(counter),
        requests: vec![request],
        ..Repeat::default()
    }
}

fn record(rungs: Vec<Rung>) -> Record {
    let idle = Counter { energy_uj: 140_000_000, window_ns: 2_000_000_000, ..Counter::default() };
    Record {
        form: FORM.to_owned(),
        version: "0.1.0".to_owned(),
        started_unix_s: 1_800_000_000.0,
        seconds: 60.0,
        target: Target { model: Some("m".to_owned()), is_local: true, ..Target::default() },
        settings: Settings {
            endpoint: Some("chat".to_owned()),
            streaming: Some(true),
            ..Settings::default()
        },
        source: Source {
            counter: Some("nvml".to_owned()),
            cards: vec!["GPU-1".to_owned()],
            card_names: vec!["H100".to_owned()],
            ..Source::default()
        },
        baseline: Some(Baseline { gauge: None, counter: Some(idle) }),
        sampler: None,
        incomplete: None,
        warnings: Vec::new(),
        rungs,
    }
}

/// A sweep whose energies are those of the law 2.9 + 124/B, times `factor`.
fn sweep(factor: f64) -> Record {
    let rung = |concurrency: u32| {
        let kind = Kind::ClosedLoop { concurrency };
        let one = |number: u32| {
            let tokens = tokens_of(0, 2_000, 8);
            let spread = 1.0 + f64::from(number) * 0.002;
            let rho = 2.9 + 124.0 / f64::from(concurrency);
            repeat(kind, number, tokens, 2_000.0 * rho * PREFILL_J * factor * spread)
        };
        Rung { kind, repeats: (1..=3).map(one).collect() }
    };
    record(vec![rung(1), rung(8)])
}

fn isolated() -> Record {
    let prefill = Kind::PrefillPoint { concurrency: 1 };
    let tokens = tokens_of(100_000, 25, 25);
    let mut rungs = vec![Rung {
        kind: prefill,
        repeats: vec![repeat(prefill, 1, tokens, 100_000.0 * PREFILL_J)],
    }];
    for concurrency in [1, 8, 32, 128] {
        let kind = Kind::DecodePoint { concurrency };
        let tokens = tokens_of(400, 10_004, 4);
        let rho = 2.9 + 124.0 / f64::from(concurrency);
        let active = (10_000.0 * rho + 400.0) * PREFILL_J;
        rungs.push(Rung { kind, repeats: vec![repeat(kind, 1, tokens, active)] });
    }
    record(rungs)
}

fn written(bench: &Bench, name: &str, mut record: Record) -> String {
    let folder = bench.path(name);
    output::write(&mut record, &folder).unwrap();
    folder.display().to_string()
}

fn check(bench: &Bench, record: &str, ceiling: &str) -> Said {
    bench.say(["bench", "check", record, "--ceiling", ceiling])
}

#[test]
fn a_ceiling_is_kept_broken_missing_or_malformed() {
    let bench = Bench::without_cards();
    let record = written(&bench, "run", sweep(1.0));
    let said = check(&bench, &record, "c8_gpu_counter_joules_per_token <= 0.9");
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{}", said.out);
    assert!(said.out.contains("The ceiling is kept."), "{}", said.out);
    let said = check(&bench, &record, "c8_gpu_counter_joules_per_token <= 0.1");
    assert_eq!(said.code, Some(1));
    assert!(said.out.contains("BROKEN  c8_gpu_counter_joules_per_token <= 0.1"), "{}", said.out);
    let said = check(&bench, &record, "c64_gpu_counter_joules_per_token <= 100");
    assert_eq!(said.code, Some(1));
    assert!(said.out.contains("MISSING"), "{}", said.out);
    for malformed in ["c8_gpu_counter_joules_per_token <= cheap", "<= 3", "no such file"] {
        let said = check(&bench, &record, malformed);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{malformed}");
        assert!(said.err.contains(malformed), "{}", said.err);
    }
    let said = check(&bench, "/nonexistent", "a <= 1");
    assert_eq!(said.code, Some(2));
    let file = bench.path("limits");
    std::fs::write(&file, "c1_gpu_counter_energy_j >= 1 # some\nc8_completed < 5\n").unwrap();
    let file = file.display().to_string();
    let said = bench.say(["bench", "check", &record, "--ceiling", &file, "--json"]);
    assert_eq!(said.code, Some(1));
    let json = said.out_json();
    assert_eq!(json["kept"], false);
    assert_eq!(json["ceilings"][0]["verdict"], "kept");
    assert_eq!(json["ceilings"][1]["verdict"], "broken");
    assert_eq!(json["ceilings"][1]["value"], 24.0);
}

#[test]
fn two_records_are_compared() {
    let bench = Bench::without_cards();
    let a = written(&bench, "a", sweep(1.0));
    let b = written(&bench, "b", sweep(0.9));
    let said = bench.say(["bench", "compare", &a, &b]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert!(said.out.contains("B's tokens cost less than A's at both rungs"), "{}", said.out);
    let said = bench.say(["bench", "compare", &b, &a, "--json", "--within", "0.5%"]);
    let json = said.out_json();
    assert_eq!((json["margin"].as_f64(), said.code), (Some(0.005), Some(0)));
    let row = &json["rows"][0];
    assert_eq!((row["rung"].as_str(), row["verdict"].as_str()), (Some("c1"), Some("higher")));
    assert!(number(row, "low") > 1.0 && number(row, "high") < 1.12, "{row}");
    for bad in [["bench", "compare", &a, "/nonexistent"], ["bench", "compare", &a, "Cargo.toml"]] {
        let said = bench.say(bad);
        assert_eq!(said.code, Some(2), "{bad:?}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
}

#[test]
fn rho_is_fitted_and_the_ledger_reads_it() {
    let bench = Bench::without_cards();
    let record = written(&bench, "isolated", isolated());
    let file = bench.path("rho.toml");
    std::fs::write(&file, "[[rho]]\nmodel = \"n\"\nrho_a = 5.0\nrho_b = 0.0\n").unwrap();
    let path = file.display().to_string();
    let said = bench.say(["bench", "fit", &record, "-o", &path]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{}", said.out);
    assert!(said.out.contains("ρ(B) = 2.900 + 124.000 / B"), "{}", said.out);
    let rhos = Rhos::load(&file).unwrap();
    let rho = rhos.of(Some("m"), "H100", "GPU-1");
    assert!(rho.a.abs_diff(2_970) <= 1 && rho.b.abs_diff(126_976) <= 5, "{rho:?}");
    assert_eq!(rhos.of(Some("n"), "H100", "GPU-1").a, 5 * 1024);
    let said = bench.say(["bench", "fit", &record, "--json"]);
    let json = said.out_json();
    assert!((number(&json, "prefill_joules_per_token") / PREFILL_J - 1.0).abs() < 1e-3);
    assert_eq!(json["decode"].as_array().unwrap().len(), 4);
    let traffic = written(&bench, "traffic", sweep(1.0));
    let said = bench.say(["bench", "fit", &traffic]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    assert!(said.err.contains("no prefill point"), "{}", said.err);
}

#[test]
fn a_record_is_shown_again_and_written_for_others() {
    let bench = Bench::without_cards();
    let record = written(&bench, "run", sweep(1.0));
    let said = bench.say(["bench", "show", &record]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert!(said.out.contains(" c8 ") && said.out.contains("energy counter"), "{}", said.out);
    let said = bench.say(["bench", "show", &record, "--json"]);
    let file = std::fs::read_to_string(bench.path("run/record.json")).unwrap();
    assert_eq!(said.out, file, "the same numbers");
    let said = bench.say(["bench", "show", &record, "--format", "vllm", "--format", "aiperf"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    for name in ["c1.vllm.json", "c8.aiperf.json", "c8.aiperf.csv", "c8.aiperf.jsonl"] {
        assert!(bench.path("run").join(name).is_file(), "{name}");
    }
    let picture = bench.path("again.svg").display().to_string();
    let said = bench.say(["bench", "show", &record, "--picture", &picture]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let kept = std::fs::read(bench.path("run/record.svg")).unwrap();
    assert_eq!(std::fs::read(bench.path("again.svg")).unwrap(), kept);
    std::fs::remove_file(bench.path("run/requests.jsonl")).unwrap();
    let said = bench.say(["bench", "show", &record, "--format", "vllm"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("requests.jsonl"), "{}", said.err);
}
