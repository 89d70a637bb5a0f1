use super::*;
use crate::{
    load::{LiveLoad, Load},
    scenario::Card,
};

const SECOND: i64 = 1_000_000_000;

fn file(name: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join(name);
    (dir, path)
}

fn dynamic() -> Card {
    Card { dynamic: true, ..Card::default() }
}

#[test]
fn what_one_maps_another_reads_and_the_integral_is_that_of_a_live_load() {
    let (_dir, path) = file("cards");
    let writer = Control::create(&path, 2, 64, ClockKind::Monotonic).expect("a new file");
    let epoch_ns = 5 * SECOND;
    let card = ControlledCard::new(path, ClockKind::Monotonic, epoch_ns, 1);
    let controlled = Load::new(&dynamic(), Some(Arc::new(card)));
    let clock = crate::Clock::simulated();
    let live = LiveLoad::new(clock);
    let reference = Load::new(&dynamic(), Some(Arc::new(live.clone())));
    assert!((controlled.energy(0, SECOND) - 70.0).abs() < 1e-9, "it idles before anything is set");
    for n in 0..40_i64 {
        let t_ns = SECOND / 3 + n * n * 10_000_000;
        let watts = (n * 37 % 11) as f64 * 50.0;
        writer.set_watts_at(1, epoch_ns + t_ns, watts).expect("it fits");
        live.set_watts_at(t_ns, watts).expect("time goes on");
    }
    for n in 0..200_i64 {
        let t_ns = (n - 10) * 100_000_000;
        assert_eq!(controlled.watts(t_ns), reference.watts(t_ns), "{t_ns} ns");
        let (left, right) = (controlled.joules(t_ns), reference.joules(t_ns));
        assert!((left - right).abs() < 1e-9, "{t_ns} ns: {left} {right}");
    }
}

#[test]
fn a_file_that_comes_late_is_followed_from_then_on() {
    let (_dir, path) = file("late");
    let card = ControlledCard::new(path.clone(), ClockKind::Monotonic, 0, 0);
    assert_eq!(card.last_at(SECOND), None);
    let writer = Control::create(&path, 1, 8, ClockKind::Monotonic).expect("a new file");
    writer.set_watts_at(0, SECOND, 300.0).expect("it fits");
    assert_eq!(card.last_at(SECOND).map(|change| change.watts), Some(300.0));
    assert_eq!(card.last_at(SECOND - 1), None);
}

#[test]
fn a_change_that_is_not_wholly_written_is_not_taken() {
    let (_dir, path) = file("torn");
    let writer = Control::create(&path, 1, 8, ClockKind::Monotonic).expect("a new file");
    writer.set_watts_at(0, 10, 100.0).expect("it fits");
    writer.set_watts_at(0, 20, 200.0).expect("it fits");
    let reader = Control::open(&path).expect("it is there");
    // A head that runs ahead of the log, and one that is nonsense.
    for head in [3, u64::MAX] {
        writer.map.set(HEADER_WORDS, head);
        assert_eq!(reader.last_at(0, 30).map(|change| change.watts), Some(200.0), "head {head}");
    }
}

#[test]
fn what_cannot_be_set_is_refused_by_name() {
    let (_dir, path) = file("full");
    let control = Control::create(&path, 1, 2, ClockKind::Realtime).expect("a new file");
    control.set_watts_at(0, 10, 1.0).expect("it fits");
    for (t_ns, watts) in [(9, 1.0), (11, -1.0), (11, f64::NAN), (11, f64::INFINITY)] {
        let error = control.set_watts_at(0, t_ns, watts).expect_err("unusable");
        assert!(matches!(error, ControlError::Unusable { .. }), "{error}");
    }
    control.set_watts_at(0, 10, 2.0).expect("the same instant is no step back");
    assert!(matches!(control.set_watts(0, 1.0), Err(ControlError::Full { capacity: 2, .. })));
    assert!(matches!(control.set_watts(1, 1.0), Err(ControlError::NoCard { cards: 1, .. })));
    let other = ControlledCard::new(path, ClockKind::Monotonic, 0, 0);
    assert!(matches!(other.open(), Err(ControlError::OtherClock { .. })));
}

#[test]
fn what_is_no_control_file_is_named() {
    let (_dir, path) = file("other");
    let error = Control::open(&path).err().expect("it is not there");
    assert!(error.to_string().contains("other"), "{error}");
    for (content, why) in [
        (vec![0_u8; 64], "JBLIVE01"),
        (Vec::new(), "empty"),
        ([b"JBLIVE01".as_slice(), &[1; 56]].concat(), "shorter"),
    ] {
        std::fs::write(&path, content).expect("a file");
        let error = Control::open(&path).err().expect("it is no control file");
        assert!(error.to_string().contains(why), "{error}");
    }
}
