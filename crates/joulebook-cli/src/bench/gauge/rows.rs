//! Rows of `nvidia-smi --query-gpu=… --format=csv -lms N` as readings.
//!
//! Columns are found by header name. A row counts when its watt cell is a finite number that is not
//! negative and when it says whose it is; every other line is rejected and counted, so that `[N/A]`
//! never integrates as 0 W. A flag is `Active`, `Not Active`, or unknown.

use joulebook::smi::{stamp, table::Row, table::Table};

use super::Reading;

/// A reading and the card that it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The card's UUID, or its index where the tool names none.
    pub card: String,
    /// The reading.
    pub reading: Reading,
}

/// Reads lines as they come. A line that is a header names the columns from then on.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    table: Option<Table>,
    /// When each card's newest row was taken, ns.
    newest: Vec<(String, u64)>,
    rejected: u64,
}

impl Rows {
    /// A line, read at `read_ns` by the run's clock and `read_unix_ns` by the wall clock; the row's
    /// own stamp says how long before that it was taken. `None`: no reading.
    pub fn line(&mut self, line: &str, read_ns: u64, read_unix_ns: u64) -> Option<Taken> {
        if line.trim().is_empty() {
            return None;
        }
        if let Some(table) = Table::of_header(line).filter(Table::has_power) {
            self.table = Some(table);
            return None;
        }
        let row = self.table.as_ref().and_then(|table| table.row(line));
        let taken = row.and_then(|row| self.taken(&row, read_ns, read_unix_ns));
        self.rejected += u64::from(taken.is_none());
        taken
    }

    fn taken(&mut self, row: &Row, read_ns: u64, read_unix_ns: u64) -> Option<Taken> {
        let card = row.uuid.clone().or_else(|| row.index.map(|index| index.to_string()))?;
        let power = row.average.or(row.draw).or(row.instant)?.ok()?;
        let newest = self.newest.iter().position(|(of, _)| *of == card);
        let before = newest.and_then(|at| self.newest.get(at)).map(|(_, at_ns)| *at_ns);
        let at_ns = stamp::taken_ns(row.stamp_ns, read_ns, read_unix_ns, before);
        match newest.and_then(|at| self.newest.get_mut(at)) {
            Some((_, newest)) => *newest = at_ns,
            None => self.newest.push((card.clone(), at_ns)),
        }
        let (capped, braked) = (row.power_capped, row.power_braked);
        Some(Taken { card, reading: Reading { at_ns, power, capped, braked } })
    }

    /// Lines that gave no reading: no row, no card, or no number of watts.
    pub const fn rejected(&self) -> u64 {
        self.rejected
    }
}
