use super::*;
use crate::bench::{gauge::Share, record::Rung, sample};

#[test]
fn the_page_is_as_it_was() {
    insta::assert_snapshot!("everything", page(&sample::everything()));
    insta::assert_snapshot!("sweep", page(&sample::sweep(&[1, 2, 4, 8, 16, 32], 3, 0.01, 1.0)));
}

#[test]
fn a_line_says_all_of_a_window() {
    let record = sample::everything();
    let rung = record.rungs.first().unwrap();
    let mut repeat = rung.repeats.first().unwrap().clone();
    assert_eq!(
        window_line(&record, rung.kind, &repeat),
        "c1 #1: 4616.3 J in 10.000 s, mean 461.6 W, max 484.7 W, 40 readings, 3916.3 J above idle, \
         power cap 25 %, counter 4616.3 ± 4.6 J, 1543 tokens, 1 failed"
    );
    repeat.failed = Some(0);
    repeat.counter = None;
    let gauge = repeat.gauge.as_mut().unwrap();
    gauge.capped = Share::default();
    gauge.braked = Share { active: 1, reported: 10 };
    let without = Record { baseline: None, ..sample::everything() };
    assert_eq!(
        window_line(&without, rung.kind, &repeat),
        "c1 #1: 4616.3 J in 10.000 s, mean 461.6 W, max 484.7 W, 40 readings, above idle \
         unknown, power cap unreported, power brake 10 %, 1543 tokens"
    );
    repeat.gauge.as_mut().unwrap().braked.active = 0;
    assert!(!window_line(&without, rung.kind, &repeat).contains("brake"), "only above zero");
    repeat.gauge = None;
    assert_eq!(
        window_line(&without, rung.kind, &repeat),
        "c1 #1: 10.000 s, no energy, 1543 tokens"
    );
    repeat.incomplete = Some("interrupted".to_owned());
    let line = window_line(&without, rung.kind, &repeat);
    assert_eq!(line, "c1 #1: incomplete, in no figure: interrupted");
}

#[test]
fn the_table_has_the_numbers_of_the_keys() {
    let record = sample::sweep(&[8], 3, 0.01, 1.0);
    let keys = crate::bench::keys::Keys::of(&record);
    let table = table(&record);
    let row: Vec<&str> = table.lines().last().unwrap().split_whitespace().collect();
    let expected = |key: &str| digits(keys.number(key).unwrap(), RATIO);
    assert_eq!(row.get(4), Some(&expected("c8_gpu_counter_joules_per_token").as_str()));
    let tokens = keys.number("c8_output_throughput").unwrap();
    assert_eq!(row.get(3), Some(&format!("{tokens:.1}").as_str()));
}

#[test]
fn one_ruler_for_all_of_a_record() {
    let mut record = sample::sweep(&[1, 8], 2, 0.01, 1.0);
    assert_eq!(Ruler::of(&[&record]), Some(Ruler::Counter));
    let last = record.rungs.last_mut().unwrap().repeats.last_mut().unwrap();
    last.counter = None;
    assert_eq!(Ruler::of(&[&record]), Some(Ruler::Gauge), "the counter does not cover all");
    let whole = sample::sweep(&[1, 8], 2, 0.01, 1.0);
    assert_eq!(Ruler::of(&[&whole, &record]), Some(Ruler::Gauge), "one for both");
    let bare = Record { rungs: vec![Rung::new(Kind::Floor)], ..sample::empty() };
    assert_eq!(Ruler::of(&[&bare]), None);
}

#[test]
fn why_there_is_no_energy_is_said() {
    let mut record = sample::sweep(&[1], 1, 0.0, 1.0);
    let repeat = record.rungs.first_mut().unwrap().repeats.first_mut().unwrap();
    (repeat.gauge, repeat.counter) = (None, None);
    record.source = crate::bench::record::Source {
        why_none: Some("10.0.0.7 is another machine, and no --node was given".to_owned()),
        ..Default::default()
    };
    let page = page(&record);
    assert!(page.contains("No energy: 10.0.0.7 is another machine"), "{page}");
    assert_eq!(rail_note(&record), None);
}
