//! Words of results as sentences for people: what it means, and what to do.

use anstyle::{AnsiColor, Style};
use joulebook::{Fault, Tenancy, core::estimate::Rule, nvml::explain, profile::Floor};

/// What went wrong.
pub const ERROR: Style = AnsiColor::Red.on_default().bold();
/// What a person should know.
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// Names and headings.
pub const STRONG: Style = Style::new().bold();
/// What stands beside.
pub const FAINT: Style = Style::new().dimmed();

/// An error, with all of its causes, to standard error.
pub fn say_error(error: &anyhow::Error) {
    anstream::eprintln!("{ERROR}error:{ERROR:#} {error:#}");
}

/// A warning, to standard error.
pub fn say_warning(warning: &str) {
    anstream::eprintln!("{WARNING}warning:{WARNING:#} {warning}");
}

/// What was done beside, to standard error.
pub fn say_note(note: &str) {
    anstream::eprintln!("{FAINT}{note}{FAINT:#}");
}

/// Why a figure is missing, and what to do.
pub const fn of_fault(fault: Fault) -> &'static str {
    match fault {
        Fault::NoBaseline => {
            "no idle floor is known, and only energy above it is charged: measure one while \
             nothing runs (joulebook idle), or give it (--idle WATTS)"
        }
        Fault::BelowIdle => {
            "the card drew no more than its idle floor: the work did not use this card (--gpu names \
             another), or the floor is too high (joulebook idle)"
        }
        Fault::WindowBelowResolution => {
            "it was shorter than the card's register can tell apart: repeat the work within one run, \
             or probe the card, which makes short windows sharper (joulebook probe)"
        }
        Fault::SharedDevice => {
            "somebody else's work was on the card, and its register cannot tell the two apart"
        }
        Fault::PartialDevices => {
            "some of the cards could not be read; the others give a lower bound"
        }
        Fault::NotReady => "the card had no reading yet; it may have been started just now",
        Fault::Gap => {
            "there is a stretch without readings that is too long to bridge (a suspend, a hung \
             driver)"
        }
        Fault::Expired => "the window began longer ago than readings are kept",
        Fault::CounterDead => {
            "the energy counter never moves: probe the card, which then reads its power gauge \
             (joulebook probe)"
        }
        Fault::CounterFrozen => "the energy counter stood still; probe the card (joulebook probe)",
        Fault::CounterReset => "the energy counter started again meanwhile",
        Fault::IdentityAmbiguous => "the card cannot be told from another; name it by its UUID",
        Fault::DriverAbsent => {
            "there is no NVIDIA driver here, or it does not answer (joulebook probe says more)"
        }
        Fault::Implausible => {
            "the readings are such as no card can have; probe it (joulebook probe)"
        }
        other => explain(other),
    }
}

/// What a flag means.
pub fn of_flag(word: &str) -> &'static str {
    match word {
        "counter_reset" => "the energy counter restarted meanwhile",
        "counter_wrapped" => "the energy counter passed its end meanwhile; that is accounted for",
        "counter_set" => "the energy counter was set to another value; the jump is not counted",
        "counter_glitch" => "a reading off the counter's line was left out",
        "counter_frozen" => "the counter stood still while power was drawn",
        "gap" => "the energy of a stretch, or its place in time, is not known",
        "bridged" => "a stretch without readings was bridged between its ends",
        "power_capped" => "the power limit held the clocks down",
        "power_braked" => "the hardware power brake held the clocks down",
        "clock_skew" => "clocks of two hosts moved against each other",
        "partial" => "part of what was asked for is not covered",
        "overlap" => "other windows were open on the card at the same time",
        "baseline_suspect" => "the idle floor does not fit what was seen; measure it anew",
        "floor_suspect" => "the stored floor could not be met for long; measure it anew",
        "source_conflict" => "two sources disagreed and one was taken",
        "window_assumed" => "over how long the gauge averages is not known, and was assumed",
        "mismatch" => "counter and power gauge of this card differ by more than 10 %",
        "poll_sensitive" => "this card's counter shows less the more often it is read",
        "unresolved" => "the bound is larger than the value: take the interval",
        "baseline_stale" => "the stored idle floor is older than a day; measure it anew",
        "foreign" => "somebody else's process was on the card",
        "tenancy_unknown" => "who was on the card could not be seen",
        "hole" => "a reading failed meanwhile; the counter's next one spans it",
        "ambiguous_wrap" => "the counter fell, by a restart or a wrap; only what followed counts",
        _ => "",
    }
}

/// Who was there.
pub const fn of_tenancy(tenancy: Tenancy) -> &'static str {
    match tenancy {
        Tenancy::Alone => "nobody else was on it",
        Tenancy::Foreign => "somebody else's process was on it",
        Tenancy::Unknown => "who else was on it could not be seen",
    }
}

/// Which answer it is.
pub const fn of_rule(rule: Rule) -> &'static str {
    match rule {
        Rule::Raw => "raw",
        Rule::Alone => "alone",
        Rule::Shared => "shared",
        Rule::Gauge => "gauge",
    }
}

/// Where a stored floor comes from.
pub fn of_floor(floor: &Floor) -> String {
    let state = if floor.model_loaded { "with a model loaded" } else { "with no model loaded" };
    format!(
        "measured {} over {:.0} s, {} updates ± {:.1} W, {state}",
        when(floor.unix_s),
        floor.seconds,
        floor.readings,
        floor.spread_watts
    )
}

/// An instant, in local time.
pub fn when(unix_s: u64) -> String {
    let seconds = i64::try_from(unix_s).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_second(seconds) {
        Ok(instant) => instant
            .to_zoned_datetime(jiff::tz::TimeZone::system())
            .strftime("%Y-%m-%d %H:%M")
            .to_string(),
        Err(_) => format!("{unix_s} s after 1970"),
    }
}

/// Several lines as one.
pub fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join("; ")
}
