//! `joulebook nodes --statement`: what journals of the fleet's books come to.
//!
//! Each journal is audited first: one that does not balance states nothing.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

use comfy_table::{CellAlignment, Table, presets};
use joulebook::books::Statement;
use serde_json::json;

use crate::{
    command::audit::{self, page::shown},
    words::{FAINT, STRONG, say_error, say_warning},
};

pub fn run(journals: &[PathBuf], as_json: bool) -> anyhow::Result<ExitCode> {
    let mut statement = Statement::default();
    let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in journals {
        let (name, audit) = audit::read(path, false)?;
        if let Err(error) = audit::judgement(&audit, &name) {
            say_error(&error.context("it states nothing"));
            return Ok(ExitCode::FAILURE);
        }
        for (card, books) in audit.cards() {
            seen.entry(card.to_owned()).or_default().push(name.clone());
            statement.add_books(card, books);
        }
    }
    for (card, names) in seen.iter().filter(|(_, names)| names.len() > 1) {
        say_warning(&format!(
            "{card} stands in {}: what they hold of the same time is counted twice",
            names.join(" and in ")
        ));
    }
    if as_json {
        anstream::println!("{}", object(&statement));
    } else {
        anstream::print!("{}", page(&statement));
    }
    Ok(ExitCode::SUCCESS)
}

fn page(statement: &Statement) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["node", "card", "account", "J"]);
    for line in statement.lines() {
        let node = line.node.unwrap_or_else(|| "-".to_owned());
        table.add_row([node, line.card, line.account.to_string(), shown(line.energy_uj)]);
    }
    for (account, energy_uj) in statement.totals() {
        let all = "all".to_owned();
        table.add_row([all, String::new(), account.to_string(), shown(energy_uj)]);
    }
    let sum = ["all".to_owned(), String::new(), "sum".to_owned(), shown(statement.sum_uj())];
    table.add_row(sum);
    if let Some(column) = table.column_mut(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let counted = shown(statement.counted_uj());
    format!("{table}\n{FAINT}the registers counted {STRONG}{counted}{STRONG:#}{FAINT} J{FAINT:#}\n")
}

fn object(statement: &Statement) -> serde_json::Value {
    let joules = |energy_uj: i128| energy_uj as f64 / 1e6;
    let line = |line: joulebook::books::StatementLine| {
        json!({
            "node": line.node,
            "card": line.card,
            "account": line.account,
            "joules": joules(line.energy_uj),
        })
    };
    let total = |(account, energy_uj)| json!({ "account": account, "joules": joules(energy_uj) });
    json!({
        "lines": statement.lines().map(line).collect::<Vec<_>>(),
        "totals": statement.totals().into_iter().map(total).collect::<Vec<_>>(),
        "sum_joules": joules(statement.sum_uj()),
        "counted_joules": joules(statement.counted_uj()),
    })
}
