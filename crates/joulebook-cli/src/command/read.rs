//! `read`: what a recording of a card says that pieces of work cost.

mod form;
mod page;
mod tally;

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use joulebook::{
    Power,
    core::estimate::Span,
    replay::{
        self, Answer, Ask, CardName, Form, Format, Moment, Options, Recording, ReplayError,
        Warning, Zone,
    },
};

/// What recordings of cards (of nvidia-smi, amd-smi, rocm-smi, meters, counters, own loggers) say
/// that a card, or windows on it, cost.
#[derive(clap::Args)]
pub struct Arguments {
    /// The recordings; `-` for standard input. Made by, for example, nvidia-smi
    /// --query-gpu=timestamp,index,uuid,name,power.draw,power.draw.instant,power.limit,utilization.gpu,temperature.gpu
    /// --format=csv -lms 100
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// The format, where what stands in the file does not tell it: nvidia-smi, nvidia-smi-xml,
    /// amd-smi, amd-smi-json, rocm-smi, pmt, prometheus, scrape, spl, mllog, logger.
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// The names of a CSV's columns in their order, where it has no header or a wrong one, as
    /// nvidia-smi has them: timestamp,index,power.draw,…
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "format")]
    columns: Option<Vec<String>>,
    /// Windows: a file of rows `start,end[,name]` in epoch seconds, or of requests with columns of
    /// start and end (or end and duration).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "to"])]
    marks: Option<PathBuf>,
    /// The zone of the log's stamps, which do not tell it: +01:00, or a name as Europe/London.
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    tz: Option<Zone>,
    /// The card's idle floor, W: joules above it are what work is charged. Several cards: one
    /// each, with commas, or their sum. Without it joules are gross.
    #[arg(long, value_name = "W", value_delimiter = ',', value_parser = watts)]
    idle: Vec<f64>,
    /// One window from here: epoch seconds, +SECONDS from the first row, or a stamp as in the log.
    #[arg(long, value_name = "T")]
    from: Option<Moment>,
    /// The end of that window.
    #[arg(long, value_name = "T")]
    to: Option<Moment>,
    /// Read this column of power instead of the one that fits each window.
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    /// The card's model, where the log does not name it: tells what its sensor averages over.
    #[arg(long, value_name = "MODEL")]
    card: Option<String>,
    /// The card's power limit, W, where the log has no such column: bounds rest on it.
    #[arg(long, value_name = "W", value_parser = watts)]
    limit: Option<f64>,
    /// The least the card can draw, W, if you know it: bounds rest on it.
    #[arg(long, value_name = "W", default_value_t = 0.0, value_parser = watts)]
    floor: f64,
    /// One JSON object instead of a page.
    #[arg(long)]
    json: bool,
}

/// All that is printed.
struct Report {
    path: String,
    recording: Recording,
    ask: Ask,
    idle_known: bool,
    /// Each card over all of the recording, and their sum where there are several.
    cards: Vec<Answer>,
    sum: Option<Answer>,
    windows: Vec<Window>,
    warnings: Vec<Warning>,
}

/// One window: each card, and all of them.
struct Window {
    name: Option<String>,
    cards: Vec<Answer>,
    sum: Answer,
}

/// A window that is asked for.
struct Wanted {
    name: Option<String>,
    span: Span,
    uncertainty_s: f64,
}

/// Reads the recordings and prints what they say; an error is told with its file and line.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match reports(&arguments) {
        Ok(reports) => {
            let text = if arguments.json { form::forms(&reports) } else { page::pages(&reports) };
            // A reader that went away is no error of ours.
            let _ = io::stdout().write_all(text.as_bytes());
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "joulebook read: {error:#}");
            Ok(ExitCode::from(2))
        }
    }
}

/// All logs, each with the idle floors of its own cards.
fn reports(arguments: &Arguments) -> anyhow::Result<Vec<Report>> {
    let read = |path: &PathBuf| recording(arguments, path).map(|read| (name_of(path), read));
    let read = arguments.logs.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    let cards: usize = read.iter().map(|(_, recording)| recording.cards.len()).sum();
    let mut floors = arguments.idle.as_slice();
    if read.len() > 1 && !floors.is_empty() && floors.len() != cards {
        let (given, logs) = (floors.len(), read.len());
        bail!(
            "{given} idle floors for {cards} cards in {logs} logs: give one a card, in their order"
        );
    }
    let mut reports = Vec::with_capacity(read.len());
    let one = read.len() == 1;
    for (path, recording) in read {
        let own = if one { floors.len() } else { recording.cards.len().min(floors.len()) };
        let (own, rest) = floors.split_at(own);
        floors = rest;
        reports.push(report(arguments, path, recording, own)?);
    }
    Ok(reports)
}

fn recording(arguments: &Arguments, path: &Path) -> anyhow::Result<Recording> {
    let at = |error: ReplayError| located(&name_of(path), error);
    let form = Form { format: arguments.format, columns: arguments.columns.clone() };
    let log = replay::read_as(&bytes(path)?, &form).map_err(at)?;
    let options = Options {
        model: arguments.card.clone(),
        limit: arguments.limit.and_then(Power::from_watts),
        floor_w: arguments.floor,
    };
    Recording::of(log, &options).map_err(at)
}

fn report(
    arguments: &Arguments,
    path: String,
    recording: Recording,
    idle: &[f64],
) -> anyhow::Result<Report> {
    let ask = recording.ask(arguments.column.as_deref(), idle);
    let ask = ask.map_err(|error| located(&path, error))?;
    let wanted = wanted(arguments, &recording, &path)?;
    let cards = recording.whole(&ask);
    let sum = (cards.len() > 1).then(|| recording.sum(&cards, &ask));
    let window = |wanted: &Wanted| {
        let cards = recording.window_within(wanted.span, wanted.uncertainty_s, &ask);
        Window { name: wanted.name.clone(), sum: recording.sum(&cards, &ask), cards }
    };
    let windows: Vec<Window> = wanted.iter().map(window).collect();
    let mut warnings = recording.warnings.clone();
    if !wanted.is_empty() {
        let spans: Vec<Span> = wanted.iter().map(|wanted| wanted.span).collect();
        warnings.extend(recording.say_of_windows(&spans, &ask));
        let of = wanted.len();
        let windows = wanted.iter().filter(|wanted| wanted.uncertainty_s > 0.0).count();
        let seconds = wanted.iter().map(|wanted| wanted.uncertainty_s).fold(0.0, f64::max);
        if windows > 0 {
            warnings.push(Warning::WindowsUncertain { windows, of, seconds });
        }
    }
    let idle_known = !idle.is_empty();
    Ok(Report { path, recording, ask, idle_known, cards, sum, windows, warnings })
}

/// Why the logs have no common sum: nothing says that they are of different cards.
fn not_apart(reports: &[Report]) -> Option<String> {
    let cards = || {
        reports.iter().flat_map(|report| {
            report.recording.cards.iter().map(move |card| (&report.path, &card.name))
        })
    };
    let of = |name: &CardName| name.uuid.clone().or_else(|| name.pci.clone());
    if let Some((path, name)) = cards().find(|(_, name)| of(name).is_none()) {
        return Some(format!(
            "{} of {path} has no UUID, and may be in another log too",
            name.label()
        ));
    }
    let mut seen = std::collections::HashSet::new();
    let again = cards().find(|(_, name)| !seen.insert(of(name)));
    again.map(|(path, name)| format!("{} of {path} is in another log too", name.label()))
}

/// The windows asked for, on the recording's clock; those that it marks itself where none are; none
/// for the whole of it.
fn wanted(arguments: &Arguments, recording: &Recording, path: &str) -> anyhow::Result<Vec<Wanted>> {
    let whole = recording.span;
    if let Some(zone) = &arguments.tz
        && zone.ahead_s(whole.open_ns) != zone.ahead_s(whole.close_ns)
    {
        bail!("the clocks of {zone} change within {path}: give a fixed offset, as --tz +01:00");
    }
    let on = |moment: Moment, zone: Option<&Zone>| moment.on(recording.clock, zone, whole.open_ns);
    let Some(file) = &arguments.marks else {
        if arguments.from.is_none() && arguments.to.is_none() {
            let own = recording.windows.iter().map(|window| Wanted {
                name: window.name.clone(),
                span: window.span,
                uncertainty_s: 0.0,
            });
            return Ok(own.collect());
        }
        let end = |moment: Option<Moment>, else_ns| {
            let given = moment.map(|moment| on(moment, arguments.tz.as_ref()));
            given.transpose().map(|ns| ns.unwrap_or(else_ns))
        };
        let named = |error| located(path, error);
        let open_ns = end(arguments.from, whole.open_ns).map_err(named)?;
        let close_ns = end(arguments.to, whole.close_ns).map_err(named)?;
        if close_ns <= open_ns {
            bail!("the window ends before it starts: see --from and --to");
        }
        let span = Span { open_ns, close_ns };
        return Ok(vec![Wanted { name: None, span, uncertainty_s: 0.0 }]);
    };
    let name = name_of(file);
    let marks = replay::marks(&bytes(file)?).map_err(|error| located(&name, error))?;
    let with = |zone: Option<&Zone>| -> Result<Vec<Wanted>, ReplayError> {
        let wanted = |mark: &replay::Mark| {
            let span = Span { open_ns: on(mark.start, zone)?, close_ns: on(mark.end, zone)? };
            let uncertainty_s = mark.uncertainty_ns as f64 / 1e9;
            Ok(Wanted { name: mark.name.clone(), span, uncertainty_s })
        };
        marks.windows.iter().map(wanted).collect()
    };
    with(arguments.tz.as_ref()).map_err(|error| {
        let fits = || {
            let utc = with(Some(&"Z".parse().ok()?)).ok()?;
            let utc: Vec<Span> = utc.iter().map(|wanted| wanted.span).collect();
            let said = recording.say_of_windows(&utc, &Ask::default());
            said.into_iter().find_map(|warning| match warning {
                // In UTC the windows lie where the zone would move them from.
                Warning::WindowsOutside { hours, .. } => hours,
                _ => None,
            })
        };
        let hint = match (&error, fits()) {
            (ReplayError::NeedsZone, Some(hours)) => {
                let sign = if hours < 0 { '-' } else { '+' };
                format!("; all windows would lie inside with --tz {sign}{:02}:00", hours.abs())
            }
            _ => String::new(),
        };
        anyhow::anyhow!("{name} and {path}: {error}{hint}")
    })
}

fn located(path: &str, error: ReplayError) -> anyhow::Error {
    match error.line() {
        Some(line) => anyhow::anyhow!("{path}:{line}: {error}"),
        None => anyhow::anyhow!("{path}: {error}"),
    }
}

fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).context("standard input")?;
        return Ok(bytes);
    }
    fs::read(path).with_context(|| path.display().to_string())
}

fn name_of(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// A number of watts on the command line.
fn watts(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('W').trim_end().parse().ok();
    number
        .filter(|watts: &f64| watts.is_finite() && *watts >= 0.0 && *watts < 1e6)
        .ok_or_else(|| format!("`{text}` is no number of watts"))
}
