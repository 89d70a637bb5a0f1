//! A recording: a log's cards, each with its own series, and windows on them.
//!
//! The same arithmetic as live windows: an estimate a card, their sum, one place for the label.

use joulebook_core::{
    Fault, Flags, Measurement, Power, Scope, Source, Tenancy,
    estimate::{Estimate, Estimated, Missing, Span},
    grade::{Context, Hint, combine, grade},
    register::Kind,
};

use super::{
    CardName, Clock, Log, Logged, ReplayError, Row, Shows, Track, Warning,
    choose::choose,
    log::Refused,
    model::{self, Sensor},
    track::Told,
};
use crate::reader::{Backend, Device};

mod said;

/// What a person says of the cards.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Their model, where the log does not name it.
    pub model: Option<String>,
    /// Their power limit, where the log does not have it.
    pub limit: Option<Power>,
    /// The least they can draw, W.
    pub floor_w: f64,
}

/// A recording.
#[derive(Debug)]
pub struct Recording {
    /// The format's name.
    pub format: &'static str,
    /// What its stamps count.
    pub clock: Clock,
    /// Rows that were read.
    pub rows: usize,
    /// Rows that were left out.
    pub refused: Vec<Refused>,
    /// The first and the last row, ns.
    pub span: Span,
    /// Its cards.
    pub cards: Vec<Card>,
    /// Windows that the log marks itself.
    pub windows: Vec<Logged>,
    /// What else is to be said.
    pub warnings: Vec<Warning>,
}

/// A card of a recording.
#[derive(Debug)]
pub struct Card {
    /// Its names.
    pub name: CardName,
    /// Its columns that have readings.
    pub tracks: Vec<Track>,
    /// Why it has none.
    fault: Fault,
}

/// How windows are to be read.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// The column, by its name in the header, with or without the unit; otherwise one is chosen.
    column: Option<String>,
    /// The floor of each card, W, where it is known.
    idle_w: Vec<Option<f64>>,
    /// The floor of all cards, W.
    idle_all_w: Option<f64>,
}

/// A window of a card, or of all of them.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The window.
    pub span: Span,
    /// What it cost.
    pub measurement: Measurement,
    /// The energy before idle with its bound, also where it may not be called a measurement.
    pub seen: Option<Estimate>,
    /// The columns that were read.
    pub columns: Vec<String>,
    estimated: Estimated,
}

impl Recording {
    /// The cards and series of a log.
    pub fn of(log: Log, options: &Options) -> Result<Self, ReplayError> {
        let Log {
            format,
            clock,
            cards: names,
            channels,
            rows,
            mut refused,
            windows,
            late_s,
            mut warnings,
        } = log;
        warnings.extend(cut_tick(&rows, names.len()));
        said::refused(&refused, &mut warnings);
        let of_cards = parted(rows, names.len(), &mut refused, &mut warnings);
        let all = || of_cards.iter().flatten();
        let (open, close) = (
            all().map(|row| row.at_ns).min().unwrap_or_default(),
            all().map(|row| row.at_ns).max().unwrap_or_default(),
        );
        let count = all().count();
        let first_line = all().map(|row| row.line).min().unwrap_or(1);
        let mut cards = Vec::with_capacity(names.len());
        for (place, (name, rows)) in names.into_iter().zip(&of_cards).enumerate() {
            let device = device(place, &name, rows, options);
            let model = options.model.as_deref().or(name.model.as_deref());
            let sensor = model.and_then(model::sensor).or_else(|| shown(&channels, rows));
            let slow_s = model.and_then(model::slow_s);
            if let Some(seconds) = slow_s {
                warnings.push(Warning::SlowSensor { card: name.label(), seconds });
            }
            let late_s = late_s + slow_s.unwrap_or_default();
            let told = Told { sensor, floor_w: options.floor_w, late_s };
            let play = |(column, channel): (usize, &super::Channel)| {
                Track::play(channel, column, rows, device.clone(), told)
            };
            let tracks = channels.iter().enumerate().filter_map(play).collect();
            cards.push(Card { name, tracks, fault: first_fault(rows) });
        }
        if let Some(first) = cards.first()
            && cards.iter().all(|card| card.tracks.is_empty())
        {
            let column = channels.first().map(|channel| channel.name.clone()).unwrap_or_default();
            let fault = first.fault;
            return Err(ReplayError::NoReadings { line: first_line, rows: count, column, fault });
        }
        let span = Span { open_ns: open, close_ns: close };
        let rows = count;
        let mut recording = Self { format, clock, rows, refused, span, cards, windows, warnings };
        recording.say_of_columns();
        Ok(recording)
    }

    /// How windows are to be read: a column by name, and idle floors, one a card or their sum.
    pub fn ask(&self, column: Option<&str>, idle_w: &[f64]) -> Result<Ask, ReplayError> {
        if let Some(wanted) = column
            && !self.cards.iter().any(|card| card.column(wanted).is_some())
        {
            let mut names: Vec<&str> = Vec::new();
            for track in self.cards.iter().flat_map(|card| &card.tracks) {
                if !names.contains(&track.channel.name.as_str()) {
                    names.push(&track.channel.name);
                }
            }
            let has = names.join(", ");
            return Err(ReplayError::NoSuchColumn { wanted: wanted.to_owned(), has });
        }
        let each = idle_w.len() == self.cards.len();
        if !each && idle_w.len() > 1 {
            let (given, cards) = (idle_w.len(), self.cards.len());
            return Err(ReplayError::IdleFloors { given, cards });
        }
        let idle_w_of = |place| idle_w.get(place).copied().filter(|_| each);
        Ok(Ask {
            column: column.map(str::to_owned),
            idle_w: (0..self.cards.len()).map(idle_w_of).collect(),
            idle_all_w: (!idle_w.is_empty()).then(|| idle_w.iter().sum()),
        })
    }

    /// Each card over its own first to last reading.
    pub fn whole(&self, ask: &Ask) -> Vec<Answer> {
        let of_card = |(place, card): (usize, &Card)| {
            let track = ask.track(card, f64::INFINITY);
            let span = track.map_or(self.span, |track| track.span);
            self.answer(place, card, (span, 0.0), ask)
        };
        self.cards.iter().enumerate().map(of_card).collect()
    }

    /// Each card over one window.
    pub fn window(&self, span: Span, ask: &Ask) -> Vec<Answer> {
        self.window_within(span, 0.0, ask)
    }

    /// Each card over one window of which it is known only so well where it lies, s.
    pub fn window_within(&self, span: Span, uncertainty_s: f64, ask: &Ask) -> Vec<Answer> {
        let cards = self.cards.iter().enumerate();
        cards.map(|(place, card)| self.answer(place, card, (span, uncertainty_s), ask)).collect()
    }

    /// The sum over cards, in one window.
    pub fn sum(&self, cards: &[Answer], ask: &Ask) -> Answer {
        let open_ns = cards.iter().map(|card| card.span.open_ns).min().unwrap_or_default();
        let close_ns = cards.iter().map(|card| card.span.close_ns).max().unwrap_or_default();
        let span = Span { open_ns, close_ns };
        let parts: Vec<Estimated> = cards.iter().map(|card| card.estimated).collect();
        let estimated = combine(&parts).map_err(|missing| {
            // What was seen on every card is what was seen on all of them.
            let seen: Option<Vec<Estimated>> = cards.iter().map(|card| card.seen.map(Ok)).collect();
            let seen = seen.and_then(|seen| combine(&seen).ok());
            Missing { seen, ..missing }
        });
        let mut columns: Vec<String> = Vec::new();
        for column in cards.iter().flat_map(|card| &card.columns) {
            if !columns.contains(column) {
                columns.push(column.clone());
            }
        }
        let count = |count: fn(&Measurement) -> u64| {
            cards.iter().map(|card| count(&card.measurement)).sum::<u64>()
        };
        let scope = cards.first().map(|card| card.measurement.scope).unwrap_or_default();
        let context = Context {
            polls: count(|measurement| measurement.polls),
            rejected: count(|measurement| measurement.rejected),
            flags: Flags::NONE,
            ..context(span, ask.idle_all_w, scope)
        };
        answer(span, estimated, &context, columns)
    }

    fn answer(
        &self,
        place: usize,
        card: &Card,
        (span, uncertainty_s): (Span, f64),
        ask: &Ask,
    ) -> Answer {
        let idle_w = ask.idle_w.get(place).copied().flatten();
        let Some(track) = ask.track(card, span.seconds()) else {
            let context = context(span, idle_w, Scope::Gpu);
            return answer(span, Err(Missing::of(card.fault)), &context, Vec::new());
        };
        let (polls, rejected) = track.polls(span);
        let flags = if track.assumed { Flags::WINDOW_ASSUMED } else { Flags::NONE };
        let context =
            Context { polls, rejected, flags, ..context(span, idle_w, track.channel.scope) };
        let estimated = track.estimate_within(span, uncertainty_s);
        answer(span, estimated, &context, vec![track.channel.name.clone()])
    }
}

impl Card {
    /// A column by its name in the header, with or without its unit.
    pub fn column(&self, wanted: &str) -> Option<&Track> {
        let names = |name: &str| name == wanted || super::cell::named(name).0 == wanted;
        self.tracks.iter().find(|track| names(&track.channel.name))
    }
}

impl Ask {
    /// The column that a window of this length is read from.
    pub fn track<'a>(&self, card: &'a Card, seconds: f64) -> Option<&'a Track> {
        match &self.column {
            Some(wanted) => card.column(wanted),
            None => choose(&card.tracks, seconds),
        }
    }
}

fn context(span: Span, idle_w: Option<f64>, scope: Scope) -> Context {
    Context {
        seconds: span.seconds(),
        idle_seconds: span.seconds(),
        idle_w,
        source: Source::Local,
        backend: Backend::Replay.word(),
        // A log does not say who was on its card.
        tenancy: Tenancy::Unknown,
        scope,
        settled: true,
        ..Context::default()
    }
}

fn answer(span: Span, estimated: Estimated, context: &Context, columns: Vec<String>) -> Answer {
    let measurement = grade(&estimated, context, Hint::default());
    let seen = match &estimated {
        Ok(seen) => Some(*seen),
        Err(missing) => missing.seen,
    };
    Answer { span, measurement, seen, columns, estimated }
}

/// The last tick, where it has lost cards: rows take turns in one order of cards, and end within it.
fn cut_tick(rows: &[Row], cards: usize) -> Option<Warning> {
    let in_turn = rows.windows(2).filter(|pair| match pair {
        [from, to] => (from.card + 1) % cards.max(1) == to.card,
        _ => false,
    });
    let last = rows.last()?;
    let has = last.card + 1;
    let is_cut = cards > 1
        && rows.len() > cards
        && has < cards
        && in_turn.count() * 10 >= rows.len().saturating_sub(1) * 9;
    is_cut.then_some(Warning::CutTick { line: last.line, has, of: cards })
}

/// Each card's rows, without those whose time goes back.
fn parted(
    rows: Vec<Row>,
    cards: usize,
    refused: &mut Vec<Refused>,
    warnings: &mut Vec<Warning>,
) -> Vec<Vec<Row>> {
    let mut of_cards: Vec<Vec<Row>> = (0..cards).map(|_| Vec::new()).collect();
    let mut back: Option<(usize, usize)> = None;
    for row in rows {
        let Some(before) = of_cards.get_mut(row.card) else { continue };
        if before.last().is_some_and(|last| last.at_ns > row.at_ns) {
            let why = "its time goes back".to_owned();
            refused.push(Refused { line: row.line, fault: Fault::NonMonotonic, why });
            let (rows, line) = back.unwrap_or((0, row.line));
            back = Some((rows + 1, line));
        } else {
            before.push(row);
        }
    }
    warnings.extend(back.map(|(rows, line)| Warning::TimeGoesBack { rows, line }));
    of_cards
}

/// The driver shows an average only on cards whose plain power is that average.
fn shown(channels: &[super::Channel], rows: &[Row]) -> Option<Sensor> {
    let average = channels.iter().position(|channel| channel.shows == Shows::Average)?;
    let shown = |row: &Row| row.readings.get(average).is_some_and(Result::is_ok);
    rows.iter().any(shown).then_some(Sensor::Averaged)
}

fn first_fault(rows: &[Row]) -> Fault {
    let mut readings = rows.iter().flat_map(|row| &row.readings);
    readings.find_map(|reading| reading.err()).unwrap_or(Fault::Absent)
}

fn device(place: usize, name: &CardName, rows: &[Row], options: &Options) -> Device {
    let limit = rows.iter().filter_map(|row| row.limit).max();
    let unknown = || "unknown".to_owned();
    Device {
        index: name.index.unwrap_or(u32::try_from(place).unwrap_or(u32::MAX)),
        uuid: name.uuid.clone().unwrap_or_else(unknown),
        pci: name.pci.clone(),
        name: options.model.clone().or_else(|| name.model.clone()).unwrap_or_else(unknown),
        driver: None,
        backend: Backend::Replay,
        scope: Scope::Gpu,
        register: Kind::Gauge { averaging_ns: None },
        limit: limit.or(options.limit),
        consumer: false,
    }
}
