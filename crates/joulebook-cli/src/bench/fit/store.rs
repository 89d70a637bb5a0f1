//! A fit as the ledger's file of ρ holds it.
//!
//! One `[[rho]]` for its model and card, with where it comes from and how far it is off as comments
//! above. In a file that has others, its own earlier entry is replaced and all else kept, and the
//! new one stands first, since the first that fits holds.

use joulebook::books::{RhoFileError, Rhos};

use super::Fit;

/// What stands beside a fit whose answers did not tell tokens from a cache.
const CACHE_UNTOLD: &str = "# Answers did not tell tokens from a cache: all of their prompts are taken to have been read.\n";

/// Why a file of ρ was not written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// What stands there is no such file.
    #[error(transparent)]
    Present(#[from] RhoFileError),
    /// The file would not give back what was put in.
    #[error("{0}: the fit could not be put in; write it to a file of its own")]
    Lost(String),
}

/// The fit as one entry.
pub fn toml(fit: &Fit) -> String {
    let date = jiff::Timestamp::from_second(fit.unix_s as i64)
        .map(|at| jiff::tz::TimeZone::UTC.to_datetime(at).date().to_string())
        .unwrap_or_default();
    let simulated = if fit.is_simulated { " (a SIMULATED card)" } else { "" };
    let points: Vec<String> =
        fit.points.iter().map(|it| format!("{:.4} at B = {}", it.joules, it.sequences)).collect();
    let greatest = fit.greatest().map_or_else(String::new, |point| {
        format!(", at most {:.1} % at B = {}", point.off().abs() * 100.0, point.sequences)
    });
    let cache = if fit.cache_told { "" } else { CACHE_UNTOLD };
    let mut text = format!(
        "# From isolated points of {date}{simulated}, by the {}, above idle:\n\
         # {:.6} J per token of a prompt; J per token of an answer: {}.\n\
         # Deviation {:.1} % (root mean square over {} points){greatest}.\n{cache}[[rho]]\n",
        fit.ruler.name(),
        fit.prefill_joules,
        points.join(", "),
        fit.deviation * 100.0,
        fit.points.len(),
    );
    for (key, value) in [("model", &fit.model), ("card", &fit.card)] {
        if let Some(value) = value {
            text += &format!("{key} = {}\n", ::toml::Value::String(value.clone()));
        }
    }
    text + &format!("rho_a = {:?}\nrho_b = {:?}\n", fit.rho_a, fit.rho_b)
}

/// A file of ρ with the fit in it; `name` is what messages call the file.
pub fn merged(present: &str, fit: &Fit, name: &str) -> Result<String, StoreError> {
    Rhos::parse(present, name)?;
    let (head, entries) = entries(present);
    let own = |entry: &&String| is_of(entry, fit);
    let mut text = head;
    if !text.is_empty() && !text.ends_with("\n\n") {
        text.push('\n');
    }
    text += &toml(fit);
    for entry in entries.iter().filter(|entry| !own(entry)) {
        text.push('\n');
        text += entry.trim_end();
        text.push('\n');
    }
    let mine = Rhos::parse(&toml(fit), name)?;
    let read = Rhos::parse(&text, name)?;
    let of = |rhos: &Rhos| {
        let card = fit.card.as_deref().unwrap_or_default();
        rhos.of(fit.model.as_deref(), card, card)
    };
    if of(&read) != of(&mine) {
        return Err(StoreError::Lost(name.to_owned()));
    }
    Ok(text)
}

/// What stands before the first entry, and each entry with the comments right above it.
fn entries(text: &str) -> (String, Vec<String>) {
    let (mut head, mut entries, mut pending) = (String::new(), Vec::<String>::new(), String::new());
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed == "[[rho]]" {
            entries.push(std::mem::take(&mut pending));
        } else if trimmed.starts_with('#') {
            pending = pending + line + "\n";
            continue;
        }
        let to = entries.last_mut().unwrap_or(&mut head);
        to.push_str(&std::mem::take(&mut pending));
        to.push_str(line);
        to.push('\n');
    }
    entries.last_mut().unwrap_or(&mut head).push_str(&pending);
    (head, entries)
}

/// True for an entry of the fit's own model and card.
fn is_of(entry: &str, fit: &Fit) -> bool {
    let table = entry.parse::<::toml::Table>().ok();
    let rho = table.as_ref().and_then(|table| table.get("rho")?.as_array()?.first()?.as_table());
    let says = |key: &str| rho.and_then(|it| it.get(key)?.as_str());
    rho.is_some() && says("model") == fit.model.as_deref() && says("card") == fit.card.as_deref()
}
