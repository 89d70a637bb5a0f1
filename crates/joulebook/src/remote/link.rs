//! The thread of one node: connects, follows the stream, and connects again.
//!
//! Beside the stream it asks the agent's clock now and then, on the same thread: at once where an
//! event looks as if a clock had been moved, and then the event waits for the answer. Between
//! connections it waits longer and longer, a little differently each time, so that a thousand
//! readers of a node that comes back do not come at once.

use std::{
    convert::Infallible,
    sync::{Arc, atomic::Ordering},
    thread,
    time::Duration,
};

use joulebook_core::{Fault, Flags};

use super::{
    CARDS, CLOCK, Client, Offset, Remote, RemoteError, RoundTrip, STREAM,
    clock::Clock,
    events::{Event, Events},
    lane::{Lane, Taken},
    listed,
    offset::Heard,
    resolve,
};
use crate::{
    clock::{now_ns, suspended_ns},
    recorder::thread_cpu_ns,
    wire::{self, event},
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
/// A node whose cards nobody wants is read for so long: meters come and go with requests.
const LINGER_NS: u64 = 30 * SECOND;
/// How often it is looked whether anybody wants them, and a wait is interrupted.
const LOOK_NS: u64 = SECOND;
/// The waits between two connections.
const FIRST_WAIT_NS: u64 = 100 * MS;
const LONGEST_WAIT_NS: u64 = 10 * SECOND;
/// The two clocks of a suspend are not read at one instant.
const SUSPEND_NS: u64 = 100 * MS;
/// Cards of a node, by far.
const MOST_CARDS: usize = 1024;
/// Publishes that cannot be true, one after the other, until the agent is not believed.
const MOST_REFUSED: u32 = 8;

pub(super) struct Link {
    pub remote: Arc<Remote>,
    pub lanes: Vec<Lane>,
    /// What the agent said last of each card, for whoever asks for one later.
    described: Vec<wire::CardSeen>,
    residents: Vec<wire::Residents>,
    clock: Clock,
    pub failures: u32,
    /// Publishes that could not be true, of late.
    refused: u32,
    connected_ns: u64,
    unwanted_ns: Option<u64>,
    looked_ns: u64,
    suspended_ns: u64,
}

/// Nobody wants the node's cards any more.
pub(super) struct Done;

/// Why a connection ended.
pub(super) enum End {
    Done,
    /// Nothing failed: who was asked for power has a stream by now.
    Streams,
    Error(RemoteError),
}

impl From<RemoteError> for End {
    fn from(error: RemoteError) -> Self {
        Self::Error(error)
    }
}

impl From<Done> for End {
    fn from(_: Done) -> Self {
        Self::Done
    }
}

impl Link {
    pub fn new(remote: Arc<Remote>) -> Self {
        Self {
            remote,
            lanes: Vec::new(),
            described: Vec::new(),
            residents: Vec::new(),
            clock: Clock::default(),
            failures: 0,
            refused: 0,
            connected_ns: 0,
            unwanted_ns: None,
            looked_ns: 0,
            suspended_ns: suspended_ns(),
        }
    }

    pub fn run(mut self) {
        loop {
            let Err(end) = self.follow();
            let error = match end {
                End::Done => return,
                End::Streams => continue,
                End::Error(error) => error,
            };
            self.lose(&error);
            if self.wait(wait_ns(self.failures)).is_err() {
                return;
            }
            self.failures = self.failures.saturating_add(1);
        }
    }

    /// One connection, from its beginning to its end.
    fn follow(&mut self) -> Result<Infallible, End> {
        self.look()?;
        let remote = Arc::clone(&self.remote);
        let (endpoint, token_file) = &remote.key;
        let client = Client::new(endpoint, token_file.as_ref(), remote.timeout)?;
        let cards: wire::Cards = match client.get(CARDS) {
            // A giul-agent knows no such thing.
            Err(RemoteError::NotFound { .. }) => return self.ask_for_power(&client),
            answer => answer?,
        };
        limited(&client, cards.cards.len())?;
        self.clock.begin(&cards.boot_id);
        self.take_over(cards.cards);
        for _ in 0..2 {
            self.ask_clock(&client)?;
        }
        let asked_ns = now_ns();
        self.connected_ns = asked_ns;
        let reader = match client.stream(&self.stream_path()) {
            Err(RemoteError::NotFound { .. }) => return self.ask_for_power(&client),
            reader => reader?,
        };
        let mut events = Events::new(reader, client.endpoint(), now_ns);
        self.greet(&client, &events.next()?, asked_ns)?;
        loop {
            let event = events.next()?;
            self.hear(&client, &event)?;
            // What is already here is heard before anything else is asked.
            if !events.has_next() {
                if self.clock.is_due() {
                    self.ask_clock(&client)?;
                }
                self.look()?;
            }
        }
    }

    /// What came while the connection was lost is asked for, too.
    fn stream_path(&self) -> String {
        let boot_id = self.clock.boot_id();
        let seen = self.lanes.iter().filter_map(|lane| lane.taken_ns(boot_id)).min();
        let plain = boot_id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        match seen.filter(|_| plain) {
            Some(since_ns) => format!("{STREAM}?boot_id={boot_id}&since_ns={since_ns}"),
            None => STREAM.to_owned(),
        }
    }

    /// The first event says who speaks.
    fn greet(&mut self, client: &Client, event: &Event, asked_ns: u64) -> Result<(), RemoteError> {
        if event.name != event::HELLO {
            return Err(client.garbage("a stream that does not begin with hello"));
        }
        let hello: wire::Hello = parse(client, event)?;
        if hello.boot_id != self.clock.boot_id() {
            // It was started again between two questions.
            return Err(client.garbage("another life than a moment ago"));
        }
        let other_ns = hello.now_ns;
        self.trip(RoundTrip { asked_ns, heard_ns: event.arrived_ns, other_ns });
        tracing::info!("{}: connected to {} ({})", client.endpoint(), hello.agent, hello.node);
        self.remote.status.set(|now| {
            now.agent = Some(hello.agent);
            now.node = Some(hello.node);
            now.streams = true;
            now.connections += 1;
            now.error = None;
        });
        Ok(())
    }

    fn hear(&mut self, client: &Client, event: &Event) -> Result<(), RemoteError> {
        let suspended_ns = suspended_ns();
        if suspended_ns.saturating_sub(self.suspended_ns) > SUSPEND_NS {
            // Our clock stood still; what cards drew meanwhile belongs to nobody.
            self.lanes.iter_mut().for_each(|lane| lane.mark(Flags::GAP));
            self.clock.forget();
            self.ask_clock(client)?;
        }
        self.suspended_ns = suspended_ns;
        match event.name.as_str() {
            event::ENERGY => {
                let publish: wire::EnergyNow = parse(client, event)?;
                if publish.boot_id != self.clock.boot_id() {
                    return Err(client.garbage("a publish of another life"));
                }
                self.energy(client, &publish, event.arrived_ns)?;
                self.failures = 0;
            }
            event::CLOCK => {
                let clock: wire::ClockNow = parse(client, event)?;
                if self.clock.is_doubtful(clock.now_ns, 0, event.arrived_ns) {
                    self.ask_clock(client)?;
                }
                self.clock.usual(clock.now_ns, event.arrived_ns);
            }
            event::CARD => {
                let card: wire::CardSeen = parse(client, event)?;
                self.described.retain(|known| known.gpu != card.gpu);
                let gpu = card.gpu;
                self.described.push(card);
                limited(client, self.described.len())?;
                self.describe(|lane, found| found == Some(gpu) || lane.gpu == Some(gpu));
            }
            event::HOLE => {
                let hole: wire::Hole = parse(client, event)?;
                let fault = super::lane::fault_of(Some(&hole.error));
                self.of(hole.gpu).for_each(|lane| lane.hole(fault, hole.from_ns));
            }
            event::TENANCY => {
                let residents: wire::Residents = parse(client, event)?;
                let offset = self.offset(client, event.arrived_ns)?;
                self.of(residents.gpu)
                    .for_each(|lane| lane.residents(&residents, offset, event.arrived_ns));
                self.residents.retain(|known| known.gpu != residents.gpu);
                self.residents.push(residents);
                limited(client, self.residents.len())?;
            }
            event::SKIPPED => {
                let skipped: wire::Skipped = parse(client, event)?;
                self.of(skipped.gpu).for_each(|lane| lane.mark(Flags::HOLE));
            }
            // A newer agent may have more to say.
            _ => {}
        }
        self.lanes.iter().for_each(|lane| lane.silent(event.arrived_ns));
        Ok(())
    }

    fn energy(
        &mut self,
        client: &Client,
        publish: &wire::EnergyNow,
        arrived_ns: u64,
    ) -> Result<(), RemoteError> {
        // What was published before the connection says nothing of how long the way is.
        let offset = self.offset(client, arrived_ns)?;
        let fresh = offset.ours(publish.t_ns).is_none_or(|at_ns| at_ns > self.connected_ns);
        if fresh && self.clock.is_doubtful(publish.t_ns, publish.delta_ns, arrived_ns) {
            self.ask_clock(client)?;
        }
        let offset = self.offset(client, arrived_ns)?;
        let (mut refused, mut taken) = (false, false);
        for lane in self.of(publish.gpu) {
            match lane.publish(publish, offset, arrived_ns) {
                Taken::Refused => {
                    lane.fails(Fault::ClockStep);
                    refused = true;
                }
                Taken::Point => taken |= !lane.is_in_hole(),
                Taken::Known => {}
            }
        }
        if taken && let Some(card) = self.described.iter_mut().find(|it| it.gpu == publish.gpu) {
            // What ended with this publish is not said again to who asks for the card later.
            (card.up, card.error) = (true, None);
        }
        self.refused = if refused { self.refused + 1 } else { 0 };
        if self.refused >= MOST_REFUSED {
            return Err(client.garbage("publishes that are yet to come"));
        }
        if fresh {
            self.clock.usual(publish.t_ns, arrived_ns);
        }
        let delivery_ns = self.clock.delivery_ns().saturating_add(offset.uncertainty_ns);
        for lane in self.of(publish.gpu) {
            if let Some(elsewhere) = &lane.card.elsewhere {
                elsewhere.delivery_ns.store(delivery_ns.min(5 * SECOND), Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn of(&mut self, gpu: u32) -> impl Iterator<Item = &mut Lane> {
        self.lanes.iter_mut().filter(move |lane| lane.gpu == Some(gpu))
    }

    fn offset(&mut self, client: &Client, at_ns: u64) -> Result<Offset, RemoteError> {
        self.clock.offset(at_ns).ok_or_else(|| client.garbage("a clock of no sense"))
    }

    /// One round trip to the agent's clock. One that fails is not the end: what is known of the
    /// clock only widens.
    fn ask_clock(&mut self, client: &Client) -> Result<(), RemoteError> {
        let asked_ns = now_ns();
        match client.get::<wire::ClockNow>(CLOCK) {
            Ok(clock) if clock.boot_id != self.clock.boot_id() => {
                Err(client.garbage("a clock of another life"))
            }
            Ok(clock) => {
                self.trip(RoundTrip { asked_ns, heard_ns: now_ns(), other_ns: clock.now_ns });
                Ok(())
            }
            Err(error @ RemoteError::Refused { .. }) => Err(error),
            Err(error) => {
                tracing::debug!("{error}");
                self.clock.failed();
                Ok(())
            }
        }
    }

    fn trip(&mut self, trip: RoundTrip) {
        if self.clock.trip(trip) == Heard::Moved {
            tracing::warn!("{}: its clock moved against ours", self.remote.status.endpoint());
            self.lanes.iter_mut().for_each(|lane| lane.mark(Flags::CLOCK_SKEW));
        }
        let offset = self.clock.offset(trip.heard_ns);
        let shortest_ns = self.clock.shortest_ns();
        self.remote.status.set(|now| (now.offset, now.round_trip_ns) = (offset, shortest_ns));
    }

    /// The cards as the agent lists them.
    fn take_over(&mut self, cards: Vec<wire::CardSeen>) {
        self.remote.lock().listed = cards.iter().map(listed).collect();
        self.described = cards;
        self.residents.clear();
        self.lanes.iter_mut().for_each(|lane| lane.gpu = None);
        self.describe(|_, _| true);
    }

    /// The agent does not say which cards there are.
    pub fn forget_cards(&mut self) {
        self.remote.lock().listed.clear();
        self.described.clear();
        self.residents.clear();
    }

    /// Says to the lanes that are meant what their card is; `is_meant` is asked with the card that
    /// the lane's name stands for now. To others nothing is said again: it may have ended meanwhile.
    fn describe(&mut self, is_meant: impl Fn(&Lane, Option<u32>) -> bool) {
        let cards: Vec<_> = self.described.iter().map(listed).collect();
        for lane in &mut self.lanes {
            let found = resolve(&lane.ask, &cards).map(|identity| identity.index);
            if !is_meant(lane, found.as_ref().ok().copied()) {
                continue;
            }
            // Another card may stand under its number.
            lane.gpu = None;
            match found.map(|gpu| self.described.iter().find(|card| card.gpu == gpu)) {
                Ok(Some(card)) => lane.describe(card),
                Ok(None) => lane.fails(Fault::Absent),
                Err(error) => {
                    if lane.card.trouble() != Some(error.fault()) {
                        tracing::warn!("{}: {error}", self.remote.status.endpoint());
                    }
                    lane.fails(error.fault());
                }
            }
        }
    }

    /// Takes over what was asked for meanwhile, and ends where nobody wants anything any more.
    pub fn look(&mut self) -> Result<(), Done> {
        let now = now_ns();
        let fresh = std::mem::take(&mut self.remote.lock().fresh);
        if !fresh.is_empty() {
            let asked: Vec<String> = fresh.iter().map(|lane| lane.ask.clone()).collect();
            self.lanes.extend(fresh);
            self.describe_fresh(&asked, now);
        }
        if now.saturating_sub(self.looked_ns) < LOOK_NS {
            return Ok(());
        }
        self.looked_ns = now;
        self.note_cost();
        if self.remote.is_wanted() {
            self.unwanted_ns = None;
            return Ok(());
        }
        let since_ns = *self.unwanted_ns.get_or_insert(now);
        if now.saturating_sub(since_ns) > LINGER_NS && self.remote.let_go() {
            return Err(Done);
        }
        Ok(())
    }

    /// What this thread costs is shared among its cards.
    fn note_cost(&self) {
        let cards = self.lanes.len().max(1) as u64;
        let Some(cpu_ns) = thread_cpu_ns() else { return };
        for lane in &self.lanes {
            lane.card.health.cpu_ns.store(cpu_ns / cards, Ordering::Relaxed);
        }
    }

    fn describe_fresh(&mut self, asked: &[String], now: u64) {
        if self.described.is_empty() {
            return;
        }
        self.describe(|lane, _| asked.contains(&lane.ask));
        let Some(offset) = self.clock.offset(now) else { return };
        for residents in std::mem::take(&mut self.residents) {
            self.of(residents.gpu).for_each(|lane| lane.residents(&residents, offset, now));
            self.residents.push(residents);
        }
    }

    fn lose(&mut self, error: &RemoteError) {
        let status = &self.remote.status;
        // Once for each change, not for each try.
        if status.now().error.as_ref() != Some(error) {
            tracing::warn!("{error}");
        }
        status.set(|now| {
            now.streams = false;
            now.error = Some(error.clone());
        });
        let now = now_ns();
        self.lanes.iter_mut().for_each(|lane| lane.lose(error.fault(), now));
    }

    /// Waits, and looks now and then whether that is still wanted.
    pub fn wait(&mut self, wait_ns: u64) -> Result<(), Done> {
        let until_ns = now_ns().saturating_add(wait_ns);
        loop {
            let left_ns = until_ns.saturating_sub(now_ns());
            if left_ns == 0 {
                return Ok(());
            }
            thread::sleep(Duration::from_nanos(left_ns.min(LOOK_NS)));
            self.look()?;
        }
    }
}

/// Nobody has so many cards.
fn limited(client: &Client, cards: usize) -> Result<(), RemoteError> {
    if cards > MOST_CARDS { Err(client.garbage("more than 1,024 cards")) } else { Ok(()) }
}

fn parse<T: serde::de::DeserializeOwned>(client: &Client, event: &Event) -> Result<T, RemoteError> {
    serde_json::from_str(&event.data)
        .map_err(|error| client.garbage(&format!("in an event {}: {error}", event.name)))
}

/// The wait after so many failures: doubled each time, and up to a quarter longer or shorter.
fn wait_ns(failures: u32) -> u64 {
    let whole_ns = FIRST_WAIT_NS.saturating_mul(1 << failures.min(16)).min(LONGEST_WAIT_NS);
    // The clock's last digits differ between readers well enough.
    let chance = now_ns().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    whole_ns - whole_ns / 4 + chance % (whole_ns / 2)
}

#[cfg(test)]
mod tests;
