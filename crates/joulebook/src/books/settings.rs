//! How books are kept, and what a ticket says of its request.

use std::{fmt, io, time::Duration};

use joulebook_core::{
    keeper::{self, Opening, Phases},
    receipt,
};

use super::{Journal, Rhos, cell::Request};
use crate::clock::now_ns;

/// Whether books are kept at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// They are.
    #[default]
    On,
    /// Tickets read no clock, allocate nothing and write nothing.
    Off,
}

/// How books are kept.
pub struct Settings {
    /// Whether they are.
    pub level: Level,
    /// The rule, the bounds, the times.
    pub keeping: keeper::Settings,
    /// What a decode token costs, by model and card.
    pub rho: Rhos,
    /// Energy that somebody else may have caused is charged to the requests, flagged, instead of
    /// leaving them without a figure.
    pub lenient: bool,
    /// Where every transaction is written, one a line.
    pub journal: Option<Journal>,
    /// How often tickets are looked at.
    pub sample_every: Duration,
    /// The clock; the recorders' own but for tests.
    pub clock: fn() -> u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            level: Level::On,
            keeping: keeper::Settings::default(),
            rho: Rhos::default(),
            lenient: false,
            journal: None,
            sample_every: Duration::from_millis(10),
            clock: now_ns,
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Settings")
            .field("level", &self.level)
            .field("keeping", &self.keeping)
            .field("rho", &self.rho)
            .field("lenient", &self.lenient)
            .field("journal", &self.journal.is_some())
            .finish_non_exhaustive()
    }
}

/// Why books could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum BooksError {
    /// The system gives no more threads.
    #[error("no thread to keep the books: {0}")]
    NoThread(io::Error),
    /// One of the cards has books already.
    #[error(
        "card {index} ({name}, {uuid}) has books in this process already, and one card has one book: \
         clone those, or close them first"
    )]
    Kept {
        /// The driver's index.
        index: u32,
        /// The card's name.
        name: String,
        /// Its UUID.
        uuid: String,
    },
}

/// What is said of a request when it comes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Labels<'a> {
    /// The model that is to answer.
    pub model: Option<&'a str>,
    /// Who asks.
    pub caller: Option<&'a str>,
    /// By which way.
    pub route: Option<&'a str>,
    /// What joins the attempts of one answer.
    pub parent: Option<&'a str>,
    /// It waits in a queue, and [`super::Ticket::admitted`] will be called; until then it weighs
    /// nothing.
    pub queued: bool,
    /// The prompt's length, which stands for its tokens until those are known.
    pub prompt_bytes: u64,
    /// The cards that work on it, by their place in the meter, and what they do; empty: all of them,
    /// all of it.
    pub cards: &'a [(usize, Phases)],
}

impl Labels<'_> {
    pub(super) fn opening(&self, id: u64) -> Request {
        let labels = receipt::Labels {
            model: self.model.map(Into::into),
            caller: self.caller.map(Into::into),
            route: self.route.map(Into::into),
            parent: self.parent.map(Into::into),
        };
        let opening = Opening {
            id,
            labels,
            payers: Vec::new(),
            queued: self.queued,
            prompt_bytes: self.prompt_bytes,
        };
        Request { opening, cards: self.cards.to_vec() }
    }
}
