use joulebook::smi::{processes, sentence, stamp, table, xml};
use proptest::prelude::*;

proptest! {
    /// Whatever the tool prints, nothing of it ends the reader.
    #[test]
    fn any_text_is_read_or_refused(text in ".*", code in any::<Option<i32>>()) {
        let _ = table::rows("index,power.draw", "csv,noheader", &text);
        let _ = table::rows("", "csv", &format!("index, power.draw [W]\n{text}"));
        let _ = processes::compute_apps(&text);
        let _ = processes::monitor(&format!("# gpu pid type fb command\n{text}"));
        let _ = xml::cards(&format!("<nvidia_smi_log><gpu id=\"{text}\">{text}</gpu></nvidia_smi_log>"));
        let _ = sentence::meaning(&text, code);
    }

    /// No cell becomes a power that it does not spell.
    #[test]
    fn a_power_is_what_its_cell_spells(cell in "[ -~]{0,12}") {
        let rows = table::rows("index,power.draw", "csv,noheader,nounits", &format!("0, {cell}"));
        if let [Some(row)] = rows.as_slice()
            && let Some(Ok(power)) = row.draw
        {
            let spelled: f64 = cell.trim().trim_matches('"').trim_end_matches('W').trim().parse().unwrap();
            prop_assert!((power.watts() - spelled).abs() <= 1e-6 * spelled.max(1.0));
        }
    }

    /// A lag is found whatever the zone, as long as it is short.
    #[test]
    fn a_lag_needs_no_zone(lag_ms in 0u64..60_000, quarters in 0u64..100, unix in 1u64..4_000_000) {
        let read_ns = (1_000_000_000 + unix) * 1_000_000_000;
        let stamp_ns = read_ns - lag_ms * 1_000_000 + quarters * 900_000_000_000;
        prop_assert_eq!(stamp::lag_ns(stamp_ns, read_ns), Some(lag_ms * 1_000_000));
    }
}
