//! What is held is bounded whatever happens.

use super::*;

#[test]
fn a_long_day_leaves_nothing_behind() {
    let mut desk = Desk::new(Settings::default());
    let mut id = 0;
    for second in 0..400u64 {
        for tick in 0..10 {
            for _ in 0..12 {
                id += 1;
                let at = Desk::at(second * 1000 + tick * 100 + 10);
                desk.keeper.open(at, opening(id, &[0])).unwrap();
                desk.keeper.tokens(id, at + 20 * MS, 4);
                desk.keeper.close(id, at + 60 * MS, Status::Done, completion(4));
            }
            desk.tick(3000);
        }
        assert_eq!(desk.keeper.finished().count(), 120);
    }
    let (open, held) = desk.keeper.sizes();
    // A minute of corrections and the longest tick, at 120 a second.
    assert!(open == 0 && held <= 63 * 120, "{held} of {id} requests are held");
    let standing = desk.keeper.standing(0).unwrap();
    assert!(standing.ticks <= 601 && standing.active == 0, "{standing:?}");
    assert_eq!(standing.ledger.requests_uj(), standing.ledger.counted_uj());
}

#[test]
fn a_stuck_card_and_clients_that_never_close_are_bounded() {
    let settings = Settings { most_open: 100, longest_ns: 30 * SECOND_NS, ..Settings::default() };
    let mut desk = Desk::new(settings);
    let mut refused = 0;
    for id in 0..1000 {
        let at = Desk::at(id * 100);
        if desk.keeper.open(at, opening(id, &[0])) == Err(NotOpened::Full) {
            refused += 1;
        }
        desk.keeper.tokens(id, at + 1, 5);
        desk.keeper.advance(at + 2);
    }
    assert_eq!(desk.keeper.counts().full, refused);
    assert!(refused > 0);
    desk.keeper.advance(Desk::at(250_000));
    desk.keeper.advance(Desk::at(400_000));
    let receipts: Vec<Receipt> = desk.keeper.finished().collect();
    assert_eq!(receipts.len() as u64, 1000 - refused);
    assert!(receipts.iter().all(|receipt| receipt.status == Status::Lost
        && receipt.error == Some(Fault::Gap)
        && receipt.flags.contains(Flags::PARTIAL)
        && receipt.joules.is_none()));
    desk.keeper.advance(Desk::at(500_000));
    assert_eq!(desk.keeper.sizes(), (0, 0));
    assert_eq!(desk.keeper.counts().lost, 1000 - refused);
}

#[test]
fn a_tick_of_too_many_seats_is_settled_early_and_counted() {
    let mut desk = Desk::new(Settings { most_seats: 50, ..Settings::default() });
    for id in 0..20 {
        desk.keeper.open(Desk::at(0), opening(id, &[0])).unwrap();
    }
    for _ in 0..10 {
        desk.tick(1000);
    }
    let counts = desk.keeper.counts();
    assert!(counts.forced > 0, "{counts:?}");
    let standing = desk.keeper.standing(0).unwrap();
    assert!(standing.ticks <= 4, "{standing:?}");
}
