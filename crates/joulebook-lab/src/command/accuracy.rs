//! `accuracy`: how far the meter's figures lie from the truth, in simulated time.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use comfy_table::{CellAlignment, Table, presets};
use joulebook_lab::accuracy::{
    Accuracy, Cell, Drive, Polls, Register, Sharpness, Tally, matrix, measure, sharpness,
};
use serde_json::json;

use super::say;

/// Let the meter measure windows whose energy is known, in simulated time, and print how far its
/// answers lie from the truth: two loads, seven registers, probed or not, seven window lengths.
#[derive(clap::Args)]
pub struct Arguments {
    /// Windows a cell.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    windows: u32,
    /// What the random phases are drawn from: the same seed, the same figures.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One JSON object a cell.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Tables for a Markdown file.
    #[arg(long)]
    markdown: bool,
}

pub fn run(arguments: &Arguments) {
    let cells = matrix();
    let measured = measure_all(&cells, arguments.windows, arguments.seed);
    let sharp = sharpness();
    if arguments.json {
        measured.iter().for_each(|accuracy| say(&as_json(accuracy).to_string()));
        let Sharpness { bound_j, error_j } = sharp;
        say(&json!({ "sharpness": { "bound_joules": bound_j, "worst_error_joules": error_j } })
            .to_string());
        return;
    }
    say(&format!(
        "{} windows a cell, seed {}; joules above 70 W idle, in per cent of the truth.",
        arguments.windows, arguments.seed
    ));
    let legend = [
        "error: Σ|error|/Σtruth; bias: Σerror/Σtruth.",
        "kept: labelled sampled; the others are in no sum. unresolved: kept, bound larger than figure.",
        "bound: the median of bound/figure. violated: bounds that did not hold.",
        "alone: kept ones made by the rule alone; the rest by shared (at once: raw; gauges: gauge).",
        "stamp: how well a publish instant was known, the median.",
    ];
    let bullet = if arguments.markdown { "- " } else { "" };
    if arguments.markdown {
        say("");
    }
    legend.iter().for_each(|line| say(&format!("{bullet}{line}")));
    for block in measured.chunk_by(|one, other| head(&one.cell) == head(&other.cell)) {
        say("");
        print_block(block, arguments.markdown);
    }
    let broken: u64 =
        measured.iter().map(|row| row.at_once.violations + row.settled.violations).sum();
    say("");
    if arguments.markdown {
        say("## All cells\n");
    }
    say(&format!("Bounds that did not hold: {broken}."));
    say("A gauge that averages over 1 s keeps no window that is shorter: it cannot see it.");
    say(&format!(
        "Sharpness, on a square load of twice the publish period between 70 and 770 W: the widest \
         bound of the shared rule is {:.2} J, the worst error {:.2} J, {:.3} times.",
        sharp.bound_j,
        sharp.error_j,
        sharp.ratio()
    ));
}

/// Cells share nothing, so they are measured side by side.
fn measure_all(cells: &[Cell], windows: u32, seed: u64) -> Vec<Accuracy> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(cells.len()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(cell) = cells.get(number) else { break };
                    let accuracy = measure(*cell, windows, seed);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((number, accuracy));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, accuracy)| accuracy).collect()
}

/// What all rows of a table have in common.
fn head(cell: &Cell) -> (Drive, Register, Polls) {
    (cell.drive, cell.register, cell.polls)
}

fn title(cell: &Cell) -> String {
    let drive = match cell.drive {
        Drive::Step => "Step",
        Drive::Burst => "Burst",
    };
    let register = match cell.register {
        Register::Counter { period_ns, lag_ns } => {
            format!("counter {} ms, lag {} ms", period_ns / 1_000_000, lag_ns / 1_000_000)
        }
        Register::Gauge => "gauge, 1 s average each 100 ms".to_owned(),
    };
    let polls = match cell.polls {
        Polls::Unprobed => "unprobed",
        Polls::Probed => "probed",
    };
    format!("{drive}, {register}, {polls}")
}

fn print_block(block: &[Accuracy], markdown: bool) {
    let Some(first) = block.first() else { return };
    let stamps: Vec<f64> =
        block.iter().filter_map(|row| row.stamp_ns).map(|stamp_ns| stamp_ns as f64 / 1e6).collect();
    let widest = stamps.iter().copied().reduce(f64::max);
    let stamp = widest.map_or(String::new(), |stamp_ms| format!(" (stamp ±{stamp_ms:.2} ms)"));
    say(&format!("{}{}{stamp}", if markdown { "## " } else { "" }, title(&first.cell)));
    if markdown {
        say("");
    }
    let mut table = Table::new();
    table.load_style(if markdown { presets::ASCII_MARKDOWN } else { presets::NOTHING });
    let mut names = vec!["window".to_owned()];
    for answer in ["at once", "settled"] {
        names.extend(["error", "bias", "kept", "unresolved", "bound", "violated"].map(|name| {
            match name {
                "error" => format!("{answer}: error"),
                name => name.to_owned(),
            }
        }));
    }
    names.push("alone".to_owned());
    table.set_header(names);
    for row in block {
        let mut figures = vec![length(row.cell.length_ns)];
        figures.extend(figures_of(&row.at_once));
        figures.extend(figures_of(&row.settled));
        figures.push(share(row.settled.alone, row.settled.kept));
        table.add_row(figures);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    say(&table.trim_fmt());
}

fn length(length_ns: u64) -> String {
    match length_ns / 1_000_000 {
        ms if ms >= 1000 => format!("{} s", ms / 1000),
        ms => format!("{ms} ms"),
    }
}

fn figures_of(tally: &Tally) -> [String; 6] {
    [
        percent(tally.error(), false),
        percent(tally.bias(), true),
        share(tally.kept, tally.windows),
        share(tally.unresolved, tally.windows),
        percent(tally.median_bound(), false),
        tally.violations.to_string(),
    ]
}

/// A share in per cent, with three significant digits.
fn percent(share: Option<f64>, signed: bool) -> String {
    let Some(share) = share else { return "-".to_owned() };
    let percent = share * 100.0;
    let decimals = match percent.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    if signed { format!("{percent:+.decimals$} %") } else { format!("{percent:.decimals$} %") }
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 || part == 0 {
        return if whole == 0 { "-".to_owned() } else { "0".to_owned() };
    }
    if part == whole {
        return "all".to_owned();
    }
    format!("{:.1} %", part as f64 / whole as f64 * 100.0)
}

fn as_json(accuracy: &Accuracy) -> serde_json::Value {
    let cell = &accuracy.cell;
    let tally = |tally: &Tally| {
        json!({
            "windows": tally.windows, "kept": tally.kept, "unresolved": tally.unresolved,
            "alone": tally.alone, "violations": tally.violations, "error_share": tally.error(),
            "bias_share": tally.bias(), "median_bound_share": tally.median_bound(),
        })
    };
    json!({
        "cell": title(cell),
        "window_seconds": cell.length_ns as f64 / 1e9,
        "probed": cell.polls == Polls::Probed,
        "publish_period_seconds": cell.register.period_ns() as f64 / 1e9,
        "lag_seconds": cell.register.lag_ns() as f64 / 1e9,
        "stamp_uncertainty_seconds": accuracy.stamp_ns.map(|stamp_ns| stamp_ns as f64 / 1e9),
        "at_once": tally(&accuracy.at_once),
        "settled": tally(&accuracy.settled),
    })
}
