//! `truth`: the true energy of a window.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, bail};
use joulebook_lab::{Live, Load, Scenario, control::ControlledCard, scenario};

use super::say;

/// Print the true joules and mean watts of a window of a scenario's cards.
#[derive(clap::Args)]
pub struct Arguments {
    /// The scenario file.
    scenario: PathBuf,
    /// Where the window begins, seconds from the scenario's epoch.
    #[arg(allow_negative_numbers = true, value_parser = seconds)]
    t0: i64,
    /// Where the window ends, seconds from the scenario's epoch.
    #[arg(allow_negative_numbers = true, value_parser = seconds)]
    t1: i64,
    /// Only this card; otherwise every card has a line.
    #[arg(long)]
    card: Option<usize>,
    /// One JSON object a card instead of a line for people.
    #[arg(long)]
    json: bool,
    /// The control memory that a dynamic card followed, where the scenario does not name it.
    #[arg(long, env = "FAKEGPU_CONTROL")]
    control: Option<PathBuf>,
    /// Where the epoch is on the scenario's clock; needed for dynamic cards, where the scenario
    /// does not say. With 0, T0 and T1 are that clock's own seconds.
    #[arg(long, env = "FAKEGPU_EPOCH_NS", allow_negative_numbers = true)]
    epoch_ns: Option<i64>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let scenario = Scenario::read(&arguments.scenario)?;
    if arguments.t1 < arguments.t0 {
        bail!("the window ends before it begins: T0 stands first, then T1");
    }
    let count = scenario.cards.len();
    if count == 0 {
        bail!("the scenario has no card: it needs a line `card 0`");
    }
    if let Some(index) = arguments.card.filter(|index| *index >= count) {
        bail!("there is no card {index}: the scenario has {count} (from 0)");
    }
    for (index, card) in scenario.cards.iter().enumerate() {
        if arguments.card.is_some_and(|wanted| wanted != index) {
            continue;
        }
        let live = if card.dynamic { Some(live(arguments, &scenario, index)?) } else { None };
        print(index, &Load::new(card, live), arguments);
    }
    Ok(())
}

/// What a dynamic card followed.
fn live(arguments: &Arguments, scenario: &Scenario, index: usize) -> anyhow::Result<Arc<dyn Live>> {
    let path =
        arguments.control.clone().or_else(|| scenario.control.clone()).with_context(|| {
            format!("card {index} is dynamic: name its control memory with --control")
        })?;
    let epoch_ns = arguments.epoch_ns.or(scenario.epoch_ns).with_context(|| {
        format!("card {index} is dynamic and the scenario has no epoch: say --epoch-ns (0: T0 and T1 are the clock's own seconds)")
    })?;
    let card = ControlledCard::new(path, scenario.clock, epoch_ns, index);
    let cards = card.open()?.cards();
    if index >= cards {
        bail!("card {index} is dynamic, and the control memory has {cards} cards (from 0)");
    }
    Ok(Arc::new(card))
}

fn print(index: usize, load: &Load, arguments: &Arguments) {
    let joules = load.energy(arguments.t0, arguments.t1);
    let seconds = (arguments.t1 - arguments.t0) as f64 / 1e9;
    // A window of no length has the power of its instant.
    let mean_watts = if seconds > 0.0 { joules / seconds } else { load.watts(arguments.t0) };
    if arguments.json {
        let line = serde_json::json!({
            "card": index, "joules": joules, "seconds": seconds, "mean_watts": mean_watts,
        });
        say(&line.to_string());
    } else {
        say(&format!("card {index}: {joules:.6} J in {seconds} s, {mean_watts:.3} W"));
    }
}

fn seconds(text: &str) -> Result<i64, String> {
    scenario::seconds_as_ns(text)
        .filter(|ns| *ns < i64::MAX)
        .ok_or_else(|| "should be a finite time in seconds".to_owned())
}
