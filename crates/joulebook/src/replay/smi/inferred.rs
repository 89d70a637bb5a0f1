//! What the columns of rows without a header are, where their cells leave one reading.
//!
//! Power is the one column in watts, or, without units, the one column with the two decimals that
//! nvidia-smi gives power alone. An index is the one column that counts the cards of each tick.
//! Anything less clear is left to a person.

use crate::replay::{
    cell::number,
    instant::instant,
    table::{Line, looks_like_power},
    text::cells,
};

/// Rows that are looked at.
const LOOKED_AT: usize = 256;
/// More cards than any host has.
const MOST_CARDS: u64 = 64;

/// The names of the columns; those of no use are `?`.
pub(super) fn names(text: &str) -> Option<Vec<String>> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let lines: Vec<Line<'_>> =
        lines.map(|(line, content)| (line, cells(content))).take(LOOKED_AT).collect();
    let width = lines.first()?.1.len();
    let rows: Vec<&[&str]> =
        lines.iter().map(|(_, cells)| cells.as_slice()).filter(|row| row.len() == width).collect();
    if rows.len() * 2 < lines.len() {
        return None;
    }
    let column = |at: usize| rows.iter().filter_map(move |row| row.get(at).copied());
    let only = |is: &dyn Fn(usize) -> bool| {
        let mut places = (0..width).filter(|at| is(*at));
        places.next().filter(|_| places.next().is_none())
    };
    let time = only(&|at| column(at).all(|cell| instant(cell).is_some() && cell.contains(':')))?;
    let in_watts =
        |at: usize| column(at).any(|cell| number(cell).is_some_and(|(_, unit)| unit == "W"));
    let power =
        only(&in_watts).or_else(|| only(&|at| at != time && looks_like_power(column(at))))?;
    let mut names = vec!["?".to_owned(); width];
    let mut name = |at: usize, name: &str| {
        if let Some(place) = names.get_mut(at) {
            *place = name.to_owned();
        }
    };
    name(time, "timestamp");
    name(power, "power.draw");
    if let Some(uuid) = only(&|at| column(at).all(|cell| cell.starts_with("GPU-"))) {
        name(uuid, "uuid");
    } else if let Some(index) = only(&|at| is_index(&rows, at)) {
        name(index, "index");
    }
    Some(names)
}

/// True for numbers that count up from 0 and begin again, row by row, as cards do in each tick.
fn is_index(rows: &[&[&str]], at: usize) -> bool {
    let index = |row: &&[&str]| row.get(at)?.parse::<u64>().ok();
    let Some(indices) = rows.iter().map(index).collect::<Option<Vec<u64>>>() else { return false };
    let cards = indices.iter().max().map_or(0, |most| most.saturating_add(1));
    let in_turn = indices.windows(2).all(|pair| match pair {
        [from, to] => (from + 1) % cards.max(1) == *to,
        _ => false,
    });
    (2..=MOST_CARDS).contains(&cards) && indices.len() as u64 >= 2 * cards && in_turn
}
