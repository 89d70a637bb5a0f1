//! What is refused, by line and with what would help.

use joulebook::replay::{self, Form, Format, Moment, ReplayError, Zone};

use super::support::{made_up, recording, refusal, words};

fn says(text: &str, line: Option<usize>, helps: &str) {
    let error = refusal(text);
    assert_eq!(error.line(), line, "{error}");
    assert!(error.to_string().contains(helps), "`{error}` does not say `{helps}`");
}

#[test]
fn a_header_that_names_nothing_or_the_wrong_unit_is_refused() {
    says("", None, "nothing is in it");
    says("\n\n", None, "nothing is in it");
    says("2023/07/14 10:12:46.483, 56\n", Some(1), "--columns timestamp,index,power.draw");
    says("2023/07/14 10:12:46.483, 56.12, 57.10\n", Some(1), "--columns");
    says("0, 55.10\n0, 56.20\n", Some(1), "--format=csv");
    says("index, power.draw [W]\n0, 1\n", Some(1), "add timestamp to its --query-gpu");
    says("timestamp, utilization.gpu [%]\n", Some(1), "add power.draw to its --query-gpu");
    says("\ntimestamp, power.draw [J]\n", Some(2), "`J`");
    let stamp = "2023/07/14 10:12:46.483";
    says(&format!("timestamp, power.draw\n{stamp}, 5 BTU\n"), Some(2), "`BTU`");
    says(&format!("timestamp, power\n{stamp}, 5\n"), Some(1), "power [W]");
    says("timestamp, power.draw [W]\n", Some(1), "only the header");
    says(&format!("timestamp, power.draw [W]\n{stamp}, [N/A]\n"), Some(2), "not_supported");
    let changed =
        format!("timestamp, power.draw [W]\n{stamp}, 5\ntimestamp, power.draw.instant [W]\n");
    says(&changed, Some(3), "split the file");
}

#[test]
fn cards_that_cannot_be_told_apart_are_refused() {
    let stamp = "2023/07/14 10:12:46.483";
    let rows = format!("{stamp}, 41.20 W\n{stamp}, 39.80 W\n");
    says(&format!("timestamp, power.draw [W]\n{rows}"), Some(3), "index,uuid");

    // The same with stamps that differ by a few milliseconds: the pattern gives it away.
    let mut rows = String::from("timestamp, power.draw [W]\n");
    for second in 10..30 {
        for (card, watts) in [41, 39, 300].into_iter().enumerate() {
            rows += &format!("2023/07/14 10:12:{second}.00{card}, {watts}.00 W\n");
        }
    }
    let log = recording(rows.as_bytes());
    assert!(words(&log.warnings).contains(&"identity_ambiguous"), "{:?}", log.warnings);
    let one = recording(&made_up("bursts.csv"));
    assert!(!words(&one.warnings).contains(&"identity_ambiguous"));
}

#[test]
fn a_column_that_is_not_there_and_floors_that_fit_no_card_are_refused() {
    let log = recording(&made_up("two-cards.csv"));
    let error = log.ask(Some("power.draw.instant"), &[]).unwrap_err();
    assert!(error.to_string().contains("columns of power: power.draw [W]"), "{error}");
    assert!(log.ask(Some("power.draw [W]"), &[20.0]).is_ok());
    let error = log.ask(None, &[1.0, 2.0, 3.0]).unwrap_err();
    assert_eq!(error, ReplayError::IdleFloors { given: 3, cards: 2 });
}

#[test]
fn epoch_seconds_need_the_zone_and_nothing_else_does() {
    let log = recording(&made_up("bursts.csv"));
    let first_ns = log.span.open_ns;
    let on = |text: &str, zone: Option<&str>| {
        let zone = zone.map(|zone| zone.parse::<Zone>().unwrap());
        text.parse::<Moment>().unwrap().on(log.clock, zone.as_ref(), first_ns)
    };
    assert_eq!(on("1705309200", None), Err(ReplayError::NeedsZone));
    assert_eq!(on("1705309200", Some("+01:00")), Ok(first_ns));
    assert_eq!(on("2024/01/15 10:00:00.000", None), Ok(first_ns));
    assert_eq!(on("+0.5", None), Ok(first_ns + 500_000_000));
}

#[test]
fn a_last_row_without_its_end_is_left_out_only_where_something_is_lost() {
    let rows = "timestamp, power.draw [W]\n2023/07/14 10:12:46.483, 160.70\n2023/07/14 10:12:46.583, 160.70";
    let rows_read = |text: &str| recording(text.as_bytes()).rows;
    assert_eq!(rows_read(rows), 2);
    assert_eq!(rows_read(&rows[..rows.len() - 1]), 1, "160.7 may have been 160.70");
    assert_eq!(rows_read(&rows[..rows.len() - 4]), 1, "16 may have been 160.70");
    assert_eq!(rows_read(&format!("{rows}\n")), 2);
}

#[test]
fn what_is_no_log_of_power_is_refused_with_what_it_is() {
    says("start_epoch_s,end_epoch_s\n1,2\n", Some(1), "--marks");
    says("Time,Total_Dur,Eval_Count\n10:00:00,5,6\n", Some(1), "windows of work");
    says("hello world\n", Some(1), "no format that is known");
    says("{\"card0\": {\"Temperature\": \"49.0\"}}", Some(1), "not_supported");
    says("<nvidia_smi_log></nvidia_smi_log>", Some(1), "no card is in it");
    says("x_total{gpu=\"0\"} 5\n", Some(1), "no sample of power or energy");
    let scrape = "a_watts{gpu=\"0\"} 5\n";
    says(&format!("{scrape}{scrape}"), Some(2), "nothing says when");
    says(":::MLLOG {\"key\": \"run_start\", \"time_ms\": 5}\n", Some(1), "power_reading");
    says("timestamp device\nnow 5\n", Some(2), "`now` is no timestamp");
    let other = "timestamp,index,power.draw,temperature.gpu\n";
    says(&format!("{other}2024-01-15T10:00:00Z,0,41,55.10\n"), Some(1), "temperature.gpu");
}

#[test]
fn a_forced_format_is_held_to() {
    for format in Format::ALL {
        assert_eq!(format.word().parse(), Ok(*format));
        let form = Form { format: Some(*format), columns: None };
        assert!(replay::read_as(b"neither, this, nor that\n1, 2, 3\n", &form).is_err(), "{format}");
    }
    assert!("csv".parse::<Format>().unwrap_err().contains("nvidia-smi-xml"));
    let form = Form { format: Some(Format::RocmSmi), columns: None };
    let error = replay::read_as(&made_up("bursts.csv"), &form).unwrap_err();
    assert!(error.to_string().contains("no rocm-smi JSON"), "{error}");
}
