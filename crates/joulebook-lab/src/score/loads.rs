//! The loads by which rules are judged.

use crate::engine::{Arrivals, Foreign, Mix, Settings};

/// What a tenant draws, W, and when he comes and goes, ns: half of the time.
const TENANT_W: f64 = 150.0;
const TENANT_STAYS_NS: i64 = 20_000_000_000;
/// For so long; after the longest of the loads.
const TENANTS: i64 = 40;

/// Who else is on the card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tenant {
    /// Nobody.
    #[default]
    None,
    /// Somebody whose utilisation is seen, in whole per cent.
    Seen,
    /// Somebody of whom nothing is known but that he is there.
    Unseen,
}

/// A load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Its name: `chat`, `mixed`, `bursty-chat`, `bursty-mixed`, `two-cards-mixed`, `tenant-seen`,
    /// `tenant-unseen`.
    pub name: &'static str,
    /// What is asked.
    pub mix: Mix,
    /// In bursts.
    pub bursty: bool,
    /// Requests a second.
    pub rate: f64,
    /// More comes than the engine can serve.
    pub overload: bool,
    /// Cards that work on each request together.
    pub cards: usize,
    /// Who else is on the first of them.
    pub tenant: Tenant,
}

/// All of them, from little to much.
pub fn loads() -> Vec<Load> {
    let (chat, mixed) = (Mix::Chat, Mix::Mixed);
    let load = |name, mix, bursty, rate, overload| Load {
        name,
        mix,
        bursty,
        rate,
        overload,
        cards: 1,
        tenant: Tenant::None,
    };
    let shared = load("mixed", mixed, false, 4.0, false);
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
        Load { name: "two-cards-mixed", cards: 2, ..shared },
        Load { name: "tenant-seen", tenant: Tenant::Seen, ..shared },
        Load { name: "tenant-unseen", tenant: Tenant::Unseen, ..shared },
    ]
}

impl Load {
    /// Chat in bursts, which no aim is set for.
    pub const fn bursty_chat() -> Self {
        Self {
            name: "bursty-chat",
            mix: Mix::Chat,
            bursty: true,
            rate: 4.0,
            overload: false,
            cards: 1,
            tenant: Tenant::None,
        }
    }

    /// Its name and its rate.
    pub fn words(&self) -> String {
        format!("{} {}/s", self.name, self.rate)
    }

    /// What the engine is set to.
    pub fn settings(&self, seed: u64) -> Settings {
        let arrivals =
            if self.bursty { Arrivals::Bursty(self.rate) } else { Arrivals::Poisson(self.rate) };
        let share = 1.0 / self.cards.max(1) as f64;
        Settings {
            seed,
            arrivals,
            mix: self.mix,
            cards: vec![share; self.cards],
            foreign: if self.tenant == Tenant::None { Vec::new() } else { tenants() },
            ..Settings::default()
        }
    }
}

/// One who comes again and again.
fn tenants() -> Vec<Foreign> {
    let stay = |number: i64| Foreign {
        card: 0,
        pid: 4711,
        used_mib: 4000,
        start_ns: (2 * number + 1) * TENANT_STAYS_NS,
        end_ns: (2 * number + 2) * TENANT_STAYS_NS,
        watts: TENANT_W,
    };
    (0..TENANTS).map(stay).collect()
}
