//! The trial balance as a page and as an object: the same numbers.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};
use joulebook::{
    books::{Audit, CardAudit},
    core::ledger::{Account, Phase},
};
use serde_json::{Value, json};

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
    for (card, it) in audit.cards() {
        let balance = Balance::of(it, each);
        let _ = writeln!(page, "{STRONG}card {card}{STRONG:#}");
        let _ = writeln!(page, "{}", balance.table());
        let again = match it.books() {
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
    let transactions = count(audit.transactions(), "transaction");
    let _ = match audit.broken() {
        Some(broken) => writeln!(
            page,
            "{STRONG}does not balance{STRONG:#}: the {transactions} before line {} hold",
            broken.line
        ),
        None if audit.transactions() == 0 => writeln!(page, "the journal is empty"),
        None => writeln!(page, "{STRONG}balances{STRONG:#}: {transactions}, imbalance 0 µJ"),
    };
    page
}

/// The object.
pub fn object(audit: &Audit, name: &str, each: bool) -> Value {
    let card = |(card, it): (&str, &CardAudit)| {
        let balance = Balance::of(it, each);
        let account =
            |(account, uj): &(String, i128)| json!({ "account": account, "joules": joules(*uj) });
        json!({
            "card": card,
            "books": it.books(),
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
        "balances": audit.broken().is_none(),
        "transactions": audit.transactions(),
        "cut_line": audit.cut().map(|cut| cut.line),
        "broken": audit.broken(),
        "cards": audit.cards().map(card).collect::<Vec<_>>(),
    })
}

impl Balance {
    fn of(card: &CardAudit, each: bool) -> Self {
        let mut held = card.accounts();
        let counted_uj = held.remove(&Account::Register).unwrap_or(0).saturating_neg();
        let sum_uj = held.values().fold(0i128, |sum, uj| sum.saturating_add(*uj));
        let mut accounts = Vec::new();
        for (account, uj) in held {
            match account {
                Account::Closed(_) if each => {}
                Account::Closed(Phase::Prefill) => accounts.push(("requests, prefill".into(), uj)),
                Account::Closed(Phase::Decode) => accounts.push(("requests, decode".into(), uj)),
                account => accounts.push((account.to_string(), uj)),
            }
        }
        // Those of requests last.
        accounts.sort_by_key(|(name, _): &(String, i128)| name.starts_with("requests"));
        if each {
            let mut single: Vec<_> = card.each().collect();
            single.sort();
            accounts.extend(single.into_iter().map(|(book, account, uj)| {
                // Numbers begin anew with each book.
                let of = if card.books() > 1 { format!("book {book}: ") } else { String::new() };
                (format!("{of}{account}"), uj)
            }));
        }
        Self {
            accounts,
            requests: card.requests(),
            transactions: card.transactions(),
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

fn joules(uj: i128) -> f64 {
    uj as f64 / 1e6
}

/// J, to the microjoule.
pub fn shown(uj: i128) -> String {
    let sign = if uj < 0 { "-" } else { "" };
    let uj = uj.unsigned_abs();
    format!("{sign}{}.{:06}", uj / 1_000_000, uj % 1_000_000)
}

fn count(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}
