//! One thread a card that reads it and fills its series.
//!
//! Invariants: only this thread calls the driver; a call that hangs holds up nobody else, and what
//! windows then say is `timeout`. A failed poll is a hole, never a number, and the next poll comes
//! at the usual pace (slower after many failures in a row). A source that brings its readings by
//! itself sets the pace, and its readings stand where it says they were taken. A counter that
//! publishes slowly has its gauge read beside it, unless it shows less the more often it is read; none
//! is begun in the 10 ms before a read of the counter. The recorder counts what it costs: its CPU time,
//! its polls, those refused and those left out, its reads of the gauge.

mod shape;
mod updates;

use std::{
    fs,
    sync::{Arc, Weak, atomic::Ordering},
    thread,
    time::Duration,
};

use joulebook_core::{
    Fault, Flags,
    register::{Kind, Register, Step},
    series::{
        COARSE_POINTS, CounterTrack, FINE_POINTS, GaugeTrack, Poll, Series, SeriesWriter,
        plausible_power, series_of,
    },
};
pub(crate) use shape::SLOW_NS;
use shape::Shape;
pub(crate) use updates::Updates;

use crate::{
    books::Shelf,
    card::{Card, UNSEEN, ceiling},
    clock::{now_ns, suspended_ns},
    pace::Pace,
    profile::Profile,
    reader::{Process, Reader, Reading, Tenants, Throttle, Value},
    tenancy::Unseen,
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
/// How often an unprobed card is read; a consumer card, or one known to be poll-sensitive, once a
/// second, since fast reads corrupt the counter of some of them.
const UNPROBED_GAP_NS: u64 = 100 * MS;
const CONSUMER_GAP_NS: u64 = SECOND;
/// How often the processes are listed, and the slow facts refreshed.
const TENANTS_EVERY_NS: u64 = SECOND;
/// … where the next read is at least this far away.
const QUIET_NS: u64 = 10 * MS;
/// Polls that may fail in a row before the pace drops to one a second.
const PATIENCE: u32 = 20;
/// A register that shows one value for so many periods is frozen.
const FROZEN_PERIODS: u64 = 10;
/// The two clocks are not read at one instant; less than this between them is no suspend.
const SUSPEND_NS: u64 = 100 * MS;

/// How a card is to be read.
#[derive(Debug, Default)]
pub struct Settings {
    /// What is known of the card from before.
    pub profile: Profile,
    /// Read at this gap, ns, whatever is known.
    pub gap_ns: Option<u64>,
}

/// How far back a card's series reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// A day, in 4 MiB: for windows.
    #[default]
    Day,
    /// As long as the publishes themselves are kept, 13 minutes at ten a second, in a quarter of a
    /// MiB: for whoever only passes them on.
    Recent,
}

impl Keep {
    fn series(self) -> (SeriesWriter, Arc<Series>) {
        let coarse_points = if self == Self::Day { COARSE_POINTS } else { 2 };
        series_of(FINE_POINTS, coarse_points)
    }
}

/// Starts to read a card.
pub fn record(
    reader: Box<dyn Reader>,
    tenants: Option<Box<dyn Tenants>>,
    settings: Settings,
) -> Arc<Card> {
    record_keeping(reader, tenants, settings, Keep::Day, Arc::default())
}

pub(crate) fn record_keeping(
    reader: Box<dyn Reader>,
    tenants: Option<Box<dyn Tenants>>,
    settings: Settings,
    keep: Keep,
    shelf: Arc<Shelf>,
) -> Arc<Card> {
    let device = reader.device();
    let (writer, series) = keep.series();
    let name = format!("joulebook-{}", device.index);
    let card = Arc::new(Card::new(device, settings.profile, series).on(shelf));
    let recorder = Recorder::new(&card, reader, tenants, (writer, keep), settings.gap_ns);
    let spawned = thread::Builder::new().name(name).spawn(move || recorder.run());
    if let Err(error) = spawned {
        tracing::warn!("no thread to read the card: {error}");
        card.health.set_fault(Some(Fault::NotReady));
    }
    card
}

struct Recorder {
    card: Weak<Card>,
    reader: Box<dyn Reader>,
    tenants: Option<Box<dyn Tenants>>,
    writer: SeriesWriter,
    keep: Keep,
    track: Track,
    pace: Pace,
    shape: Shape,
    updates: Updates,
    throttle: Throttle,
    failures: u32,
    tenants_due_ns: u64,
    usage_read: bool,
    suspended_ns: u64,
    /// The machine slept since the last point.
    slept: bool,
}

enum Track {
    Counter(Box<CounterTrack>),
    Gauge(Box<Gauges>),
}

/// A gauge, and its averaging sibling where it has one.
struct Gauges {
    track: GaugeTrack,
    mean: Option<(GaugeTrack, SeriesWriter)>,
}

impl Recorder {
    fn new(
        card: &Arc<Card>,
        reader: Box<dyn Reader>,
        tenants: Option<Box<dyn Tenants>>,
        (writer, keep): (SeriesWriter, Keep),
        gap_ns: Option<u64>,
    ) -> Self {
        let device = card.device();
        let seldom = device.consumer || card.is_poll_sensitive();
        let unprobed_ns = if seldom { CONSUMER_GAP_NS } else { UNPROBED_GAP_NS };
        let pace = match (reader.every_ns().or(gap_ns), card.probed_period_ns()) {
            (Some(gap_ns), _) => Pace::Fixed { gap_ns: gap_ns.max(MS) },
            (None, Some(period_ns)) => Pace::for_period(period_ns),
            (None, None) => Pace::Fixed { gap_ns: unprobed_ns },
        };
        card.health.gap_ns.store(pace.gap_ns(), Ordering::Relaxed);
        let period_ns = card.period_ns();
        let track = match device.register {
            Kind::Counter { scale, modulus, .. } => {
                let register = Register::new(scale, modulus, ceiling(&device), period_ns);
                Track::Counter(Box::new(CounterTrack::new(register, period_ns)))
            }
            Kind::Gauge { .. } => {
                Track::Gauge(Box::new(Gauges { track: GaugeTrack::new(pace.gap_ns()), mean: None }))
            }
        };
        let shape = match track {
            Track::Counter(_) if reader.every_ns().is_none() && !card.is_poll_sensitive() => {
                // The polling gap of an unprobed card is no period; how long its ticks are will show.
                let is_slow = card.probed_period_ns().is_some_and(|it| it >= SLOW_NS);
                Shape::new(is_slow, now_ns())
            }
            _ => Shape::refused(),
        };
        Self {
            card: Arc::downgrade(card),
            reader,
            tenants,
            writer,
            keep,
            track,
            pace,
            shape,
            updates: Updates::default(),
            throttle: Throttle::default(),
            failures: 0,
            tenants_due_ns: 0,
            usage_read: false,
            suspended_ns: suspended_ns(),
            slept: false,
        }
    }

    fn run(mut self) {
        // Who is there must be known of the first window too.
        if let Some(card) = self.card.upgrade() {
            self.look_around(&card, now_ns());
        }
        let mut due_ns = now_ns();
        loop {
            let wait_ns = due_ns.min(self.shape.due_ns()).saturating_sub(now_ns());
            if wait_ns > 0 {
                thread::sleep(Duration::from_nanos(wait_ns));
            }
            let Some(card) = self.card.upgrade() else { return };
            let early_ns = due_ns.saturating_sub(now_ns());
            if early_ns >= QUIET_NS {
                self.sample(&card);
                continue;
            }
            if early_ns > 0 {
                // Too near to the next read of the counter.
                self.shape.postpone(due_ns.saturating_add(1));
                continue;
            }
            self.poll(&card);
            let now = now_ns();
            let waits = self.reader.every_ns().is_some();
            due_ns = if waits { now } else { self.pace.next_ns(due_ns) };
            if waits && self.failures > 0 {
                // It may fail at once.
                due_ns = now + self.pace.gap_ns();
            } else if due_ns <= now && !waits {
                // The call took longer than the pace allows: leave out what is past.
                card.health.late.fetch_add(1, Ordering::Relaxed);
                due_ns = self.pace.next_ns(now);
            }
            if self.failures > PATIENCE {
                due_ns = due_ns.max(now + SECOND);
            }
            // Where it does not delay a read that is about to pin a publish.
            let overdue = now >= self.tenants_due_ns + TENANTS_EVERY_NS || self.is_asked(&card);
            if overdue || (now >= self.tenants_due_ns && due_ns.saturating_sub(now) >= QUIET_NS) {
                self.look_around(&card, now);
            }
        }
    }

    /// Somebody wants to know how full the card is, and it was never looked at: the first look around
    /// comes before anybody can ask.
    fn is_asked(&self, card: &Card) -> bool {
        !self.usage_read && self.tenants.is_some() && card.usage_wanted.load(Ordering::Relaxed)
    }

    /// Reads the gauge beside the counter.
    fn sample(&mut self, card: &Card) {
        let begin_ns = now_ns();
        card.health.asking_ns.store(begin_ns, Ordering::Relaxed);
        let power = self.reader.power();
        let at_ns = begin_ns.midpoint(now_ns());
        card.health.asking_ns.store(0, Ordering::Relaxed);
        card.health.samples.fetch_add(1, Ordering::Relaxed);
        if let Some(series) = self.shape.reading(at_ns, power, card.device().limit) {
            card.set_shape(series);
        }
    }

    fn poll(&mut self, card: &Card) {
        let begin_ns = now_ns();
        card.health.asking_ns.store(begin_ns, Ordering::Relaxed);
        let reading = self.reader.read();
        let end_ns = now_ns();
        card.health.asking_ns.store(0, Ordering::Relaxed);
        card.health.polls.fetch_add(1, Ordering::Relaxed);
        card.health.asked_ns.fetch_add(end_ns.saturating_sub(begin_ns), Ordering::Relaxed);
        let suspended_ns = suspended_ns();
        self.slept |= suspended_ns.saturating_sub(self.suspended_ns) > SUSPEND_NS;
        self.suspended_ns = suspended_ns;
        let newest = self.writer.last();
        let taken_ns = self.reader.taken_ns().filter(|_| reading.is_ok());
        let poll = taken_ns.map_or_else(|| Poll::between(begin_ns, end_ns), Poll::at);
        let outcome = self.take(card, poll, reading);
        if self.writer.last() != newest {
            self.slept = false;
            if self.writer.last().is_some_and(|last| last.flags.intersects(UNSEEN)) {
                // However long it is, it says nothing of how often the counter publishes.
                card.health.gaps.fetch_add(1, Ordering::Relaxed);
            } else if let (Some(from), Some(to)) = (newest, self.writer.last()) {
                self.shape.ticked(to.at_ns.saturating_sub(from.at_ns), end_ns);
            }
        }
        if let (Ok(()), Ok(reading)) = (outcome, reading) {
            card.note_accepted(reading.value);
        }
        match outcome {
            Ok(()) => {
                if self.failures > 0 {
                    card.set_device(self.reader.device());
                    tracing::info!("card {} can be read again", card.device().index);
                    card.health.set_fault(None);
                }
                self.failures = 0;
                card.health.good_ns.store(taken_ns.unwrap_or(end_ns), Ordering::Relaxed);
            }
            Err(fault) => {
                if self.failures == 0 {
                    tracing::warn!("card {} cannot be read: {fault}", card.device().index);
                }
                self.failures = self.failures.saturating_add(1);
                card.health.set_fault(Some(fault));
                card.health.rejected.fetch_add(1, Ordering::Relaxed);
            }
        }
        card.ring();
    }

    /// One reading into the series.
    fn take(
        &mut self,
        card: &Card,
        poll: Poll,
        reading: Result<Reading, Fault>,
    ) -> Result<(), Fault> {
        if let Ok(Reading { throttle: Some(throttle), .. }) = reading {
            self.throttle = throttle;
        }
        let mut marks = card.marks();
        if self.throttle.power_capped == Some(true) {
            marks |= Flags::POWER_CAPPED;
        }
        if self.throttle.power_braked == Some(true) {
            marks |= Flags::POWER_BRAKED;
        }
        if self.slept {
            marks |= Flags::GAP;
        }
        match &mut self.track {
            Track::Counter(track) => {
                let raw = reading.and_then(|reading| match reading.value {
                    Value::Counter(raw) => Ok(raw),
                    Value::Power(_) => Err(Fault::MalformedRow),
                });
                let still_ns = track.still_ns(poll.at_ns);
                let frozen = still_ns > FROZEN_PERIODS * card.period_ns().max(self.pace.gap_ns());
                if frozen {
                    marks |= Flags::COUNTER_FROZEN;
                }
                let step = track.reading(poll, raw, marks, &mut self.writer);
                card.health.still_ns.store(track.still_ns(poll.at_ns), Ordering::Relaxed);
                match step {
                    Step::Hole(fault) => Err(fault),
                    Step::Provisional => Err(Fault::CounterGlitch),
                    Step::Advanced(advance) => {
                        self.pace.published(advance.published);
                        Ok(())
                    }
                    Step::Restarted { .. } | Step::Set { .. } => {
                        // What is not known of it stands before the newest point.
                        card.health.resets.fetch_add(1, Ordering::Relaxed);
                        card.health.gaps.fetch_add(1, Ordering::Relaxed);
                        tracing::warn!("card {}: its counter was reset", card.device().index);
                        Ok(())
                    }
                    Step::Anchored(_) | Step::Unchanged => Ok(()),
                }
            }
            Track::Gauge(gauges) => {
                let sibling = reading.ok().and_then(|reading| reading.mean);
                let power = reading.and_then(|reading| match reading.value {
                    Value::Power(power) => Ok(power),
                    Value::Counter(_) => Err(Fault::MalformedRow),
                })?;
                if !plausible_power(power, card.device().limit) {
                    return Err(Fault::Implausible);
                }
                gauges.track.reading(poll.at_ns, power, marks, &mut self.writer)?;
                let limit = card.device().limit;
                if let Some(sibling) = sibling.filter(|mean| plausible_power(mean.power, limit)) {
                    let (track, writer) = gauges.mean.get_or_insert_with(|| {
                        let (writer, series) = self.keep.series();
                        card.set_mean(series, sibling.over_ns);
                        (GaugeTrack::new(self.pace.gap_ns()), writer)
                    });
                    track.reading(poll.at_ns, sibling.power, marks, writer)?;
                }
                let repeated =
                    self.writer.last().is_some_and(|last| last.flags.contains(Flags::REPEATED));
                if !repeated && let Some(update_ns) = self.updates.changed(poll.at_ns) {
                    card.health.update_ns.store(update_ns, Ordering::Relaxed);
                }
                Ok(())
            }
        }
    }

    /// About once a second: who is on the card, what the card is by now, what this thread costs.
    fn look_around(&mut self, card: &Card, now: u64) {
        self.tenants_due_ns = now + TENANTS_EVERY_NS;
        if let Some(tenants) = &mut self.tenants {
            // This too asks the driver, and may hang in it.
            card.health.asking_ns.store(now, Ordering::Relaxed);
            let seen = tenants.resident();
            let hidden_by = tenants.hidden_by();
            // What is known of each goes with the list: before the first there is nothing to divide.
            let worked = tenants.at_work();
            card.health.asking_ns.store(0, Ordering::Relaxed);
            let pids = |processes: &Vec<Process>| processes.iter().map(|it| it.pid).collect();
            let present = seen.as_ref().map(pids).unwrap_or_default();
            card.note_work(now, worked, present);
            card.note_residents(now, seen.map_err(|fault| Unseen { fault, hidden_by }));
            if card.usage_wanted.load(Ordering::Relaxed) {
                card.health.asking_ns.store(now_ns(), Ordering::Relaxed);
                let usage = tenants.usage();
                card.health.asking_ns.store(0, Ordering::Relaxed);
                card.note_usage(now, usage);
                self.usage_read = true;
            }
        }
        card.health.asking_ns.store(now, Ordering::Relaxed);
        let state = self.reader.power_state();
        card.health.asking_ns.store(0, Ordering::Relaxed);
        card.note_state(now, state);
        if self.failures == 0 {
            let device = self.reader.device();
            if device != *card.device() {
                if let Track::Counter(track) = &mut self.track {
                    track.learn(ceiling(&device), card.period_ns());
                }
                card.set_device(device);
            }
        }
        self.follow_pace(card);
        if let Some(cpu_ns) = thread_cpu_ns() {
            card.health.cpu_ns.store(cpu_ns, Ordering::Relaxed);
        }
    }
}

impl Recorder {
    /// A source that brings its readings by itself may bring them more or less often than it was
    /// asked to; what a hole is and what is stale are measured by that.
    fn follow_pace(&mut self, card: &Card) {
        let Some(every_ns) = self.reader.every_ns() else { return };
        if every_ns.abs_diff(self.pace.gap_ns()) * 10 <= every_ns {
            return;
        }
        self.pace = Pace::Fixed { gap_ns: every_ns };
        card.health.gap_ns.store(every_ns, Ordering::Relaxed);
        if let Track::Gauge(gauges) = &mut self.track {
            gauges.track.learn(every_ns);
            if let Some((track, _)) = &mut gauges.mean {
                track.learn(every_ns);
            }
        }
    }
}

/// CPU time of this thread, from the scheduler's own count.
pub(crate) fn thread_cpu_ns() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
