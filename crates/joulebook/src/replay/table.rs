//! A table of cells: rows of one instant and one card each, under columns that a format has named.
//!
//! Decides how many cells a row has, which column tells cards apart, and which clock the stamps
//! are on. A row that does not fit is refused and counted; a cell that is no number is missing, and
//! the row's others stand. Refused: several cards that no column tells apart.

pub(super) mod columns;
mod shape;
mod ticks;

use std::collections::HashMap;

use joulebook_core::Fault;

pub(super) use self::shape::{decimals, looks_like_power};
use self::{
    columns::Columns,
    shape::{Shape, misplaced_power, width},
    ticks::{cluster, doubled, identity, turn_s},
};
use super::{
    Clock, Log, Refused, ReplayError, Row, Warning,
    cell::{absence, number},
    instant::{Instant, elapsed, instant},
    stamp::DAY,
    text::{cells, shortened},
};

/// Rows whose stamp is that of the card's row before: more than this share of them are not one
/// card's.
const MOST_DOUBLED: usize = 5;

/// True for a first row that is no header: a cell of it is an instant or a number.
pub(super) fn is_data(cells: &[String]) -> bool {
    cells.iter().any(|cell| instant(cell).is_some() || number(cell).is_some())
}

/// A line's number and its cells.
pub(super) type Line<'a> = (usize, Vec<&'a str>);

/// Reads the rows under a header.
pub(super) fn read(text: &str, columns: Columns) -> Result<Log, ReplayError> {
    let lines = (1..).zip(text.lines()).skip(columns.line);
    let lines: Vec<Line<'_>> = lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(line, content)| (line, cells(content)))
        .collect();
    let width = width(&columns, &lines);
    if let Some((power, reads, other)) = misplaced_power(&columns, &lines, width) {
        let line = columns.line.max(1);
        return Err(ReplayError::HeaderOrder { line, power, reads, other });
    }
    let (key, misnamed) = identity(&columns, &lines, width);
    let channels = columns.powers.iter().map(|power| power.channel.clone()).collect();
    let mut log = Log::new(columns.format, Clock::Local, channels);
    log.warnings.extend(misnamed);
    if width < columns.names.len() && !lines.is_empty() {
        let without = columns.names.get(width..).unwrap_or_default().join(", ");
        log.warnings.push(Warning::ShortRows { cells: width, without });
    }
    let mut reading = Reading {
        log,
        keys: HashMap::new(),
        ends: None,
        clock: None,
        fine: false,
        columns,
        width,
        key,
    };
    let count = lines.len();
    for (place, (line, cells)) in lines.into_iter().enumerate() {
        let unended = place + 1 == count && !text.ends_with('\n');
        reading.line(line, &cells, unended)?;
    }
    reading.done()
}

/// A log on its way.
struct Reading {
    log: Log,
    columns: Columns,
    /// Cells in a row.
    width: usize,
    /// The column that tells cards apart.
    key: Option<usize>,
    /// What the cards of the log are told apart by.
    keys: HashMap<String, usize>,
    /// How the last row's last cell was written.
    ends: Option<Shape>,
    /// The clock of the first stamp.
    clock: Option<Clock>,
    /// True once a stamp has shown a part of a second.
    fine: bool,
}

impl Reading {
    fn line(&mut self, line: usize, cells: &[&str], unended: bool) -> Result<(), ReplayError> {
        if self.columns.is_header(cells) {
            // A logger that was started again writes its header again.
            return if self.columns.is(cells) {
                Ok(())
            } else {
                Err(ReplayError::HeaderChanged { line })
            };
        }
        let cut = unended && self.is_cut(cells);
        let row = if cut {
            self.log.warnings.push(Warning::CutLastRow { line });
            Err((Fault::MalformedRow, "cut short at the file's end".to_owned()))
        } else {
            self.row(line, cells)?
        };
        match row {
            Ok(row) => {
                self.ends = Shape::of(&self.columns, cells);
                self.log.rows.push(row);
            }
            Err((fault, why)) => self.log.refused.push(Refused { line, fault, why }),
        }
        Ok(())
    }

    /// A row, or why it is refused; `Err` where the whole file is.
    fn row(
        &mut self,
        line: usize,
        cells: &[&str],
    ) -> Result<Result<Row, (Fault, String)>, ReplayError> {
        let malformed = |why: String| Ok(Err((Fault::MalformedRow, why)));
        if cells.len() != self.width {
            let begins = shortened(cells.first().copied().unwrap_or_default());
            return malformed(format!(
                "{} cells under {} columns (it begins `{begins}`)",
                cells.len(),
                self.columns.names.len()
            ));
        }
        let cell = |at: usize| cells.get(at).copied().unwrap_or_default();
        let stamp = cell(self.columns.time);
        let instant = if self.columns.elapsed { elapsed(stamp) } else { instant(stamp) };
        let same = |instant: &Instant| self.clock.is_none_or(|clock| clock == instant.clock);
        let Some(instant) = instant.filter(same) else {
            return malformed(format!("`{}` is no timestamp", shortened(stamp)));
        };
        let key = self.key.map_or("", cell);
        if self.key.is_some() && absence(key) != Fault::MalformedRow {
            return malformed("the card is not named".to_owned());
        }
        let mut readings = Vec::with_capacity(self.columns.powers.len());
        for power in &mut self.columns.powers {
            readings.push(power.read(line, cells.get(power.at).copied().unwrap_or_default())?);
        }
        self.clock = Some(instant.clock);
        self.fine |= instant.fine;
        // nvidia-smi alone writes dates so.
        self.columns.tool_stamps |= stamp.contains('/');
        let card = self.card(key, cells);
        Ok(Ok(Row {
            line,
            at_ns: self.after_midnight(instant),
            card,
            readings,
            throttle: self.columns.throttle(cells),
            limit: self.columns.limit(cells),
            activity: self.columns.activity(cells),
        }))
    }

    /// A time of day that falls back by most of a day is one of the next day.
    fn after_midnight(&self, instant: Instant) -> u64 {
        let Some(last) = self.log.rows.last().filter(|_| instant.clock == Clock::Day) else {
            return instant.at_ns;
        };
        let at_ns = (last.at_ns - last.at_ns % DAY).saturating_add(instant.at_ns);
        if at_ns.saturating_add(DAY / 2) < last.at_ns { at_ns.saturating_add(DAY) } else { at_ns }
    }

    fn card(&mut self, key: &str, cells: &[&str]) -> usize {
        if let Some(known) = self.keys.get(key) {
            return *known;
        }
        let place = self.log.cards.len();
        self.keys.insert(key.to_owned(), place);
        self.log.cards.push(self.columns.card(cells, self.key));
        place
    }

    /// True for a last row without its line's end that lost a part of itself: some cells, or the
    /// end of a power, which would then read too low.
    fn is_cut(&self, cells: &[&str]) -> bool {
        cells.len() < self.width
            || (self.ends.is_some() && Shape::of(&self.columns, cells) != self.ends)
    }

    fn done(mut self) -> Result<Log, ReplayError> {
        if self.log.rows.is_empty() {
            return Err(match self.log.refused.first() {
                Some(refused) => {
                    ReplayError::NoRows { line: refused.line, why: refused.why.clone() }
                }
                None => ReplayError::NoRows {
                    line: self.columns.line.max(1),
                    why: "there is only the header".to_owned(),
                },
            });
        }
        self.log.clock = self.clock.unwrap_or(Clock::Local);
        let truncated = !self.fine;
        let doubled = doubled(&self.log);
        if let Some((line, before)) = doubled.first {
            // Stamps cut to seconds double now and then; what doubles all along is several cards.
            let many = doubled.rows * MOST_DOUBLED >= self.log.rows.len();
            let unnamed = self.key.is_none() && !truncated;
            if many || unnamed {
                return Err(ReplayError::CardsUnnamed { line, before });
            }
        }
        if self.key.is_none()
            && let Some(rows) = cluster(&self.log.rows)
        {
            self.log.warnings.push(Warning::RowsInClusters { rows });
        }
        if truncated && self.log.rows.len() > 1 {
            self.log.late_s += 1.0;
            let (doubled, elapsed) = (doubled.rows, false);
            self.log.warnings.push(Warning::StampsTruncated { doubled, elapsed });
        }
        if let Some(seconds) = turn_s(&self.log).filter(|_| !self.columns.tool_stamps) {
            self.log.late_s += seconds;
            self.log.warnings.push(Warning::StampsOfLoop { seconds });
        }
        for power in self.columns.powers.iter().filter(|power| power.assumed) {
            let (column, unit) = (power.channel.name.clone(), power.unit_name());
            self.log.warnings.push(Warning::UnitAssumed { column, unit });
        }
        Ok(self.log)
    }
}
