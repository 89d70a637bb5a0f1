//! What can be read of a card, how often it is renewed, and whether its counter can be believed.
//!
//! Decides which register a card is to be read by from now on: the energy counter's slope is held
//! against the integral of the instant power, with the counter read once a second, ten times, and
//! in step with its publishes. All of it is measured on the load that is there; a probe causes none.
//! A judgement that the load was too uneven for is not made, and says so.
//!
//! Refused: a lag. The power gauge is late as well, by an unknown time, so a step seen by both shows
//! the difference of two lags; it takes a load whose own timing is known.

mod compare;
mod counter;
mod gauge;
mod judge;
mod publish;

use std::{sync::Arc, time::Duration};

pub use compare::Ratio;
use counter::{CounterWatch, Leg};
use gauge::{GaugeSamples, GaugeWatch};
use joulebook_core::Fault;
pub use judge::{Finding, Verdict, compared};
pub use publish::Renewal;
use serde::{Serialize, Serializer};

use crate::{
    clock,
    nvml::{CardInfo, Driver, NvmlCounter, NvmlGauge, NvmlTenants, PowerField, state},
    profile::{Probed, Profile, Trust},
    reader::{Reader, Scope, Tenants, Value},
};

/// The shortest probe: at each of the two rates the counter is watched for 2 s.
pub const SHORTEST: Duration = Duration::from_secs(6);
/// What a probe takes unless said otherwise.
pub const USUAL: Duration = Duration::from_secs(10);

/// What a probe found of a card.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The card as the driver describes it.
    #[serde(skip)]
    pub card: CardInfo,
    /// The driver's index.
    pub index: u32,
    /// The card's name.
    pub name: String,
    /// UUID.
    pub uuid: String,
    /// PCI address.
    pub pci: Option<String>,
    /// The driver's version.
    pub driver: Option<String>,
    /// When, s since 1970.
    pub unix_s: u64,
    /// What can be read, and what it reads now.
    pub readable: Vec<Readable>,
    /// Whether the card is split into instances; absent where it cannot be.
    pub mig: Option<bool>,
    /// How the energy counter is renewed; absent where it has not moved.
    pub counter: Option<Renewal>,
    /// How the instant power is renewed.
    pub gauge: Option<Renewal>,
    /// The counter's slope over the integral of power, the counter read once a second.
    pub ratio_1hz: Option<Ratio>,
    /// The same, read ten times a second.
    pub ratio_10hz: Option<Ratio>,
    /// The same, read in step with its publishes.
    pub ratio_locked: Option<Ratio>,
    /// The same once a second against the power of the whole module, where there is such a reading.
    pub ratio_module: Option<Ratio>,
    /// What the counter covers, by comparison where there is something to compare with.
    pub scope: Scope,
    /// Mean power meanwhile by the instant gauge, W.
    pub mean_watts: Option<f64>,
    /// What the card drew least and most meanwhile, W.
    pub range_watts: Option<(f64, f64)>,
    /// What follows from it.
    pub verdict: Verdict,
}

/// One thing that may be read.
#[derive(Clone, Debug, Serialize)]
pub struct Readable {
    /// What: `counter`, `instant`, `average`, `usage`, `processes`, `memory`, `utilisation`,
    /// `throttle`, `limit`.
    pub what: &'static str,
    /// What it reads now, or one word for why not.
    #[serde(serialize_with = "one_of_two")]
    pub now: Result<String, Fault>,
    /// What one read takes, in the middle, µs.
    pub read_us: Option<f64>,
    /// What all but one read of twenty take at most, µs.
    pub read_p95_us: Option<f64>,
}

fn one_of_two<S: Serializer>(
    value: &Result<String, Fault>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    enum Now<'a> {
        Reads(&'a str),
        Error(Fault),
    }
    match value {
        Ok(reads) => Now::Reads(reads).serialize(serializer),
        Err(fault) => Now::Error(*fault).serialize(serializer),
    }
}

/// Probes a card for this long (at least [`SHORTEST`]). Blocks; a driver that hangs blocks it too.
/// Other recorders of the card do not disturb it.
pub fn probe(driver: &Arc<Driver>, card: &CardInfo, length: Duration) -> Report {
    let length = length.max(SHORTEST);
    let mut readable = Vec::new();
    let module_word = card.module_power;
    // The gauges are watched from threads of their own, so that a slow call of one shifts no other.
    let instant = GaugeWatch::start(NvmlGauge::open(driver, card, PowerField::Instant));
    let module = module_word
        .then(|| GaugeWatch::start(NvmlGauge::open_module(driver, card, PowerField::Instant)));
    let counter = CounterWatch::run(&mut NvmlCounter::open(driver, card), length);
    if counter.publishes.is_empty() {
        // Without a counter the gauge alone is watched, for long enough to see its period.
        std::thread::sleep((length / 3).saturating_sub(counter.took));
    }
    // So that the gauges have seen the counter's last publish go by.
    std::thread::sleep(Duration::from_millis(50));
    let instant = instant.stop();
    let module = module.map(GaugeWatch::stop);

    readable.push(counter.readable());
    readable.push(instant.readable());
    let mut average = NvmlGauge::open(driver, card, PowerField::Average);
    let reads_average = power_now(&mut average);
    let by_field = average.field() == "average";
    readable.push(Readable::plain(
        "average",
        if by_field { reads_average } else { Err(Fault::NotSupported) },
    ));
    readable.push(Readable::plain("usage", power_now(&mut NvmlGauge::open_usage(driver, card))));
    readable.extend(beside(driver, card));

    let compared = |gauge: &GaugeSamples, from: Leg| {
        let (from, to) = counter.leg(from)?;
        compare::ratio(&from, &to, gauge, counter.period_ns())
    };
    let slow = compared(&instant, Leg::Slow);
    let quick = compared(&instant, Leg::Quick);
    let locked = compared(&instant, Leg::Locked);
    let of_module = module.as_ref().and_then(|module| compared(module, Leg::Slow));
    let scope = judge::scope(card.counter_scope, slow, of_module);
    let against = if scope == Scope::Module && of_module.is_some() { of_module } else { slow };
    let verdict = judge::verdict(&judge::Evidence {
        counter: counter.outcome(),
        moved: !counter.publishes.is_empty(),
        resets: counter.resets,
        gauge: instant.outcome(),
        slow: against,
        faster: if scope == Scope::Module { [None, None] } else { [quick, locked] },
        drawing: instant.mean_watts().is_some_and(|watts| watts > 0.0),
    });
    Report {
        card: card.clone(),
        index: card.index,
        name: card.name.clone(),
        uuid: card.uuid.clone(),
        pci: card.pci.clone(),
        driver: card.driver.clone(),
        unix_s: (clock::unix_ns(clock::now_ns()) / 1_000_000_000) as u64,
        readable,
        mig: card.mig,
        counter: counter.renewal(),
        gauge: instant.renewal(),
        ratio_1hz: slow,
        ratio_10hz: quick,
        ratio_locked: locked,
        ratio_module: of_module,
        scope,
        mean_watts: instant.mean_watts(),
        range_watts: instant.range_watts(),
        verdict,
    }
}

impl Report {
    /// What a profile keeps of it; `None` where nothing was settled that may be kept (a register
    /// that could not be read now may be readable later).
    pub fn probed(&self) -> Option<Probed> {
        if !self.verdict.lasting {
            return None;
        }
        let renewal = match self.verdict.trust {
            Trust::Counter => self.counter.as_ref(),
            Trust::Gauge | Trust::Nothing => self.gauge.as_ref(),
        };
        Some(Probed {
            unix_s: self.unix_s,
            period_s: renewal.map_or(0.0, |renewal| renewal.period_s),
            jitter_s: renewal.map_or(0.0, |renewal| renewal.jitter_s),
            lag_s: None,
            trust: self.verdict.trust,
            ratio: self.ratio_1hz.map(|ratio| ratio.value),
            mismatch: self.verdict.has(Finding::Mismatch),
            poll_sensitive: self.verdict.has(Finding::PollSensitive),
        })
    }

    /// Puts it into what is known of the card; false where nothing is to be kept.
    pub fn keep_in(&self, profile: &mut Profile) -> bool {
        let Some(probed) = self.probed() else { return false };
        profile.driver.clone_from(&self.driver);
        profile.name.clone_from(&self.name);
        profile.probe = Some(probed);
        profile.counter_scope = (self.ratio_module.is_some()).then_some(self.scope);
        true
    }
}

impl Readable {
    fn plain(what: &'static str, now: Result<String, Fault>) -> Self {
        Self { what, now, read_us: None, read_p95_us: None }
    }

    fn timed(what: &'static str, now: Result<String, Fault>, calls_ns: &[u64]) -> Self {
        let mut sorted = calls_ns.to_vec();
        sorted.sort_unstable();
        let at = |place: usize| sorted.get(place).map(|ns| *ns as f64 / 1000.0);
        Self {
            what,
            now,
            read_us: at(sorted.len() / 2),
            read_p95_us: at((sorted.len() * 19 / 20).min(sorted.len().saturating_sub(1))),
        }
    }
}

fn power_now(gauge: &mut impl Reader) -> Result<String, Fault> {
    gauge.read().and_then(|reading| match reading.value {
        Value::Power(power) => Ok(format!("{:.1} W", power.watts())),
        Value::Counter(_) => Err(Fault::MalformedRow),
    })
}

/// What is read beside the registers.
fn beside(driver: &Arc<Driver>, card: &CardInfo) -> Vec<Readable> {
    let mut tenants = NvmlTenants::open(driver, card);
    let processes = tenants.resident().map(|list| match list.len() {
        0 => "nobody".to_owned(),
        count => format!("{count} on the card"),
    });
    let now = state(driver, &card.uuid);
    let of_state = |pick: &dyn Fn(&crate::nvml::CardState) -> Option<String>| {
        now.as_ref().map_err(|fault| *fault).and_then(|now| pick(now).ok_or(Fault::NotSupported))
    };
    let memory = of_state(&|now| {
        let (used, total) = (now.memory_used_mib?, now.memory_total_mib?);
        Some(format!("{used} of {total} MiB used"))
    });
    let utilisation = of_state(&|now| now.utilization_pct.map(|percent| format!("{percent} %")));
    let throttle = NvmlCounter::open(driver, card)
        .read()
        .or_else(|_| NvmlGauge::open_usage(driver, card).read())
        .and_then(|reading| reading.throttle.ok_or(Fault::NotSupported))
        .map(|throttle| {
            let held = match (throttle.power_capped, throttle.power_braked) {
                (_, Some(true)) => "held down by the power brake",
                (Some(true), _) => "held down by the power limit",
                (Some(false), Some(false)) => "not held down by power",
                (None, _) | (_, None) => "not held down by power, as far as is told",
            };
            held.to_owned()
        });
    let limit = card.limit.map(|limit| format!("{:.0} W", limit.watts()));
    vec![
        Readable::plain("processes", processes),
        Readable::plain("memory", memory),
        Readable::plain("utilisation", utilisation),
        Readable::plain("throttle", throttle),
        Readable::plain("limit", limit.ok_or(Fault::NotSupported)),
    ]
}
