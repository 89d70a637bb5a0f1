//! Recordings of cards: a log's rows become the same series and the same windows as a live card's.
//!
//! One parser a format ([`smi`]) turns text into a [`Log`]: rows of {time, card, readings, what
//! else the row tells}. One stage for all formats turns a log into a [`Recording`]: each column of
//! each card is played through a [`Replay`], which is a [`Reader`](crate::Reader) like any other,
//! into a series; a window on it is estimated and graded by the very code that live windows use.
//!
//! Invariants: a cell that is no number is missing, and counted, never 0; columns of one card are
//! never added, one is chosen and named; rows are told apart by card or refused.
//!
//! Refused: units that are not known, rows whose time goes back, several cards that the rows do
//! not tell apart, and epoch seconds against stamps whose zone nobody has given.

pub mod cell;
mod choose;
mod error;
mod frozen;
mod log;
mod marks;
mod model;
mod reader;
mod recording;
pub mod smi;
pub(crate) mod stamp;
pub(crate) mod text;
mod track;
mod warning;

pub use error::ReplayError;
pub use log::{Activity, CardName, Channel, Clock, Log, Refused, Row, Shows};
pub use marks::{Marks, marks};
pub use reader::Replay;
pub use recording::{Answer, Ask, Card, Options, Recording};
pub use stamp::{Moment, Zone};
pub use track::Track;
pub use warning::Warning;

/// Reads a recording, in whichever format it is.
pub fn read(bytes: &[u8]) -> Result<Log, ReplayError> {
    smi::read(&text::decoded(bytes))
}
