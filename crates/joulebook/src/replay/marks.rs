//! A file of windows: rows of `start,end[,name]`, or a table with a header that names them, as
//! benchmarks write their requests.
//!
//! A start and an end may be epoch seconds, stamps, times of day, or seconds on the log's own clock.
//! Where only an end (or a start) and a duration stand there, the rows themselves tell which it is:
//! requests that follow one another do not overlap. A column of uncertainty, or a stamp cut to
//! seconds, goes with the window.

use super::{
    ReplayError,
    instant::{elapsed, instant},
    stamp::{DAY, Moment, decimal_ns},
    table::columns::at,
    text::{cells, decoded, shortened},
};

const STARTS: &[&str] =
    &["start_epoch_s", "start", "start_s", "start_time", "begin", "from", "start_elapsed_s"];
const ENDS: &[&str] = &["end_epoch_s", "end", "end_s", "end_time", "stop", "to", "end_elapsed_s"];
const STAMPS: &[&str] = &["time", "timestamp", "date", "ts"];
/// Columns of durations, in ns per unit; Ollama's are nanoseconds.
const DURATIONS: &[(&str, u64)] = &[
    ("total_dur", 1),
    ("total_duration", 1),
    ("duration_ns", 1),
    ("duration_ms", 1_000_000),
    ("duration_s", 1_000_000_000),
    ("duration", 1_000_000_000),
    ("seconds", 1_000_000_000),
    ("latency_s", 1_000_000_000),
];
const UNCERTAINTIES: &[&str] = &["start_uncertainty_s", "uncertainty_s"];
const NAMES: &[&str] = &["name", "label", "request", "iteration", "id"];
const SECOND: u64 = 1_000_000_000;

/// Windows, as a file gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    /// In the file's order.
    pub windows: Vec<Mark>,
}

/// One window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When it began.
    pub start: Moment,
    /// When it ended.
    pub end: Moment,
    /// What it is called.
    pub name: Option<String>,
    /// How far both may be from where they stand, ns.
    pub uncertainty_ns: u64,
}

/// Where a table has its windows.
struct Layout {
    start: Option<usize>,
    end: Option<usize>,
    /// A stamp that is a start or an end, and a duration beside it in units of so many ns.
    stamped: Option<(usize, usize, u64)>,
    elapsed: bool,
    uncertainty: Option<usize>,
    name: Option<usize>,
}

impl Layout {
    fn of(names: &[String]) -> Option<Self> {
        let (start, end) = (at(names, STARTS), at(names, ENDS));
        let duration = DURATIONS.iter().find_map(|(name, ns)| Some((at(names, &[name])?, *ns)));
        let stamp = at(names, STAMPS);
        let stamped = stamp.zip(duration).map(|(stamp, (at, ns))| (stamp, at, ns));
        let both = start.is_some() && end.is_some();
        (both || stamped.is_some()).then(|| Self {
            start: start.filter(|_| both),
            end: end.filter(|_| both),
            stamped: stamped.filter(|_| !both),
            elapsed: start
                .and_then(|start| names.get(start))
                .is_some_and(|name| name.contains("elapsed")),
            uncertainty: at(names, UNCERTAINTIES),
            name: at(names, NAMES),
        })
    }
}

/// True for the header of a file of windows.
pub(super) fn are_windows(names: &[String]) -> bool {
    Layout::of(names).is_some()
}

/// Reads marks. The first row may be a header.
pub fn marks(bytes: &[u8]) -> Result<Marks, ReplayError> {
    let text = decoded(bytes);
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let mut layout = None;
    let mut rows: Vec<(usize, Vec<&str>)> = Vec::new();
    if let Some((line, first)) = lines.next() {
        let cells = cells(first);
        let is_header =
            cells.iter().all(|cell| cell.is_empty() || cell.starts_with(char::is_alphabetic));
        if is_header {
            let names: Vec<String> = cells.iter().map(|cell| (*cell).to_owned()).collect();
            layout = Layout::of(&names);
            if layout.is_none() && !(2..=3).contains(&names.len()) {
                let why = format!("`{}` names no start and end", shortened(first));
                return Err(ReplayError::Marks { line, why });
            }
        } else {
            rows.push((line, cells));
        }
    }
    rows.extend(lines.map(|(line, content)| (line, cells(content))));
    let windows = match &layout {
        Some(Layout { stamped: Some(stamped), .. }) => stamped_windows(&rows, *stamped)?,
        _ => rows.iter().map(|row| window(row, layout.as_ref())).collect::<Result<_, _>>()?,
    };
    if windows.is_empty() {
        return Err(ReplayError::Marks { line: 1, why: "no window is in it".to_owned() });
    }
    Ok(Marks { windows })
}

fn window(
    (line, cells): &(usize, Vec<&str>),
    layout: Option<&Layout>,
) -> Result<Mark, ReplayError> {
    let refused = |why: String| ReplayError::Marks { line: *line, why };
    let row = || shortened(&cells.join(","));
    let (start, end, name) = match layout {
        Some(layout) => (layout.start.unwrap_or(0), layout.end.unwrap_or(1), layout.name),
        None if (2..=3).contains(&cells.len()) => (0, 1, Some(2)),
        None => return Err(refused(format!("`{}` has {} cells", row(), cells.len()))),
    };
    let cell = |at: usize| {
        let cell = cells.get(at).copied();
        cell.ok_or_else(|| refused(format!("`{}` has {} cells", row(), cells.len())))
    };
    let on_its_clock = layout.is_some_and(|layout| layout.elapsed);
    let moment = |text: &str| match elapsed(text).filter(|_| on_its_clock) {
        Some(instant) => Ok(instant.moment()),
        None => text.parse::<Moment>().map_err(refused),
    };
    let (start, end) = (moment(cell(start)?)?, moment(cell(end)?)?);
    if !in_order(start, end) {
        return Err(refused(format!("`{}` does not end after it starts", row())));
    }
    let uncertainty = layout.and_then(|layout| layout.uncertainty);
    let uncertainty_ns = match uncertainty.map(cell).transpose()? {
        Some(cell) => {
            decimal_ns(cell).ok_or_else(|| refused(format!("`{cell}` is no number of seconds")))?
        }
        None => 0,
    };
    let name = name.and_then(|at| cells.get(at)).filter(|name| !name.is_empty());
    Ok(Mark { start, end, name: name.map(|name| (*name).to_owned()), uncertainty_ns })
}

/// Windows of a stamp and a duration: the stamp is their end, or their start, whichever does not
/// let them overlap.
fn stamped_windows(
    rows: &[(usize, Vec<&str>)],
    (stamp, duration, unit_ns): (usize, usize, u64),
) -> Result<Vec<Mark>, ReplayError> {
    let mut windows: Vec<(Moment, u64, u64)> = Vec::new();
    for (line, cells) in rows {
        let refused = |why: String| ReplayError::Marks { line: *line, why };
        let cell = |at: usize| cells.get(at).copied().unwrap_or_default();
        let at = instant(cell(stamp))
            .ok_or_else(|| refused(format!("`{}` is no time", shortened(cell(stamp)))))?;
        let units: Option<f64> = cell(duration).parse().ok();
        // A month is longer than any piece of work.
        let length_ns = units.map(|units| units * unit_ns as f64);
        let length_ns = length_ns.filter(|ns| (1.0..3e15).contains(ns)).map(|ns| ns as u64);
        let length_ns = length_ns
            .ok_or_else(|| refused(format!("`{}` is no duration", shortened(cell(duration)))))?;
        let moment = match (at.moment(), windows.last()) {
            // A time of day that falls back by most of a day is one of the next day.
            (Moment::TimeOfDay(ns), Some((Moment::TimeOfDay(last), ..))) => {
                let ns = last - last % DAY + ns;
                Moment::TimeOfDay(if ns + DAY / 2 < *last { ns + DAY } else { ns })
            }
            (moment, _) => moment,
        };
        windows.push((moment, length_ns, if at.fine { 0 } else { SECOND }));
    }
    let overlaps = |ends: bool| {
        let spans = windows.iter().filter_map(|(at, length_ns, _)| {
            let at_ns = nanoseconds(*at);
            if ends {
                Some((at_ns.checked_sub(*length_ns)?, at_ns))
            } else {
                Some((at_ns, at_ns.checked_add(*length_ns)?))
            }
        });
        let spans: Vec<(u64, u64)> = spans.collect();
        let slack_ns = windows.iter().map(|(.., slack_ns)| *slack_ns).max().unwrap_or_default();
        let apart = spans.windows(2).all(|pair| match pair {
            [(_, end), (start, _)] => start.saturating_add(slack_ns) >= *end,
            _ => true,
        });
        spans.len() < windows.len() || !apart
    };
    let ends = match (overlaps(true), overlaps(false)) {
        (false, true) => true,
        (true, false) => false,
        (ends, _) => {
            let why = format!(
                "whether the time of a row is its start or its end cannot be told ({}): call the \
                 column `start` or `end`, or give both",
                if ends { "rows overlap either way" } else { "both fit" }
            );
            return Err(ReplayError::Marks {
                line: rows.first().map_or(1, |(line, _)| *line),
                why,
            });
        }
    };
    let mark = |(at, length_ns, uncertainty_ns): &(Moment, u64, u64)| {
        let other = moved(*at, *length_ns, ends);
        let (start, end) = if ends { (other, *at) } else { (*at, other) };
        Mark { start, end, name: None, uncertainty_ns: *uncertainty_ns }
    };
    Ok(windows.iter().map(mark).collect())
}

const fn nanoseconds(moment: Moment) -> u64 {
    match moment {
        Moment::Epoch(ns)
        | Moment::Local(ns)
        | Moment::FromStart(ns)
        | Moment::Elapsed(ns)
        | Moment::TimeOfDay(ns) => ns,
    }
}

fn moved(moment: Moment, by_ns: u64, back: bool) -> Moment {
    let ns = nanoseconds(moment);
    let ns = if back { ns.saturating_sub(by_ns) } else { ns.saturating_add(by_ns) };
    match moment {
        Moment::Epoch(_) => Moment::Epoch(ns),
        Moment::Local(_) => Moment::Local(ns),
        Moment::FromStart(_) => Moment::FromStart(ns),
        Moment::Elapsed(_) => Moment::Elapsed(ns),
        Moment::TimeOfDay(_) => Moment::TimeOfDay(ns),
    }
}

fn in_order(start: Moment, end: Moment) -> bool {
    std::mem::discriminant(&start) == std::mem::discriminant(&end)
        && nanoseconds(start) < nanoseconds(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_with_or_without_a_header() {
        let with = marks(b"start_epoch_s,end_epoch_s\n1.5,2\n\n3,4.25\n").unwrap();
        let without = marks(b"1.5, 2\r\n3, 4.25").unwrap();
        assert_eq!(with, without);
        let last = &with.windows[1];
        assert_eq!(
            (last.start, last.end),
            (Moment::Epoch(3 * SECOND), Moment::Epoch(4_250_000_000))
        );
        let named = marks(b"start,end,name\n1,2,first\n3,4,\n").unwrap();
        assert_eq!(named.windows[0].name.as_deref(), Some("first"));
        assert_eq!(named.windows[1].name, None);
    }

    #[test]
    fn requests_are_windows_by_their_columns() {
        let text =
            "iteration,tokens,start_epoch_s,end_epoch_s,start_uncertainty_s\n7,128,1,2.5,0.85\n";
        let marks_of = |text: &str| marks(text.as_bytes()).unwrap().windows;
        let [mark] = marks_of(text).try_into().unwrap();
        assert_eq!((mark.start, mark.end), (Moment::Epoch(SECOND), Moment::Epoch(2_500_000_000)));
        assert_eq!((mark.name.as_deref(), mark.uncertainty_ns), (Some("7"), 850_000_000));
        let elapsed = marks_of("request,start_elapsed_s,end_elapsed_s\n1,42.464,46.924\n");
        assert_eq!(elapsed[0].start, Moment::Elapsed(42_464_000_000));
    }

    #[test]
    fn rows_tell_whether_a_stamp_is_an_end_or_a_start() {
        let ends =
            "Time,Total_Dur\n10:00:10,4500000000\n10:00:20,9800000000\n10:00:25,4900000000\n";
        let windows = marks(ends.as_bytes()).unwrap().windows;
        let at = |seconds_ms: u64| Moment::TimeOfDay((36_000_000 + seconds_ms) * 1_000_000);
        assert_eq!((windows[1].start, windows[1].end), (at(10_200), at(20_000)));
        assert_eq!(windows[1].uncertainty_ns, SECOND);
        let starts = "time,duration_s\n100000000.5,4\n100000004.5,9\n100000013.5,1\n";
        let windows = marks(starts.as_bytes()).unwrap().windows;
        assert_eq!(windows[1].end, Moment::Epoch(100_000_013_500_000_000));
        for either in
            ["time,duration_s\n100000000,1\n100000010,1\n", "time,duration_s\n100000000,1\n"]
        {
            let error = marks(either.as_bytes()).unwrap_err();
            assert!(error.to_string().contains("start or its end"), "{error}");
        }
    }

    #[test]
    fn what_is_no_mark_is_refused_by_its_line() {
        for (text, line) in [
            ("", 1),
            ("start,end\n", 1),
            ("1,2\n2,1\n", 2),
            ("1,2\n3\n", 2),
            ("start,end\nstart,end\n1,2", 2),
            ("1,nan\n", 1),
            ("1,+2\n", 1),
            ("timestamp,power.draw [W],pstate,index\n", 1),
        ] {
            assert_eq!(marks(text.as_bytes()).unwrap_err().line(), Some(line), "{text:?}");
        }
    }
}
