//! Any bytes as rows of nvidia-smi, as the live reader and as a recording has them: each line is a
//! row, refused, blank or a header, and no reading is anything but a finite power.
#![no_main]

use joulebook::{Value, replay, smi::table::Table};
use libfuzzer_sys::fuzz_target;

const HEADER: &[u8] = b"timestamp, index, power.draw [W], power.draw.instant, power.limit [W], \
    utilization.gpu [%], temperature.gpu, clocks_event_reasons.active\n";

/// The rows under a header that is theirs too, and under one of their own.
fn live(text: &str) {
    let mut lines = text.lines();
    let Some(table) = lines.next().and_then(Table::of_header) else { return };
    for row in lines.filter_map(|line| table.row(line)) {
        for power in [row.instant, row.average, row.draw].into_iter().flatten().flatten() {
            assert!(power.watts().is_finite() && power.watts() >= 0.0);
        }
    }
}

fuzz_target!(|rows: &[u8]| {
    let bytes = [HEADER, rows].concat();
    live(&String::from_utf8_lossy(&bytes));
    live(&String::from_utf8_lossy(rows));
    let Ok(log) = replay::read(&bytes) else { return };
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().skip(1).filter(|line| !line.trim().is_empty()).count();
    let headers = lines - log.rows.len() - log.refused.len();
    assert!(headers <= text.matches("timestamp").count());
    for row in &log.rows {
        assert_eq!(row.readings.len(), 2);
        assert!(row.card < log.cards.len() && row.line > 1);
        for reading in row.readings.iter().flatten() {
            let Value::Power(power) = reading else { panic!("{reading:?}") };
            assert!(power.watts().is_finite() && power.watts() >= 0.0);
        }
    }
});
