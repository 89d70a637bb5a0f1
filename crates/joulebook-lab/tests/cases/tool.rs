//! The live reader against programs in the place of `nvidia-smi`: the lab's own with an old driver,
//! and one that fails at first.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use joulebook::{
    Fault, Reader, Value,
    smi::{Feed, PERIOD, Program, SmiCard},
};

/// A program of these lines of shell.
fn script(folder: &Path, lines: &str) -> PathBuf {
    let path = folder.join("nvidia-smi");
    fs::write(&path, format!("#!/bin/sh\n{lines}\n")).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("rights");
    path
}

/// No process whose command line holds this is left, as far as can be seen, after a short while.
pub fn none_left(part: &str) {
    let own = std::process::id().to_string();
    let is_left = || {
        fs::read_dir("/proc").expect("processes").flatten().any(|entry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            line.contains(part) && line.contains(&own)
        })
    };
    for _ in 0..50 {
        if !is_left() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("a child is left: {part}");
}

#[test]
fn smi_line_shape_11_by_the_real_reader() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("old.scenario");
    // A driver from before instant and average power had columns.
    let text = "driver 470.82.01\ncard 0\nname Tesla T4\nidle 36\n";
    fs::write(&scenario, text).expect("a scenario");
    let program = env!("CARGO_BIN_EXE_nvidia-smi");
    let lines = format!("FAKEGPU_SCENARIO={} exec {program} \"$@\"", scenario.display());
    let feed = Feed::start(&Program::at(script(folder.path(), &lines)), PERIOD).expect("a feed");
    let cards = feed.cards().expect("an optional column costs no card");
    let mut card = SmiCard::open(&feed, &cards[0]);
    let reading = card.read().expect("a reading");
    assert_eq!(card.field(), Some("power.draw"), "the field is recorded");
    let Value::Power(power) = reading.value else { panic!("{reading:?}") };
    assert!((power.watts() - 36.0).abs() < 0.5, "{power}");
    assert!(feed.cost().starts > 1, "it was asked again without them");
}

#[test]
fn smi_line_shape_05_by_the_real_reader() {
    let folder = tempfile::tempdir().expect("a folder");
    let seen = folder.path().join("seen");
    let row = "2025/01/01 00:00:00.000, 0, GPU-aaaa, 58.20";
    let lines = format!(
        "if [ ! -e {seen} ]; then : > {seen}; echo \"NVIDIA-SMI has failed because it couldn't \
         communicate with the NVIDIA driver.\"; exit 9; fi\n\
         echo 'timestamp, index, uuid, power.draw [W]'\n\
         while :; do echo '{row}'; sleep 0.1; done",
        seen = seen.display()
    );
    let feed = Feed::start(&Program::at(script(folder.path(), &lines)), PERIOD).expect("a feed");
    let error = feed.cards().expect_err("there is no driver yet");
    assert_eq!(error.fault(), Fault::DriverAbsent);
    // It is asked again by itself, and the failure is not remembered.
    let found = (0..50).any(|_| {
        thread::sleep(Duration::from_millis(100));
        feed.cards().is_ok_and(|cards| cards.len() == 1 && cards[0].uuid == "GPU-aaaa")
    });
    assert!(found, "{:?}", feed.cards());
}
