use super::*;
use crate::smi::table::rows;

const QUERY: &str = "index,uuid,name,power.draw";

fn deliver(shared: &Shared, line: &str, at_ns: u64) -> bool {
    let row = rows(QUERY, "csv,noheader", line).remove(0).unwrap();
    shared.deliver(&row, at_ns, at_ns)
}

#[test]
fn a_reader_gets_every_row_of_its_card_in_turn() {
    let shared = Shared::default();
    for at_ns in 1..=3 {
        assert!(deliver(&shared, &format!("0, GPU-a, X, {at_ns} W"), at_ns));
        assert!(deliver(&shared, "1, GPU-b, Y, 7 W", at_ns));
    }
    let wait = Duration::ZERO;
    let mut seen = 0;
    for expected in 1..=3u64 {
        let Next::Row(number, row) = shared.next("GPU-a", seen, 0, wait) else { panic!() };
        assert_eq!((number, row.at_ns), (expected, expected));
        seen = number;
    }
    assert_eq!(shared.next("GPU-a", seen, 0, wait), Next::Late);
    shared.failed(Fault::Lost, "GPU is lost");
    assert_eq!(shared.next("GPU-a", seen, 0, wait), Next::Fault(1, Fault::Lost));
    assert!(deliver(&shared, "0, GPU-a, X, 9 W", 9));
    assert!(matches!(shared.next("GPU-a", seen, 1, wait), Next::Row(4, _)));
    assert_eq!(shared.next("GPU-c", 0, 1, wait), Next::Late, "no such card");
}

#[test]
fn a_row_that_names_no_card_is_nobodys_and_a_lost_name_is_kept() {
    let shared = Shared::default();
    assert!(!deliver(&shared, "[N/A], [N/A], X, 5 W", 1));
    assert!(deliver(&shared, "0, GPU-a, NVIDIA GeForce RTX 3090, 5 W", 1));
    assert!(deliver(&shared, "0, GPU-a, [Unknown Error], [Unknown Error]", 2));
    let (info, shown, count) = shared.newest("GPU-a").unwrap();
    assert_eq!((info.name.as_str(), info.consumer), ("NVIDIA GeForce RTX 3090", true));
    assert_eq!((shown.unwrap().draw, count), (Some(Err(Fault::Unknown)), 2));
}

#[test]
fn only_cards_older_than_ampere_and_ga100_are_taken_for_instant() {
    for (name, averages) in [
        ("NVIDIA A100-SXM4-80GB", false),
        ("Tesla V100-SXM2-16GB", false),
        ("NVIDIA GeForce GTX 1080 Ti", false),
        ("NVIDIA GeForce RTX 2080", false),
        ("NVIDIA GeForce RTX 3090", true),
        ("NVIDIA A10G", true),
        ("NVIDIA H100 80GB HBM3", true),
        ("a card of next year", true),
    ] {
        assert_eq!(averages_by_name(name), averages, "{name}");
    }
}
