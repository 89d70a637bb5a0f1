//! The trial balance as a page and as an object: the same numbers.

use std::{collections::BTreeMap, fmt::Write};

use comfy_table::{CellAlignment, Table, presets};
use joulebook::core::ledger::{Account, Auditor, Phase};
use serde_json::{Value, json};

use super::Audit;
use crate::words::{FAINT, STRONG};

/// A card's accounts, over all of its books.
struct Balance {
    /// In order; requests' accounts as they were asked for.
    accounts: Vec<(String, i128)>,
    requests: u64,
    transactions: u64,
    counted_uj: i128,
    sum_uj: i128,
}

/// The tables.
pub fn page(audit: &Audit, each: bool) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    for (card, books) in &audit.cards {
        let balance = Balance::of(books, each);
        let _ = writeln!(page, "{STRONG}card {card}{STRONG:#}");
        let _ = writeln!(page, "{}", balance.table());
        let again = match books.len() {
            1 => String::new(),
            books => format!(" in {books} books, one for each start of the program"),
        };
        let _ = writeln!(
            page,
            "{FAINT}{}, {}{again}{FAINT:#}\n",
            count(balance.transactions, "transaction"),
            count(balance.requests, "request"),
        );
    }
    let transactions = count(audit.transactions, "transaction");
    let _ = match &audit.broken {
        Some(broken) => writeln!(
            page,
            "{STRONG}does not balance{STRONG:#}: the {transactions} before line {} hold",
            broken.line
        ),
        None if audit.transactions == 0 => writeln!(page, "the journal is empty"),
        None => writeln!(page, "{STRONG}balances{STRONG:#}: {transactions}, imbalance 0 µJ"),
    };
    page
}

/// The object.
pub fn object(audit: &Audit, name: &str, each: bool) -> Value {
    let card = |(card, books): (&String, &Vec<Auditor>)| {
        let balance = Balance::of(books, each);
        let account =
            |(account, uj): &(String, i128)| json!({ "account": account, "joules": joules(*uj) });
        json!({
            "card": card,
            "books": books.len(),
            "transactions": balance.transactions,
            "requests": balance.requests,
            "accounts": balance.accounts.iter().map(account).collect::<Vec<_>>(),
            "sum_joules": joules(balance.sum_uj),
            "register_joules": joules(balance.counted_uj),
            "imbalance_joules": joules(balance.sum_uj.saturating_sub(balance.counted_uj)),
        })
    };
    json!({
        "journal": name,
        "balances": audit.broken.is_none(),
        "transactions": audit.transactions,
        "cut_line": audit.cut_line,
        "broken": audit.broken,
        "cards": audit.cards.iter().map(card).collect::<Vec<_>>(),
    })
}

impl Balance {
    fn of(books: &[Auditor], each: bool) -> Self {
        let mut held: BTreeMap<Account, i128> = BTreeMap::new();
        let mut phases: BTreeMap<Phase, i128> = BTreeMap::new();
        let mut single = Vec::new();
        for (book, auditor) in books.iter().enumerate() {
            for (account, uj) in auditor.ledger().balances() {
                let request = match account {
                    Account::Request(_, phase) | Account::Closed(phase) => {
                        add(&mut phases, phase, uj);
                        account
                    }
                    _ => {
                        add(&mut held, account, uj);
                        continue;
                    }
                };
                // Numbers begin anew with each book.
                let of =
                    if books.len() > 1 { format!("book {}: ", book + 1) } else { String::new() };
                single.push((format!("{of}{request}"), uj));
            }
        }
        let counted_uj = held.remove(&Account::Register).unwrap_or(0).saturating_neg();
        let sum_uj =
            held.values().chain(phases.values()).fold(0i128, |sum, uj| sum.saturating_add(*uj));
        let others = held.into_iter().map(|(account, uj)| (account.to_string(), uj));
        let phase = |(phase, uj): (Phase, i128)| match phase {
            Phase::Prefill => ("requests, prefill".to_owned(), uj),
            Phase::Decode => ("requests, decode".to_owned(), uj),
        };
        let summed = phases.into_iter().map(phase);
        Self {
            accounts: if each {
                others.chain(single).collect()
            } else {
                others.chain(summed).collect()
            },
            requests: books.iter().map(Auditor::requests).fold(0, u64::saturating_add),
            transactions: books.iter().map(Auditor::transactions).fold(0, u64::saturating_add),
            counted_uj,
            sum_uj,
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(["account", "J"]);
        for (account, uj) in &self.accounts {
            table.add_row([account.clone(), shown(*uj)]);
        }
        table.add_row(["sum".to_owned(), shown(self.sum_uj)]);
        table.add_row(["counted by the register".to_owned(), shown(self.counted_uj)]);
        if let Some(column) = table.column_mut(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

fn add<Key: Ord>(to: &mut BTreeMap<Key, i128>, key: Key, uj: i128) {
    let sum = to.entry(key).or_default();
    *sum = sum.saturating_add(uj);
}

fn joules(uj: i128) -> f64 {
    uj as f64 / 1e6
}

/// J, to the microjoule.
fn shown(uj: i128) -> String {
    let sign = if uj < 0 { "-" } else { "" };
    let uj = uj.unsigned_abs();
    format!("{sign}{}.{:06}", uj / 1_000_000, uj % 1_000_000)
}

fn count(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}
