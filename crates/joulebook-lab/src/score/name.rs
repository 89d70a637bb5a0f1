//! The rules that are judged, by name.

use joulebook_core::ledger::settle;

use super::{Books, Lifetime, Rho, Rule, Snapshot, Split, Steps, Weigh};

/// A rule by the name that people know it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Name {
    /// Ours, calibrated for the engine.
    Calibrated,
    /// Ours, with ρ = 8.
    Eight,
    /// Ours, calibrated, by the steps inside the tick.
    Steps,
    /// Time in the tick.
    Time,
    /// Tokens in the tick; by time where nobody emits.
    Token,
    /// Heads in the tick.
    Equal,
    /// Tokens in the tick; by heads where nobody emits.
    Output,
    /// The share of all tokens that came in a request's time.
    Lifetime,
    /// All that was drawn in a request's time.
    Snapshot,
}

impl Name {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Calibrated,
        Self::Eight,
        Self::Steps,
        Self::Time,
        Self::Token,
        Self::Equal,
        Self::Output,
        Self::Lifetime,
        Self::Snapshot,
    ];

    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Calibrated => "weighted, calibrated",
            Self::Eight => "weighted, ρ = 8",
            Self::Steps => "steps, calibrated",
            Self::Time => "time",
            Self::Token => "token",
            Self::Equal => "equal split",
            Self::Output => "output-token split",
            Self::Lifetime => "lifetime token share",
            Self::Snapshot => "snapshot",
        }
    }

    /// As an argument.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Calibrated => "calibrated",
            Self::Eight => "rho8",
            Self::Steps => "steps",
            Self::Time => "time",
            Self::Token => "token",
            Self::Equal => "equal",
            Self::Output => "output-token",
            Self::Lifetime => "lifetime",
            Self::Snapshot => "snapshot",
        }
    }

    /// The rule, for a card with that floor and that weight.
    pub fn rule(self, floor_w: f64, rho: Rho) -> Box<dyn Rule> {
        let split = |weigh| Box::new(Split { weigh, floor_w, edge_joules: 0.0 });
        let books = |split, rho| Box::new(Books { split, rho, floor_w });
        match self {
            Self::Calibrated => books(settle::Split::Weighted, rho),
            Self::Eight => books(settle::Split::Weighted, Rho::Constant(8.0)),
            Self::Steps => Box::new(Steps { rho, floor_w }),
            Self::Time => books(settle::Split::Time, rho),
            Self::Token => books(settle::Split::Token, rho),
            Self::Equal => split(Weigh::Equal),
            Self::Output => split(Weigh::Output),
            Self::Lifetime => Box::new(Lifetime { floor_w }),
            Self::Snapshot => Box::new(Snapshot { floor_w }),
        }
    }
}
