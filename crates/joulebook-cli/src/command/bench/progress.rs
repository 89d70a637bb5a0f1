//! How a run goes, on a terminal; nothing in a pipe.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use crate::bench::load::{Sight, Stage};

const STEPS: u64 = 1000;

/// The bar.
pub struct Progress {
    bar: ProgressBar,
    quiet: bool,
}

impl Progress {
    /// A bar where somebody sees it; `quiet`: no lines either.
    pub fn new(quiet: bool) -> Self {
        let bar = if quiet || !std::io::stderr().is_terminal() {
            ProgressBar::hidden()
        } else {
            let style = ProgressStyle::with_template("{prefix:>14} {bar:30} {elapsed} {msg}");
            let bar = ProgressBar::new(STEPS);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        };
        Self { bar, quiet }
    }

    /// Begins something, by name.
    pub fn begin(&self, name: String, what: &str) {
        self.bar.reset();
        self.bar.set_message(what.to_owned());
        self.bar.set_prefix(name);
        self.bar.set_position(0);
    }

    /// It goes on.
    pub fn see(&self, sight: Sight) {
        let failed =
            if sight.failed > 0 { format!(", {} failed", sight.failed) } else { String::new() };
        let stage = match sight.stage {
            Stage::WarmUp => "warming up",
            Stage::Window => "measuring",
            Stage::CoolDown | Stage::Over => "cooling down",
        };
        self.bar.set_message(format!("{stage}: {} answered{failed}", sight.done));
        self.bar.set_position((sight.share.clamp(0.0, 1.0) * STEPS as f64) as u64);
    }

    /// A line that stays.
    pub fn say(&self, line: &str) {
        if !self.quiet {
            self.bar.suspend(|| anstream::eprintln!("{line}"));
        }
    }

    /// Nothing more comes.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
