use super::*;
use crate::bench::sample;

const MARGIN: f64 = 0.01;

fn energy(of: &Comparison) -> Vec<&Row> {
    of.rows.iter().filter(|row| row.measure == Measure::JoulesPerToken).collect()
}

#[test]
fn a_change_that_all_repeats_share_is_told() {
    let a = sample::sweep(&[1, 8, 32], 4, 0.02, 1.0);
    let b = sample::sweep(&[1, 8, 32], 4, 0.02, 0.94);
    let of = Comparison::of(&a, &b, MARGIN);
    for row in energy(&of) {
        let ratio = row.ratio.unwrap();
        assert_eq!((row.pairing, row.verdict), (Pairing::Paired, Verdict::Lower));
        assert!((ratio.mean - 0.94).abs() < 1e-6, "{row:?}");
        assert!(ratio.high - ratio.low < 1e-6, "pairs take the scatter out: {row:?}");
    }
    let page = page(&of);
    assert!(page.contains("B's tokens cost less than A's at all 3 rungs (-6.0 %)."), "{page}");
    let other = Comparison::of(&b, &a, MARGIN);
    assert_eq!(other.count(Verdict::Higher), 3);
}

#[test]
fn without_common_seeds_the_scatter_stays() {
    let a = sample::sweep(&[8], 4, 0.02, 1.0);
    let mut b = sample::sweep(&[8], 4, 0.02, 0.94);
    for repeat in &mut b.rungs.first_mut().unwrap().repeats {
        repeat.seed = repeat.seed.map(|seed| seed + 100);
    }
    let of = Comparison::of(&a, &b, MARGIN);
    let row = *energy(&of).first().unwrap();
    assert_eq!(row.pairing, Pairing::Apart);
    let ratio = row.ratio.unwrap();
    assert!((ratio.mean - 0.94).abs() < 1e-6 && ratio.high - ratio.low > 0.02, "{row:?}");
    // Nor are seeds that nobody knows the same.
    let unknown = |mut record: crate::bench::record::Record| {
        for repeat in &mut record.rungs.first_mut().unwrap().repeats {
            repeat.seed = None;
        }
        record
    };
    let (a, b) = (unknown(a), unknown(b));
    assert_eq!(energy(&Comparison::of(&a, &b, MARGIN)).first().unwrap().pairing, Pairing::Apart);
}

#[test]
fn what_cannot_be_told_is_not_claimed() {
    let a = sample::sweep(&[1, 8], 1, 0.02, 1.0);
    let b = sample::sweep(&[1, 8], 1, 0.02, 0.8);
    let of = Comparison::of(&a, &b, MARGIN);
    assert_eq!(of.count(Verdict::Untold), 2);
    assert!(page(&of).contains("Nothing can be claimed: one repeat each"), "{}", page(&of));
    // Scatter that is wider than the change.
    let mut a = sample::sweep(&[1], 3, 0.05, 1.0);
    for repeat in &mut a.rungs.first_mut().unwrap().repeats {
        repeat.seed = repeat.seed.map(|seed| seed + 50);
    }
    let b = sample::sweep(&[1], 3, 0.08, 1.001);
    let of = Comparison::of(&a, &b, MARGIN);
    assert_eq!(energy(&of).first().unwrap().verdict, Verdict::Open);
    assert!(page(&of).contains("cannot be told"), "{}", page(&of));
}

#[test]
fn a_verdict_needs_the_whole_interval() {
    let of = |low: f64, high: f64| judged(Interval { mean: (low * high).sqrt(), low, high }, 0.01);
    for (low, high, verdict) in [
        (0.90, 0.95, Verdict::Lower),
        (0.90, 1.05, Verdict::Open),
        (0.95, 1.10, Verdict::Open),
        (1.05, 1.10, Verdict::Higher),
        (0.995, 1.005, Verdict::Same),
        (0.995, 1.02, Verdict::Open),
        (1.005, 1.02, Verdict::Higher),
        (0.98, 0.995, Verdict::Lower),
    ] {
        assert_eq!(of(low, high), verdict, "{low} to {high}");
    }
}

#[test]
fn the_same_is_said_only_within_the_margin() {
    let a = sample::sweep(&[1, 8], 4, 0.02, 1.0);
    let b = sample::sweep(&[1, 8], 4, 0.02, 1.004);
    assert_eq!(Comparison::of(&a, &b, 0.01).count(Verdict::Same), 2);
    assert_eq!(Comparison::of(&a, &b, 0.001).count(Verdict::Higher), 2);
    let page = page(&Comparison::of(&a, &a, 0.01));
    assert!(page.contains("cost the same as A's within 1 % at both rungs"), "{page}");
}

#[test]
fn rungs_of_one_record_and_what_differs_are_said() {
    let a = sample::sweep(&[1, 8, 32], 2, 0.02, 1.0);
    let mut b = sample::sweep(&[1, 8, 64], 2, 0.02, 1.0);
    b.target.model = Some("n".to_owned());
    b.settings.streaming = Some(false);
    b.incomplete = Some("interrupted".to_owned());
    let of = Comparison::of(&a, &b, MARGIN);
    let page = page(&of);
    for words in [
        "In A alone, and not compared: c32.",
        "In B alone, and not compared: c64.",
        "caution: model: m in A, n in B",
        "caution: answers: streamed in A, in one piece in B",
        "caution: B is incomplete (interrupted)",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(Comparison::of(&a, &a, MARGIN).cautions.is_empty());
}

#[test]
fn one_reader_tells_both() {
    let a = sample::sweep(&[1, 8], 2, 0.02, 1.0);
    let mut b = a.clone();
    for repeat in b.rungs.iter_mut().flat_map(|rung| &mut rung.repeats) {
        repeat.counter = None;
    }
    assert_eq!(Comparison::of(&a, &b, MARGIN).ruler, Some(Ruler::Gauge));
    for repeat in b.rungs.iter_mut().flat_map(|rung| &mut rung.repeats) {
        repeat.gauge = None;
    }
    let of = Comparison::of(&a, &b, MARGIN);
    assert!(energy(&of).is_empty() && !of.rows.is_empty());
    assert!(page(&of).contains("Nothing can be said of energy"), "{}", page(&of));
}

#[test]
fn incomplete_repeats_are_compared_with_nothing() {
    let a = sample::sweep(&[8], 3, 0.0, 1.0);
    let mut b = sample::sweep(&[8], 3, 0.0, 1.0);
    let last = b.rungs.first_mut().unwrap().repeats.last_mut().unwrap();
    last.counter.as_mut().unwrap().energy_uj *= 9;
    last.incomplete = Some("died".to_owned());
    let of = Comparison::of(&a, &b, MARGIN);
    let row = *energy(&of).first().unwrap();
    assert_eq!((row.repeats, row.pairing, row.verdict), ((3, 2), Pairing::Apart, Verdict::Same));
}

#[test]
fn the_page_and_the_numbers_are_as_they_were() {
    let a = sample::sweep(&[1, 8], 3, 0.02, 1.0);
    let b = sample::sweep(&[1, 8], 3, 0.02, 0.94);
    let of = Comparison::of(&a, &b, MARGIN);
    insta::assert_snapshot!("page", page(&of));
    let text = serde_json::to_string_pretty(&json(&of)).unwrap();
    insta::assert_snapshot!("json", text);
}
