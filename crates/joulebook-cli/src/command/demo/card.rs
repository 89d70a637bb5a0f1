//! The simulated card of the demo, and what a probe would have found of it.

use std::{sync::Arc, time::Duration};

use joulebook::{
    Card, Meter, Node, Scope, Settings,
    profile::{Floor, Lag, Probed, Profile, Trust},
};
use joulebook_lab::{Clock, SimulatedCard, load::LiveLoad, scenario};

/// What the card draws at rest, W.
pub const IDLE_W: f64 = 70.0;
/// How long its register takes from one publish to the next, ms.
pub const PERIOD_MS: i64 = 100;
/// How late what it shows is, ms.
pub const LAG_MS: i64 = 20;

/// What the engine's model takes of its memory, MiB.
const MODEL_MIB: u64 = 16_384;

/// A meter on the card, the card itself with its truth, and the hand on its load.
pub fn meter() -> anyhow::Result<(Meter, SimulatedCard, LiveLoad)> {
    let (read, card, load) = read();
    let meter = Meter::of_cards(&Node::of("0").idle_watts(IDLE_W), vec![read]);
    anyhow::ensure!(
        meter.wait_ready(Duration::from_secs(5)),
        "the simulated card shows no reading; this is a fault of the demo itself"
    );
    // The grid of publishes is found in about a second.
    std::thread::sleep(Duration::from_millis(1500));
    Ok((meter, card, load))
}

fn read() -> (Arc<Card>, SimulatedCard, LiveLoad) {
    let mut card = scenario::Card::numbered(0);
    card.name = "simulated card (700 W limit)".into();
    card.idle_w = IDLE_W;
    card.counter.period_ns = PERIOD_MS * 1_000_000;
    card.counter.lag_ns = LAG_MS * 1_000_000;
    card.counter.jitter_ns = 1_000_000;
    // The engine in this process holds its model the whole time.
    card.residents.push(scenario::Resident {
        span: scenario::Span { start_ns: i64::MIN, end_ns: i64::MAX },
        pid: std::process::id(),
        used_mib: Some(MODEL_MIB),
        sm_percent: None,
        name: "joulebook demo".into(),
    });
    let (card, load) = SimulatedCard::live(card, Clock::monotonic());
    let probe = Probed {
        unix_s: 0,
        period_s: PERIOD_MS as f64 / 1e3,
        jitter_s: 0.001,
        lag_s: Some(Lag { value: LAG_MS as f64 / 1e3, uncertainty: 0.001 }),
        trust: Trust::Counter,
        ratio: None,
        mismatch: false,
        poll_sensitive: false,
    };
    let floor = Floor {
        watts: IDLE_W,
        spread_watts: 0.0,
        unix_s: 0,
        seconds: 0.0,
        readings: 0,
        backend: "simulated".into(),
        scope: Scope::Gpu,
        model_loaded: false,
    };
    let profile = Profile { probe: Some(probe), floors: vec![floor], ..Profile::default() };
    let settings = Settings { profile, gap_ns: None };
    let read = joulebook::record(Box::new(card.clone()), Some(Box::new(card.clone())), settings);
    (read, card, load)
}
