//! Cells of the tool's tables: a number with its unit, a word, or why there is neither.

use crate::scenario::Refusal;

/// What stands in a cell.
pub(super) enum Cell {
    /// A word.
    Word(String),
    /// A number, and its unit where it has one.
    Number(String, &'static str),
    /// Neither.
    Refused(Refusal),
}

impl Cell {
    pub(super) fn word(text: impl ToString) -> Self {
        Self::Word(text.to_string())
    }

    pub(super) fn of<T>(
        answer: Result<T, Refusal>,
        number: impl FnOnce(T) -> String,
        unit: &'static str,
    ) -> Self {
        answer.map_or_else(Self::Refused, |value| Self::Number(number(value), unit))
    }

    /// As it is printed by a driver of this major version.
    pub(super) fn text(&self, units: bool, driver: u32) -> String {
        match self {
            Self::Word(text) => text.clone(),
            Self::Number(number, unit) if units && !unit.is_empty() => format!("{number} {unit}"),
            Self::Number(number, _) => number.clone(),
            Self::Refused(refusal) => word(*refusal, driver).to_owned(),
        }
    }
}

/// The driver's word for what it does not say.
pub(super) const fn word(refusal: Refusal, driver: u32) -> &'static str {
    match refusal {
        Refusal::NotSupported | Refusal::NoData if driver < 450 => "[Not Supported]",
        Refusal::NotSupported | Refusal::NoData => "[N/A]",
        Refusal::Lost => "[GPU is lost]",
        Refusal::ResetRequired => "[GPU requires reset]",
        Refusal::NoPermission => "[Insufficient Permissions]",
        Refusal::NotFound => "[Not Found]",
        _ => "[Unknown Error]",
    }
}

/// The major number of a driver's version.
pub(super) fn major(version: &str) -> u32 {
    version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(u32::MAX)
}

/// A table's line.
pub(super) fn line(cells: &[String]) -> String {
    format!("{}\n", cells.join(", "))
}
