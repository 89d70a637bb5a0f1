//! What the agent says over HTTP, in the shapes both ends share: the agent writes them, the remote
//! reader reads them. Field names, order and words are the interface; fields that a reader does not
//! know are ignored, so that either end may be the newer one.
//!
//! `GET /v1/cards` answers a [`Cards`], `GET /v1/cards/{n}/energy` an [`EnergyNow`], `GET /v1/clock`
//! a [`ClockNow`]. `GET /v1/cards/stream` is server-sent events whose `event:` is one of
//! [`event`] and whose `data:` is the JSON of the type named there. A reader that comes back asks for
//! `/v1/cards/stream?boot_id=ID&since_ns=T`: while the agent is still that one, it is sent the
//! publishes after T that the agent still has (the last 8,191 publishes of a card, thirteen minutes
//! at ten a second), the newest one at least. A HEAD of that path tells whether there is a stream.
//! All instants are ns of the agent's own monotonic clock, which has no meaning without its `boot_id`.

use serde::{Deserialize, Serialize};

use crate::reader::Process;

/// The names of the stream's events.
pub mod event {
    /// First on every connection: a [`super::Hello`].
    pub const HELLO: &str = "hello";
    /// A card as it is described now, at the beginning and when that changes: a [`super::CardSeen`].
    pub const CARD: &str = "card";
    /// A publish of a card (not a poll), the newest one at the beginning: an [`super::EnergyNow`].
    pub const ENERGY: &str = "energy";
    /// A card that cannot be read, once when it begins: a [`super::Hole`]. It ends with the card's
    /// next publish.
    pub const HOLE: &str = "hole";
    /// Who is on a card, at the beginning and when it changes: a [`super::Residents`].
    pub const TENANCY: &str = "tenancy";
    /// Nothing new for a second: a [`super::ClockNow`], so that a silent connection is told from a
    /// dead one.
    pub const CLOCK: &str = "clock";
    /// Publishes were left out, since the reader was slower than the agent's memory is long: a
    /// [`super::Skipped`]. The energy of the next one spans them.
    pub const SKIPPED: &str = "skipped";
}

/// Who speaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// `joulebook/` and the version.
    pub agent: String,
    /// The node's name.
    pub node: String,
    /// Changes with the agent's life; energies and instants of two lives have nothing in common.
    pub boot_id: String,
    /// The agent's clock now, ns.
    pub now_ns: u64,
}

/// All cards of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cards {
    /// `joulebook/` and the version.
    pub agent: String,
    /// The node's name.
    pub node: String,
    /// Changes with the agent's life.
    pub boot_id: String,
    /// The cards, in the driver's order.
    pub cards: Vec<CardSeen>,
}

/// A card, and what can be read of it. Absent is null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CardSeen {
    /// The driver's index.
    pub gpu: u32,
    /// The card's UUID.
    pub uuid: String,
    /// PCI address.
    pub pci: Option<String>,
    /// The card's name.
    pub name: String,
    /// The driver's version.
    pub driver: Option<String>,
    /// What reads it, as on results: `nvml_counter`, `nvml_power`, `smi_sampler`.
    pub backend: String,
    /// What its register covers: `gpu`, `module`, `package`.
    pub scope: String,
    /// It has an energy counter.
    pub counter: bool,
    /// It has a power gauge.
    pub gauge: bool,
    /// Its processes can be listed.
    pub processes: bool,
    /// The update period seen, ms; null until known.
    pub period_ms: Option<f64>,
    /// How far a publish may lag behind what it counts, ms; null where that was not probed.
    pub lag_ms: Option<f64>,
    /// What lag_ms may be off by, ms; null with it.
    pub lag_uncertainty_ms: Option<f64>,
    /// The energy a value stands for at the least, J: one unit of the register.
    pub quantum_joules: Option<f64>,
    /// The time a gauge averages over, s; null for a counter, and where it is not known.
    pub averaging_s: Option<f64>,
    /// The power limit in force, W.
    pub limit_watts: Option<f64>,
    /// The idle floor, W; null where none was measured or declared.
    pub idle_watts: Option<f64>,
    /// The least the card draws, W: its floor without a model less what that strays, as bounds take
    /// it; null where it was never measured.
    #[serde(default)]
    pub deepest_watts: Option<f64>,
    /// How the floor was got: `declared`, or `measured` with when, how long and in what state.
    pub idle_from: Option<String>,
    /// The card can be read now.
    pub up: bool,
    /// Why not, in one word.
    pub error: Option<String>,
}

/// The newest publish of a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnergyNow {
    /// The driver's index.
    pub gpu: u32,
    /// Changes with the agent's life.
    pub boot_id: String,
    /// Counts restarts of the series within that life (a card lost and found, a register that
    /// restarted); the energy goes on and never falls.
    pub generation: u64,
    /// When it was published, ns of the agent's clock.
    pub t_ns: u64,
    /// How far from that it may have been, ns.
    pub delta_ns: u64,
    /// Energy counted since the agent began, µJ: our own total, never falling.
    pub energy_uj: u64,
    /// Mean power since the publish before (counter) or the reading (gauge), W.
    pub watts: Option<f64>,
    /// The update period seen, ms.
    pub period_ms: Option<f64>,
    /// Marks of the stretch that ends here, as words of [`joulebook_core::Flags`].
    #[serde(default)]
    pub flags: Vec<String>,
}

/// The agent's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockNow {
    /// Changes with the agent's life.
    pub boot_id: String,
    /// Its clock when it answered, ns.
    pub now_ns: u64,
}

/// Publishes of a card that were left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The driver's index.
    pub gpu: u32,
    /// How many.
    pub publishes: u64,
}

/// A card that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hole {
    /// The driver's index.
    pub gpu: u32,
    /// Since when, ns of the agent's clock; null where it was never read.
    pub from_ns: Option<u64>,
    /// Why, in one word.
    pub error: String,
}

/// Who is on a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Residents {
    /// The driver's index.
    pub gpu: u32,
    /// Since when, ns of the agent's clock.
    pub from_ns: u64,
    /// The processes; null when they cannot be listed, which is not the same as nobody.
    pub processes: Option<Vec<Process>>,
    /// Why they cannot be listed, in one word.
    pub error: Option<String>,
    /// Those processes and their ancestors, as the agent's host shows them: what `serving_pid`,
    /// `serving_port` and `serving_match` are judged by. Empty where the agent does not say.
    #[serde(default)]
    pub family: Vec<Kin>,
}

/// A process on a card, or an ancestor of one. Its id is the one of the agent's host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kin {
    /// Process id.
    pub pid: u32,
    /// The process that started it; null where that cannot be seen.
    pub parent: Option<u32>,
    /// Its program, and an interpreter's script or module; no further arguments, since they hold
    /// keys. Null where it cannot be seen.
    pub name: Option<String>,
    /// The TCP ports it listens on; null where that cannot be seen, which is not the same as none.
    pub ports: Option<Vec<u16>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_of_a_card_that_was_never_read_has_no_beginning() {
        for (text, from_ns) in [
            (r#"{"gpu":0,"from_ns":12,"error":"lost"}"#, Some(12)),
            (r#"{"gpu":0,"from_ns":null,"error":"lost"}"#, None),
        ] {
            let hole: Hole = serde_json::from_str(text).unwrap();
            assert_eq!((hole.from_ns, hole.error.as_str()), (from_ns, "lost"));
            assert_eq!(serde_json::to_string(&hole).unwrap(), text);
        }
    }
}
