//! Which column of a table is what.
//!
//! A format's own file says by which names it knows its columns; what a cell of such a column means
//! is the same for all of them and stands here.

use joulebook_core::{Fault, Power, Scope};

use super::super::{
    Activity, CardName, Channel, ReplayError, Shows,
    cell::{self, Unit, named, number},
    text::shortened,
};
use crate::reader::{Throttle, Value};

/// Columns that a message names.
const SHOWN: usize = 12;
const SW_POWER_CAP: u64 = 0x4;
const HW_POWER_BRAKE: u64 = 0x80;

/// The columns of a table, by their places.
#[derive(Clone, Debug)]
pub(in crate::replay) struct Columns {
    /// The format's name.
    pub format: &'static str,
    /// Where the header stands; 0 where there is none.
    pub line: usize,
    /// The header's cells.
    pub names: Vec<String>,
    /// The stamp.
    pub time: usize,
    /// The stamp is in seconds since a beginning, whatever their number.
    pub elapsed: bool,
    /// The stamps are the tool's own, so a tick's one stamp is not a loop's.
    pub tool_stamps: bool,
    /// What may tell cards apart, the surest first.
    pub identities: Vec<usize>,
    /// Columns of power.
    pub powers: Vec<PowerColumn>,
    /// The others.
    pub roles: Roles,
}

/// Columns that tell more of a card.
#[derive(Clone, Debug, Default)]
pub(in crate::replay) struct Roles {
    pub index: Option<usize>,
    pub uuid: Option<usize>,
    pub pci: Option<usize>,
    pub model: Option<usize>,
    pub limit: Option<(usize, Unit)>,
    pub utilisation: Option<usize>,
    pub temperature: Option<usize>,
    pub reasons: Option<usize>,
    pub capped: Option<usize>,
    pub braked: Option<usize>,
}

/// A column of power.
#[derive(Clone, Debug)]
pub(in crate::replay) struct PowerColumn {
    /// Its place.
    pub at: usize,
    /// What it is.
    pub channel: Channel,
    /// True where its unit is written nowhere and its name's was taken.
    pub assumed: bool,
    unit: Option<Unit>,
    usual: Option<&'static str>,
    header_line: usize,
}

/// The first of the wanted names that a header has.
pub(in crate::replay) fn at(names: &[String], wanted: &[&str]) -> Option<usize> {
    wanted
        .iter()
        .find_map(|wanted| names.iter().position(|name| named(name).0.eq_ignore_ascii_case(wanted)))
}

/// A header that lacks a column.
pub(in crate::replay) fn missing(
    line: usize,
    names: &[String],
    wanted: &'static str,
) -> ReplayError {
    let (some, more) = (names.iter().take(SHOWN), names.len().saturating_sub(SHOWN));
    let mut has = some.map(|name| shortened(name)).collect::<Vec<_>>().join(", ");
    if more > 0 {
        has.push_str(&format!(", and {more} more"));
    }
    ReplayError::NoColumn { line, wanted, has }
}

impl Columns {
    /// True for a row that names columns.
    pub(super) fn is_header(&self, cells: &[&str]) -> bool {
        let Some(time) = self.names.get(self.time) else { return false };
        cells.iter().any(|cell| named(cell).0.eq_ignore_ascii_case(named(time).0))
    }

    /// True for the same header.
    pub(super) fn is(&self, cells: &[&str]) -> bool {
        cells.iter().eq(self.names.iter())
    }

    /// The cells that a row must have.
    pub(super) fn needed(&self) -> usize {
        let powers = self.powers.iter().map(|power| power.at).max().unwrap_or_default();
        powers.max(self.time) + 1
    }

    /// The card of a row, which `key` tells from others.
    pub(super) fn card(&self, cells: &[&str], key: Option<usize>) -> CardName {
        let word = |at: Option<usize>| {
            let cell = *cells.get(at?)?;
            // What is no word for "nothing" is a name.
            (cell::absence(cell) == Fault::MalformedRow).then(|| cell.to_owned())
        };
        // An index that does not tell the cards apart is none.
        let roles = &self.roles;
        let is_key = |at: &usize| key == Some(*at);
        let is_trusted = |at: &usize| is_key(at) || self.identities.first() == key.as_ref();
        let index = word(roles.index.filter(is_trusted)).and_then(|index| index.parse().ok());
        let mut name = CardName {
            index,
            uuid: word(roles.uuid),
            pci: word(roles.pci),
            model: word(roles.model),
            name: None,
        };
        if name.index.is_none()
            && let Some(key) = word(key)
            && Some(&key) != name.uuid.as_ref()
            && Some(&key) != name.pci.as_ref()
        {
            match key.parse() {
                Ok(index) => name.index = Some(index),
                Err(_) => name.name = Some(key),
            }
        }
        name
    }

    pub(super) fn limit(&self, cells: &[&str]) -> Option<Power> {
        let (at, unit) = self.roles.limit?;
        cell::power(cells.get(at)?, unit).ok().filter(|limit| *limit > Power::ZERO)
    }

    pub(super) fn activity(&self, cells: &[&str]) -> Activity {
        let figure = |at: Option<usize>| cell::figure(cells.get(at?)?);
        Activity {
            utilisation: figure(self.roles.utilisation),
            temperature: figure(self.roles.temperature),
        }
    }

    pub(super) fn throttle(&self, cells: &[&str]) -> Option<Throttle> {
        let cell = |at: Option<usize>| cells.get(at?).copied();
        let bits = cell(self.roles.reasons)
            .and_then(|cell| u64::from_str_radix(cell.strip_prefix("0x")?, 16).ok());
        let active = |at: Option<usize>, bit: u64| match cell(at) {
            Some("Active") => Some(true),
            Some("Not Active") => Some(false),
            _ => bits.map(|bits| bits & bit != 0),
        };
        let throttle = Throttle {
            power_capped: active(self.roles.capped, SW_POWER_CAP),
            power_braked: active(self.roles.braked, HW_POWER_BRAKE),
        };
        (throttle != Throttle::default()).then_some(throttle)
    }
}

impl PowerColumn {
    /// A column whose unit stands in its name, else in its cells, else is the usual one.
    pub(in crate::replay) fn new(
        line: usize,
        (at, name): (usize, &str),
        (shows, scope): (Shows, Scope),
        usual: Option<&'static str>,
    ) -> Result<Self, ReplayError> {
        let unit = match named(name).1 {
            Some(unit) => Some(known(line.max(1), name, unit)?),
            None => None,
        };
        let channel = Channel { name: name.to_owned(), shows, scope };
        Ok(Self { at, channel, assumed: false, unit, usual, header_line: line.max(1) })
    }

    /// The unit is part of the column's name, in words.
    pub(in crate::replay) fn in_unit(self, unit: &str) -> Self {
        Self { unit: self.unit.or_else(|| cell::unit(unit)), ..self }
    }

    /// True where the unit is not written in the header.
    pub(super) fn is_bare(&self) -> bool {
        self.unit.is_none() || self.assumed
    }

    /// A cell's power.
    pub(super) fn read(
        &mut self,
        line: usize,
        content: &str,
    ) -> Result<Result<Value, Fault>, ReplayError> {
        if self.unit.is_none()
            && let Some((_, unit)) = number(content)
        {
            let column = || self.channel.name.clone();
            self.unit = match (unit, self.usual) {
                ("", None) => {
                    let column = column();
                    return Err(ReplayError::NoUnit { line: self.header_line, column });
                }
                ("", Some(usual)) => {
                    self.assumed = true;
                    cell::unit(usual)
                }
                (unit, _) => Some(known(line, &self.channel.name, unit)?),
            };
        }
        Ok(match self.unit {
            Some(unit) => cell::power(content, unit).map(Value::Power),
            None => Err(cell::absence(content)),
        })
    }

    /// The unit that was taken.
    pub(super) fn unit_name(&self) -> &'static str {
        self.unit.map_or("W", |unit| unit.name)
    }
}

fn known(line: usize, column: &str, unit: &str) -> Result<Unit, ReplayError> {
    cell::unit(unit).ok_or_else(|| ReplayError::UnknownUnit {
        line,
        column: column.to_owned(),
        unit: shortened(unit),
    })
}
