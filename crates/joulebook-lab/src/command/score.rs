//! `score`: how far rules that divide energy among requests lie from the truth.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use comfy_table::{CellAlignment, Table, presets};
use joulebook::{books::Rhos, core::ledger::settle::TOKEN};
use joulebook_lab::{
    Card,
    engine::Settings,
    score::{
        Figures, Judged, Knowledge, Load, Name, Ranges, Rho, aims, calibrate, judge, loads, plot,
    },
};
use serde_json::json;

use super::say;

/// Serve loads with an engine that knows what each request truly cost, let rules divide what the
/// card's register counts, and print how far their charges lie from the truth: per request, in per
/// cent of its true joules above idle.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only loads of this name: chat, mixed, bursty-chat, bursty-mixed, two-cards-mixed, tenant-seen,
    /// tenant-unseen (otherwise all but bursty-chat).
    #[arg(long)]
    load: Vec<String>,
    /// Requests a second, instead of the rates that belong to the loads.
    #[arg(long, value_parser = rate)]
    rate: Option<f64>,
    /// So many seeds, from 1 on; the requests of all are judged together.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Only this rule: calibrated, rho8, steps, time, token, equal, output-token, lifetime, snapshot.
    #[arg(long, value_parser = rule)]
    rule: Vec<Name>,
    /// What a decode token costs from this file, as `joulebook bench fit` writes it, instead of from
    /// the engine's own isolated points.
    #[arg(long, value_name = "FILE")]
    rho: Option<PathBuf>,
    /// One JSON object for each load, observer and rule.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Tables for a Markdown file.
    #[arg(long)]
    markdown: bool,
    /// Draw the distribution of the errors there.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let loads = chosen(&arguments.load, arguments.rate)?;
    let rules = if arguments.rule.is_empty() { &Name::ALL } else { arguments.rule.as_slice() };
    let seeds: Vec<u64> = (1..=arguments.seeds).collect();
    let rho = match &arguments.rho {
        Some(file) => stored(file)?,
        None => calibrate(&Settings::default()),
    };
    let judged: Vec<Judged> = loads.iter().map(|load| judge(load, &seeds, rules, rho)).collect();
    if let Some(file) = &arguments.svg {
        std::fs::write(file, plot(&judged)?)
            .with_context(|| format!("{} cannot be written", file.display()))?;
    }
    if arguments.json {
        judged.iter().flat_map(as_json).for_each(|line| say(&line.to_string()));
        return Ok(());
    }
    print(&judged, rules, rho, arguments);
    Ok(())
}

/// What a file says of the lab's model on the lab's card.
fn stored(file: &Path) -> anyhow::Result<Rho> {
    let names = Card::numbered(0);
    let rho = Rhos::load(file)?.of(Some("lab-8b"), &names.name, &names.uuid);
    let tokens = |fixed: u64| fixed as f64 / TOKEN as f64;
    Ok(Rho::Shared { a: tokens(rho.a), b: tokens(rho.b) })
}

fn chosen(names: &[String], rate: Option<f64>) -> anyhow::Result<Vec<Load>> {
    let known = [
        "chat",
        "mixed",
        "bursty-chat",
        "bursty-mixed",
        "two-cards-mixed",
        "tenant-seen",
        "tenant-unseen",
    ];
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("there is no load {name:?}: choose among {}", known.join(", "));
    }
    let wanted = |load: &Load| names.is_empty() || names.iter().any(|name| name == load.name);
    let mut loads: Vec<Load> = loads().into_iter().filter(wanted).collect();
    if names.iter().any(|name| name == "bursty-chat") {
        loads.push(Load::bursty_chat());
    }
    if let Some(rate) = rate {
        loads.dedup_by_key(|load| load.name);
        loads.sort_by_key(|load| load.name);
        loads.dedup_by_key(|load| load.name);
        for load in &mut loads {
            (load.rate, load.overload) = (rate, false);
        }
    }
    Ok(loads)
}

fn print(judged: &[Judged], rules: &[Name], rho: Rho, arguments: &Arguments) {
    let (level, gap) = if arguments.markdown { ("### ", true) } else { ("", false) };
    let part = |title: &str, table: Table| {
        say("");
        say(&format!("{level}{title}"));
        if gap {
            say("");
        }
        say(&table.trim_fmt());
    };
    if let Rho::Shared { a, b } = rho {
        say(&format!(
            "{} seeds; ρ(B) = {a:.2} + {b:.1} / B, from isolated points of the engine.",
            arguments.seeds
        ));
    }
    type Pick = fn(&Figures) -> f64;
    let median: Pick = |it| it.median;
    let p95: Pick = |it| it.p95;
    let bias: Pick = |it| it.bias;
    for (title, knowledge, pick, signed) in [
        ("Median |error|, admission known", Knowledge::Admission, median, false),
        ("p95 of |error|, admission known", Knowledge::Admission, p95, false),
        ("Bias, admission known", Knowledge::Admission, bias, true),
        ("Median |error|, arrival only", Knowledge::Arrival, median, false),
        ("p95 of |error|, arrival only", Knowledge::Arrival, p95, false),
    ] {
        let mut table = table(arguments.markdown);
        let mut head = vec!["load".to_owned(), "in flight".to_owned(), "requests".to_owned()];
        head.extend(rules.iter().map(|rule| rule.words().to_owned()));
        table.set_header(head);
        for load in judged {
            let mut row = vec![
                load.load.words(),
                format!("{:.1}", load.in_flight),
                load.requests.to_string(),
            ];
            row.extend(rules.iter().map(|rule| {
                let verdict = load.verdict(*rule, knowledge);
                verdict.map_or("-".to_owned(), |it| percent(pick(&it.figures), signed))
            }));
            table.add_row(row);
        }
        part(title, right(table));
    }
    part("Books, and the truth within what receipts say", right(books(judged, arguments)));
    let mut reached = table(arguments.markdown);
    reached.set_header(["aim", "load", "reached", ""]);
    for aim in aims(judged) {
        let figure = match aim.limit {
            0.0 => format!("{}", aim.figure),
            limit if limit > 1.0 => format!("{:.1} ×", aim.figure),
            _ => percent(aim.figure, false),
        };
        let met = if aim.met { "met" } else { "MISSED" };
        reached.add_row([aim.words.to_owned(), aim.load, figure, met.to_owned()]);
    }
    part("Aims", reached);
}

/// What books say beside figures: of the calibrated rule, else of the first that keeps books.
fn books(judged: &[Judged], arguments: &Arguments) -> Table {
    let mut table = table(arguments.markdown);
    table.set_header([
        "load",
        "residual, µJ",
        "with a figure",
        "in range, admission known",
        "arrival only",
        "width of the range, admission known",
        "arrival only",
    ]);
    for load in judged {
        let residual = load.verdicts.iter().filter_map(|it| it.residual_uj);
        let worst = residual.max().map_or("-".to_owned(), |it| it.to_string());
        let said = [Knowledge::Admission, Knowledge::Arrival].map(|knowledge| {
            load.verdicts.iter().filter(|it| it.knowledge == knowledge).find_map(|it| it.ranges)
        });
        let share = |pick: fn(&Ranges) -> f64| {
            said.map(|it| it.map_or("-".to_owned(), |it| percent(pick(&it), false)))
        };
        let [told, _] = share(|it| it.told);
        let row = [load.load.words(), worst, told].into_iter();
        table.add_row(row.chain(share(|it| it.hold)).chain(share(|it| it.width)));
    }
    table
}

fn table(markdown: bool) -> Table {
    let mut table = Table::new();
    table.load_style(if markdown { presets::ASCII_MARKDOWN } else { presets::NOTHING });
    table
}

fn right(mut table: Table) -> Table {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A share in per cent, with three significant digits.
fn percent(share: f64, signed: bool) -> String {
    let percent = share * 100.0;
    let decimals = match percent.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    // What rounds to nothing has no sign.
    if signed && percent.abs() >= 0.005 {
        format!("{percent:+.decimals$} %")
    } else {
        format!("{:.decimals$} %", percent.abs())
    }
}

fn as_json(judged: &Judged) -> Vec<serde_json::Value> {
    let told = |knowledge| match knowledge {
        Knowledge::Admission => "admission",
        Knowledge::Arrival => "arrival",
    };
    let figures = |it: &Figures| {
        json!({
            "bias_share": it.bias, "median_error_share": it.median, "p95_error_share": it.p95,
        })
    };
    let of_rule = |verdict: &joulebook_lab::score::Verdict| {
        let said = verdict.ranges;
        json!({
            "load": judged.load.name,
            "rate_per_second": judged.load.rate,
            "overload": judged.load.overload,
            "requests": judged.requests,
            "mean_in_flight": judged.in_flight,
            "rule": verdict.rule.key(),
            "knowledge": told(verdict.knowledge),
            "all_seeds": figures(&verdict.figures),
            "worst_seed": figures(&verdict.worst),
            "residual_uj": verdict.residual_uj,
            "with_a_figure_share": said.map(|it| it.told),
            "in_range_share": said.map(|it| it.hold),
            "median_range_width_share": said.map(|it| it.width),
        })
    };
    judged.verdicts.iter().map(of_rule).collect()
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| "should be a number above 0".to_owned())
}

fn rule(text: &str) -> Result<Name, String> {
    let keys = || Name::ALL.map(Name::key).join(", ");
    let found = Name::ALL.into_iter().find(|name| name.key() == text);
    found.ok_or_else(|| format!("no such rule: choose among {}", keys()))
}
