//! `nvidia-smi --query-gpu=… --format=csv` with a header.
//!
//! Columns are found by name; the header's unit must be known, and a cell may repeat it. Rows of
//! several cards need a column that says whose they are. A row that does not fit the header is
//! refused and counted; a cell that is no number is missing, and the row's others stand.

mod header;

use joulebook_core::Fault;

use self::header::Header;
use super::{
    CardName, Clock, Log, Refused, ReplayError, Row, Warning,
    cell::{absence, named, number},
    stamp::civil_ns,
    text::{cells, shortened},
};

/// Reads a log.
pub fn read(text: &str) -> Result<Log, ReplayError> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (line, first) = lines.next().ok_or(ReplayError::Empty)?;
    let header = Header::read(line, first)?;
    let mut reading = Reading {
        log: Log {
            format: "nvidia-smi CSV",
            clock: Clock::Local,
            cards: Vec::new(),
            channels: header.powers.iter().map(|power| power.channel.clone()).collect(),
            rows: Vec::new(),
            refused: Vec::new(),
            warnings: Vec::new(),
        },
        keys: Vec::new(),
        ends: None,
        header,
    };
    let mut lines = lines.peekable();
    while let Some((line, content)) = lines.next() {
        let unended = lines.peek().is_none() && !text.ends_with('\n');
        reading.line(line, content, unended)?;
    }
    reading.done()
}

/// A log on its way.
struct Reading {
    log: Log,
    header: Header,
    /// What the cards of the log are told apart by.
    keys: Vec<String>,
    /// How the last row's last cell was written.
    ends: Option<Shape>,
}

/// How a number is written: digits behind the point, and a unit.
#[derive(PartialEq, Eq)]
struct Shape(Option<usize>, bool);

impl Reading {
    fn line(&mut self, line: usize, content: &str, unended: bool) -> Result<(), ReplayError> {
        let cells = cells(content);
        if self.header.is_header(&cells) {
            // A logger that was started again writes its header again.
            return if self.header.is(&cells) {
                Ok(())
            } else {
                Err(ReplayError::HeaderChanged { line })
            };
        }
        let cut = unended && self.is_cut(&cells);
        let row = if cut {
            self.log.warnings.push(Warning::CutLastRow { line });
            Err((Fault::MalformedRow, "cut short at the file's end".to_owned()))
        } else {
            self.row(line, &cells)?
        };
        match row {
            Ok(row) => {
                self.ends = self.shape(&cells);
                if self.header.identity.is_none()
                    && let Some(before) = self.log.rows.last()
                    && before.at_ns == row.at_ns
                {
                    return Err(ReplayError::CardsUnnamed { line, before: before.line });
                }
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
        if cells.len() != self.header.names.len() {
            let begins = shortened(cells.first().copied().unwrap_or_default());
            return malformed(format!(
                "{} cells under {} columns (it begins `{begins}`)",
                cells.len(),
                self.header.names.len()
            ));
        }
        let cell = |at: usize| cells.get(at).copied().unwrap_or_default();
        let stamp = cell(self.header.timestamp);
        let Some(at_ns) = civil_ns(stamp) else {
            return malformed(format!("`{}` is no timestamp", shortened(stamp)));
        };
        let key = self.header.identity.map_or("", cell);
        if self.header.identity.is_some() && absence(key) != Fault::MalformedRow {
            return malformed("the card is not named".to_owned());
        }
        let mut readings = Vec::with_capacity(self.header.powers.len());
        for power in &mut self.header.powers {
            readings.push(power.read(line, cells.get(power.at).copied().unwrap_or_default())?);
        }
        let card = self.card(key, cells);
        Ok(Ok(Row {
            line,
            at_ns,
            card,
            readings,
            throttle: self.header.throttle(cells),
            limit: self.header.limit(cells),
            activity: self.header.activity(cells),
        }))
    }

    fn card(&mut self, key: &str, cells: &[&str]) -> usize {
        if let Some(known) = self.keys.iter().position(|known| known == key) {
            return known;
        }
        self.keys.push(key.to_owned());
        self.log.cards.push(self.header.card(cells));
        self.keys.len() - 1
    }

    /// True for a last row without its line's end that lost a part of itself: some cells, or the
    /// end of a power, which would then read too low.
    fn is_cut(&self, cells: &[&str]) -> bool {
        cells.len() < self.header.names.len()
            || (self.ends.is_some() && self.shape(cells) != self.ends)
    }

    /// The shape of a row's last cell, where that is a power.
    fn shape(&self, cells: &[&str]) -> Option<Shape> {
        let last = cells.len().checked_sub(1)?;
        self.header.powers.iter().find(|power| power.at == last)?;
        let cell = *cells.last()?;
        let (_, unit) = number(cell)?;
        let digits = cell
            .split_once('.')
            .map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).count());
        Some(Shape(digits, !unit.is_empty()))
    }

    fn done(mut self) -> Result<Log, ReplayError> {
        if self.log.rows.is_empty() {
            return Err(match self.log.refused.first() {
                Some(refused) => {
                    ReplayError::NoRows { line: refused.line, why: refused.why.clone() }
                }
                None => ReplayError::NoRows {
                    line: self.header.line,
                    why: "there is only the header".to_owned(),
                },
            });
        }
        if self.header.identity.is_none()
            && let Some(rows) = cluster(&self.log.rows)
        {
            self.log.warnings.push(Warning::RowsInClusters { rows });
        }
        Ok(self.log)
    }
}

/// How many rows come at a time, where they come several at a time like clockwork: one poll of as
/// many cards looks so.
fn cluster(rows: &[Row]) -> Option<usize> {
    let gaps: Vec<u64> = rows
        .windows(2)
        .filter_map(|pair| match pair {
            [from, to] => to.at_ns.checked_sub(from.at_ns),
            _ => None,
        })
        .collect();
    let mean =
        gaps.iter().fold(0, |sum: u64, gap| sum.saturating_add(*gap)) / (gaps.len() as u64).max(1);
    let mut short: Vec<u64> = gaps.iter().copied().filter(|gap| *gap <= mean).collect();
    short.sort_unstable();
    let within = *short.get(short.len() / 2)?;
    let long: Vec<usize> = gaps
        .iter()
        .enumerate()
        .filter(|(_, gap)| **gap > mean && **gap / 4 > within)
        .map(|(at, _)| at)
        .collect();
    let steps: Vec<usize> = long
        .windows(2)
        .map(|pair| match pair {
            [from, to] => to - from,
            _ => 0,
        })
        .collect();
    let first = *steps.first()?;
    let regular = steps.iter().filter(|step| **step == first).count();
    (first >= 2 && steps.len() >= 5 && regular * 10 >= steps.len() * 9).then_some(first)
}
