//! A card as the tool's rows show it.
//!
//! A read waits for the card's next row and gives its power with the instant the row was taken, so
//! a reader that is late moves no energy. Of the tool's three powers (`power.draw.instant`,
//! `power.draw.average`, `power.draw`) the first that the card has is read, and kept to, so that a
//! series is never of two kinds; the average stands beside the instant where it is known what it
//! averages over.

use std::{sync::Arc, time::Duration};

use joulebook_core::{Fault, Power, register::Kind};

use super::{
    feed::{FIRST_ROWS, Feed, PERIOD},
    state::{Next, Shown, SmiCardInfo},
};
use crate::reader::{Backend, Device, Mean, Reader, Reading, Scope, Value};

/// How long a row may take where rows come.
const ROW: Duration = Duration::from_secs(1);
/// How long is waited for one where the tool has failed: recorders say so at their pace.
const FAILED: Duration = Duration::from_millis(250);

/// Reads a card through `nvidia-smi`.
#[derive(Debug)]
pub struct SmiCard {
    feed: Arc<Feed>,
    card: SmiCardInfo,
    field: Option<Field>,
    /// Rows that were read.
    seen: u64,
    /// The last failure that was told.
    told: Option<u64>,
    taken_ns: Option<u64>,
}

/// One of the tool's powers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Instant,
    Average,
    Draw,
}

impl Field {
    const ALL: [Self; 3] = [Self::Instant, Self::Average, Self::Draw];

    const fn of(self, row: &Shown) -> Option<Result<Power, Fault>> {
        match self {
            Self::Instant => row.instant,
            Self::Average => row.average,
            Self::Draw => row.draw,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Instant => "power.draw.instant",
            Self::Average => "power.draw.average",
            Self::Draw => "power.draw",
        }
    }
}

/// The first power that a card has, in the order they are wanted. One that fails otherwise than by
/// not being there may come back, and nothing is taken in its place.
fn choose(row: &Shown) -> Result<Field, Fault> {
    for field in Field::ALL {
        match field.of(row) {
            Some(Ok(_)) => return Ok(field),
            Some(Err(Fault::NotSupported)) | None => {}
            Some(Err(fault)) => return Err(fault),
        }
    }
    Err(Fault::NotSupported)
}

impl SmiCard {
    /// A reader of this card.
    pub fn open(feed: &Arc<Feed>, card: &SmiCardInfo) -> Self {
        let newest = feed.shared.newest(&card.uuid);
        let count = newest.as_ref().map_or(0, |(.., count)| *count);
        let field = newest.and_then(|(_, row, _)| choose(&row?).ok());
        Self {
            feed: Arc::clone(feed),
            card: card.clone(),
            field,
            // The newest row is fresh enough to begin with.
            seen: count.saturating_sub(1),
            told: None,
            taken_ns: None,
        }
    }

    /// The field that the readings come from, once one has answered.
    pub fn field(&self) -> Option<&'static str> {
        self.field.map(Field::name)
    }

    /// Whether the card has a power at all; `Err` while that is not known.
    pub fn check(&self) -> Result<(), Fault> {
        let newest = self.feed.shared.newest(&self.card.uuid);
        let row = newest.and_then(|(_, row, _)| row).ok_or(Fault::NotReady)?;
        choose(&row).map(|_| ())
    }

    fn reading(&mut self, row: &Shown) -> Result<Reading, Fault> {
        let field = match self.field {
            Some(field) => field,
            None => *self.field.insert(choose(row)?),
        };
        let power = field.of(row).unwrap_or(Err(Fault::NotSupported))?;
        let over_ns = self.card.averaging_ns.filter(|_| field == Field::Instant);
        let mean = over_ns.and_then(|over_ns| {
            let power = [row.average, row.draw].into_iter().flatten().find_map(Result::ok)?;
            Some(Mean { power, over_ns })
        });
        Ok(Reading { value: Value::Power(power), mean, throttle: row.throttle })
    }
}

impl Reader for SmiCard {
    fn device(&self) -> Device {
        let newest = self.feed.shared.newest(&self.card.uuid);
        let card = newest.map_or_else(|| self.card.clone(), |(card, ..)| card);
        let averages = self.field.is_some_and(|field| field != Field::Instant);
        Device {
            index: card.index,
            uuid: card.uuid,
            pci: card.pci,
            name: card.name,
            driver: card.driver,
            backend: Backend::SmiSampler,
            scope: Scope::Gpu,
            register: Kind::Gauge { averaging_ns: card.averaging_ns.filter(|_| averages) },
            limit: card.limit,
            consumer: card.consumer,
        }
    }

    fn read(&mut self) -> Result<Reading, Fault> {
        self.taken_ns = None;
        let wait = match (self.told, self.seen) {
            (Some(_), _) => FAILED,
            (None, 0) => FIRST_ROWS,
            (None, _) => ROW.max(Duration::from_nanos(self.every_ns().unwrap_or(0)) * 3),
        };
        let told = self.told.unwrap_or(0);
        match self.feed.shared.next(&self.card.uuid, self.seen, told, wait) {
            Next::Row(number, row) => {
                (self.seen, self.told) = (number, None);
                self.taken_ns = Some(row.at_ns);
                self.reading(&row)
            }
            Next::Fault(number, fault) => {
                self.told = Some(number);
                Err(fault)
            }
            Next::Absent => Err(Fault::Absent),
            Next::Late => Err(Fault::Timeout),
        }
    }

    fn taken_ns(&self) -> Option<u64> {
        self.taken_ns
    }

    fn every_ns(&self) -> Option<u64> {
        let spacing_ns = self.feed.shared.spacing_ns(&self.card.uuid).unwrap_or(0);
        Some(spacing_ns.max(u64::try_from(PERIOD.as_nanos()).unwrap_or(u64::MAX)))
    }
}
