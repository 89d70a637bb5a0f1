//! What every format's parser yields: cards, columns, rows.
//!
//! The form is the seam between formats and the one stage behind them: a parser knows how its text
//! names things, and nothing of windows; the stage knows windows, and nothing of text.

use joulebook_core::{Fault, Power, Scope};

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
    /// What else the parser has to say.
    pub warnings: Vec<Warning>,
}

/// What a log's stamps count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// A wall clock whose zone the log does not tell.
    Local,
    /// Time since 1970 in UTC.
    Epoch,
    /// Time since the log began.
    Elapsed,
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

impl CardName {
    /// What to call the card.
    pub fn label(&self) -> String {
        let id = self.uuid.as_deref().or(self.pci.as_deref());
        match (self.index, id) {
            (Some(index), _) => format!("card {index}"),
            (None, Some(id)) => format!("card {id}"),
            (None, None) => "the card".to_owned(),
        }
    }
}
