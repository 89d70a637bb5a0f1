//! Who is charged what: every microjoule once, above a floor that was seen or declared.

use joulebook::core::{
    Fault, Flags, Source,
    keeper::{CardFacts, Keeper, Opening, Payer, Phases, Publish, Settings},
    ledger::{
        Account, AuditError, Auditor, Entry, Ledger, Phase, Reason, Refused, RequestId,
        settle::{Around, Carry, Others, Presence, Rest, Rho, Split, Tick, settle},
    },
    receipt::{Receipt, Status, TokenSource, Usage},
};
use serde_json::Value;

use super::{passes, variant};

const SECOND: u64 = 1_000_000_000;

fn floor(watts: u64) -> Option<Rest> {
    Some(Rest { power_uw: watts * 1_000_000, off_uw: None, model_loaded: true })
}

/// A second at some power; what is owed to its floor is nothing.
fn second(watts: u64) -> Tick {
    Tick { begin_ns: 0, end_ns: SECOND, counted_uj: watts * 1_000_000, unplaced: false }
}

fn around(present: &[Presence], rest: Option<Rest>) -> Around<'_> {
    let (rho, split) = (Rho::default(), Split::Weighted);
    Around { present, others: &Others::Nobody, rest, rho, split }
}

fn present(requests: u64) -> Vec<Presence> {
    let one = |request| Presence {
        request: RequestId(request),
        resident_ns: SECOND,
        prefill_weight: 0,
        decode_tokens: 25,
    };
    (0..requests).map(one).collect()
}

/// Books of these cards, a request on all of them for a second; only the first card publishes.
fn half_seen(cards: usize) -> Receipt {
    let facts = |card: usize| CardFacts {
        name: format!("GPU-{card}").as_str().into(),
        backend: "simulated",
        source: Source::Local,
        lag_ns: 0,
        lag_uncertainty_ns: 0,
    };
    let mut keeper = Keeper::new(Settings::default(), (0..cards).map(facts));
    let payer = |card| Payer { card, phases: Phases::Both, rho: Rho::default() };
    let payers = (0..cards).map(payer).collect();
    keeper.open(0, Opening { id: 7, payers, ..Opening::default() }).expect("room for one");
    keeper.tokens(7, SECOND / 2, 10);
    let usage = Usage { completion: Some(10), source: TokenSource::Usage, ..Usage::default() };
    keeper.close(7, SECOND, Status::Done, usage);
    keeper.publish(
        0,
        Publish {
            tick: second(400),
            edge_uj: 1,
            rest: floor(0),
            spread_uw: 0,
            others: Others::Nobody,
            contended_by: None,
            flags: Flags::NONE,
        },
    );
    keeper.advance(100 * SECOND);
    keeper.self_check().expect("books that hold");
    keeper.receipt(7, 100 * SECOND).expect("a receipt")
}

#[test]
fn attribution_01() {
    let answer = passes("attribution-01");
    assert!(answer["sum"].as_f64() < Some(880.0), "nobody is charged the whole card");
    assert_eq!(answer["imbalance_j"].as_f64(), Some(0.0));
    // At any number in flight what is charged is what was counted, to the microjoule.
    for requests in [1, 4, 32, 100, 1000] {
        let settled = settle(second(110), &around(&present(requests), None), &mut Carry::default());
        let charged: u64 = settled.shares.iter().map(|(_, uj)| uj).sum();
        assert_eq!((charged, settled.shares.len() as u64), (110_000_000, requests));
    }
    // News that comes after a tick was settled is a correction, and the sum stays.
    assert!(variant("attribution-01-v3")["corrections"].as_u64() > Some(0));
    assert_eq!(variant("attribution-01-v3")["sum"].as_f64(), Some(1000.0));
}

#[test]
fn attribution_02() {
    let answer = passes("attribution-02");
    assert_eq!(answer["imbalance_j"].as_f64(), Some(0.0), "nothing is lost");
    // Nobody there, above the floor: nobody's, and not smeared over whoever comes next.
    let after = settle(second(200), &around(&[], floor(30)), &mut Carry::default());
    let expected = [(Account::IdleResident, 30_000_000), (Account::Unattributed, 170_000_000)];
    assert_eq!(after.shares, expected);
    let answer = variant("attribution-02-v4");
    assert_eq!(answer["joules"], Value::Null, "no sampled zero, and none of the burst");
}

#[test]
fn attribution_03() {
    let answer = passes("attribution-03");
    for model in ["m1", "m2"] {
        let charged = answer[&format!("{model}_above_idle_j")].as_f64();
        assert!(charged < Some(5600.0), "{model} is not charged the node");
    }
    // The card without a model pays for itself: neither model's figure holds any of its 600 J.
    assert_eq!(answer["idle/off"].as_f64(), Some(600.0));
    assert_eq!(answer["idle/resident"].as_f64(), Some(1200.0));
}

#[test]
fn attribution_04() {
    let answer = passes("attribution-04");
    assert_eq!(answer["joules"], Value::Null, "neither 4000 J as sampled nor 8000 J by doubling");
    assert_eq!(answer["sum"].as_f64(), Some(4000.0), "what was counted stands in the books");
    let receipt = half_seen(2);
    assert_eq!((receipt.joules, receipt.error), (None, Some(Fault::PartialDevices)));
    assert_eq!((receipt.lower_bound_joules, receipt.joules_per_token), (Some(400.0), None));
    let receipt = half_seen(1);
    assert_eq!((receipt.joules, receipt.joules_per_token), (Some(400.0), Some(40.0)));
}

#[test]
fn attribution_06() {
    let answer = passes("attribution-06");
    for wrong in [2400.0, 600.0, 1000.0] {
        assert_ne!(answer["gross_j"].as_f64(), Some(wrong), "no mean of whoever answered, times 2");
    }
    assert_eq!(variant("attribution-06-v2")["joules"], Value::Null, "half a total is none");
}

#[test]
fn attribution_07() {
    let answer = passes("attribution-07");
    assert_ne!(answer["request_j"].as_f64(), Some(100.0), "the first attempt is not free");
    assert_eq!(answer["1_receipt"]["status"], "failed");
    assert_eq!(answer["1_receipt"]["method"], "sampled");
    // Nothing delivered has no price a token.
    assert_eq!(variant("attribution-07-v2")["j_per_delivered_token"], Value::Null);
}

#[test]
fn idle_baseline_04() {
    passes("idle-baseline-04");
    // What the books themselves do when nothing is left for idle: they post nothing to it.
    let mut ledger = Ledger::new();
    ledger.apply(&ledger.posting(0, 180_000)).expect("a posting");
    let of = |id| Account::Request(RequestId(id), Phase::Decode);
    let stale = [(of(1), 120_000), (of(2), 60_000), (Account::IdleResident, 18_000)];
    let settling = ledger.settling(0, &stale);
    assert_eq!(ledger.apply(&settling), Err(Refused::Overdrawn(Account::Suspense)));
    ledger.apply(&ledger.settling(0, &stale[..2])).expect("a settlement");
    assert_eq!((ledger.balance(Account::IdleResident), ledger.imbalance_uj()), (0, 0));
    // The same entries as somebody else would write them are found in each interval.
    let mut auditor = Auditor::new();
    for number in 0..6 {
        let mut post = ledger.posting(0, 180_000);
        post.number = 2 * number;
        auditor.next(&post).expect("a posting");
        let mut settled = ledger.settling(0, &stale[..2]);
        settled.number = 2 * number + 1;
        if number == 5 {
            settled.entries.push(Entry { account: Account::IdleResident, amount_uj: 18_000 });
        }
        let refused = Refused::Unbalanced { left_uj: 18_000 };
        let found = Err(AuditError { number: 11, refused });
        assert_eq!(settled.reason, Reason::Settle);
        assert_eq!(auditor.next(&settled), if number == 5 { found } else { Ok(()) });
    }
    assert_eq!(auditor.transactions(), 11);
}

#[test]
fn idle_baseline_06() {
    let answer = passes("idle-baseline-06");
    assert_ne!(answer["idle_resident_w"].as_f64(), Some(30.0), "no mean of two states");
    assert_eq!(answer["imbalance_j"].as_f64(), Some(0.0));
    // With a state that was never seen at rest nothing is charged above it.
    let answer = variant("idle-baseline-06-v2");
    assert_eq!((&answer["joules"], &answer["idle_resident_w"]), (&Value::Null, &Value::Null));
}
