//! What AMD's tools and its kernel driver say of a card's power: pure parsers of their texts.
//!
//! Decides which of the fields is the power and what it shows: which one exists differs by chip,
//! tool and kernel (MI300X has no average, MI210 no instant; from kernel 6.6 on some cards have only
//! `power1_input`). The instant is preferred; a field that reads 0 beside one that does not is not
//! filled by that chip.
//!
//! Invariants: a field that is absent, `N/A` or all ones is no reading; no limit is taken for a
//! draw. Refused: the power of one die of a card that reports both dies' at the first.

use joulebook_core::{Fault, Power, register::Scale};
use serde_json::{Map, Value};

use crate::replay::cell;

/// A reading, and what it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// The power.
    pub power: Power,
    /// Which field it comes from.
    pub shows: Shows,
}

/// What a field shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Power at an instant.
    Instant,
    /// A mean, over a time that the chip does not tell.
    Average,
    /// One of the two; the tool does not tell which.
    Unnamed,
}

/// A card of one or more dies, each of which its driver shows as a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its devices, by their place in the list.
    pub dies: Vec<usize>,
    /// What all of them draw; absent where none of them reads.
    pub power: Option<Power>,
}

/// The value that the library gives for a field the chip does not have.
const UNFILLED: u64 = 0xffff;

impl Shows {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Instant => "instant",
            Self::Average => "average",
            Self::Unnamed => "unnamed",
        }
    }
}

/// The power of a card, as `amd-smi` and its library give it: `current_socket_power` and
/// `average_socket_power`, or the one `socket_power`, as numbers, text or `{value, unit}`, at the
/// top or under `power`.
pub fn amdsmi(card: &Value) -> Result<Draw, Fault> {
    let fields = card.get("power").filter(|power| power.is_object()).unwrap_or(card);
    let read = |name: &str, shows| (fields.get(name).map_or(Err(Fault::Absent), watts), shows);
    chosen([
        read("current_socket_power", Shows::Instant),
        read("average_socket_power", Shows::Average),
        read("socket_power", Shows::Unnamed),
    ])
}

/// The power of a card in the JSON of `rocm-smi`, whose key differs between chips and versions:
/// `Current Socket Graphics Package Power (W)`, `Average Graphics Package Power (W)` and their like.
pub fn rocm_smi(card: &Map<String, Value>) -> Result<Draw, Fault> {
    let read = |kind: &str, shows| {
        let named = |key: &&String| {
            let key = key.to_ascii_lowercase();
            key.ends_with("power (w)") && key.starts_with(kind)
        };
        let value = card.keys().find(named).and_then(|key| card.get(key));
        (value.map_or(Err(Fault::Absent), watts), shows)
    };
    chosen([read("current", Shows::Instant), read("average", Shows::Average)])
}

/// The power of a card by the kernel's hwmon files, whose texts are given: `power1_input` (instant)
/// and `power1_average`, in µW; absent where there is no such file.
pub fn hwmon(input: Option<&str>, average: Option<&str>) -> Result<Draw, Fault> {
    let read = |text: Option<&str>, shows| {
        let text = text.ok_or(Fault::Absent).map(str::trim);
        (text.and_then(|text| text.parse().map_err(|_| Fault::MalformedRow)), shows)
    };
    let [input, average] = [read(input, Shows::Instant), read(average, Shows::Average)]
        .map(|(microwatts, shows)| (microwatts.map(Power::from_microwatts), shows));
    chosen([input, average])
}

/// What one step of a card's energy accumulator is worth, by the resolution its library gives in µJ
/// (as text, so that no digit is lost). The chips count in 2⁻¹⁶ J, which tools round to 15.3 µJ.
pub fn accumulator(resolution_uj: &str) -> Option<Scale> {
    let text = resolution_uj.trim();
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let denominator = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    let numerator: u64 = [whole, part].concat().parse().ok()?;
    let microjoules = text.parse::<f64>().ok()?;
    if (15.25..15.35).contains(&microjoules) {
        return Some(Scale { numerator: 15_625, denominator: 1024 });
    }
    (numerator > 0).then_some(Scale { numerator, denominator })
}

/// How many devices a card of this model shows to its driver.
pub fn dies(model: &str) -> usize {
    if model.to_ascii_uppercase().contains("MI250") { 2 } else { 1 }
}

/// The cards behind a list of devices, `dies` a card. The first die of a card reports the power of
/// all, and the others 0 or nothing, so what a die draws alone is not known.
pub fn packages(devices: &[Option<Power>], dies: usize) -> Vec<Package> {
    let of = |(number, powers): (usize, &[Option<Power>])| {
        let first = number.saturating_mul(dies);
        let shown = powers.iter().flatten().map(|power| power.microwatts());
        let any = powers.iter().any(Option::is_some);
        Package {
            dies: (first..first.saturating_add(powers.len())).collect(),
            power: any.then(|| Power::from_microwatts(shown.fold(0, u64::saturating_add))),
        }
    };
    devices.chunks(dies.max(1)).enumerate().map(of).collect()
}

/// The first field that reads more than 0, else the first that reads, else why none does.
fn chosen<const N: usize>(fields: [(Result<Power, Fault>, Shows); N]) -> Result<Draw, Fault> {
    let good = |filled: bool| {
        fields.iter().find_map(|(power, shows)| {
            let power = power.ok().filter(|power| !filled || *power > Power::ZERO)?;
            Some(Draw { power, shows: *shows })
        })
    };
    let faults = || fields.iter().filter_map(|(power, _)| power.err());
    // What is there and does not read says more than what is not there.
    let fault = || faults().find(|fault| *fault != Fault::Absent).unwrap_or(Fault::Absent);
    good(true).or_else(|| good(false)).ok_or_else(fault)
}

/// A field in watts.
fn watts(value: &Value) -> Result<Power, Fault> {
    let unit = cell::unit("W").ok_or(Fault::Unknown)?;
    match value {
        Value::Number(number) if number.as_u64() == Some(UNFILLED) => Err(Fault::NotSupported),
        Value::Number(number) => {
            number.as_f64().and_then(Power::from_watts).ok_or(Fault::Implausible)
        }
        Value::String(text) => match cell::number(text) {
            Some((65_535.0, _)) => Err(Fault::NotSupported),
            _ => cell::power(text, unit),
        },
        Value::Object(fields) => {
            let named = fields.get("unit").and_then(Value::as_str).unwrap_or("W");
            let unit = cell::unit(named).ok_or(Fault::MalformedRow)?;
            match fields.get("value") {
                Some(Value::Number(number)) => cell::power(&number.to_string(), unit),
                Some(Value::String(text)) => cell::power(text, unit),
                _ => Err(Fault::NotSupported),
            }
        }
        _ => Err(Fault::NotSupported),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(draw: Result<Draw, Fault>) -> Result<(f64, &'static str), Fault> {
        draw.map(|draw| (draw.power.watts(), draw.shows.word()))
    }

    #[test]
    fn the_field_that_a_chip_fills_is_taken() {
        for (card, expected) in [
            (
                json!({"average_socket_power": "N/A", "current_socket_power": 441}),
                Ok((441.0, "instant")),
            ),
            (
                json!({"average_socket_power": 92, "current_socket_power": "N/A"}),
                Ok((92.0, "average")),
            ),
            (json!({"average_socket_power": 92, "current_socket_power": 0}), Ok((92.0, "average"))),
            (
                json!({"average_socket_power": 65535, "current_socket_power": 65535}),
                Err(Fault::NotSupported),
            ),
            (json!({"power": {"socket_power": {"value": 15, "unit": "W"}}}), Ok((15.0, "unnamed"))),
            (
                json!({"power": {"socket_power": {"value": "N/A", "unit": "W"}}}),
                Err(Fault::NotSupported),
            ),
            (json!({"power": {"socket_power": "N/A"}}), Err(Fault::NotSupported)),
            (json!({}), Err(Fault::Absent)),
            (json!({"current_socket_power": 0}), Ok((0.0, "instant"))),
        ] {
            assert_eq!(read(amdsmi(&card)), expected, "{card}");
        }
    }

    #[test]
    fn a_step_of_the_accumulator_is_exact() {
        let scale = |numerator, denominator| Some(Scale { numerator, denominator });
        for text in ["15.3", "15.259", "15.2588"] {
            assert_eq!(accumulator(text), scale(15_625, 1024), "{text}");
        }
        assert_eq!([accumulator("61.035"), accumulator("1")], [scale(61_035, 1000), scale(1, 1)]);
        assert_eq!([accumulator("0"), accumulator(""), accumulator("x")], [None; 3]);
    }

    #[test]
    fn a_limit_is_no_draw() {
        let card = json!({
            "Max Graphics Package Power (W)": "290.0",
            "Average Graphics Package Power (W)": "36.0",
        });
        assert_eq!(read(rocm_smi(card.as_object().unwrap())), Ok((36.0, "average")));
        let limit = json!({"Max Graphics Package Power (W)": "290.0"});
        assert_eq!(rocm_smi(limit.as_object().unwrap()), Err(Fault::Absent));
    }

    #[test]
    fn either_file_will_do_and_neither_is_no_zero() {
        assert_eq!(read(hwmon(None, Some("31000000\n"))), Ok((31.0, "average")));
        assert_eq!(read(hwmon(Some("45000000\n"), None)), Ok((45.0, "instant")));
        assert_eq!(hwmon(None, None), Err(Fault::Absent));
        assert_eq!(hwmon(Some("-1"), None), Err(Fault::MalformedRow));
    }

    #[test]
    fn a_card_of_two_dies_is_one_card() {
        let watts = |watts: f64| Power::from_watts(watts);
        let cards = packages(&[watts(91.0), watts(0.0), None, None, watts(50.0), None], 2);
        let drawn: Vec<_> = cards.iter().map(|card| card.power).collect();
        assert_eq!(drawn, [watts(91.0), None, watts(50.0)]);
        assert_eq!(cards[1].dies, [2, 3]);
        assert_eq!((dies("AMD Instinct MI250X"), dies("MI300X")), (2, 1));
    }
}
