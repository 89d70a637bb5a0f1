//! The energy half of a record: where it was read, at what cost, and what it came to.

use serde::{Deserialize, Serialize};

use super::request::{ReceiptFigures, Request};
use crate::bench::gauge;

/// Where energy was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// This host's cards: the target is this machine.
    Local,
    /// Through the agent of the target's host.
    Node,
    /// Nowhere.
    #[default]
    None,
}

/// What read the energy, and what its figures cover.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Where.
    pub place: Place,
    /// The agent's address, where one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What read the gauge (`nvidia-smi power.draw.average`), where one was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gauge: Option<String>,
    /// What read the counter (`nvml`), where one was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter: Option<String>,
    /// The cards, by UUID.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<String>,
    /// Their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub card_names: Vec<String>,
    /// Which rail the numbers are, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rail: Option<String>,
    /// True for cards of a simulation; said wherever the record is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// Why there is no energy, in a sentence; none where there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_none: Option<String>,
}

/// What the cards drew, all together, with the model loaded and nothing in flight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// By the gauge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gauge: Option<gauge::Window>,
    /// By the counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter: Option<Counter>,
}

/// What the long-lived reader of the gauge did, and what it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampler {
    /// How often it was asked to read, ms.
    pub period_ms: u64,
    /// CPU time it used, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// How long it ran, ns.
    pub wall_ns: u64,
    /// Lines that gave no reading.
    pub rejected_lines: u64,
}

/// What an energy counter counted in a window, all cards together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counter {
    /// Gross energy, µJ.
    pub energy_uj: u64,
    /// The window's length, ns.
    pub window_ns: u64,
    /// Publishes of the register that it stands on.
    pub samples: u64,
    /// Worst-case error, µJ; none where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_uj: Option<u64>,
}

/// What the books did with the counted energy of a window, µJ: every microjoule in one account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Books {
    /// Counted by the registers.
    pub counted_uj: i64,
    /// Charged to requests that ended well, for prompts.
    pub prefill_uj: i64,
    /// For answers.
    pub decode_uj: i64,
    /// Charged to requests that failed or were given up, both parts.
    pub failed_uj: i64,
    /// What the cards draw at rest.
    pub idle_uj: i64,
    /// Other people's.
    pub foreign_uj: i64,
    /// Active energy that nobody known caused.
    pub unattributed_uj: i64,
    /// Counted, but when is unknown.
    pub gap_uj: i64,
    /// Counted and not settled when the record was closed.
    pub suspense_uj: i64,
    /// Worst-case measurement error of what requests were charged, µJ; none where not known, as
    /// without receipts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_uj: Option<u64>,
    /// Receipts of requests that were in flight in the window.
    pub receipts: u64,
    /// Of those, not settled when the record was closed.
    pub unsettled: u64,
}

/// A rail beside the GPU's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RailName {
    /// The processors' packages: `cpu_rail_*`.
    Cpu,
    /// Their memory: `dram_rail_*`.
    Dram,
}

/// What a rail's counter counted in a window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rail {
    /// Which.
    pub name: RailName,
    /// What it counted.
    #[serde(flatten)]
    pub counter: Counter,
}

impl RailName {
    /// What stands in front of its keys.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Cpu => "cpu_rail",
            Self::Dram => "dram_rail",
        }
    }
}

impl Counter {
    /// This window and another one, as one; the bound of both is known where each one's is.
    #[must_use]
    pub fn then(self, other: Self) -> Self {
        Self {
            energy_uj: self.energy_uj.saturating_add(other.energy_uj),
            window_ns: self.window_ns.saturating_add(other.window_ns),
            samples: self.samples + other.samples,
            bound_uj: self.bound_uj.zip(other.bound_uj).map(|(a, b)| a.saturating_add(b)),
        }
    }

    /// All of them as one; none of none.
    pub fn sum(counters: impl IntoIterator<Item = Self>) -> Option<Self> {
        counters.into_iter().reduce(Self::then)
    }

    /// Energy, J.
    pub fn joules(self) -> f64 {
        self.energy_uj as f64 / 1e6
    }

    /// The window's length, s.
    pub fn seconds(self) -> f64 {
        self.window_ns as f64 / 1e9
    }

    /// Mean power, W; none of a window without length.
    pub fn mean_watts(self) -> Option<f64> {
        (self.window_ns > 0).then(|| self.joules() / self.seconds())
    }
}

impl Books {
    /// What is missing between the registers and the accounts; 0 when every microjoule is charged
    /// once.
    pub const fn residual_uj(&self) -> i64 {
        self.counted_uj
            - self.prefill_uj
            - self.decode_uj
            - self.failed_uj
            - self.idle_uj
            - self.foreign_uj
            - self.unattributed_uj
            - self.gap_uj
            - self.suspense_uj
    }

    /// What the receipts of all requests that were in flight in a window say of the joules they were
    /// charged in it: also of those sent before it, since it pays for them as well. Instants of the
    /// clock.
    pub fn vouch<'a>(
        &mut self,
        receipts: impl Iterator<Item = (&'a Request, &'a ReceiptFigures)>,
        open_ns: u64,
        close_ns: u64,
    ) {
        let (mut bound, mut some) = (Some(0.0), false);
        (self.receipts, self.unsettled) = (0, 0);
        for (request, receipt) in receipts {
            let ended_ns = request.sent_ns.saturating_add(request.ended_ns);
            if ended_ns < open_ns || request.sent_ns > close_ns {
                continue;
            }
            some = true;
            self.receipts += 1;
            self.unsettled += u64::from(!receipt.settled);
            bound = bound.zip(receipt.bound_joules).map(|(sum, joules)| sum + joules);
        }
        // No receipts, no bound: 0 would say that all is known.
        self.bound_uj = bound.filter(|_| some).map(|joules: f64| (joules * 1e6).round() as u64);
    }

    /// Both windows' accounts.
    #[must_use]
    pub fn then(self, other: Self) -> Self {
        Self {
            counted_uj: self.counted_uj + other.counted_uj,
            prefill_uj: self.prefill_uj + other.prefill_uj,
            decode_uj: self.decode_uj + other.decode_uj,
            failed_uj: self.failed_uj + other.failed_uj,
            idle_uj: self.idle_uj + other.idle_uj,
            foreign_uj: self.foreign_uj + other.foreign_uj,
            unattributed_uj: self.unattributed_uj + other.unattributed_uj,
            gap_uj: self.gap_uj + other.gap_uj,
            suspense_uj: self.suspense_uj + other.suspense_uj,
            bound_uj: self.bound_uj.zip(other.bound_uj).map(|(a, b)| a.saturating_add(b)),
            receipts: self.receipts + other.receipts,
            unsettled: self.unsettled + other.unsettled,
        }
    }
}

impl Baseline {
    /// Idle power by the gauge, W; none where it stands on no reading.
    pub fn gauge_watts(&self) -> Option<f64> {
        self.gauge.filter(|it| it.samples > 0).and_then(gauge::Window::mean_watts)
    }

    /// Idle power by the counter, W.
    pub fn counter_watts(&self) -> Option<f64> {
        self.counter.and_then(Counter::mean_watts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receipts_of_all_that_were_in_flight_bound_a_window() {
        let request = |sent_ns, ended_ns| Request { sent_ns, ended_ns, ..Request::default() };
        let receipt = |bound_joules: Option<f64>, settled| ReceiptFigures {
            bound_joules,
            settled,
            ..ReceiptFigures::default()
        };
        let vouched = |of: &[(Request, ReceiptFigures)]| {
            let mut books = Books { decode_uj: 5_000_000, ..Books::default() };
            books.vouch(of.iter().map(|(request, receipt)| (request, receipt)), 1000, 2000);
            (books.bound_uj, books.receipts, books.unsettled)
        };
        // A long answer that was sent before the window and is still on its way at its end.
        let long = (request(500, 9000), receipt(Some(0.5), false));
        assert_eq!(vouched(std::slice::from_ref(&long)), (Some(500_000), 1, 1));
        let inside = (request(1500, 100), receipt(Some(0.25), true));
        let before = (request(500, 400), receipt(Some(4.0), true));
        let after = (request(2500, 100), receipt(None, false));
        let all = [before.clone(), long.clone(), inside, after];
        assert_eq!(vouched(&all), (Some(750_000), 2, 1));
        // One without a bound leaves none; nor is there one where joules have no receipt.
        let unknown = (request(1900, 900), receipt(None, true));
        assert_eq!(vouched(&[long, unknown]), (None, 2, 1));
        assert_eq!(vouched(&[before]), (None, 0, 0));
        assert_eq!(vouched(&[]), (None, 0, 0));
    }
}
