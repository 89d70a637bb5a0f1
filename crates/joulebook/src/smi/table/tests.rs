use super::*;

fn one(query: &str, format: &str, text: &str) -> Row {
    rows(query, format, text).remove(0).unwrap()
}

fn watts(power: &Option<Result<Power, Fault>>) -> Option<f64> {
    power.and_then(Result::ok).map(Power::watts)
}

#[test]
fn smi_sentinel_01_text_in_one_cards_cell_costs_no_other_card() {
    let rows = rows("index,power.draw", "csv,noheader,nounits", "0, [Not Supported]\n1, 212.35\n");
    let [Some(first), Some(second)] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((first.index, first.draw), (Some(0), Some(Err(Fault::NotSupported))));
    assert_eq!((second.index, watts(&second.draw)), (Some(1), Some(212.35)));
}

#[test]
fn smi_sentinel_02_a_card_without_memory_has_its_power() {
    let row = one(
        "name,power.draw,memory.used,memory.total,utilization.gpu",
        "csv,noheader,nounits",
        "NVIDIA GB10, 11.42, [N/A], [N/A], 0\n",
    );
    assert_eq!(watts(&row.draw), Some(11.42));
    assert_eq!((row.used_mib, row.total_mib, row.utilization_pct), (None, None, Some(0)));
}

#[test]
fn smi_sentinel_05_no_spelling_of_nothing_is_a_power() {
    let spellings = [
        "N/A",
        "[N/A]",
        " [N/A] ",
        "[n/a]",
        "Unknown",
        "[Unknown Error]",
        "[Not Supported]",
        "Not Supported",
        "[GPU requires reset]",
        "ERR!",
        "[Insufficient Permissions]",
        "Requested functionality has been deprecated",
        "-",
        "",
        "nan",
        "inf",
        "-1.0",
        "1e999",
        "[GPU is lost]",
        "12.0 J",
        "0x10",
    ];
    for spelling in spellings {
        let row = one("index,power.draw", "csv,noheader,nounits", &format!("0, {spelling}\n"));
        assert!(row.draw.unwrap().is_err(), "{spelling:?}");
    }
}

#[test]
fn smi_line_shape_01_rows_without_a_device_are_bound_to_none() {
    let rows = rows("power.draw", "csv,noheader,nounits", "41.20\n39.80\n");
    let all: Vec<_> = rows.iter().flatten().map(|row| (watts(&row.draw), row.is_bound())).collect();
    assert_eq!(all, [(Some(41.2), false), (Some(39.8), false)]);
}

#[test]
fn smi_line_shape_03_a_blank_line_is_no_row() {
    let rows = rows("index,power.draw", "csv,noheader,nounits", "0, 55.10\n\n0, 56.20\n");
    let all: Vec<_> = rows.iter().map(|row| watts(&row.as_ref().unwrap().draw)).collect();
    assert_eq!(all, [Some(55.1), Some(56.2)]);
}

#[test]
fn smi_line_shape_09_numbers_carry_the_headers_unit_or_none() {
    let header = "name, power.draw [W], power.limit [W], clocks.current.sm [MHz]\n";
    let card = "NVIDIA GeForce GTX 1080 Ti, 242.05 W, 262.50 W, 1987 MHz\n";
    let row = one("", "csv", &format!("{header}{card}"));
    assert_eq!((watts(&row.draw), row.limit), (Some(242.05), Power::from_watts(262.5)));
    let other = one("", "csv", &format!("{header}x, 242.05 mW, 262.50 W, 1987 MHz\n"));
    assert_eq!(other.draw, Some(Err(Fault::MalformedRow)), "not the header's unit");
    let unknown = one("", "csv", "name, power.draw [BTU/h]\nx, 5\n");
    assert_eq!(unknown.draw, Some(Err(Fault::MalformedRow)), "no unit of power");
}

#[test]
fn a_line_of_another_length_is_no_row_and_a_sentence_no_header() {
    let all = rows("", "csv", "index, power.draw [W]\n0, 5.0 W\n0, 5.0 W, 7\nNVIDIA-SMI has\n");
    assert_eq!(all.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, false]);
    for line in [
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        "No devices were found",
        "Failed to initialize NVML: Unknown Error",
        "0, 55.10",
        "",
    ] {
        assert_eq!(Table::of_header(line), None, "{line}");
    }
}

#[test]
fn flags_are_true_false_or_not_known() {
    let header = "index, clocks_event_reasons.sw_power_cap, \
                  clocks_throttle_reasons.hw_power_brake_slowdown\n";
    let row = |line: &str| one("", "csv", &format!("{header}{line}\n"));
    let known = row("0, Active, Not Active");
    assert_eq!((known.power_capped, known.power_braked), (Some(true), Some(false)));
    assert_eq!(
        known.throttle(),
        Some(Throttle { power_capped: Some(true), power_braked: Some(false) })
    );
    let unknown = row("0, [N/A], [Unknown Error]");
    assert_eq!((unknown.power_capped, unknown.power_braked), (None, None));
    assert_eq!(unknown.throttle(), None);
}
