//! Calibrated ρ: what a decode token costs in prompt tokens, by model and card, from a file.
//!
//! TOML, one `[[rho]]` for each: `model`, `card` (its name or UUID; either may be left out, which
//! stands for all), `rho_a`, `rho_b`. The first that fits holds; where none does, ρ is 8. Unknown
//! keys are errors.

use std::{fs, path::Path, path::PathBuf};

use joulebook_core::ledger::settle::{Rho, TOKEN};
use serde::Deserialize;

/// ρ by model and card.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rhos {
    all: Vec<Fitted>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fitted {
    model: Option<String>,
    card: Option<String>,
    rho_a: f64,
    rho_b: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(default)]
    rho: Vec<Fitted>,
}

/// Why a ρ file was refused.
#[derive(Debug, thiserror::Error)]
pub enum RhoFileError {
    /// It could not be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is no such file.
    #[error("{source_name}: {error}")]
    Malformed {
        /// The file.
        source_name: String,
        /// What is wrong, and where.
        error: toml::de::Error,
    },
    /// A value that no card can have.
    #[error("[[rho]] number {number}: rho_a and rho_b must be finite, not below 0, and not both 0")]
    Implausible {
        /// Which one, from 1.
        number: usize,
    },
}

impl Rhos {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, RhoFileError> {
        let text = fs::read_to_string(path)
            .map_err(|error| RhoFileError::Unreadable { path: path.to_owned(), error })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads the text of one; `source_name` is what messages call it.
    pub fn parse(text: &str, source_name: &str) -> Result<Self, RhoFileError> {
        let text: Text = toml::from_str(text).map_err(|error| RhoFileError::Malformed {
            source_name: source_name.to_owned(),
            error,
        })?;
        let sound = |value: f64| value.is_finite() && (0.0..1e9).contains(&value);
        let bad = text
            .rho
            .iter()
            .position(|it| !sound(it.rho_a) || !sound(it.rho_b) || it.rho_a + it.rho_b == 0.0);
        match bad {
            Some(index) => Err(RhoFileError::Implausible { number: index + 1 }),
            None => Ok(Self { all: text.rho }),
        }
    }

    /// ρ of a model on a card.
    pub fn of(&self, model: Option<&str>, card_name: &str, card_uuid: &str) -> Rho {
        let fits = |it: &&Fitted| {
            it.model.as_deref().is_none_or(|it| Some(it) == model)
                && it.card.as_deref().is_none_or(|it| it == card_name || it == card_uuid)
        };
        let fixed = |value: f64| (value * TOKEN as f64).round() as u64;
        self.all
            .iter()
            .find(fits)
            .map_or_else(Rho::default, |it| Rho { a: fixed(it.rho_a), b: fixed(it.rho_b) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_fits_holds_and_eight_where_none_does() {
        let text = "[[rho]]\nmodel = \"m\"\ncard = \"H100\"\nrho_a = 2.9\nrho_b = 124.0\n\
                    [[rho]]\nmodel = \"m\"\nrho_a = 5\nrho_b = 0\n";
        let text = text.replace("= 5\n", "= 5.0\n").replace("= 0\n", "= 0.0\n");
        let rhos = Rhos::parse(&text, "rho.toml").unwrap();
        assert_eq!(rhos.of(Some("m"), "H100", "GPU-1"), Rho { a: 2970, b: 126_976 });
        assert_eq!(rhos.of(Some("m"), "A100", "GPU-1"), Rho { a: 5120, b: 0 });
        assert_eq!(rhos.of(Some("n"), "H100", "GPU-1"), Rho::default());
        assert_eq!(rhos.of(None, "H100", "GPU-1"), Rho::default());
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        let unknown = Rhos::parse("[[rho]]\nrho_a = 1.0\nrho_c = 2.0\n", "rho.toml").unwrap_err();
        assert!(unknown.to_string().contains("rho_c"), "{unknown}");
        let bad = Rhos::parse("[[rho]]\nrho_a = nan\nrho_b = 2.0\n", "rho.toml").unwrap_err();
        assert!(bad.to_string().contains("number 1"), "{bad}");
        let none = Rhos::load(Path::new("/nonexistent/rho.toml")).unwrap_err();
        assert!(none.to_string().contains("/nonexistent/rho.toml"), "{none}");
    }
}
