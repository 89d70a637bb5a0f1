//! What one cell of a log says: a quantity in a known unit, or why there is none.

use joulebook_core::{Fault, Power};

/// Units of power, as logs write them, in watts.
const UNITS: &[(&str, f64)] = &[("W", 1.0), ("mW", 1e-3), ("kW", 1e3)];

/// A column's unit of power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// As it is written.
    pub name: &'static str,
    watts: f64,
}

/// A unit by its name; `None` where it is no unit of power that is known.
pub fn unit(name: &str) -> Option<Unit> {
    let known = UNITS.iter().find(|(known, _)| *known == name);
    known.map(|&(name, watts)| Unit { name, watts })
}

/// A header's name and its unit: `power.draw [W]` is `power.draw` in `W`, and `Power (mW)` is
/// `Power` in `mW`.
pub fn named(header: &str) -> (&str, Option<&str>) {
    let Some((name, rest)) = header.split_once(['[', '(']) else { return (header.trim(), None) };
    (name.trim(), Some(rest.trim_end().trim_end_matches([']', ')']).trim()))
}

/// A cell's number and the unit that stands behind it.
pub fn number(cell: &str) -> Option<(f64, &str)> {
    let cell = cell.trim();
    let of_a_number = |letter: char| letter.is_ascii_digit() || ".+-eE".contains(letter);
    let end = cell.find(|letter| !of_a_number(letter)).unwrap_or(cell.len());
    let (number, rest) = (cell.get(..end)?, cell.get(end..)?);
    // `nan`, `inf` and their like never come here: they are letters.
    let value: f64 = number.parse().ok()?;
    value.is_finite().then_some((value, rest.trim()))
}

/// The power in a cell of a column with this unit; the cell may repeat the unit.
pub fn power(cell: &str, unit: Unit) -> Result<Power, Fault> {
    match number(cell) {
        Some((value, rest)) if rest.is_empty() || rest == unit.name => {
            Power::from_watts(value * unit.watts).ok_or(Fault::Implausible)
        }
        _ => Err(absence(cell)),
    }
}

/// A plain figure (a percentage, degrees) whatever its unit.
pub fn figure(cell: &str) -> Option<f64> {
    number(cell).map(|(value, _)| value)
}

/// Why a cell holds no number. There are many spellings, with and without brackets.
pub fn absence(cell: &str) -> Fault {
    let word = cell.trim().trim_matches(['[', ']']).trim().to_ascii_lowercase();
    match word.as_str() {
        "n/a" | "not supported" | "not available" | "-" | "" => Fault::NotSupported,
        "requested functionality has been deprecated" => Fault::NotSupported,
        "insufficient permissions" => Fault::Permission,
        "gpu requires reset" | "gpu is lost" => Fault::Lost,
        "unknown" | "unknown error" | "err!" | "nan" | "inf" | "-inf" => Fault::Unknown,
        _ => Fault::MalformedRow,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENTINELS: &[&str] = &[
        "N/A",
        "[N/A]",
        " [N/A] ",
        "[n/a]",
        "Unknown",
        "[Unknown Error]",
        "[Not Supported]",
        "Not Supported",
        "[GPU requires reset]",
        "ERR!",
        "[Insufficient Permissions]",
        "Requested functionality has been deprecated",
        "-",
        "",
        "nan",
        "inf",
    ];

    #[test]
    fn no_spelling_of_nothing_is_a_number() {
        let watts = unit("W").unwrap();
        for cell in SENTINELS {
            assert!(power(cell, watts).is_err(), "{cell:?}");
            assert_ne!(absence(cell), Fault::MalformedRow, "{cell:?} is a known word");
            assert_eq!(figure(cell), None, "{cell:?}");
        }
        for cell in ["NaN", "infinity", "1e999", "-1.00", "12.3 mW", "12.3 J", "1.2.3", "e"] {
            assert!(power(cell, watts).is_err(), "{cell:?}");
        }
    }

    #[test]
    fn numbers_come_with_and_without_their_unit() {
        let power = |cell, name| power(cell, unit(name).unwrap()).unwrap().watts();
        assert_eq!(power("12.34", "W"), 12.34);
        assert_eq!(power(" 12.34 W", "W"), 12.34);
        assert_eq!(power("12340 mW", "mW"), 12.34);
        assert_eq!(unit("Watts"), None);
        assert_eq!(named("power.draw [W]"), ("power.draw", Some("W")));
        assert_eq!(named("pstate"), ("pstate", None));
        assert_eq!(figure("47 %"), Some(47.0));
    }
}
