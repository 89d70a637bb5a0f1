//! What a prompt's token and an answer's token cost, from isolated points, and ρ from them.
//!
//! Prefill points (long prompts, answers of one token) give the joules of a prompt's token; decode
//! points (short prompts, long answers) those of an answer's token at B sequences, less what their
//! prompts cost by the first figure. All are above idle, all by one reader, and sums are divided
//! once. ρ(B) = the one over the other, and `rho_a + rho_b / B` is the least squares of its
//! relative errors: the ledger's figure has to be as right for many sequences, where ρ is small, as
//! for one.
//!
//! Where answers do not tell how many of a prompt's tokens came from a cache, none are taken to have
//! (each request has a text of its own), and the fit says so.
//!
//! Refused: points without an idle baseline or all their tokens, fewer than two numbers of sequences, points
//! of several models, and any other traffic (a fit of that is collinear and wrong by a quarter).

use std::collections::BTreeMap;

use super::{
    record::{Kind, Record, Repeat, Tokens},
    ruler::Ruler,
};

mod affine;
mod store;

pub use store::{StoreError, merged, toml};

/// What was fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The model, where the records name one.
    pub model: Option<String>,
    /// The card, where all are of one name.
    pub card: Option<String>,
    /// What read the energy.
    pub ruler: Ruler,
    /// True for cards of a simulation.
    pub is_simulated: bool,
    /// When the last record began, seconds since 1970.
    pub unix_s: f64,
    /// Above-idle J per prompt token that came from no cache.
    pub prefill_joules: f64,
    /// The tokens that this stands on.
    pub prefill_tokens: u64,
    /// False where some answers did not tell tokens from a cache: all are taken to have been read.
    pub cache_told: bool,
    /// The points of answers, by number of sequences.
    pub points: Vec<Point>,
    /// ρ's part that does not shrink with the number of sequences.
    pub rho_a: f64,
    /// ρ's part that is shared among them.
    pub rho_b: f64,
    /// Root mean square of the relative errors at the points.
    pub deviation: f64,
}

/// An answer's token at one number of sequences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Sequences.
    pub sequences: u32,
    /// Above-idle J per token of an answer.
    pub joules: f64,
    /// Tokens that this stands on.
    pub tokens: u64,
    /// In tokens of a prompt.
    pub rho: f64,
    /// The same by the fitted line.
    pub fitted: f64,
}

/// Why nothing could be fitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// There is no prefill point.
    #[error("no prefill point: run bench --isolated, or give a record that has one (prefill_b1)")]
    NoPrefill,
    /// There are too few decode points.
    #[error(
        "decode points at {0} numbers of sequences, and a line needs two: run bench --isolated \
         (B = 1, 8, 32, 128)"
    )]
    FewDecode(usize),
    /// No reader covers all points.
    #[error("no reader of energy covers all points: neither counter nor gauge is in each window")]
    NoEnergy,
    /// A record has no idle baseline.
    #[error("a record has no idle baseline by the {0}, and all of a fit is above idle")]
    NoBaseline(&'static str),
    /// A window's tokens are not known.
    #[error("{0}: its tokens are not known")]
    NoTokens(String),
    /// Not all answers of a window told how long their prompts were.
    #[error(
        "{0}: not all answers say how many tokens their prompts had, and all of a fit is per token"
    )]
    NoPrompts(String),
    /// A point has no energy above idle.
    #[error("{0}: {1} J above idle, which no work costs: the baseline does not fit")]
    BelowIdle(String, String),
    /// The records are of several models.
    #[error("records of several models ({0} and {1}): fit each by itself")]
    Models(String, String),
    /// The records are of several cards.
    #[error("records of several cards ({0} and {1}): fit each by itself")]
    Cards(String, String),
    /// A prefill point decodes.
    #[error("{0}: answers of more than one token, so this is no prefill point")]
    NotPrefill(String),
}

/// Sums of the windows of one point.
#[derive(Clone, Copy, Debug)]
struct Sum {
    joules: f64,
    tokens: Tokens,
}

impl Default for Sum {
    fn default() -> Self {
        Self { joules: 0.0, tokens: Tokens { first: Some(0), ..Tokens::default() } }
    }
}

impl Sum {
    /// Tokens of prompts that had to be read: all that are not told to come from a cache.
    fn read(&self) -> u64 {
        let told = self.tokens.prompt.unwrap_or_default();
        told.saturating_sub(self.tokens.cached.unwrap_or_default())
    }

    /// Tokens of answers that a step of decoding made.
    fn decoded(&self) -> u64 {
        self.tokens.completion.saturating_sub(self.tokens.first.unwrap_or_default())
    }

    /// True where all answers told what came from a cache.
    const fn tells_cache(&self) -> bool {
        self.tokens.cached.is_some() && self.tokens.cached_untold == 0
    }
}

/// Fits the isolated points of these records, of one model on one kind of card.
pub fn of(records: &[&Record]) -> Result<Fit, FitError> {
    let model =
        one(records, |it| it.target.model.clone()).map_err(|(a, b)| FitError::Models(a, b))?;
    let card = one(records, card_of).map_err(|(a, b)| FitError::Cards(a, b))?;
    let is_point = |kind: Kind| {
        matches!(kind, Kind::PrefillPoint { .. } | Kind::DecodePoint { .. } | Kind::Floor)
    };
    let points = || {
        let rungs = records.iter().flat_map(|record| &record.rungs);
        rungs.filter(|rung| is_point(rung.kind)).flat_map(|rung| rung.finished())
    };
    if points().next().is_none() {
        return Err(FitError::NoPrefill);
    }
    let ruler = Ruler::covering(points).ok_or(FitError::NoEnergy)?;
    let (mut prefill, mut decode) = (Sum::default(), BTreeMap::<u32, Sum>::new());
    for record in records {
        for rung in record.rungs.iter().filter(|rung| is_point(rung.kind)) {
            for repeat in rung.finished() {
                let sum = match rung.kind {
                    Kind::PrefillPoint { .. } => &mut prefill,
                    kind => decode.entry(kind.concurrency().unwrap_or(1)).or_default(),
                };
                add(sum, record, rung.kind, repeat, ruler)?;
            }
        }
    }
    if prefill.read() == 0 {
        return Err(FitError::NoPrefill);
    }
    if decode.len() < 2 {
        return Err(FitError::FewDecode(decode.len()));
    }
    let above = |name: &str, joules: f64| {
        let said = joules_of(joules);
        if joules > 0.0 { Ok(joules) } else { Err(FitError::BelowIdle(name.to_owned(), said)) }
    };
    let prefill_joules = above("prefill", prefill.joules)? / prefill.read() as f64;
    let cache_told = prefill.tells_cache() && decode.values().all(Sum::tells_cache);
    let mut points = Vec::new();
    for (sequences, sum) in decode {
        let name = format!("decode_b{sequences}");
        if sum.decoded() == 0 {
            return Err(FitError::NoTokens(name));
        }
        let own = above(&name, sum.joules - prefill_joules * sum.read() as f64)?;
        let joules = own / sum.decoded() as f64;
        let rho = joules / prefill_joules;
        points.push(Point { sequences, joules, tokens: sum.decoded(), rho, fitted: 0.0 });
    }
    let (rho_a, rho_b) = affine::fitted(&points);
    for point in &mut points {
        point.fitted = rho_a + rho_b / f64::from(point.sequences);
    }
    let squares: f64 = points.iter().map(|point| point.off().powi(2)).sum();
    Ok(Fit {
        model,
        card,
        ruler,
        is_simulated: records.iter().any(|record| record.source.simulated),
        unix_s: records.iter().map(|record| record.started_unix_s).fold(0.0, f64::max),
        prefill_joules,
        prefill_tokens: prefill.read(),
        cache_told,
        deviation: (squares / points.len() as f64).sqrt(),
        points,
        rho_a,
        rho_b,
    })
}

impl Point {
    /// By how much the fitted line is off here, as a part of the measured ρ.
    pub fn off(&self) -> f64 {
        self.fitted / self.rho - 1.0
    }
}

impl Fit {
    /// The greatest relative error at a point, and where.
    pub fn greatest(&self) -> Option<&Point> {
        self.points.iter().max_by(|a, b| a.off().abs().total_cmp(&b.off().abs()))
    }
}

fn add(
    sum: &mut Sum,
    record: &Record,
    kind: Kind,
    repeat: &Repeat,
    ruler: Ruler,
) -> Result<(), FitError> {
    let name = || format!("{kind} #{}", repeat.number);
    let mut tokens = repeat.tokens.ok_or_else(|| FitError::NoTokens(name()))?;
    if tokens.prompt.is_none() || tokens.prompt_untold > 0 {
        return Err(FitError::NoPrompts(name()));
    }
    // In a record that does not say so each answer that ended has had its first token.
    let ended = || Some(repeat.completed?.min(tokens.completion));
    let first = tokens.first.or_else(ended).ok_or_else(|| FitError::NoTokens(name()))?;
    tokens.first = Some(first);
    let is_prefill = matches!(kind, Kind::PrefillPoint { .. });
    // Of a thousand first tokens a few may lie with their prompts across the window's edge.
    if is_prefill && tokens.completion.saturating_sub(first) * 100 > first {
        return Err(FitError::NotPrefill(name()));
    }
    let joules = ruler.above_idle_joules(record, repeat);
    sum.joules += joules.ok_or(FitError::NoBaseline(ruler.name()))?;
    sum.tokens = sum.tokens.then(tokens);
    Ok(())
}

/// What all records that have it agree on; the first two that do not otherwise.
fn one(
    records: &[&Record],
    of: impl Fn(&Record) -> Option<String>,
) -> Result<Option<String>, (String, String)> {
    let mut all = records.iter().filter_map(|record| of(record));
    let Some(first) = all.next() else { return Ok(None) };
    match all.find(|other| *other != first) {
        Some(other) => Err((first, other)),
        None => Ok(Some(first)),
    }
}

/// The name of a record's cards, where they have one in common.
fn card_of(record: &Record) -> Option<String> {
    let mut names = record.source.card_names.iter();
    let first = names.next()?;
    names.all(|name| name == first).then(|| first.clone())
}

fn joules_of(joules: f64) -> String {
    joulebook::core::units::significant(joules)
}

#[cfg(test)]
mod tests;
