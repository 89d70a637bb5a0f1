use super::*;
use crate::bench::sample;

#[test]
fn the_picture_is_as_it_was() {
    let picture = svg(&sample::sweep(&[1, 2, 4, 8, 16, 32, 64], 3, 0.04, 1.0)).unwrap().unwrap();
    insta::assert_snapshot!("sweep.svg", picture);
}

#[test]
fn a_picture_shows_each_rung_and_says_what_it_is() {
    let mut record = sample::sweep(&[1, 8, 64], 3, 0.04, 1.0);
    let mut floor = Rung::new(Kind::Floor);
    floor.repeats.push(sample::repeat(1, 1.0, sample::chat(1.0), 0.0));
    record.rungs.push(floor);
    let picture = svg(&record).unwrap().unwrap();
    let keys = crate::bench::keys::Keys::of(&record);
    for rung in ["c1", "c8", "c64"] {
        let value = keys.number(&format!("{rung}_gpu_counter_joules_per_token")).unwrap();
        let label = axis::brief(value);
        assert!(picture.contains(&label), "{rung}: {label}");
    }
    for words in [
        "SIMULATED CARD",
        "energy counter",
        "over 3 repeats",
        "one stream, long answer: 2.99",
        "concurrency (requests in flight)",
        "Idle 70.0 W",
    ] {
        assert!(picture.contains(words), "{words}");
    }
    let three = 3 * 3;
    assert_eq!(picture.matches("<circle").count(), three + 3 + 2 + 1, "dots, hollow ones twice");
}

#[test]
fn one_repeat_has_no_bar() {
    let many = svg(&sample::sweep(&[1, 8], 3, 0.04, 1.0)).unwrap().unwrap();
    let single = svg(&sample::sweep(&[1, 8], 1, 0.04, 1.0)).unwrap().unwrap();
    assert!(single.contains("how far they scatter is not known"));
    assert!(single.matches("<polyline").count() < many.matches("<polyline").count());
}

#[test]
fn rates_have_their_own_axis_and_one_rung_is_no_picture() {
    let mut record = sample::sweep(&[4], 1, 0.0, 1.0);
    assert_eq!(svg(&record).unwrap(), None);
    for requests_per_s in [0.5, 4.0] {
        let mut rung = Rung::new(Kind::Rate { requests_per_s });
        rung.repeats.push(sample::repeat(1, 3.0, sample::chat(requests_per_s), 0.0));
        record.rungs.push(rung);
    }
    let picture = svg(&record).unwrap().unwrap();
    assert!(picture.contains("requests a second"));
}

#[test]
fn without_energy_the_picture_says_why() {
    let mut record = sample::sweep(&[1, 8], 1, 0.0, 1.0);
    for repeat in record.rungs.iter_mut().flat_map(|rung| &mut rung.repeats) {
        (repeat.gauge, repeat.counter) = (None, None);
    }
    record.source.why_none = Some("the target is another machine".to_owned());
    let picture = svg(&record).unwrap().unwrap();
    assert!(picture.contains("No energy: the target is another machine"));
}

#[test]
fn a_name_is_no_markup() {
    let mut record = sample::sweep(&[1, 8], 1, 0.0, 1.0);
    record.target.model = Some("a<b>&\"c\"".to_owned());
    let picture = svg(&record).unwrap().unwrap();
    assert!(picture.contains("a&lt;b&gt;&amp;") && !picture.contains("<b>"));
}
