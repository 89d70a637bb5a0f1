//! How far rules that divide a card's energy lie from the true joules of each request.
//!
//! The [`crate::engine`] serves a load and knows what each request truly cost. Its card's register
//! is read into [`Tick`]s; a [`Rule`] gets these and what an observer could see of the requests
//! ([`Seen`], without the truth) and says what each cost. [`judge()`] compares.
//!
//! Our own rules are the product's: [`Books`] lets the core's keeper of books hear and settle all of
//! it, on as many cards as there are, whoever else is on them. [`Split`] is their reference, the same steps in plain doubles, and holds the baselines that people use.
//! Amounts are J, above the idle floor.

mod aims;
mod books;
mod card;
mod judge;
mod loads;
mod name;
mod plot;
mod register;
mod rho;
mod split;
mod steps;
mod sweep;
mod window;

use joulebook_core::ledger::settle::Others;

use crate::engine::{Emission, Request};
pub use aims::{Aim, aims};
pub use books::Books;
pub use judge::{Figures, Judged, Ranges, Sample, Verdict, judge, quantile};
pub use loads::{Load, Tenant, loads};
pub use name::Name;
pub use plot::{PlotError, plot};
pub use register::{Register, Tick};
pub use rho::{Rho, calibrate};
pub use split::{Split, Weigh};
pub use steps::Steps;
pub use window::{Lifetime, Snapshot};

/// What an observer sees of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// When it came, ns.
    pub arrived_ns: i64,
    /// When its prompt began to be computed, if the observer is told, ns.
    pub admitted: Admitted,
    /// When it was over, ns.
    pub ended_ns: i64,
    /// Tokens of its prompt that had to be computed.
    pub uncached_tokens: u32,
    /// All its tokens; the first of these ends the prompt, if one had to be computed.
    pub emissions: Vec<Emission>,
}

/// What is known of a request's way through the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// The observer sees arrivals only.
    Unseen,
    /// It never got that far.
    Never,
    /// At that instant, ns.
    At(i64),
}

/// How much an observer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// When each request was admitted: he sits in the engine.
    Admission,
    /// When each came: he sits before the engine.
    Arrival,
}

/// A card as it is seen from outside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Card {
    /// Its register.
    pub ticks: Vec<Tick>,
    /// Who else was there in each of them; empty: never anybody.
    pub others: Vec<Others>,
}

/// What a receipt says of a request, J.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Charge {
    /// Its joules above idle; none where they cannot be told.
    pub joules: Option<f64>,
    /// What other rules of the model range would have said; where its joules cannot be told, the least
    /// and the most that they can be.
    pub range: Option<(f64, f64)>,
}

/// Where the energy went, J.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accounts {
    /// To each request, above idle; nothing where that cannot be told.
    pub requests: Vec<f64>,
    /// What their receipts say; empty for rules that give none.
    pub charges: Vec<Charge>,
    /// How far measurement alone may be off, for each; empty for rules that do not say.
    pub bounds: Vec<f64>,
    /// What the card draws at rest.
    pub idle: f64,
    /// What nobody known caused.
    pub unattributed: f64,
    /// Somebody else's, or nobody knows whose.
    pub foreign: f64,
    /// What is booked and settled less what the register counted, µJ; none where no books are kept.
    pub residual_uj: Option<i128>,
}

/// Divides the energy of ticks among requests.
pub trait Rule {
    /// What each request is charged, and what else the energy went to.
    fn settle(&mut self, ticks: &[Tick], requests: &[Seen]) -> Accounts;

    /// The same over several cards that work together: the sum over the cards. Whoever does not look
    /// at who else is there takes what they draw for the requests'.
    fn settle_all(&mut self, cards: &[Card], requests: &[Seen]) -> Accounts {
        let each = cards.iter().map(|card| self.settle(&card.ticks, requests));
        each.reduce(Accounts::and).unwrap_or_default()
    }
}

impl Seen {
    /// What can be seen of a request that is over; none if it is not.
    pub fn of(request: &Request, knowledge: Knowledge) -> Option<Self> {
        let admitted = match (knowledge, request.admitted_ns) {
            (Knowledge::Arrival, _) => Admitted::Unseen,
            (Knowledge::Admission, None) => Admitted::Never,
            (Knowledge::Admission, Some(t_ns)) => Admitted::At(t_ns),
        };
        Some(Self {
            arrived_ns: request.arrived_ns,
            admitted,
            ended_ns: request.ended_ns?,
            uncached_tokens: request.prompt_tokens - request.cached_tokens,
            emissions: request.emissions.clone(),
        })
    }

    /// When its prompt was done, or it was over, ns.
    fn prefilled_ns(&self) -> i64 {
        self.emissions.first().map_or(self.ended_ns, |first| first.t_ns)
    }
}

impl Card {
    /// Who else was there in a tick.
    fn others(&self, tick: usize) -> Others {
        self.others.get(tick).cloned().unwrap_or_default()
    }
}

impl Accounts {
    /// Those of two cards together.
    fn and(self, other: Self) -> Self {
        let sum = |ours: &[f64], theirs: &[f64]| -> Vec<f64> {
            ours.iter().zip(theirs).map(|(our, their)| our + their).collect()
        };
        Self {
            requests: sum(&self.requests, &other.requests),
            bounds: sum(&self.bounds, &other.bounds),
            charges: Vec::new(),
            idle: self.idle + other.idle,
            unattributed: self.unattributed + other.unattributed,
            foreign: self.foreign + other.foreign,
            residual_uj: self.residual_uj.zip(other.residual_uj).map(|(our, their)| our + their),
        }
    }

    /// All that was booked.
    pub fn total(&self) -> f64 {
        self.requests.iter().sum::<f64>() + self.idle + self.unattributed + self.foreign
    }
}

#[cfg(test)]
mod tests;
