//! An agent without a stream (giul-agent): asked for power again and again, which is integrated as
//! a gauge of ours.
//!
//! When inside a round trip the agent has read its card is not known: each reading stands in the
//! middle, and half the trip is its uncertainty. Which sensor it reads is known: `power.draw`.

use std::{convert::Infallible, sync::atomic::Ordering};

use joulebook_core::{
    Fault, Flags, Power,
    register::{DEFAULT_CEILING, Kind},
    series::{Poll, plausible_power},
};
use serde::Deserialize;

use super::{
    Client, POWER, RemoteError, STREAM,
    lane::Lane,
    link::{End, Link},
};
use crate::{
    card::{Told, unknown_device},
    clock::{now_ns, suspended_ns},
    reader::Process,
    recorder::Updates,
    smi::averages_by_name,
};

const SECOND: u64 = 1_000_000_000;
const LEAST_INTERVAL_NS: u64 = 10_000_000;
/// Failures of all cards in a row after which it is looked anew who answers there.
const PATIENCE: u32 = 3;
/// Cards that an agent does not have are asked for this seldom, and whether it has a stream by now.
const SELDOM_NS: u64 = 10 * SECOND;
const SUSPEND_NS: u64 = 100_000_000;

/// What an agent answers. What else it says is not needed here.
#[derive(Debug, Deserialize)]
struct PowerNow {
    gpu: u32,
    #[serde(default)]
    name: Option<String>,
    watts: f64,
    #[serde(default)]
    compute_apps: Option<Vec<Process>>,
}

/// One card's asking.
struct Asking {
    gpu: u32,
    updates: Updates,
    next_ns: u64,
    last_ns: Option<u64>,
    spacing_ns: u64,
    failures: u32,
    slept: bool,
}

impl Link {
    /// Asks for power until the agent is gone, or one that has a stream answers.
    pub(super) fn ask_for_power(&mut self, client: &Client) -> Result<Infallible, End> {
        self.say_connected();
        // What another agent has said there before.
        self.forget_cards();
        let mut askings: Vec<Option<Asking>> = Vec::new();
        let mut suspended = suspended_ns();
        let mut streams_at_ns = now_ns().saturating_add(SELDOM_NS);
        loop {
            self.look()?;
            let interval_ns = self.interval_ns();
            for lane in self.lanes.iter_mut().skip(askings.len()) {
                askings.push(Asking::of(lane, client, interval_ns));
            }
            let now_suspended = suspended_ns();
            let slept = now_suspended.saturating_sub(suspended) > SUSPEND_NS;
            suspended = now_suspended;
            let mut next_ns = now_ns().saturating_add(SECOND);
            for (lane, asking) in self.lanes.iter_mut().zip(&mut askings) {
                let Some(asking) = asking else { continue };
                asking.slept |= slept;
                if now_ns() >= asking.next_ns {
                    let asked = asking.ask(client, lane, interval_ns);
                    if asked.is_ok() {
                        self.failures = 0;
                    }
                    self.remote.status.set(|now| now.error = asked.err());
                }
                next_ns = next_ns.min(asking.next_ns);
            }
            let mut tried = askings.iter().flatten().peekable();
            if tried.peek().is_some() && tried.all(|asking| asking.failures >= PATIENCE) {
                let error = self.remote.status.now().error;
                return Err(error.unwrap_or_else(|| client.garbage("no reading")).into());
            }
            if now_ns() >= streams_at_ns {
                // It may have been missing for a moment: an agent that was replaced, a way that was
                // made. The next readings are late by this one answer at most.
                if client.has_stream(STREAM) {
                    return Err(End::Streams);
                }
                streams_at_ns = now_ns().saturating_add(SELDOM_NS);
            }
            self.wait(next_ns.saturating_sub(now_ns()))?;
        }
    }
}

impl Link {
    fn interval_ns(&self) -> u64 {
        let interval = self.remote.lock().interval;
        u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(LEAST_INTERVAL_NS)
    }

    fn say_connected(&self) {
        tracing::info!("{}: power is asked for there", self.remote.status.endpoint());
        self.remote.status.set(|now| {
            (now.agent, now.node, now.offset) = (None, None, None);
            now.streams = false;
            now.connections += 1;
        });
    }
}

impl Asking {
    /// `None` where the card cannot be asked for by a number.
    fn of(lane: &mut Lane, client: &Client, interval_ns: u64) -> Option<Self> {
        let Ok(gpu) = lane.ask.parse() else {
            tracing::warn!(
                "{}: the agent there knows cards by their number alone, not {:?}",
                client.endpoint(),
                lane.ask
            );
            lane.fails(Fault::Absent);
            return None;
        };
        lane.asks(interval_ns);
        Some(Self {
            gpu,
            updates: Updates::default(),
            next_ns: now_ns(),
            last_ns: None,
            spacing_ns: interval_ns,
            failures: 0,
            slept: false,
        })
    }

    fn ask(
        &mut self,
        client: &Client,
        lane: &mut Lane,
        interval_ns: u64,
    ) -> Result<(), RemoteError> {
        let health = &lane.card.health;
        let asked_ns = now_ns();
        health.asking_ns.store(asked_ns, Ordering::Relaxed);
        let answer = client.get::<PowerNow>(&format!("{POWER}?gpu={}", self.gpu));
        let heard_ns = now_ns();
        health.asking_ns.store(0, Ordering::Relaxed);
        health.asked_ns.fetch_add(heard_ns.saturating_sub(asked_ns), Ordering::Relaxed);
        health.polls.fetch_add(1, Ordering::Relaxed);
        let due_ns = self.next_ns.saturating_add(interval_ns);
        self.next_ns =
            if due_ns > heard_ns { due_ns } else { heard_ns.saturating_add(interval_ns) };
        // A card that is not there says nothing of the others.
        if matches!(answer, Err(RemoteError::NotFound { .. })) {
            self.next_ns = heard_ns.saturating_add(SELDOM_NS);
        }
        let (taken, outcome) = match answer {
            Ok(answer) => (self.take(lane, answer, Poll::between(asked_ns, heard_ns)), Ok(())),
            Err(error) => (Err(error.fault()), Err(error)),
        };
        match taken {
            Ok(()) => {
                self.failures = 0;
                lane.card.health.set_fault(None);
                lane.card.health.good_ns.store(heard_ns, Ordering::Relaxed);
                lane.card.ring();
            }
            Err(fault) => {
                self.failures = self.failures.saturating_add(1);
                lane.refuse(fault);
            }
        }
        outcome
    }

    fn take(&mut self, lane: &mut Lane, answer: PowerNow, poll: Poll) -> Result<(), Fault> {
        let power = Power::from_watts(answer.watts).ok_or(Fault::Implausible)?;
        if answer.gpu != self.gpu {
            return Err(Fault::MalformedRow);
        }
        if !plausible_power(power, Some(DEFAULT_CEILING)) {
            return Err(Fault::Implausible);
        }
        self.describe(lane, answer.name);
        lane.apps(answer.compute_apps, poll.at_ns);
        let marks = if std::mem::take(&mut self.slept) { Flags::GAP } else { Flags::NONE };
        self.follow_pace(lane, poll.at_ns);
        lane.power(poll, power, self.spacing_ns, marks)?;
        let repeated = lane.writer.last().is_some_and(|last| last.flags.contains(Flags::REPEATED));
        if !repeated && let Some(update_ns) = self.updates.changed(poll.at_ns) {
            lane.card.health.update_ns.store(update_ns, Ordering::Relaxed);
        }
        Ok(())
    }

    fn describe(&self, lane: &Lane, name: Option<String>) {
        let name = name.unwrap_or_default();
        if lane.card.device().name == name && self.last_ns.is_some() {
            return;
        }
        let mut device = unknown_device(&lane.ask);
        let averaging_ns = averages_by_name(&name).then_some(SECOND);
        device.register = Kind::Gauge { averaging_ns };
        device.name = name;
        lane.card.set_device(device);
        if let Some(elsewhere) = &lane.card.elsewhere {
            elsewhere.set(Told::default());
        }
    }

    /// An agent that takes longer than the interval is asked less often; what a hole is and what is
    /// stale are measured by that.
    fn follow_pace(&mut self, lane: &Lane, at_ns: u64) {
        if let Some(last_ns) = self.last_ns.replace(at_ns) {
            // A running mean.
            let apart_ns = at_ns.saturating_sub(last_ns).min(30 * SECOND);
            self.spacing_ns = self.spacing_ns - self.spacing_ns / 8 + apart_ns / 8;
            lane.card.health.gap_ns.store(self.spacing_ns, Ordering::Relaxed);
        }
    }
}
