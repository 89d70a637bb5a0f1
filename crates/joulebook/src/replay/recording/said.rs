//! What is to be said of a recording's rows, columns and windows.

use joulebook_core::{Flags, estimate::Span};

use super::{Answer, Ask, Recording, Refused, Track, Warning};

/// Rows that the parser has left out.
pub(super) fn refused(refused: &[Refused], warnings: &mut Vec<Warning>) {
    if let Some(first) = refused.first() {
        let (rows, line, why) = (refused.len(), first.line, first.why.clone());
        warnings.push(Warning::Refused { rows, line, why });
    }
}

impl Recording {
    /// What the columns are like.
    pub(super) fn say_of_columns(&mut self) {
        let mut said = Vec::new();
        for card in &self.cards {
            let several = self.cards.len() > 1;
            let label = card.name.label();
            for track in &card.tracks {
                let name = &track.channel.name;
                let column = if several { format!("{label}, {name}") } else { name.clone() };
                self.say_of(track, &column, &mut said);
            }
            let believed = |track: &Track| {
                let limit = track.device.limit;
                limit.is_some_and(|limit| track.range_w.1 <= limit.watts() * 1.1)
            };
            let energetic = |track: &&Track| track.has_energy() && !believed(track);
            if let Some(track) = card.tracks.iter().find(energetic) {
                let watts = track.facts.ceiling_w;
                merge(&mut said, Warning::CeilingAssumed { card: label, watts });
            }
        }
        self.warnings.extend(said);
    }

    fn say_of(&self, track: &Track, column: &str, said: &mut Vec<Warning>) {
        let column = || column.to_owned();
        let after_s = |at_ns: u64| at_ns.saturating_sub(self.span.open_ns) as f64 / 1e9;
        if let Some(&(_, line, fault)) = track.lost.first() {
            let cells = track.lost.len() as u64;
            let of = cells + track.readings;
            said.push(Warning::Missing { column: column(), cells, of, fault, line });
        }
        for run in &track.frozen {
            let (watts, rows) = (run.power.watts(), run.rows);
            said.push(match &run.work {
                None => Warning::OneValue { column: column(), watts, rows },
                Some(work) => Warning::Frozen {
                    column: column(),
                    watts,
                    rows,
                    seconds: run.to_ns.saturating_sub(run.from_ns) as f64 / 1e9,
                    from_s: after_s(run.from_ns),
                    work: work.clone(),
                },
            });
        }
        let bridged = track.stretches(Flags::BRIDGED);
        if !bridged.is_empty() {
            said.push(Warning::Bridged {
                column: column(),
                holes: bridged.len(),
                longest_s: longest(&bridged),
                joules: bridged.iter().map(|(_, _, joules)| joules).sum(),
            });
        }
        if track.readings == 1 {
            return merge(said, Warning::OneReading { column: track.channel.name.clone() });
        }
        let gaps = track.stretches(Flags::GAP);
        if track.is_counter() {
            if let Some((from_ns, ..)) = gaps.first() {
                let (times, from_s) = (gaps.len(), after_s(*from_ns));
                said.push(Warning::Restarted { column: column(), times, from_s });
            }
            return;
        }
        if let Some((from_ns, ..)) = gaps.first() {
            said.push(Warning::Gap {
                column: column(),
                gaps: gaps.len(),
                longest_s: longest(&gaps),
                from_s: after_s(*from_ns),
            });
        }
        let seconds = track.averaging_s();
        let column = track.channel.name.clone();
        if track.assumed {
            merge(said, Warning::WindowAssumed { column, seconds });
        } else if seconds >= 1.0 {
            merge(said, Warning::Averaged { column, seconds });
        }
    }

    /// What is to be said of these windows.
    pub fn say_of_windows(&self, windows: &[Span], ask: &Ask) -> Vec<Warning> {
        let mut said = Vec::new();
        let of = windows.len();
        let outside = self.outside(windows, 0);
        if outside > 0 {
            let mut fits = (-26..=26).filter(|hours| self.outside(windows, *hours) == 0);
            let hours = fits.next().filter(|_| fits.next().is_none());
            said.push(Warning::WindowsOutside { windows: outside, of, hours });
        }
        let tracks = self.cards.first().into_iter().flat_map(|card| {
            windows.iter().filter_map(move |span| {
                let track = ask.track(card, span.seconds())?;
                let is_short = span.seconds() < track.resolution_s() && !track.is_counter();
                is_short.then_some(track)
            })
        });
        let short: Vec<&Track> = tracks.collect();
        if let Some(track) = short.first() {
            said.push(Warning::WindowsBelowResolution {
                windows: short.len(),
                of,
                column: track.channel.name.clone(),
                seconds: track.resolution_s(),
            });
        }
        said
    }

    /// How many windows, moved by whole hours, the recording does not cover.
    fn outside(&self, windows: &[Span], hours: i64) -> usize {
        let moved = |at_ns| super::super::stamp::shifted(at_ns, hours * 3600);
        let inside = |span: &&Span| {
            moved(span.open_ns) >= self.span.open_ns && moved(span.close_ns) <= self.span.close_ns
        };
        windows.len() - windows.iter().filter(inside).count()
    }
}

/// Adds a warning; one that has been given already for another column or card gets its name.
fn merge(said: &mut Vec<Warning>, warning: Warning) {
    let add = |names: &mut String, name: &str| {
        if !names.split(", ").any(|known| known == name) {
            names.push_str(", ");
            names.push_str(name);
        }
    };
    let close = |one: f64, other: f64| (one - other).abs() < 5e-4;
    for known in said.iter_mut() {
        match (known, &warning) {
            (Warning::OneReading { column }, Warning::OneReading { column: name }) => {
                return add(column, name);
            }
            (
                Warning::WindowAssumed { column, seconds },
                Warning::WindowAssumed { column: name, seconds: other },
            )
            | (
                Warning::Averaged { column, seconds },
                Warning::Averaged { column: name, seconds: other },
            )
            | (
                Warning::CeilingAssumed { card: column, watts: seconds },
                Warning::CeilingAssumed { card: name, watts: other },
            ) if close(*seconds, *other) => return add(column, name),
            _ => {}
        }
    }
    said.push(warning);
}

/// The longest of some stretches, s.
fn longest(stretches: &[(u64, f64, f64)]) -> f64 {
    stretches.iter().map(|(_, seconds, _)| *seconds).fold(0.0, f64::max)
}

impl Answer {
    /// True when the figure is a measurement, or would be one with an idle floor.
    pub const fn is_measured(&self) -> bool {
        self.estimated.is_ok()
    }
}
