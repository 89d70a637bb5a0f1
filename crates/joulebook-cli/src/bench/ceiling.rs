//! Ceilings that a record must keep, for a CI run.
//!
//! An expression bounds one flat key: `c8_gpu_rail_joules_per_token <= 0.9`; also `<`, and `>=` or
//! `>` for what must not fall. A file holds one a line, `#` begins a comment. A key that the record
//! does not have, or that holds no number, fails its ceiling: what was not measured was not kept.

use std::{fmt, fs, path::Path, str::FromStr};

use serde_json::{Map, Value};

/// How a value must lie to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `<=`
    AtMost,
    /// `<`
    Below,
    /// `>=`
    AtLeast,
    /// `>`
    Above,
}

/// One bound of one key.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// The key.
    pub key: String,
    /// How it must lie.
    pub relation: Relation,
    /// To this.
    pub limit: f64,
}

/// Why a ceiling was refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CeilingError {
    /// No relation stands in it.
    #[error("`{0}` is no ceiling: write KEY <= NUMBER")]
    Relation(String),
    /// Its left side is no name of a key.
    #[error("`{0}`: `{1}` is no name of a key")]
    Key(String, String),
    /// Its right side is no number.
    #[error("`{0}`: `{1}` is no number")]
    Limit(String, String),
    /// A file could not be read.
    #[error("{0}")]
    Unreadable(String),
    /// A line of a file.
    #[error("{0}:{1}: {2}")]
    Line(String, usize, Box<Self>),
    /// A file without one.
    #[error("{0}: holds no ceiling")]
    Empty(String),
}

/// Whether a record keeps a ceiling.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It does, with this value.
    Kept(f64),
    /// It does not.
    Broken(f64),
    /// The record has no such key.
    Missing,
    /// The key holds something else.
    NoNumber(String),
}

impl FromStr for Ceiling {
    type Err = CeilingError;

    fn from_str(text: &str) -> Result<Self, CeilingError> {
        let text = text.trim();
        let at = text.find(['<', '>']).ok_or_else(|| CeilingError::Relation(text.to_owned()))?;
        let (key, rest) = text.split_at(at);
        let relations = [
            ("<=", Relation::AtMost),
            (">=", Relation::AtLeast),
            ("<", Relation::Below),
            (">", Relation::Above),
        ];
        let found = relations.iter().find_map(|(sign, relation)| {
            rest.strip_prefix(sign).map(|limit| (*relation, limit.trim()))
        });
        let (relation, limit) = found.ok_or_else(|| CeilingError::Relation(text.to_owned()))?;
        let key = key.trim();
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
        if key.is_empty() || !key.chars().all(is_name) {
            return Err(CeilingError::Key(text.to_owned(), key.to_owned()));
        }
        let number = limit.parse().ok().filter(|limit: &f64| limit.is_finite());
        let limit = number.ok_or_else(|| CeilingError::Limit(text.to_owned(), limit.to_owned()))?;
        Ok(Self { key: key.to_owned(), relation, limit })
    }
}

impl Ceiling {
    /// What an option names: an expression, or a file of them.
    pub fn of_option(text: &str) -> Result<Vec<Self>, CeilingError> {
        if text.contains(['<', '>']) {
            return Ok(vec![text.parse()?]);
        }
        let read = fs::read_to_string(Path::new(text));
        let lines = read.map_err(|error| {
            CeilingError::Unreadable(format!("{text}: {error} (an expression has <= in it)"))
        })?;
        let ceilings = Self::of_lines(&lines, text)?;
        if ceilings.is_empty() {
            return Err(CeilingError::Empty(text.to_owned()));
        }
        Ok(ceilings)
    }

    fn of_lines(lines: &str, name: &str) -> Result<Vec<Self>, CeilingError> {
        let without = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
        let lines = (1..).zip(lines.lines().map(without)).filter(|(_, line)| !line.is_empty());
        let one = |(number, line): (usize, String)| {
            let named = |error| CeilingError::Line(name.to_owned(), number, Box::new(error));
            line.parse().map_err(named)
        };
        lines.map(one).collect()
    }

    /// Whether these keys keep it.
    pub fn judge(&self, keys: &Map<String, Value>) -> Verdict {
        let Some(value) = keys.get(&self.key) else { return Verdict::Missing };
        let Some(value) = value.as_f64() else { return Verdict::NoNumber(value.to_string()) };
        let is_kept = match self.relation {
            Relation::AtMost => value <= self.limit,
            Relation::Below => value < self.limit,
            Relation::AtLeast => value >= self.limit,
            Relation::Above => value > self.limit,
        };
        if is_kept { Verdict::Kept(value) } else { Verdict::Broken(value) }
    }
}

impl Verdict {
    /// True when the ceiling is kept.
    pub const fn is_kept(&self) -> bool {
        matches!(self, Self::Kept(_))
    }

    /// In one word.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Kept(_) => "kept",
            Self::Broken(_) => "broken",
            Self::Missing => "missing",
            Self::NoNumber(_) => "no_number",
        }
    }

    /// The key's value, where it is a number.
    pub const fn value(&self) -> Option<f64> {
        match self {
            Self::Kept(value) | Self::Broken(value) => Some(*value),
            Self::Missing | Self::NoNumber(_) => None,
        }
    }
}

impl fmt::Display for Ceiling {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.relation {
            Relation::AtMost => "<=",
            Relation::Below => "<",
            Relation::AtLeast => ">=",
            Relation::Above => ">",
        };
        write!(to, "{} {sign} {}", self.key, self.limit)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(ceiling: &str, keys: &Value) -> Verdict {
        ceiling.parse::<Ceiling>().unwrap().judge(keys.as_object().unwrap())
    }

    #[test]
    fn each_relation_bounds_its_side() {
        let keys = json!({"a": 0.9, "r2.5_b": 7});
        for (ceiling, is_kept) in [
            ("a <= 0.9", true),
            ("a < 0.9", false),
            ("a >= 0.9", true),
            ("a>0.9", false),
            ("a<=0.89999", false),
            ("r2.5_b >= 7", true),
            ("r2.5_b > 6.5e0", true),
            ("a <= -1", false),
        ] {
            assert_eq!(judged(ceiling, &keys).is_kept(), is_kept, "{ceiling}");
        }
    }

    #[test]
    fn what_is_missing_fails_whatever_its_limit() {
        let keys = json!({"word": "hold_forward", "none": null});
        for ceiling in ["c8_gpu_rail_joules_per_token <= 1e9", "c8_a >= -1e9"] {
            assert_eq!(judged(ceiling, &keys), Verdict::Missing);
        }
        assert!(!judged("word <= 1", &keys).is_kept());
        assert!(!judged("none <= 1", &keys).is_kept());
    }

    #[test]
    fn what_is_malformed_is_refused_and_named() {
        for text in [
            "a",
            "",
            "<= 3",
            "a b <= 3",
            "a <= ",
            "a <= many",
            "a <= nan",
            "a <= inf",
            "a == 3",
            "a => 3",
            "a <= 3 4",
            "a <= 1 <= 2",
        ] {
            let error = text.parse::<Ceiling>().unwrap_err().to_string();
            assert!(error.contains(text.trim()), "{text}: {error}");
        }
    }

    #[test]
    fn a_file_is_read_line_by_line() {
        let text = "# tokens\nc1_a <= 3 # at most\n\n  c8_a<0.5\n";
        let ceilings = Ceiling::of_lines(text, "f").unwrap();
        assert_eq!(
            ceilings.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["c1_a <= 3", "c8_a < 0.5"]
        );
        let error = Ceiling::of_lines("a <= 1\nb = 2\n", "limits.txt").unwrap_err().to_string();
        assert!(error.starts_with("limits.txt:2: `b = 2`"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("empty");
        std::fs::write(&path, "# nothing\n").unwrap();
        let path = path.display().to_string();
        assert_eq!(Ceiling::of_option(&path), Err(CeilingError::Empty(path)));
        assert!(matches!(Ceiling::of_option("/nonexistent"), Err(CeilingError::Unreadable(_))));
        assert_eq!(Ceiling::of_option("a <= 1").unwrap().len(), 1);
    }
}
