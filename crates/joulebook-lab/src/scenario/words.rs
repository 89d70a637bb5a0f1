//! One line of a scenario, word by word, and the errors that name the line, the word and what
//! would be right.

use std::str::FromStr;

use super::Span;

/// What a line says that the grammar does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: `{token}`: {wanted}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The word that is wrong.
    pub token: String,
    /// What would be right.
    pub wanted: String,
}

/// The words of a line that are still to be read.
pub(super) struct Words<'a> {
    line: usize,
    statement: &'a str,
    rest: &'a str,
}

/// The `key=value` pairs of a line.
pub(super) struct Pairs<'a> {
    line: usize,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Words<'a> {
    /// The line's words; its first is the statement.
    pub(super) fn of(line: usize, text: &'a str) -> Self {
        let mut words = Self { line, statement: "", rest: text };
        words.statement = words.next().unwrap_or_default();
        words
    }

    /// The line's first word.
    pub(super) fn statement(&self) -> &'a str {
        self.statement
    }

    /// An error at this line.
    pub(super) fn error(&self, token: &str, wanted: impl Into<String>) -> ParseError {
        ParseError { line: self.line, token: token.to_owned(), wanted: wanted.into() }
    }

    /// The next word.
    pub(super) fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest.trim_start();
        let (word, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
        self.rest = after;
        (!word.is_empty()).then_some(word)
    }

    /// The next word, which must be there.
    pub(super) fn need(&mut self, what: &str) -> Result<&'a str, ParseError> {
        self.next().ok_or_else(|| {
            self.error(self.statement, format!("the line ends where {what} should stand"))
        })
    }

    /// What is left, as text; must not be empty.
    pub(super) fn text(&mut self, what: &str) -> Result<&'a str, ParseError> {
        let text = std::mem::take(&mut self.rest).trim();
        if text.is_empty() {
            return Err(self.error(self.statement, format!("{what} should follow")));
        }
        Ok(text)
    }

    /// What is left, as text; may be empty.
    pub(super) fn remainder(&mut self) -> &'a str {
        std::mem::take(&mut self.rest).trim()
    }

    /// Nothing more may follow.
    pub(super) fn end(&mut self) -> Result<(), ParseError> {
        match self.next() {
            None => Ok(()),
            Some(word) => {
                Err(self.error(word, format!("nothing more belongs to `{}`", self.statement)))
            }
        }
    }

    /// The next word as a number of that type.
    pub(super) fn parsed<T: FromStr>(&mut self, what: &str) -> Result<T, ParseError> {
        let word = self.need(what)?;
        word.parse().map_err(|_| self.error(word, format!("should be {what}")))
    }

    /// The next word as a number ≥ 0.
    pub(super) fn positive(&mut self, what: &str) -> Result<f64, ParseError> {
        let word = self.need(what)?;
        finite(word)
            .filter(|value| *value >= 0.0)
            .ok_or_else(|| self.error(word, format!("should be {what}, not below 0")))
    }

    /// The next word as an instant.
    pub(super) fn instant(&mut self) -> Result<i64, ParseError> {
        let word = self.need("a time in seconds")?;
        nanoseconds(word, 1e9)
            .ok_or_else(|| self.error(word, "should be a time in seconds from the epoch, or inf"))
    }

    /// The next two words as a span.
    pub(super) fn span(&mut self) -> Result<Span, ParseError> {
        let start_ns = self.instant()?;
        let rest = self.rest;
        let end_ns = self.instant()?;
        if end_ns < start_ns {
            let end = rest.split_whitespace().next().unwrap_or_default();
            return Err(self.error(end, "ends before it begins: T0 stands first, then T1"));
        }
        Ok(Span { start_ns, end_ns })
    }

    /// Milliseconds, in ns.
    pub(super) fn milliseconds(&mut self) -> Result<i64, ParseError> {
        let word = self.need("milliseconds")?;
        nanoseconds(word, 1e6)
            .filter(|ns| *ns >= 0)
            .ok_or_else(|| self.error(word, "should be milliseconds, not below 0, or inf"))
    }

    /// The words left, as pairs of the keys a statement knows.
    pub(super) fn pairs(&mut self, known: &[&str]) -> Result<Pairs<'a>, ParseError> {
        let mut pairs = Vec::new();
        while let Some(word) = self.next() {
            let takes = || format!("`{}` takes {}=", self.statement, known.join("=, "));
            let Some((key, value)) = word.split_once('=') else {
                return Err(self.error(word, takes()));
            };
            if !known.contains(&key) {
                return Err(self.error(word, takes()));
            }
            pairs.push((key, value));
        }
        Ok(Pairs { line: self.line, pairs })
    }
}

impl<'a> Pairs<'a> {
    /// The value of a key, as said last.
    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        self.pairs.iter().rev().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    /// An error at a pair.
    pub(super) fn error(&self, key: &str, wanted: impl Into<String>) -> ParseError {
        let value = self.get(key).unwrap_or_default();
        ParseError { line: self.line, token: format!("{key}={value}"), wanted: wanted.into() }
    }

    /// Sets a field from a key, where the key is there.
    pub(super) fn set<T>(
        &self,
        key: &str,
        field: &mut T,
        wanted: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<(), ParseError> {
        if let Some(value) = self.get(key) {
            *field = read(value).ok_or_else(|| self.error(key, format!("should be {wanted}")))?;
        }
        Ok(())
    }

    /// Sets a duration given in ms.
    pub(super) fn set_ms(&self, key: &str, field: &mut i64) -> Result<(), ParseError> {
        self.set(key, field, "milliseconds, not below 0", |value| {
            nanoseconds(value, 1e6).filter(|ns| (0..i64::MAX).contains(ns))
        })
    }

    /// Sets a finite number.
    pub(super) fn set_number(&self, key: &str, field: &mut f64) -> Result<(), ParseError> {
        self.set(key, field, "a number", finite)
    }

    /// Sets a number ≥ 0.
    pub(super) fn set_positive(&self, key: &str, field: &mut f64) -> Result<(), ParseError> {
        self.set(key, field, "a number, not below 0", |value| finite(value).filter(|v| *v >= 0.0))
    }

    /// Sets a whole number.
    pub(super) fn set_whole<T: FromStr>(&self, key: &str, field: &mut T) -> Result<(), ParseError> {
        self.set(key, field, "a whole number, not below 0", |value| value.parse().ok())
    }

    /// Sets yes or no.
    pub(super) fn set_flag(&self, key: &str, field: &mut bool) -> Result<(), ParseError> {
        self.set(key, field, "0 or 1", |value| match value {
            "0" | "no" | "false" => Some(false),
            "1" | "yes" | "true" => Some(true),
            _ => None,
        })
    }
}

/// A finite number.
pub(super) fn finite(word: &str) -> Option<f64> {
    word.parse().ok().filter(|value: &f64| value.is_finite())
}

/// A time as whole nanoseconds, where `unit` of them make one; `inf` for ever. Times beyond ± 292
/// years are none.
pub(super) fn nanoseconds(word: &str, unit: f64) -> Option<i64> {
    if matches!(word, "inf" | "+inf") {
        return Some(i64::MAX);
    }
    let value = finite(word)?;
    // Whole part and fraction apart: a time of years keeps its nanoseconds.
    let nanoseconds = (value.trunc() * unit) as i128 + (value.fract() * unit).round() as i128;
    i64::try_from(nanoseconds).ok().filter(|ns| ns.unsigned_abs() < 9_200_000_000_000_000_000)
}
