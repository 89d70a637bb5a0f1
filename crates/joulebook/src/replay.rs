//! Recordings of cards: a log's rows become the same series and the same windows as a live card's.
//!
//! One parser a format turns text into a [`Log`]: rows of {time, card, readings, what else the row
//! tells}; [`Format`] lists them, and which one a text is in is told by what stands in it. One stage
//! for all formats turns a log into a [`Recording`]: each column of each card is played through a
//! [`Replay`], which is a [`Reader`](crate::Reader) like any other, into a series; a window on it is
//! estimated and graded by the very code that live windows use.
//!
//! Invariants: a cell that is no number is missing, and counted, never 0; columns of one card are
//! never added, one is chosen and named; rows are told apart by card or refused.
//!
//! Refused: units that are not known, rows whose time goes back, several cards that the rows do
//! not tell apart, epoch seconds against stamps whose zone nobody has given, and files of windows in
//! the place of logs.

mod amdsmi;
pub mod cell;
mod choose;
mod error;
mod exposition;
mod format;
mod frozen;
mod instant;
mod json;
mod log;
mod logger;
mod marks;
mod metric;
mod mllog;
mod model;
mod pmt;
mod prometheus;
mod reader;
mod recording;
mod rocmsmi;
pub mod smi;
mod smixml;
mod spl;
pub(crate) mod stamp;
mod table;
pub(crate) mod text;
mod track;
mod warning;
mod xml;

pub use error::ReplayError;
pub use format::Format;
pub use log::{Activity, CardName, Channel, Clock, Log, Logged, Refused, Row, Shows};
pub use marks::{Mark, Marks, marks};
pub use reader::Replay;
pub use recording::{Answer, Ask, Card, Options, Recording};
pub use stamp::{Moment, Zone};
pub use track::Track;
pub use warning::Warning;

/// What a person says of a log's form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// The format, whatever the text looks like.
    pub format: Option<Format>,
    /// The columns of a table in their order, in place of its header's names or for want of one.
    pub columns: Option<Vec<String>>,
}

/// Reads a recording, in whichever format it is.
pub fn read(bytes: &[u8]) -> Result<Log, ReplayError> {
    read_as(bytes, &Form::default())
}

/// Reads a recording of this form.
pub fn read_as(bytes: &[u8], form: &Form) -> Result<Log, ReplayError> {
    let text = text::decoded(bytes);
    match (&form.columns, form.format) {
        (Some(columns), _) => format::read_named(&text, columns),
        (None, Some(format)) => format.read(&text),
        (None, None) => Format::of(&text)?.read(&text),
    }
}
