//! What `nvidia-smi` prints: words for nothing, and rows of every shape.

use joulebook::{
    Fault, Power,
    nvml::CardState,
    replay::{self, ReplayError, Warning, cell},
    smi::{processes, sentence, table, xml},
};
use serde_json::Value;

use super::{passes, variant};

#[test]
fn smi_sentinel_01() {
    let answer = passes("smi-sentinel-01");
    assert_eq!(answer["devices"], 2, "no card is skipped");
    assert_eq!(answer["rejected"], 0, "the row itself is good");
}

#[test]
fn smi_sentinel_02() {
    let answer = passes("smi-sentinel-02");
    assert_eq!(answer["devices"], 1, "the card is there");
    // Memory that is not known is no room.
    let state = CardState { watts: Some(11.42), ..CardState::default() };
    assert_eq!(joulebook::nvml::fits(&state, 1), joulebook::nvml::Fit::Unknown);
}

#[test]
fn smi_sentinel_04() {
    let answer = passes("smi-sentinel-04");
    assert_ne!(answer["gross_j"].as_f64(), Some(300.0), "a bad poll is not 0 W");
    assert_eq!(answer["polls"], 5);
}

#[test]
fn smi_sentinel_05() {
    passes("smi-sentinel-05");
    // The same words in a recording: every cell is missing, and the file says so.
    let rows = ["[N/A]", "nan", "inf", "ERR!", "100.00 W"].map(|cell| format!("{cell}\n"));
    let stamped =
        (0..).zip(rows).map(|(second, cell)| format!("2025/01/01 00:00:0{second}.000, {cell}"));
    let text = format!("timestamp, power.draw [W]\n{}", stamped.collect::<String>());
    let log = replay::read(text.as_bytes()).expect("a log");
    let good = log.rows.iter().filter(|row| row.readings[0].is_ok()).count();
    assert_eq!((log.rows.len(), good), (5, 1));
    for float in ["nan", "inf", "NaN", "-inf", "infinity"] {
        assert!(float.parse::<f64>().is_ok(), "{float} is what a plain parser takes");
        assert_eq!(cell::number(float), None);
    }
}

#[test]
fn smi_sentinel_08() {
    passes("smi-sentinel-08");
    let watts = |watts: f64| Power::from_watts(watts).expect("a power");
    let plausible =
        |power| joulebook::core::series::plausible_power(watts(power), Some(watts(320.0)));
    assert!(plausible(960.0) && !plausible(960.1), "about three times the limit");
}

#[test]
fn smi_sentinel_09() {
    let answer = passes("smi-sentinel-09");
    assert_eq!(answer["error"][2], "not_supported", "and not 0 W");
}

#[test]
fn smi_line_shape_01() {
    let answer = passes("smi-line-shape-01");
    // The rule: rows that do not say whose they are are bound to no card.
    assert_eq!(answer["bound"], false);
    let recorded = "timestamp, power.draw [W]\n\
                    2025/01/01 00:00:00.000, 41.20 W\n2025/01/01 00:00:00.000, 39.80 W\n";
    let refused = replay::read(recorded.as_bytes()).expect_err("two cards in one column");
    assert!(matches!(refused, ReplayError::CardsUnnamed { line: 3, before: 2 }), "{refused}");
    assert!(refused.to_string().contains("index,uuid"), "{refused}");
}

#[test]
fn smi_line_shape_02() {
    passes("smi-line-shape-02");
    let row = "GPU-1, 4242, /opt/run, v2/serve --ids 1,2, 18200 MiB";
    let listed = processes::compute_apps(row).expect("a list");
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].on, processes::On::Uuid("GPU-1".to_owned()));
    assert_eq!(processes::compute_apps("GPU-1, x, name, 3"), None, "a pid is a number");
}

#[test]
fn smi_line_shape_03() {
    passes("smi-line-shape-03");
    let recorded = "timestamp, power.draw [W]\n\n2025/01/01 00:00:00.000, 55.10 W\n\n\
                    2025/01/01 00:00:01.000, 56.20 W\n";
    let log = replay::read(recorded.as_bytes()).expect("a log");
    assert_eq!((log.rows.len(), log.refused.len()), (2, 0));
}

#[test]
fn smi_line_shape_05() {
    passes("smi-line-shape-05");
    // Only "not supported" may be remembered; a missing driver is another word.
    let said = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.";
    let meaning = sentence::meaning(said, Some(9));
    assert_eq!(meaning, sentence::Meaning::Failed(Fault::DriverAbsent));
}

#[test]
fn smi_line_shape_07() {
    passes("smi-line-shape-07");
    let both = "<gpu_power_readings><average_power_draw>N/A</average_power_draw>\
                <instant_power_draw>16.02 W</instant_power_draw></gpu_power_readings>";
    let card = xml::card(both);
    let watts = |power: Option<Result<Power, Fault>>| power.and_then(Result::ok).map(Power::watts);
    assert_eq!(watts(card.instant), Some(16.02));
    assert_eq!(xml::card("<gpu></gpu>").power(), None, "no element is no 0 W");
}

#[test]
fn smi_line_shape_08() {
    let answer = passes("smi-line-shape-08");
    assert_eq!(answer["processes"], Value::Array(Vec::new()), "a row of dashes is nobody");
}

#[test]
fn smi_line_shape_09() {
    passes("smi-line-shape-09");
    // Columns by their names, whatever their order; a unit that is not known refuses the file.
    let row = |header: &str, row: &str| table::rows("", "csv", &format!("{header}\n{row}\n"));
    let swapped = row("power.draw [W], name", "242.05 W, X");
    let draw = swapped[0].as_ref().expect("a row").draw;
    assert_eq!(draw.and_then(Result::ok).map(Power::watts), Some(242.05));
    let unknown = "timestamp, power.draw [BTU/h]\n2025/01/01 00:00:00.000, 5 BTU/h\n";
    let refused = replay::read(unknown.as_bytes()).expect_err("no such unit");
    assert!(matches!(refused, ReplayError::UnknownUnit { line: 1, .. }), "{refused}");
    let live = row("power.draw [BTU/h], name", "5 BTU/h, X");
    assert_eq!(live[0].as_ref().expect("a row").draw, Some(Err(Fault::MalformedRow)));
}

#[test]
fn smi_line_shape_11() {
    let answer = passes("smi-line-shape-11");
    assert_eq!(answer["field"], "power.draw");
    assert_eq!(answer["suffices"], true, "an unknown column costs no card");
    // Where power itself is not known there is nothing left to read, and that is said.
    assert_eq!(variant("smi-line-shape-11-v3")["suffices"], false);
}

#[test]
fn rows_that_come_in_clusters_are_said_to() {
    // Two cards, stamped a little apart: the recording cannot be refused, and warns.
    let row = |poll: u32, card: u32| format!("2025/01/01 00:00:{poll:02}.00{card}, 4{card}.00 W\n");
    let rows: String = (0..12).flat_map(|poll| [row(poll, 0), row(poll, 1)]).collect();
    let log = replay::read(format!("timestamp, power.draw [W]\n{rows}").as_bytes()).expect("a log");
    assert!(log.warnings.iter().any(|said| matches!(said, Warning::RowsInClusters { rows: 2 })));
}
