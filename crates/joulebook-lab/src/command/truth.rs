//! `truth`: the true energy of a window.

use std::path::PathBuf;

use anyhow::{Context, bail};
use joulebook_lab::{Load, Scenario};

use super::say;

/// Print the true joules and mean watts of a window of a scenario's card.
#[derive(clap::Args)]
pub struct Arguments {
    /// The scenario file.
    scenario: PathBuf,
    /// Where the window begins, seconds from the scenario's epoch.
    #[arg(allow_negative_numbers = true)]
    t0: f64,
    /// Where the window ends, seconds from the scenario's epoch.
    #[arg(allow_negative_numbers = true)]
    t1: f64,
    /// Only this card; otherwise every card has a line.
    #[arg(long)]
    card: Option<usize>,
    /// One JSON object a card instead of a line for people.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let scenario = Scenario::read(&arguments.scenario)?;
    let (t0_ns, t1_ns) = (nanoseconds(arguments.t0)?, nanoseconds(arguments.t1)?);
    if t1_ns < t0_ns {
        bail!("the window ends at {} s, before it begins at {} s", arguments.t1, arguments.t0);
    }
    let count = scenario.cards.len();
    if let Some(index) = arguments.card.filter(|index| *index >= count) {
        bail!("there is no card {index}: the scenario has {count} (from 0)");
    }
    if count == 0 {
        bail!("the scenario has no card: it needs a line `card 0`");
    }
    for (index, card) in scenario.cards.iter().enumerate() {
        if arguments.card.is_some_and(|wanted| wanted != index) {
            continue;
        }
        if card.dynamic {
            bail!("card {index} is dynamic: its truth is in the control memory; name its file");
        }
        print(index, &Load::new(card, None), t0_ns, t1_ns, arguments.json);
    }
    Ok(())
}

fn print(index: usize, load: &Load, t0_ns: i64, t1_ns: i64, json: bool) {
    let joules = load.energy(t0_ns, t1_ns);
    let seconds = (t1_ns - t0_ns) as f64 / 1e9;
    // A window of no length has the power of its instant.
    let mean_watts = if seconds > 0.0 { joules / seconds } else { load.watts(t0_ns) };
    if json {
        say(&serde_json::json!({
            "card": index, "joules": joules, "seconds": seconds, "mean_watts": mean_watts,
        })
        .to_string());
    } else {
        say(&format!("card {index}: {joules:.6} J in {seconds} s, {mean_watts:.3} W"));
    }
}

fn nanoseconds(seconds: f64) -> anyhow::Result<i64> {
    let nanoseconds = (seconds * 1e9).round();
    (nanoseconds.abs() < 9.2e18)
        .then_some(nanoseconds as i64)
        .with_context(|| format!("{seconds} s is no time: it must be finite and within 292 years"))
}
