//! The sum over windows, kept apart by what is known of each: a figure that is no measurement never
//! joins those that are.

use joulebook::{Method, replay::Answer};

use super::{Report, Window, not_apart};

/// The sum over windows.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub windows: usize,
    pub seconds: f64,
    pub measured: Measured,
    pub seen: Seen,
    /// Windows of which nothing was seen.
    pub nothing: usize,
}

/// Windows that were measured.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub windows: usize,
    pub gross_j: f64,
    /// Sum of the worst cases.
    pub bound_j: f64,
    /// Windows that came out above their idle floor, and those joules.
    pub above_idle: usize,
    pub joules: f64,
}

/// Windows of which something was seen that is no measurement.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub windows: usize,
    pub gross_j: f64,
    pub low_j: f64,
    pub high_j: f64,
}

pub(super) fn tally(windows: &[Window]) -> Tally {
    let mut tally = Tally::default();
    for Window { sum, .. } in windows {
        tally.windows += 1;
        tally.seconds += sum.span.seconds();
        add(&mut tally, sum);
    }
    tally
}

fn add(tally: &mut Tally, window: &Answer) {
    let Some(seen) = window.seen else {
        tally.nothing += 1;
        return;
    };
    if !window.is_measured() {
        tally.seen.windows += 1;
        tally.seen.gross_j += seen.gross_j;
        tally.seen.low_j += seen.range_j.0;
        tally.seen.high_j += seen.range_j.1;
        return;
    }
    tally.measured.windows += 1;
    tally.measured.gross_j += seen.gross_j;
    tally.measured.bound_j += seen.bound_j;
    if let (Method::Sampled, Some(joules)) = (window.measurement.method, window.measurement.joules)
    {
        tally.measured.above_idle += 1;
        tally.measured.joules += joules;
    }
}

/// All of several logs.
#[derive(Debug, Default)]
pub(super) struct AllLogs {
    pub gross_j: f64,
    /// Sum of the worst cases.
    pub bound_j: f64,
    /// Above idle, where every log has that.
    pub joules: Option<f64>,
}

/// The sum over logs, or why there is none: cards that may be the same, or one that was not
/// measured.
pub(super) fn all_logs(reports: &[Report]) -> Result<AllLogs, String> {
    if let Some(why) = not_apart(reports) {
        return Err(why);
    }
    let mut sum = AllLogs { joules: Some(0.0), ..AllLogs::default() };
    for report in reports {
        let whole = report.sum.as_ref().or(report.cards.first());
        let Some((whole, seen)) =
            whole.and_then(|whole| Some((whole, whole.seen?))).filter(|(it, _)| it.is_measured())
        else {
            return Err(format!("{} was not measured", report.path));
        };
        sum.gross_j += seen.gross_j;
        sum.bound_j += seen.bound_j;
        sum.joules = sum.joules.zip(whole.measurement.joules).map(|(sum, own)| sum + own);
    }
    Ok(sum)
}
