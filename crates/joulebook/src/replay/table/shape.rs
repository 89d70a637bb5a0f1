//! How rows are written: how many cells, and what a number of power looks like.

use super::{Line, columns::Columns};
use crate::replay::cell::number;

/// Decimals of nvidia-smi's power.
const DECIMALS: usize = 2;
/// Rows that are looked at to tell what a column is.
const LOOKED_AT: usize = 64;

/// How a number is written: digits behind the point, and a unit.
#[derive(PartialEq, Eq)]
pub(super) struct Shape(Option<usize>, bool);

impl Shape {
    /// The shape of a row's last cell, where that is a power.
    pub(super) fn of(columns: &Columns, cells: &[&str]) -> Option<Self> {
        let last = cells.len().checked_sub(1)?;
        columns.powers.iter().find(|power| power.at == last)?;
        let (_, unit) = number(cells.last()?)?;
        Some(Self(decimals(cells.last()?), !unit.is_empty()))
    }
}

/// Digits behind the point.
pub(in crate::replay) fn decimals(cell: &str) -> Option<usize> {
    let (_, rest) = cell.split_once('.')?;
    Some(rest.chars().take_while(char::is_ascii_digit).count())
}

/// How many cells a row has: as many as the header, unless none has so many and all that is needed
/// stands in what most of them have.
pub(super) fn width(columns: &Columns, lines: &[Line<'_>]) -> usize {
    let named = columns.names.len();
    if lines.iter().any(|(_, cells)| cells.len() == named) {
        return named;
    }
    let with = |width: &usize| lines.iter().filter(|(_, cells)| cells.len() == *width).count();
    let most = (columns.needed()..named).max_by_key(|width| with(width));
    most.filter(|width| with(width) * 2 > lines.len()).unwrap_or(named)
}

/// A column that is called power, without a unit, and holds whole numbers, beside one other that
/// looks like power: the names stand in another order than the columns.
pub(super) fn misplaced_power(
    columns: &Columns,
    lines: &[Line<'_>],
    width: usize,
) -> Option<(String, String, String)> {
    let rows = || lines.iter().filter(|(_, cells)| cells.len() == width).take(LOOKED_AT);
    let power = columns
        .powers
        .first()
        .filter(|power| power.is_bare() && columns.format == super::super::smi::FORMAT)?;
    let looks =
        |at: usize| looks_like_power(rows().filter_map(|(_, cells)| cells.get(at).copied()));
    let whole = |at: usize| {
        rows().all(|(_, cells)| cells.get(at).is_some_and(|cell| cell.parse::<u64>().is_ok()))
    };
    if rows().count() == 0 || !whole(power.at) {
        return None;
    }
    let mut others = (0..width).filter(|at| *at != columns.time && looks(*at));
    let other = others.next().filter(|_| others.next().is_none())?;
    let name = |at: usize| columns.names.get(at).cloned().unwrap_or_default();
    Some((name(power.at), "a whole number".to_owned(), name(other)))
}

/// True for cells that are all written as nvidia-smi writes power without its unit.
pub(in crate::replay) fn looks_like_power<'a>(cells: impl Iterator<Item = &'a str>) -> bool {
    let mut any = false;
    for cell in cells {
        let plain = number(cell).is_some_and(|(_, unit)| unit.is_empty());
        if !plain || decimals(cell) != Some(DECIMALS) {
            return false;
        }
        any = true;
    }
    any
}
