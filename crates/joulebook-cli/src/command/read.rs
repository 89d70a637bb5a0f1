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
    replay::{self, Answer, Ask, Moment, Options, Recording, ReplayError, Warning, Zone},
};

/// What a recording (nvidia-smi's CSV with a header) says that a card, or windows on it, cost.
#[derive(clap::Args)]
pub struct Arguments {
    /// The recording; `-` for standard input. Made by, for example, nvidia-smi
    /// --query-gpu=timestamp,index,uuid,name,power.draw,power.draw.instant,power.limit,utilization.gpu,temperature.gpu
    /// --format=csv -lms 100
    log: PathBuf,
    /// Windows: a file of rows `start,end` in epoch seconds, one window a row.
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
    cards: Vec<Answer>,
    sum: Answer,
}

/// Reads the recording and prints what it says; an error is told with its file and line.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match report(&arguments) {
        Ok(report) => {
            let text = if arguments.json { form::form(&report) } else { page::page(&report) };
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

fn report(arguments: &Arguments) -> anyhow::Result<Report> {
    let path = name_of(&arguments.log);
    let at = |error: ReplayError| located(&path, error);
    let log = replay::read(&bytes(&arguments.log)?).map_err(at)?;
    let options = Options {
        model: arguments.card.clone(),
        limit: arguments.limit.and_then(Power::from_watts),
        floor_w: arguments.floor,
    };
    let recording = Recording::of(log, &options).map_err(at)?;
    let ask = recording.ask(arguments.column.as_deref(), &arguments.idle).map_err(at)?;
    let spans = spans(arguments, &recording, &path)?;
    let cards = recording.whole(&ask);
    let sum = (cards.len() > 1).then(|| recording.sum(&cards, &ask));
    let window = |span: &Span| {
        let cards = recording.window(*span, &ask);
        Window { sum: recording.sum(&cards, &ask), cards }
    };
    let windows: Vec<Window> = spans.iter().map(window).collect();
    let mut warnings = recording.warnings.clone();
    if !spans.is_empty() {
        warnings.extend(recording.say_of_windows(&spans, &ask));
    }
    let idle_known = !arguments.idle.is_empty();
    Ok(Report { path, recording, ask, idle_known, cards, sum, windows, warnings })
}

/// The windows asked for, on the recording's clock; none for the whole of it.
fn spans(arguments: &Arguments, recording: &Recording, path: &str) -> anyhow::Result<Vec<Span>> {
    let whole = recording.span;
    if let Some(zone) = &arguments.tz
        && zone.ahead_s(whole.open_ns) != zone.ahead_s(whole.close_ns)
    {
        bail!("the clocks of {zone} change within {path}: give a fixed offset, as --tz +01:00");
    }
    let on = |moment: Moment, zone: Option<&Zone>| moment.on(recording.clock, zone, whole.open_ns);
    let Some(file) = &arguments.marks else {
        if arguments.from.is_none() && arguments.to.is_none() {
            return Ok(Vec::new());
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
        return Ok(vec![Span { open_ns, close_ns }]);
    };
    let name = name_of(file);
    let marks = replay::marks(&bytes(file)?).map_err(|error| located(&name, error))?;
    let with = |zone: Option<&Zone>| -> Result<Vec<Span>, ReplayError> {
        let span = |(start, end): &(Moment, Moment)| {
            Ok(Span { open_ns: on(*start, zone)?, close_ns: on(*end, zone)? })
        };
        marks.windows.iter().map(span).collect()
    };
    with(arguments.tz.as_ref()).map_err(|error| {
        let fits = || {
            let utc = with(Some(&"Z".parse().ok()?)).ok()?;
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
