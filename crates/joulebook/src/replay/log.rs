//! What every format's parser yields: cards, columns, rows.
//!
//! The form is the seam between formats and the one stage behind them: a parser knows how its text
//! names things, and nothing of windows; the stage knows windows, and nothing of text.

use joulebook_core::{Energy, Fault, Power, Scope, estimate::Span};

use super::Warning;
use crate::reader::{Throttle, Value};

/// A log, parsed.
#[derive(Clone, Debug)]
pub struct Log {
    /// The format's name, for people.
    pub format: &'static str,
    /// What its stamps count.
    pub clock: Clock,
    /// Its cards; rows name them by their place here.
    pub cards: Vec<CardName>,
    /// Its columns of power or energy; each row has one reading for each.
    pub channels: Vec<Channel>,
    /// Its rows, in the file's order.
    pub rows: Vec<Row>,
    /// Rows that were left out.
    pub refused: Vec<Refused>,
    /// Windows that the log marks itself.
    pub windows: Vec<Logged>,
    /// How far from its stamp a reading may have been taken, s, where that is more than the stamps
    /// show: stamps cut to seconds, a loop's own stamp for a whole tick.
    pub late_s: f64,
    /// What else the parser has to say.
    pub warnings: Vec<Warning>,
}

/// A window that a log marks itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Where its end stands in the file, from 1.
    pub line: usize,
    /// What it is called, where it is.
    pub name: Option<String>,
    /// On the log's own clock.
    pub span: Span,
}

/// What a log's stamps count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// A wall clock whose zone the log does not tell.
    Local,
    /// Time since 1970 in UTC.
    Epoch,
    /// Time since a beginning that only the log knows.
    Elapsed,
    /// The time of day; the log does not tell the date.
    Day,
}

/// A card, as far as a log names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CardName {
    /// The driver's index.
    pub index: Option<u32>,
    /// Its UUID.
    pub uuid: Option<String>,
    /// Its PCI address.
    pub pci: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// What else the log calls it, or the meter or counter that stands for it.
    pub name: Option<String>,
}

/// A column of power or energy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Its name, as the header has it.
    pub name: String,
    /// What it shows.
    pub shows: Shows,
    /// What it covers.
    pub scope: Scope,
}

/// What a column shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// NVIDIA's plain power: a mean over 1 s since Ampere (save GA100), else the sensor's own.
    Draw,
    /// Mean power over 1 s, by name.
    Average,
    /// Power at an instant, by name.
    Instant,
    /// A cumulative counter; its readings are in µJ.
    Counter {
        /// Its smallest step.
        quantum: Energy,
    },
}

/// One row: what one card showed at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Where it stands in the file, from 1.
    pub line: usize,
    /// When, on the log's own clock, ns.
    pub at_ns: u64,
    /// Whose, by its place in [`Log::cards`].
    pub card: usize,
    /// One for each of [`Log::channels`].
    pub readings: Vec<Result<Value, Fault>>,
    /// What held the clocks down, where the log tells.
    pub throttle: Option<Throttle>,
    /// The power limit in force.
    pub limit: Option<Power>,
    /// Signs that the card is at work.
    pub activity: Activity,
}

/// Signs of work that do not come from the power sensor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Activity {
    /// Utilisation, %.
    pub utilisation: Option<f64>,
    /// Temperature, °C.
    pub temperature: Option<f64>,
}

/// A row that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Where it stands in the file, from 1.
    pub line: usize,
    /// Why, in one word.
    pub fault: Fault,
    /// Why, for people.
    pub why: String,
}

impl Log {
    /// An empty log with these columns.
    pub fn new(format: &'static str, clock: Clock, channels: Vec<Channel>) -> Self {
        Self {
            format,
            clock,
            cards: Vec::new(),
            channels,
            rows: Vec::new(),
            refused: Vec::new(),
            windows: Vec::new(),
            late_s: 0.0,
            warnings: Vec::new(),
        }
    }

    /// The card's place, which is a new one where no card is called so.
    pub(super) fn place_of(&mut self, name: CardName) -> usize {
        if let Some(known) = self.cards.iter().position(|known| *known == name) {
            return known;
        }
        self.cards.push(name);
        self.cards.len() - 1
    }
}

impl CardName {
    /// A card, or what stands for one, of which a log tells only what it calls it.
    pub(super) fn called(name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..Self::default() }
    }

    /// What to call the card.
    pub fn label(&self) -> String {
        let id = self.uuid.as_deref().or(self.pci.as_deref());
        match (self.index, id) {
            (Some(index), _) => format!("card {index}"),
            (None, None) if self.name.is_some() => self.name.clone().unwrap_or_default(),
            (None, Some(id)) => format!("card {id}"),
            (None, None) => "the card".to_owned(),
        }
    }
}
