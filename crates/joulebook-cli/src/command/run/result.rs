//! What a run cost, as sentences or as one line of JSON.

mod line;

use std::{ffi::OsString, fs::File, io::Write, sync::Arc};

use super::{
    child::Exit,
    peak::{self, Peak},
    watch::End,
};
use crate::words::{self, FAINT, STRONG, WARNING};
use anyhow::Context as _;
use joulebook::{
    Card, Fault, Measurement, Meter, Method, core::units::significant, profile::Floor,
};

/// What was measured.
pub enum What {
    /// A command, and how it ended.
    Command(Vec<OsString>, Exit),
    /// A process or a span, and what ended the watch.
    Watched(End),
}

/// All there is to say.
pub struct Outcome<'a> {
    pub measured: Measurement,
    pub meter: &'a Meter,
    /// The window, ns.
    pub span_ns: (u64, u64),
    pub tokens: u64,
    pub what: What,
    /// Why a card is not read.
    pub trouble: Option<String>,
    /// Whose floor was given, on the command line or in the file of nodes: of each card.
    pub declared: Vec<bool>,
    /// No card was asked for, and the first was taken.
    pub only_first: bool,
}

impl Outcome<'_> {
    /// To standard error, or to the file.
    pub fn write(&self, json: bool, file: Option<File>) -> anyhow::Result<()> {
        let text = if json { self.line()? } else { self.sentences() };
        let Some(mut file) = file else {
            let _ = write!(anstream::stderr(), "{text}");
            return Ok(());
        };
        let written = write!(anstream::StripStream::new(&mut file), "{text}");
        written.and_then(|()| file.flush()).or_else(|error| {
            // What was measured is not lost with the file.
            let _ = write!(anstream::stderr(), "{text}");
            Err(error).context("the result could not be written to its file (-o); it is above")
        })
    }

    fn peak_of(&self, card: &Card) -> Option<Peak> {
        peak::of(card, self.span_ns.0, self.span_ns.1)
    }

    /// The cards, each with whether its floor was given.
    fn cards(&self) -> impl Iterator<Item = (&Card, bool)> {
        self.meter.cards().iter().map(Arc::as_ref).zip(self.declared.iter().copied())
    }

    /// Where the floor is from: `declared`, `stored`, `mixed` or `unknown`.
    fn idle_from(&self) -> &'static str {
        let known = self.meter.idle_watts().is_some();
        match (known, self.declared.contains(&true), self.declared.contains(&false)) {
            (false, ..) => "unknown",
            (true, true, false) => "declared",
            (true, true, true) => "mixed",
            (true, false, _) => "stored",
        }
    }

    /// Why the figure is missing, and what to do.
    fn message(&self) -> Option<String> {
        let trouble = self.trouble.as_deref().map(words::one_line);
        trouble.or_else(|| self.measured.error.map(words::of_fault).map(str::to_owned))
    }

    fn sentences(&self) -> String {
        let measured = &self.measured;
        let mut lines = vec![self.headline()];
        if let Some(message) = self.message() {
            let word = measured.error.map_or("trouble", Fault::word);
            lines.push(format!("  {WARNING}{word}{WARNING:#}: {message}"));
        }
        if self.meter.cards().is_empty() {
            return lines.join("\n") + "\n";
        }
        lines.push(format!("  power     {}", self.power()));
        lines.push(format!("  idle      {}", self.idle()));
        if let Some(per_token) = measured.per_token(self.tokens) {
            let tokens = self.tokens;
            lines.push(format!("  tokens    {tokens}, {} J each", significant(per_token)));
        }
        for card in self.meter.cards() {
            let device = card.device();
            lines.push(format!("  card      {} {} ({})", device.index, device.name, device.uuid));
        }
        lines.push(format!("            {}{}", words::of_tenancy(measured.tenancy), self.others()));
        lines.push(format!("  {FAINT}how       {}{FAINT:#}", self.how()));
        for word in measured.flags.words() {
            lines.push(format!("  note      {word}: {}", words::of_flag(word)));
        }
        lines.extend(self.meter.warnings().iter().map(|warning| format!("  note      {warning}")));
        if self.only_first && std::env::var_os("CUDA_VISIBLE_DEVICES").is_none() {
            let count = joulebook::nvml::cards(&joulebook::nvml::Driver::shared())
                .map_or(0, |inventory| inventory.cards.len());
            if count > 1 {
                let only = format!("{count} cards are here, only card 0 was read (--gpu)");
                lines.push(format!("  note      {only}"));
            }
        }
        lines.join("\n") + "\n"
    }

    fn headline(&self) -> String {
        let measured = &self.measured;
        let seconds = format!("{:.3} s", measured.seconds);
        let figure = match (measured.joules, measured.method) {
            (Some(joules), Method::Estimated) => format!(
                "{STRONG}about {} J{STRONG:#} by your own estimate; not measured. It took {seconds}",
                significant(joules)
            ),
            (Some(joules), _) => format!(
                "{STRONG}{} J{STRONG:#} above idle{} ({} Wh), in {seconds}",
                significant(joules),
                self.bound(),
                significant(joules / 3600.0)
            ),
            (None, _) if self.meter.cards().is_empty() => {
                format!("nothing to measure with; it took {seconds}")
            }
            (None, _) => format!("{STRONG}joules unknown{STRONG:#}; it took {seconds}"),
        };
        format!("joulebook: {figure}{}", self.ended())
    }

    fn bound(&self) -> String {
        let measured = &self.measured;
        match (measured.low_joules, measured.high_joules, measured.bound_joules) {
            (Some(low), Some(high), _) => {
                format!(", somewhere from {low:.2} to {high:.2} J")
            }
            (_, _, Some(bound)) => format!(" ± {bound:.2} J at most"),
            _ => String::new(),
        }
    }

    fn ended(&self) -> String {
        match &self.what {
            What::Command(_, Exit::Code(0)) | What::Watched(End::Span) => String::new(),
            What::Command(_, Exit::Code(code)) => format!(" (exit code {code})"),
            What::Command(_, Exit::Signal(number)) => format!(" (ended by signal {number})"),
            What::Watched(End::Process) => " (the process ended)".to_owned(),
            What::Watched(End::Signal(number)) => format!(" (stopped by signal {number})"),
        }
    }

    fn power(&self) -> String {
        let measured = &self.measured;
        if measured.gross_joules.is_none() {
            return "nothing seen".to_owned();
        }
        let peaks: Vec<String> = self
            .meter
            .cards()
            .iter()
            .filter_map(|card| self.peak_of(card))
            .map(|peak| format!("{:.1} W", peak.watts))
            .collect();
        let over = self.meter.cards().iter().filter_map(|card| self.peak_of(card));
        let over = over.map(|peak| peak.seconds).fold(0.0, f64::max);
        let peak = match peaks.as_slice() {
            [] => "its peak is not known: too few updates".to_owned(),
            peaks => {
                format!("at its highest no less than {} (over {over:.2} s)", peaks.join(" and "))
            }
        };
        let gross = measured.gross_joules.map_or("–".into(), significant);
        format!("{:.1} W on average ({gross} J with idle), {peak}", measured.mean_watts)
    }

    fn idle(&self) -> String {
        let Some(watts) = self.meter.idle_watts() else { return "not known".to_owned() };
        const GIVEN: &str = "as given (--idle, or idle_watts of nodes.toml)";
        if self.idle_from() == "declared" {
            return format!("{watts:.1} W subtracted, {GIVEN}");
        }
        let floors: Vec<String> = self
            .cards()
            .filter_map(|(card, declared)| {
                if declared {
                    return Some(format!("card {} {GIVEN}", card.device().index));
                }
                let stored = stored_floor(card).map(|floor| words::of_floor(&floor));
                stored.or_else(|| card.told()?.idle_from.clone())
            })
            .collect();
        if floors.is_empty() {
            return format!("{watts:.1} W subtracted, as declared");
        }
        format!("{watts:.1} W subtracted: {}", floors.join("; "))
    }

    fn others(&self) -> String {
        let names = self.measured.contended_by.as_deref();
        names.map_or(String::new(), |names| format!(": {names}"))
    }

    fn how(&self) -> String {
        let measured = &self.measured;
        let method = match measured.method {
            Method::Sampled => "sampled",
            Method::Estimated => "estimated",
            Method::Unknown => "unknown",
        };
        let rule = measured.rule.map_or("none", words::of_rule);
        let when = if measured.settled { "settled" } else { "at once" };
        format!(
            "{method} · rule {rule}, {when} · {} · {} updates in {} reads",
            measured.backend, measured.samples, measured.polls
        )
    }
}

fn stored_floor(card: &Card) -> Option<Floor> {
    card.profile().resting(card.device().scope).cloned()
}
