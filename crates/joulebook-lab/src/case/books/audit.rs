//! Postings that somebody made of what a register counted, before an auditor.

use joulebook::core::ledger::{
    Account, Auditor, Entry, Ledger, Phase, Reason, Refused as Broken, RequestId, Transaction,
};
use serde_json::{Value, json};

use super::{
    super::{
        Answer,
        field::{Refused, refused},
    },
    said::joules,
};

/// They are a journal's two transactions: what was counted, and who was given it.
pub fn audit(input: &Value) -> Result<Answer, Refused> {
    let uj = |value: &Value| {
        let uj = (value.as_f64()? * 1e6).round();
        (uj.abs() < 9e18).then_some(uj as i64)
    };
    let counted_uj =
        input.get("register_delta_j").and_then(uj).ok_or_else(|| refused("register_delta_j"))?;
    let postings =
        input.get("postings").and_then(Value::as_object).ok_or_else(|| refused("postings"))?;
    let mut shares = Vec::new();
    for (number, (name, joules)) in (1..).zip(postings) {
        let account = match name.as_str() {
            "idle" => Account::IdleResident,
            other => other.parse().unwrap_or(Account::Request(RequestId(number), Phase::Decode)),
        };
        let amount_uj = uj(joules).ok_or_else(|| refused("postings"))?;
        shares.push(Entry { account, amount_uj });
    }
    let of_suspense = Entry { account: Account::Suspense, amount_uj: counted_uj.saturating_neg() };
    let mut auditor = Auditor::new();
    let counted = u64::try_from(counted_uj).map_err(|_| refused("register_delta_j"))?;
    let post = Ledger::new().posting(0, counted);
    auditor.next(&post).map_err(|error| Refused::Books(error.to_string()))?;
    let settling = |shares: &[Entry], taken: Entry| Transaction {
        number: 1,
        reason: Reason::Settle,
        tick_ns: 0,
        entries: shares.iter().copied().chain([taken]).collect(),
    };
    // What is left for idle once all others have what they were given.
    let is_idle =
        |entry: &&Entry| matches!(entry.account, Account::IdleOff | Account::IdleResident);
    let amount = |entry: &Entry| (entry.account, u64::try_from(entry.amount_uj).unwrap_or(0));
    let working: Vec<_> = shares.iter().filter(|entry| !is_idle(entry)).map(amount).collect();
    let mut rest = auditor.ledger().clone();
    let taken = rest.settling(0, &working);
    let left_uj = rest.apply(&taken).ok().map(|()| rest.balance(Account::Suspense));
    let judged = auditor.next(&settling(&shares, of_suspense));
    let excess_uj = match judged.map_err(|error| error.refused) {
        Err(Broken::Unbalanced { left_uj }) => Some(left_uj),
        Err(_) => None,
        Ok(()) => Some(0),
    };
    let mut answer = Answer::new();
    answer.insert("audit".into(), json!(if judged.is_ok() { "PASS" } else { "FAIL" }));
    answer.insert("why".into(), json!(judged.err().map(|error| error.to_string())));
    answer.insert("excess_j".into(), json!(excess_uj.map(joules)));
    answer.insert("correct_idle_j".into(), json!(left_uj.map(joules)));
    Ok(answer)
}
