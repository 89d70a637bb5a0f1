//! The cards of all nodes as a table for people; what does not fit into a column stands below it.

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use joulebook::Tenancy;

use super::survey::Row;
use crate::words::{FAINT, STRONG};

const HEADER: [&str; 9] =
    ["node", "gpu", "card", "read by", "ms", "floor W", "now W", "clock ms", "who is on it"];
const NUMBERS: [usize; 3] = [4, 5, 6];

/// The page.
pub fn of(rows: &[Row]) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(HEADER);
    for row in rows {
        table.add_row(cells(row));
    }
    for column in NUMBERS {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut page = format!("{table}\n");
    // Writing to a string does not fail.
    let mut nodes: Vec<&str> = Vec::new();
    for row in rows {
        if !nodes.contains(&row.node.as_str()) {
            nodes.push(&row.node);
            let place = row.endpoint.as_deref().unwrap_or("this host");
            let _ = writeln!(page, "{FAINT}{}: {place}{FAINT:#}", row.node);
        }
        let card = format!("{} card {}", row.node, row.gpu);
        if let Some(uuid) = &row.uuid {
            let floor =
                row.idle_from.as_ref().map_or(String::new(), |from| format!(", floor {from}"));
            let _ = writeln!(page, "{FAINT}{card}: {uuid}{floor}{FAINT:#}");
        }
        if let (Some(error), Some(message)) = (row.error, &row.message) {
            let _ = writeln!(page, "{STRONG}{card}: {error}{STRONG:#}: {message}");
        }
    }
    page
}

fn cells(row: &Row) -> [String; 9] {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    let clock = match (row.clock_offset_ms, row.clock_uncertainty_ms) {
        (Some(offset), Some(uncertainty)) => format!("{offset:.1} ± {uncertainty:.1}"),
        _ => "-".to_owned(),
    };
    let read_by = match (row.backend, &row.reads) {
        (None, _) => "-".to_owned(),
        (Some(backend), Some(reads)) if reads != backend => format!("{backend} ({reads})"),
        (Some(backend), _) => backend.to_owned(),
    };
    let who = match (row.error, row.tenancy, &row.contended_by) {
        (Some(error), ..) => error.word().to_owned(),
        (None, _, Some(others)) => others.clone(),
        (None, Some(tenancy), None) => match tenancy {
            Tenancy::Alone => "nobody else".to_owned(),
            Tenancy::Foreign => "others".to_owned(),
            Tenancy::Unknown => "not known".to_owned(),
        },
        (None, None, None) => "-".to_owned(),
    };
    [
        row.node.clone(),
        row.gpu.clone(),
        row.name.clone().unwrap_or_else(|| "-".to_owned()),
        read_by,
        number(row.period_ms),
        number(row.idle_watts),
        number(row.watts),
        clock,
        who,
    ]
}
