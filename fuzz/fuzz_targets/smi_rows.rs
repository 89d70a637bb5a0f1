//! Any bytes as the rows of an nvidia-smi log: each line is a row, refused, blank or a header, and
//! no reading is a power that no card has.
#![no_main]

use joulebook::{Value, replay};
use libfuzzer_sys::fuzz_target;

const HEADER: &[u8] = b"timestamp, index, power.draw [W], power.draw.instant, power.limit [W], \
    utilization.gpu [%], temperature.gpu, clocks_event_reasons.active\n";

fuzz_target!(|rows: &[u8]| {
    let bytes = [HEADER, rows].concat();
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
