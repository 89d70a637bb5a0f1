//! What books say, as far as cases ask for it: J per account, and the words of receipts.

use joulebook::core::{
    ledger::{Account, Phase, RequestId},
    receipt::Receipt,
};
use serde_json::{Value, json};

use super::{
    super::Answer,
    kept::{Kept, Work},
};

/// What the books say, as far as cases ask for it.
pub fn said(kept: &Kept, works: &[Work]) -> Answer {
    let mut answer = Answer::new();
    let mut put = |name: &str, uj: i128| answer.insert(name.to_owned(), json!(joules(uj)));
    put("register_j", -kept.sum_uj(|account| account == Account::Register));
    put("sum", kept.sum_uj(|account| account != Account::Register));
    put("imbalance_j", kept.sum_uj(|_| true));
    for account in [
        Account::IdleOff,
        Account::IdleResident,
        Account::ForeignUnresolved,
        Account::Unattributed,
        Account::Gap,
        Account::Suspense,
    ] {
        put(&account.to_string(), kept.sum_uj(|other| other == account));
    }
    put("idle", kept.sum_uj(|it| matches!(it, Account::IdleOff | Account::IdleResident)));
    put("floor_dropped_j", kept.floor_dropped_uj.into());
    for (account, uj) in kept.accounts.iter().flatten() {
        if let Account::Foreign(_) = account {
            put(&account.to_string(), *uj);
        }
    }
    for (place, work) in works.iter().enumerate() {
        let of = |phase| Account::Request(RequestId(place as u64), phase);
        let charged = |phase| kept.sum_uj(|account| account == of(phase));
        let (prefill_uj, decode_uj) = (charged(Phase::Prefill), charged(Phase::Decode));
        put(&work.name, prefill_uj.saturating_add(decode_uj));
        put(&format!("{}_prefill_j", work.name), prefill_uj);
        put(&format!("{}_decode_j", work.name), decode_uj);
    }
    answer.insert("corrections".into(), json!(kept.counts.corrections));
    for (work, receipt) in works.iter().zip(&kept.receipts) {
        answer.insert(format!("{}_above_idle_j", work.name), json!(receipt.joules));
        answer.insert(format!("{}_receipt", work.name), receipt_of(receipt));
    }
    if let [only] = kept.receipts.as_slice()
        && let Value::Object(receipt) = receipt_of(only)
    {
        answer.extend(receipt);
    }
    let first = kept.receipts.first();
    answer.insert("split".into(), json!(first.map(|receipt| &receipt.rule)));
    // What each of them is charged, where that is the same to the millijoule.
    let each: Vec<Option<f64>> = kept.receipts.iter().map(|receipt| receipt.joules).collect();
    let near = |one: &Option<f64>, other: &Option<f64>| {
        one.zip(*other).is_some_and(|(one, other)| (one - other).abs() < 1e-3)
    };
    let same = each.first().copied().filter(|first| each.iter().all(|one| near(one, first)));
    answer.insert("each".into(), same.map_or_else(|| json!(each), |same| json!(same)));
    answer
}

fn receipt_of(receipt: &Receipt) -> Value {
    json!({
        "method": receipt.method,
        "error": receipt.error,
        "joules": receipt.joules,
        "lower_bound_j": receipt.lower_bound_joules,
        "low_j": receipt.low_joules,
        "high_j": receipt.high_joules,
        "bound_j": receipt.bound_joules,
        "gross_j": receipt.gross_joules,
        "model_low_j": receipt.model_low,
        "model_high_j": receipt.model_high,
        "with_idle_share_j": receipt.joules_with_idle_share,
        "j_per_token": receipt.joules_per_token,
        "tokens": receipt.tokens.completion,
        "status": receipt.status,
        "settled": receipt.settled,
        "coverage": receipt.coverage,
        "contended_by": receipt.contended_by,
        "flag": receipt.flags,
    })
}

pub fn joules(uj: i128) -> f64 {
    uj as f64 / 1e6
}
