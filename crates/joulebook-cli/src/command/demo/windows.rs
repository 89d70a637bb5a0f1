//! Pieces of work on a card whose true energy is known, measured as any work is.
//!
//! The card is simulated in this process, and every line that is printed says so; nothing of this
//! machine is read. What is shown is the product's own path: recorder, series, windows, grades.

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use indicatif::ProgressBar;
use joulebook::{Measurement, Meter, core::units::significant};
use joulebook_lab::{SimulatedCard, load::LiveLoad};
use serde::Serialize;

use super::card::{self, IDLE_W, LAG_MS, PERIOD_MS};
use crate::words::of_rule;

/// What a piece of work adds to what the card draws at rest, W.
const WORK_W: f64 = 330.0;
/// Lengths of the pieces of work, ms.
const PIECES_MS: [u64; 7] = [5, 20, 50, 100, 250, 1000, 2000];
/// Rest between them, so that each is alone.
const REST: Duration = Duration::from_millis(650);

/// A piece of work: what it cost in truth, and by the meter.
#[derive(Serialize)]
struct Piece {
    name: String,
    seconds: f64,
    true_joules: f64,
    at_once: serde_json::Value,
    settled: serde_json::Value,
    #[serde(skip)]
    figures: (Measurement, Measurement),
}

#[derive(Serialize)]
struct Report {
    simulated: bool,
    card: String,
    idle_watts: f64,
    publish_period_seconds: f64,
    pieces: Vec<Piece>,
}

/// Runs the command.
pub fn run(json: bool) -> anyhow::Result<ExitCode> {
    let (meter, card, load) = card::meter()?;
    let bench = Bench { meter, card, load };
    let steps = PIECES_MS.len() as u64 + 2;
    let progress = if std::io::stderr().is_terminal() && !json {
        ProgressBar::new(steps).with_message("working on the simulated card")
    } else {
        ProgressBar::hidden()
    };
    let mut pieces = Vec::new();
    for length_ms in PIECES_MS {
        thread::sleep(REST);
        pieces.push(bench.piece(length_ms)?);
        progress.inc(1);
    }
    thread::sleep(REST);
    pieces.push(bench.stages()?);
    progress.inc(1);
    thread::sleep(REST);
    pieces.extend(bench.together()?);
    progress.finish_and_clear();
    let report = Report {
        simulated: true,
        card: bench
            .meter
            .cards()
            .first()
            .map(|card| card.device().name.clone())
            .unwrap_or_default(),
        idle_watts: IDLE_W,
        publish_period_seconds: PERIOD_MS as f64 / 1e3,
        pieces,
    };
    let mut out = anstream::stdout();
    if json {
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
    } else {
        write!(out, "{}", page(&report))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A meter on a simulated card, and the hand on its load.
struct Bench {
    meter: Meter,
    card: SimulatedCard,
    load: LiveLoad,
}

impl Bench {
    /// What the card drew above rest between two instants of its clock, J.
    fn truth(&self, from_ns: i64, to_ns: i64) -> f64 {
        let seconds = (to_ns - from_ns) as f64 / 1e9;
        self.card.model().load().energy(from_ns, to_ns) - IDLE_W * seconds
    }

    fn work(&self, length: Duration) -> anyhow::Result<(i64, i64)> {
        let from_ns = self.set(IDLE_W + WORK_W)?;
        let until = Instant::now() + length;
        thread::sleep(length.saturating_sub(Duration::from_micros(200)));
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        Ok((from_ns, self.set(IDLE_W)?))
    }

    fn set(&self, watts: f64) -> anyhow::Result<i64> {
        self.load.set_watts(watts).context("the simulated card does not take a load")
    }

    fn piece(&self, length_ms: u64) -> anyhow::Result<Piece> {
        let window = self.meter.open();
        let (from_ns, to_ns) = self.work(Duration::from_millis(length_ms))?;
        let pending = window.close();
        let name = if length_ms < 1000 {
            format!("{length_ms} ms")
        } else {
            format!("{} s", length_ms / 1000)
        };
        let now = pending.now();
        let settled = pending.settle(Duration::from_secs(2));
        Ok(Piece::new(name, self.truth(from_ns, to_ns), now, settled))
    }

    /// A request of two stages, the second at lower power.
    fn stages(&self) -> anyhow::Result<Piece> {
        let mut window = self.meter.open();
        let (from_ns, _) = self.work(Duration::from_millis(300))?;
        window.mark("prefill");
        self.set(IDLE_W + WORK_W / 2.0)?;
        thread::sleep(Duration::from_millis(700));
        let to_ns = self.set(IDLE_W)?;
        window.mark("decode");
        let pending = window.close();
        let now = pending.now();
        let settled = pending.settle(Duration::from_secs(2));
        Ok(Piece::new("1 s, two stages".into(), self.truth(from_ns, to_ns), now, settled))
    }

    /// Two pieces of 500 ms that overlap for 250 ms: at once each claims all, settled they share.
    fn together(&self) -> anyhow::Result<[Piece; 2]> {
        let first = self.meter.open();
        let from_ns = self.set(IDLE_W + WORK_W)?;
        thread::sleep(Duration::from_millis(250));
        let second = self.meter.open();
        let middle_ns = self.card.clock().now_ns();
        thread::sleep(Duration::from_millis(250));
        let first = first.close();
        let first_now = first.now();
        let later_ns = self.card.clock().now_ns();
        thread::sleep(Duration::from_millis(250));
        let to_ns = self.set(IDLE_W)?;
        let second = second.close();
        let second_now = second.now();
        let both = self.truth(middle_ns, later_ns) / 2.0;
        let truths = [self.truth(from_ns, middle_ns) + both, both + self.truth(later_ns, to_ns)];
        let settled = [first, second].map(|pending| pending.settle(Duration::from_secs(2)));
        let [first, second] = settled;
        Ok([
            Piece::new("500 ms, overlapped".into(), truths[0], first_now, first),
            Piece::new("500 ms, overlapped".into(), truths[1], second_now, second),
        ])
    }
}

impl Piece {
    fn new(name: String, true_joules: f64, now: Measurement, settled: Measurement) -> Self {
        let form = |measured: &Measurement| serde_json::to_value(measured.form(0));
        Self {
            name,
            seconds: settled.seconds,
            true_joules,
            at_once: form(&now).unwrap_or_default(),
            settled: form(&settled).unwrap_or_default(),
            figures: (now, settled),
        }
    }
}

fn page(report: &Report) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(["work", "truth J", "at once J", "settled J", "± J", "off by", "rule"]);
    for piece in &report.pieces {
        let (now, settled) = &piece.figures;
        table.add_row([
            piece.name.clone(),
            significant(piece.true_joules),
            joules(now),
            joules(settled),
            settled.bound_joules.map_or("–".into(), |bound| format!("{bound:.2}")),
            settled.joules.map_or("–".into(), |joules| {
                format!("{:+.1} %", (joules / piece.true_joules - 1.0) * 100.0)
            }),
            settled.rule.map_or("–", of_rule).into(),
        ]);
    }
    for column in table.column_iter_mut().skip(1).take(5) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let stages: Vec<String> = report
        .pieces
        .iter()
        .flat_map(|piece| &piece.figures.1.stages)
        .map(|(name, stage)| format!("{name} {} J", joules(stage)))
        .collect();
    format!(
        "A simulated card in this process: no GPU of this machine is read.\n\
         At rest it draws {IDLE_W} W, at work {} W. Its register shows a new value about every \
         {PERIOD_MS} ms, {LAG_MS} ms late.\n\n{table}\n\n\
         Stages of the request in two: {}.\n\n\
         Joules are above idle. Where the difference comes from:\n\
         · at once: the register's last values at both ends of the work; whatever it had not shown\n  \
           yet is missing. No figure (–) when it showed nothing new.\n\
         · settled: what the register showed after the end as well. alone: the card was at rest on\n  \
           both sides, so all it did between is this work's, to the bound that the publish instants\n  \
           leave. shared: somebody else was at work too, so the energy of a publish is read off\n  \
           between its ends; the bound is the worst case.\n\
         · overlapped: at once each claims all that the card drew; settled the two share it, and\n  \
           their sum is the card's.\n\
         On a card of your own: joulebook probe, then joulebook run -- COMMAND.\n",
        IDLE_W + WORK_W,
        stages.join(", "),
    )
}

fn joules(measured: &Measurement) -> String {
    measured.joules.map_or("–".into(), significant)
}
