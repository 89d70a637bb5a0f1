//! What is held is bounded whatever happens, and a receipt's error by its own bound.

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

/// A request: opened at, read for, tokens at each 7 ms, and what usage says of them.
type Work = (u64, u64, u64, Option<u64>);

/// Receipts of the same work, when each publish is off by so many µJ.
fn receipts(
    work: &[Work],
    drawn_uj: &[u64],
    off_uj: &[i64],
    edge_uj: u64,
    floor_w: u64,
) -> Vec<Receipt> {
    let mut keeper =
        Keeper::new(Settings { wait_ns: 250 * MS, ..Settings::default() }, [facts("a", 0)]);
    let rest = Some(Rest { power_uw: floor_w * 1_000_000, off_uw: None, model_loaded: true });
    let mut done = Vec::new();
    for (number, pair) in off_uj.windows(2).enumerate() {
        let (begin_ns, end_ns) =
            (Desk::at(number as u64 * 100), Desk::at((number as u64 + 1) * 100));
        for at_ns in (begin_ns..end_ns).step_by(MS as usize) {
            for (id, (open_ms, read_ms, tokens, usage)) in (0u64..).zip(work) {
                let (opened_ns, first_ns) = (Desk::at(*open_ms), Desk::at(open_ms + read_ms));
                let ended_ns = first_ns + tokens * 7 * MS;
                if at_ns == opened_ns {
                    keeper.open(at_ns, opening(id, &[0])).unwrap();
                    keeper.prompt(id, 300, None);
                }
                if at_ns >= first_ns && at_ns < ended_ns && (at_ns - first_ns) % (7 * MS) == 0 {
                    keeper.tokens(id, at_ns, (at_ns - first_ns) / (7 * MS) + 1);
                }
                if at_ns == ended_ns {
                    let usage = Usage { completion: *usage, ..Usage::default() };
                    keeper.close(id, at_ns, Status::Done, usage);
                }
            }
        }
        let shown = drawn_uj[number] as i64 + pair[1] - pair[0];
        let tick = publish(begin_ns, end_ns, shown as u64);
        keeper.publish(0, Publish { rest, edge_uj, ..tick });
        keeper.advance(end_ns + 10 * MS);
        keeper.self_check().unwrap();
        done.extend(keeper.finished());
    }
    // With everything known.
    let now = Desk::at(off_uj.len() as u64 * 100);
    done.iter().map(|receipt| keeper.receipt(receipt.id, now).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// The same rule on the true energies of the ticks: what publishes are off by moves no receipt
    /// by more than it says.
    #[test]
    fn a_receipt_is_never_off_by_more_than_its_bound(
        work in proptest::collection::vec((0u64..1500, 1u64..600, 1u64..60, proptest::option::of(1u64..90)), 1..8),
        drawn_uj in proptest::collection::vec(30_000_000u64..70_000_000, 30),
        off in proptest::collection::vec(-1.0..1.0f64, 31),
        edge_uj in 0u64..5_000_000,
        floor_w in 0u64..150,
    ) {
        let off_uj: Vec<i64> = off.iter().map(|off| (off * edge_uj as f64) as i64).collect();
        let measured = receipts(&work, &drawn_uj, &off_uj, edge_uj, floor_w);
        let truth = receipts(&work, &drawn_uj, &[0; 31], edge_uj, floor_w);
        prop_assert_eq!(measured.len(), truth.len());
        prop_assert!(!measured.is_empty());
        for (measured, truth) in measured.iter().zip(&truth) {
            let (Some(joules), Some(true_joules)) = (measured.joules, truth.joules) else { continue };
            let bound = measured.bound_joules.unwrap();
            prop_assert!((joules - true_joules).abs() <= bound, "{} is not {} ± {}", joules, true_joules, bound);
        }
    }
}
