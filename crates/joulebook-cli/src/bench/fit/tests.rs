use joulebook::books::Rhos;

use super::*;
use crate::bench::{record::Rung, sample};

#[test]
fn the_law_is_found_again() {
    let record = sample::isolated(&[1, 8, 32, 128], 3, 0.0);
    let fit = of(&[&record]).unwrap();
    assert!((fit.prefill_joules / sample::PREFILL_J - 1.0).abs() < 1e-4, "{}", fit.prefill_joules);
    assert!((fit.rho_a - 2.9).abs() < 0.01, "{}", fit.rho_a);
    assert!((fit.rho_b - 124.0).abs() < 0.1, "{}", fit.rho_b);
    assert!(fit.deviation < 1e-3, "{}", fit.deviation);
    for (point, sequences) in fit.points.iter().zip([1, 8, 32, 128]) {
        assert_eq!(point.sequences, sequences);
        let expected = sample::rho(f64::from(sequences)) * sample::PREFILL_J;
        assert!((point.joules / expected - 1.0).abs() < 1e-3, "{point:?}");
    }
}

/// With 1 % of scatter in each window's energy the line stays within 2 % at every number.
#[test]
fn scatter_leaves_the_line_within_two_per_cent() {
    let record = sample::isolated(&[1, 8, 32, 128], 5, 0.01);
    let fit = of(&[&record]).unwrap();
    for sequences in [1.0, 2.0, 8.0, 32.0, 50.0, 128.0] {
        let found = fit.rho_a + fit.rho_b / sequences;
        let off = found / sample::rho(sequences) - 1.0;
        assert!(off.abs() < 0.02, "{sequences}: {off}");
    }
    assert!(fit.deviation > 1e-4, "scatter is seen: {}", fit.deviation);
    assert!(fit.greatest().unwrap().off().abs() >= fit.deviation);
}

#[test]
fn points_of_several_records_add_and_the_floor_is_one_sequence() {
    let mut record = sample::isolated(&[1, 8, 32], 2, 0.0);
    let whole = of(&[&record]).unwrap();
    let mut other = sample::empty();
    let rung = record.rungs.remove(1);
    assert_eq!(rung.kind, Kind::DecodePoint { concurrency: 1 });
    other.rungs = vec![Rung { kind: Kind::Floor, repeats: rung.repeats }];
    assert_eq!(of(&[&record, &other]).unwrap().points, whole.points);
    // Traffic is no point.
    let mixed = sample::sweep(&[1, 4, 16], 2, 0.0, 7.0);
    assert_eq!(of(&[&record, &other, &mixed]).unwrap().points, whole.points);
}

#[test]
fn one_reader_for_all_points() {
    let mut record = sample::isolated(&[1, 8], 1, 0.0);
    assert_eq!(of(&[&record]).unwrap().ruler, Ruler::Counter);
    let repeat = record.rungs.last_mut().unwrap().repeats.last_mut().unwrap();
    repeat.counter = None;
    assert_eq!(of(&[&record]).unwrap().ruler, Ruler::Gauge);
    let repeat = record.rungs.last_mut().unwrap().repeats.last_mut().unwrap();
    repeat.gauge = None;
    assert_eq!(of(&[&record]).unwrap_err(), FitError::NoEnergy);
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let refused = |change: &dyn Fn(&mut Record)| {
        let mut record = sample::isolated(&[1, 8], 2, 0.0);
        change(&mut record);
        of(&[&record]).unwrap_err()
    };
    assert_eq!(refused(&|it| drop(it.rungs.drain(..1))), FitError::NoPrefill);
    assert_eq!(refused(&|it| it.rungs.truncate(2)), FitError::FewDecode(1));
    assert_eq!(refused(&|it| it.baseline = None), FitError::NoBaseline("energy counter"));
    let no_tokens = |it: &mut Record| it.rungs[1].repeats[0].tokens = None;
    assert_eq!(refused(&no_tokens), FitError::NoTokens("decode_b1 #1".to_owned()));
    let no_prompts =
        |it: &mut Record| it.rungs[1].repeats[0].tokens.as_mut().unwrap().prompt = None;
    assert_eq!(refused(&no_prompts), FitError::NoPrompts("decode_b1 #1".to_owned()));
    let some = |it: &mut Record| it.rungs[0].repeats[1].tokens.as_mut().unwrap().prompt_untold = 3;
    assert_eq!(refused(&some), FitError::NoPrompts("prefill_b1 #2".to_owned()));
    let no_first = |it: &mut Record| {
        let repeat = &mut it.rungs[1].repeats[0];
        (repeat.completed, repeat.tokens.as_mut().unwrap().first) = (None, None);
    };
    assert_eq!(refused(&no_first), FitError::NoTokens("decode_b1 #1".to_owned()));
    let long = |it: &mut Record| it.rungs[0].repeats[1].tokens.as_mut().unwrap().completion = 500;
    assert_eq!(refused(&long), FitError::NotPrefill("prefill_b1 #2".to_owned()));
    let broken = |it: &mut Record| {
        for repeat in &mut it.rungs[1].repeats {
            repeat.incomplete = Some("interrupted".to_owned());
        }
    };
    assert_eq!(refused(&broken), FitError::FewDecode(1), "incomplete repeats are none");
    let idle = |it: &mut Record| {
        let counter = it.baseline.as_mut().unwrap().counter.as_mut().unwrap();
        counter.energy_uj *= 100;
    };
    assert!(matches!(refused(&idle), FitError::BelowIdle(..)));
    assert_eq!(of(&[&sample::sweep(&[1, 8], 2, 0.0, 1.0)]).unwrap_err(), FitError::NoPrefill);
    let one = sample::isolated(&[1, 8], 1, 0.0);
    let mut other = one.clone();
    other.target.model = Some("n".to_owned());
    assert_eq!(of(&[&one, &other]).unwrap_err(), FitError::Models("m".into(), "n".into()));
}

#[test]
fn a_cache_that_nobody_tells_of_is_said_where_the_fit_stands() {
    let mut record = sample::isolated(&[1, 8, 32], 2, 0.0);
    let told = of(&[&record]).unwrap();
    assert!(told.cache_told && !toml(&told).contains("cache"));
    for repeat in record.rungs.iter_mut().flat_map(|rung| &mut rung.repeats) {
        let tokens = repeat.tokens.as_mut().unwrap();
        (tokens.cached, tokens.cached_untold) = (None, 5);
    }
    let untold = of(&[&record]).unwrap();
    assert!(!untold.cache_told && toml(&untold).contains("did not tell tokens from a cache"));
    assert_eq!(untold.prefill_tokens, told.prefill_tokens + 2 * 1_000);
    assert!(Rhos::parse(&toml(&untold), "rho.toml").is_ok());
}

#[test]
fn neither_part_is_below_zero() {
    let points = |rhos: [f64; 3]| -> Vec<Point> {
        let of = |(sequences, rho)| Point { sequences, joules: 1.0, tokens: 1, rho, fitted: 0.0 };
        [1, 10, 100].into_iter().zip(rhos).map(of).collect()
    };
    let (a, b) = affine::fitted(&points([5.0, 6.0, 7.0]));
    assert!(b == 0.0 && (5.0..7.0).contains(&a), "{a} {b}");
    let (a, b) = affine::fitted(&points([100.0, 9.0, 0.5]));
    assert!(a == 0.0 && b > 0.0, "{a} {b}");
    let (a, b) = affine::fitted(&points([102.0, 12.0, 3.0]));
    assert!((a - 2.0).abs() < 1e-9 && (b - 100.0).abs() < 1e-9, "{a} {b}");
}

#[test]
fn the_ledger_reads_what_is_written() {
    let record = sample::isolated(&[1, 8, 32, 128], 3, 0.01);
    let mut fit = of(&[&record]).unwrap();
    let rhos = Rhos::parse(&toml(&fit), "rho.toml").unwrap();
    let rho = rhos.of(Some("m"), "H100", "GPU-1");
    assert_eq!(
        (rho.a, rho.b),
        ((fit.rho_a * 1024.0).round() as u64, (fit.rho_b * 1024.0).round() as u64)
    );
    assert_eq!(rhos.of(Some("n"), "H100", "GPU-1"), Default::default(), "of this model alone");
    assert!(toml(&fit).contains("Deviation") && toml(&fit).contains("SIMULATED"));
    fit.model = Some("a\"b\\c/d".to_owned());
    (fit.rho_a, fit.rho_b) = (0.0, 124.0);
    let rhos = Rhos::parse(&toml(&fit), "rho.toml").unwrap();
    assert_eq!(rhos.of(fit.model.as_deref(), "H100", "").b, 124 * 1024);
}

#[test]
fn a_file_keeps_what_others_put_there() {
    let record = sample::isolated(&[1, 8, 32], 1, 0.0);
    let fit = of(&[&record]).unwrap();
    let present = "# Our cards.\n\n# by hand\n[[rho]]\nmodel = \"n\"\nrho_a = 5.0\nrho_b = 0.0\n\n\
                   # old\n[[rho]]\nmodel = \"m\"\ncard = \"H100\"\nrho_a = 1.0\nrho_b = 1.0\n\n\
                   # all else\n[[rho]]\nrho_a = 8.0\nrho_b = 0.0\n";
    let text = merged(present, &fit, "rho.toml").unwrap();
    for kept in ["# Our cards.", "# by hand", "model = \"n\"", "# all else", "rho_a = 8.0"] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    assert!(!text.contains("# old") && text.matches("[[rho]]").count() == 3, "{text}");
    assert!(text.starts_with("# Our cards.\n\n# From isolated"), "{text}");
    let rhos = Rhos::parse(&text, "rho.toml").unwrap();
    assert_eq!(rhos.of(Some("m"), "H100", "").a, (fit.rho_a * 1024.0).round() as u64);
    assert_eq!(rhos.of(Some("n"), "H100", "").a, 5 * 1024);
    assert_eq!(rhos.of(Some("x"), "H100", "").a, 8 * 1024);
    assert_eq!(merged(&text, &fit, "rho.toml").unwrap(), text, "again is the same");
    assert_eq!(merged("", &fit, "rho.toml").unwrap(), toml(&fit));
    let error = merged("[[rho]]\nrho_c = 1.0\n", &fit, "rho.toml").unwrap_err().to_string();
    assert!(error.contains("rho.toml"), "{error}");
}
