use proptest::prelude::*;

use super::{settle::*, *};
use crate::{
    fault::Fault,
    register::{Modulus, Register, Scale, Step},
    units::Power,
};

const MS: u64 = 1_000_000;

fn tick(number: u64, counted_mj: u64) -> Tick {
    Tick {
        begin_ns: number * 100 * MS,
        end_ns: (number + 1) * 100 * MS,
        counted_uj: counted_mj * 1000,
        unplaced: false,
    }
}

fn decoding(request: u64, tokens: u64) -> Presence {
    Presence {
        request: RequestId(request),
        resident_ns: 100 * MS,
        prefill_weight: 0,
        decode_tokens: tokens,
    }
}

fn around(present: &[Presence]) -> Around<'_> {
    Around {
        present,
        others: &Others::Nobody,
        rest: None,
        rho: Rho::default(),
        split: Split::Weighted,
    }
}

/// A book with these ticks settled at once.
fn booked(ticks: &[(Tick, Vec<Presence>)]) -> Ledger {
    let (mut ledger, mut carry) = (Ledger::new(), Carry::default());
    for (tick, present) in ticks {
        ledger.apply(&ledger.posting(tick.end_ns, tick.counted_uj)).unwrap();
        let settlement = settle(*tick, &around(present), &mut carry);
        ledger.apply(&ledger.settling(tick.end_ns, &settlement.shares)).unwrap();
        assert_eq!(ledger.imbalance_uj(), 0);
        assert_eq!(ledger.balance(Account::Suspense), 0);
    }
    ledger
}

fn requests_mj(ledger: &Ledger) -> i128 {
    let of_requests = |account| matches!(account, Account::Request(..) | Account::Closed(_));
    let requests = ledger.balances().filter(|(account, _)| of_requests(*account));
    requests.map(|(_, balance)| balance).sum::<i128>() / 1000
}

#[test]
fn the_counter_examples_come_out_at_what_was_counted() {
    let first = booked(&[
        (tick(0, 4000), vec![decoding(1, 50)]),
        (tick(1, 6000), vec![decoding(1, 50), decoding(2, 900)]),
    ]);
    assert_eq!(requests_mj(&first), 10_000);
    let second = booked(&[
        (tick(0, 4000), vec![decoding(1, 900)]),
        (tick(1, 6000), vec![decoding(1, 0), decoding(2, 10)]),
    ]);
    assert_eq!(requests_mj(&second), 10_000);
    let third: Vec<(Tick, Vec<Presence>)> = (0..12)
        .map(|number| {
            // Request i is open over ticks 0 to i, and emits 3^i in tick i.
            let present = (number..12).map(|request| {
                decoding(request, if request == number { 3u64.pow(request as u32) } else { 0 })
            });
            (tick(number, 1000), present.collect())
        })
        .collect();
    assert_eq!(requests_mj(&booked(&third)), 12_000);
}

#[test]
fn a_quiet_tick_is_idle_and_a_busy_one_pays_the_floor_first() {
    let rest = Rest { power_uw: 70_000_000, off_uw: Some(20_000_000), model_loaded: true };
    let mut carry = Carry::default();
    let quiet = settle(tick(0, 7100), &Around { rest: Some(rest), ..around(&[]) }, &mut carry);
    assert_eq!(quiet.shares, [(Account::IdleOff, 2_000_000), (Account::IdleResident, 5_100_000)]);
    let present = [decoding(1, 5)];
    let busy =
        settle(tick(1, 40_000), &Around { rest: Some(rest), ..around(&present) }, &mut carry);
    let request = Account::Request(RequestId(1), Phase::Decode);
    assert_eq!(
        busy.shares,
        [(Account::IdleOff, 2_000_000), (Account::IdleResident, 5_000_000), (request, 33_000_000)]
    );
    let unknown = settle(tick(2, 40_000), &Around { rest: Some(rest), ..around(&[]) }, &mut carry);
    assert!(unknown.shares.contains(&(Account::Unattributed, 33_000_000)));
}

#[test]
fn a_floor_that_cannot_be_met_is_carried_one_tick_and_then_dropped() {
    let rest = Some(Rest { power_uw: 70_000_000, off_uw: None, model_loaded: true });
    let present = [decoding(1, 5)];
    let around = Around { rest, ..around(&present) };
    let mut carry = Carry::default();
    assert!(!settle(tick(0, 3000), &around, &mut carry).floor_suspect);
    assert_eq!(carry, Carry { owed_uj: 4_000_000, dropped_uj: 0 });
    let paid = settle(tick(1, 20_000), &around, &mut carry);
    assert_eq!(paid.shares[0], (Account::IdleResident, 11_000_000));
    assert_eq!(carry, Carry::default());
    settle(tick(2, 0), &around, &mut carry);
    assert!(settle(tick(3, 0), &around, &mut carry).floor_suspect);
    assert_eq!(carry, Carry { owed_uj: 7_000_000, dropped_uj: 7_000_000 });
}

#[test]
fn what_cannot_be_placed_in_time_is_nobodys() {
    let present = [decoding(1, 5)];
    let restarted = Tick { unplaced: true, ..tick(0, 900) };
    let mut carry = Carry::default();
    let settlement = settle(restarted, &around(&present), &mut carry);
    assert_eq!(settlement.shares, [(Account::Gap, 900_000)]);
    let nobody = settle(restarted, &around(&[]), &mut carry);
    assert_eq!(nobody.shares, [(Account::IdleResident, 900_000)]);
}

#[test]
fn somebody_else_on_the_card_takes_his_share_or_makes_it_unresolved() {
    let rest = Some(Rest { power_uw: 70_000_000, off_uw: None, model_loaded: true });
    let present = [decoding(1, 5)];
    let with = |others: &Others| {
        settle(tick(0, 17_000), &Around { rest, others, ..around(&present) }, &mut Carry::default())
    };
    let known = with(&Others::Shares { own: 75, theirs: vec![(TenantId(9), 25)] });
    assert!(known.shares.contains(&(Account::Foreign(TenantId(9)), 2_500_000)));
    assert_eq!(known.active_uj, 7_500_000);
    let strict = with(&Others::Unresolved);
    assert!(strict.shared_device);
    assert!(strict.shares.contains(&(Account::ForeignUnresolved, 10_000_000)));
    let lenient = with(&Others::Lenient);
    assert_eq!((lenient.active_uj, lenient.shared_device), (10_000_000, false));
}

#[test]
fn decode_tokens_weigh_by_how_many_emit() {
    let rho = Rho { a: 2970, b: 126_976 };
    assert_eq!((rho.at(1), rho.at(8), rho.at(0)), (129_946, 18_842, 129_946));
    let prompt = Presence { prefill_weight: 100 * TOKEN, decode_tokens: 0, ..decoding(2, 0) };
    let present = [decoding(1, 10), prompt];
    let settlement = settle(tick(0, 1000), &around(&present), &mut Carry::default());
    // 10 tokens × 8 against 100 prompt tokens.
    let decode = Account::Request(RequestId(1), Phase::Decode);
    assert_eq!(settlement.shares[0], (decode, 444_444));
}

#[test]
fn what_breaks_the_law_is_refused_whole() {
    let mut ledger = Ledger::new();
    let entry = |account, amount_uj| Entry { account, amount_uj };
    let transaction =
        |number, entries| Transaction { number, reason: Reason::Post, tick_ns: 0, entries };
    let lost = transaction(0, vec![entry(Account::Register, -5), entry(Account::Gap, 4)]);
    assert_eq!(ledger.apply(&lost), Err(Refused::Unbalanced { left_uj: -1 }));
    let thin = transaction(0, vec![entry(Account::Suspense, -5), entry(Account::Gap, 5)]);
    assert_eq!(ledger.apply(&thin), Err(Refused::Overdrawn(Account::Suspense)));
    let late = transaction(7, vec![]);
    assert_eq!(ledger.apply(&late), Err(Refused::OutOfOrder { expected: 0 }));
    assert_eq!((ledger.imbalance_uj(), ledger.counted_uj()), (0, 0));
}

#[test]
fn a_late_word_is_a_correcting_pair() {
    let mut ledger = booked(&[(tick(0, 1000), vec![decoding(1, 10), decoding(2, 10)])]);
    let mut carry = Carry::default();
    let split =
        |present: &[Presence], carry: &mut Carry| settle(tick(0, 1000), &around(present), carry);
    let before = split(&[decoding(1, 10), decoding(2, 10)], &mut carry);
    let after = split(&[decoding(1, 30), decoding(2, 10)], &mut carry);
    let pair = ledger.correcting(100 * MS, &before.shares, &after.shares).unwrap();
    ledger.apply(&pair).unwrap();
    assert_eq!(ledger.charged(RequestId(1)), (0, 750_000));
    assert_eq!((ledger.charged(RequestId(2)), ledger.imbalance_uj()), ((0, 250_000), 0));
    assert_eq!(ledger.correcting(0, &after.shares, &after.shares), None);
    ledger.forget(RequestId(1));
    assert_eq!((ledger.imbalance_uj(), ledger.charged(RequestId(1))), (0, (0, 0)));
}

/// What happens around one tick of the property test.
#[derive(Clone, Debug)]
struct Moment {
    reading: Result<u64, ()>,
    restart: bool,
    present: Vec<(u64, u64, u64, u64)>,
    others: u8,
    floor_w: Option<u64>,
    late: bool,
    split: u8,
}

fn moment() -> impl Strategy<Value = Moment> {
    (
        prop_oneof![6 => (0u64..80_000).prop_map(Ok), 1 => Just(Err(()))],
        prop_oneof![20 => Just(false), 1 => Just(true)],
        proptest::collection::vec((0u64..40, 0u64..100, 0u64..5000, 0u64..9), 0..6),
        0u8..6,
        proptest::option::of(0u64..200),
        any::<bool>(),
        0u8..4,
    )
        .prop_map(|(reading, restart, present, others, floor_w, late, split)| Moment {
            reading,
            restart,
            present,
            others,
            floor_w,
            late,
            split,
        })
}

proptest! {
    // Ten thousand books of about a hundred posts each: a million in all.
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// The law after every transaction: random registers, requests, tenants, late events.
    #[test]
    fn the_books_balance_whatever_happens(moments in proptest::collection::vec(moment(), 1..50)) {
        let ceiling = Power::from_microwatts(1_000_000_000);
        let mut register = Register::new(Scale::MILLIJOULES, Modulus::None, ceiling, 100 * MS);
        let (mut ledger, mut carry) = (Ledger::new(), Carry::default());
        let (mut shown, mut now) = (9_000_000u64, 0);
        // The slow oracle: what was accepted, and what each account should hold.
        let mut accepted = 0i128;
        let mut held: std::collections::HashMap<Account, i128> = std::collections::HashMap::new();
        for moment in moments {
            now += 100 * MS;
            if moment.restart {
                shown = 0;
            }
            shown += moment.reading.unwrap_or(0);
            let step = register.advance(now, moment.reading.map(|_| shown).map_err(|()| Fault::Timeout));
            let counted: Vec<(u64, bool)> = match step {
                Step::Advanced(advance) => vec![(advance.delta.microjoules(), false)],
                Step::Restarted { counted, then, .. } => vec![
                    (counted.map_or(0, |counted| counted.microjoules()), true),
                    (then.delta.microjoules(), false),
                ],
                Step::Set { then, .. } => vec![(then.delta.microjoules(), false)],
                _ => vec![],
            };
            for (counted_uj, unplaced) in counted {
                let tick = Tick { begin_ns: now - 100 * MS, end_ns: now, counted_uj, unplaced };
                ledger.apply(&ledger.posting(now, counted_uj)).unwrap();
                accepted += i128::from(counted_uj);
                let mut present: Vec<Presence> = Vec::new();
                for (request, resident_ms, prefill, tokens) in &moment.present {
                    if present.iter().all(|known| known.request.0 != *request) {
                        present.push(Presence {
                            request: RequestId(*request),
                            resident_ns: resident_ms * MS,
                            prefill_weight: prefill * TOKEN,
                            decode_tokens: *tokens,
                        });
                    }
                }
                let others = match moment.others {
                    0 => Others::Unresolved,
                    1 => Others::Lenient,
                    2 => Others::Shares { own: 3, theirs: vec![(TenantId(1), 5), (TenantId(2), 0)] },
                    _ => Others::Nobody,
                };
                let rest = moment.floor_w.map(|watts| Rest {
                    power_uw: watts * 1_000_000,
                    off_uw: (watts % 3 == 0).then_some(watts * 300_000),
                    model_loaded: watts % 2 == 0,
                });
                let split = [Split::Weighted, Split::Token, Split::Time, Split::Equal]
                    [usize::from(moment.split)];
                let around = Around { present: &present, others: &others, rest, rho: Rho::default(), split };
                let owed = carry.owed_uj;
                let settlement = settle(tick, &around, &mut carry);
                prop_assert_eq!(settlement.shares.iter().map(|(_, share)| share).sum::<u64>(), counted_uj);
                prop_assert!(carry.owed_uj <= owed.max(rest.map_or(0, |rest| rest.power_uw / 10)));
                ledger.apply(&ledger.settling(now, &settlement.shares)).unwrap();
                for (account, share) in &settlement.shares {
                    *held.entry(*account).or_default() += i128::from(*share);
                }
                if moment.late {
                    // Later it turns out that everybody had weighed the same.
                    let equal = Around { split: Split::Equal, ..around };
                    let mut again = Carry { owed_uj: owed, ..carry };
                    let after = settle(tick, &equal, &mut again);
                    if let Some(pair) = ledger.correcting(now, &settlement.shares, &after.shares) {
                        ledger.apply(&pair).unwrap();
                        for (account, share) in &settlement.shares {
                            *held.entry(*account).or_default() -= i128::from(*share);
                        }
                        for (account, share) in &after.shares {
                            *held.entry(*account).or_default() += i128::from(*share);
                        }
                    }
                }
                // Self-check, each step.
                prop_assert_eq!(ledger.imbalance_uj(), 0);
                prop_assert_eq!(ledger.counted_uj(), accepted);
                for (account, balance) in &held {
                    prop_assert_eq!(ledger.balance(*account), *balance, "{}", account);
                }
            }
        }
    }
}

#[test]
fn a_million_posts_leave_nothing_over() {
    // SplitMix64, so that the run is the same each time.
    let mut state = 1u64;
    let mut draw = |below: u64| {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 31) % below
    };
    let (mut ledger, mut carry) = (Ledger::new(), Carry::default());
    let rest = Some(Rest { power_uw: 70_000_000, off_uw: Some(20_000_000), model_loaded: true });
    let mut counted = 0i128;
    for number in 0..1_000_000u64 {
        let length_ns = (50 + draw(100)) * MS;
        let tick = Tick {
            begin_ns: number * 200 * MS,
            end_ns: number * 200 * MS + length_ns,
            counted_uj: draw(70_000) * 1000,
            unplaced: draw(1000) == 0,
        };
        // Requests come and go: eight numbers are in flight, and each is forgotten after a while.
        let first = number / 16;
        let present: Vec<Presence> = (first..first + draw(9))
            .map(|request| Presence {
                request: RequestId(request),
                resident_ns: draw(length_ns),
                prefill_weight: draw(3) * draw(2000) * TOKEN,
                decode_tokens: draw(9),
            })
            .collect();
        let others = match draw(50) {
            0 => Others::Unresolved,
            1 => Others::Shares { own: draw(9), theirs: vec![(TenantId(7), draw(9))] },
            _ => Others::Nobody,
        };
        let around = Around { others: &others, rest, ..around(&present) };
        ledger.apply(&ledger.posting(tick.end_ns, tick.counted_uj)).unwrap();
        let settlement = settle(tick, &around, &mut carry);
        ledger.apply(&ledger.settling(tick.end_ns, &settlement.shares)).unwrap();
        counted += i128::from(tick.counted_uj);
        if number % 16 == 15 && first >= 8 {
            ledger.forget(RequestId(first - 8));
        }
        assert_eq!((ledger.imbalance_uj(), ledger.balance(Account::Suspense)), (0, 0));
        assert_eq!(ledger.counted_uj(), counted);
    }
}
