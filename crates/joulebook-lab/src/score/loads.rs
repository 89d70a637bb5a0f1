//! The loads by which rules are judged.

use crate::engine::{Arrivals, Mix, Settings};

/// A load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Its name: `chat`, `mixed`, `bursty-chat`, `bursty-mixed`.
    pub name: &'static str,
    /// What is asked.
    pub mix: Mix,
    /// In bursts.
    pub bursty: bool,
    /// Requests a second.
    pub rate: f64,
    /// More comes than the engine can serve.
    pub overload: bool,
}

/// All of them, from little to much.
pub fn loads() -> Vec<Load> {
    let load = |name, mix, bursty, rate, overload| Load { name, mix, bursty, rate, overload };
    let (chat, mixed) = (Mix::Chat, Mix::Mixed);
    vec![
        load("chat", chat, false, 0.05, false),
        load("chat", chat, false, 1.0, false),
        load("chat", chat, false, 12.0, false),
        load("mixed", mixed, false, 1.0, false),
        load("mixed", mixed, false, 4.0, false),
        load("mixed", mixed, false, 8.0, false),
        load("bursty-mixed", mixed, true, 4.0, false),
        load("mixed", mixed, false, 12.0, true),
        load("bursty-mixed", mixed, true, 12.0, true),
    ]
}

impl Load {
    /// Chat in bursts, which no aim is set for.
    pub const fn bursty_chat() -> Self {
        Self { name: "bursty-chat", mix: Mix::Chat, bursty: true, rate: 4.0, overload: false }
    }

    /// Its name and its rate.
    pub fn words(&self) -> String {
        format!("{} {}/s", self.name, self.rate)
    }

    /// What the engine is set to.
    pub fn settings(&self, seed: u64) -> Settings {
        let arrivals =
            if self.bursty { Arrivals::Bursty(self.rate) } else { Arrivals::Poisson(self.rate) };
        Settings { seed, arrivals, mix: self.mix, ..Settings::default() }
    }
}
