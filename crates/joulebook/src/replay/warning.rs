//! What is to be said of a recording beside its figures, as a type.

use std::fmt;

/// Something that a reader of the figures should know. `column` names the card too, where there
/// are several.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// Rows were left out.
    Refused {
        /// How many.
        rows: usize,
        /// The first one's line.
        line: usize,
        /// Why the first one was.
        why: String,
    },
    /// Rows whose time goes back were left out.
    TimeGoesBack {
        /// How many.
        rows: usize,
        /// The first one's line.
        line: usize,
    },
    /// The last row has lost its end.
    CutLastRow {
        /// Its line.
        line: usize,
    },
    /// Rows come several at a time, as if from several cards, and no column tells them apart.
    RowsInClusters {
        /// How many at a time.
        rows: usize,
    },
    /// Cells without a number.
    Missing {
        /// The column.
        column: String,
        /// How many.
        cells: u64,
        /// Of how many.
        of: u64,
        /// The word for the first one.
        fault: joulebook_core::Fault,
        /// The first one's line.
        line: usize,
    },
    /// The column never changes.
    OneValue {
        /// The column.
        column: String,
        /// Its value, W.
        watts: f64,
        /// Rows that show it.
        rows: usize,
    },
    /// The column stood still while the card worked.
    Frozen {
        /// The column.
        column: String,
        /// Its value, W.
        watts: f64,
        /// Rows that show it.
        rows: usize,
        /// For how long, s.
        seconds: f64,
        /// How long after the recording's begin, s.
        from_s: f64,
        /// What the card did meanwhile.
        work: String,
    },
    /// Stretches without readings that the trapezoid bridges.
    Bridged {
        /// The column.
        column: String,
        /// How many.
        holes: usize,
        /// The longest, s.
        longest_s: f64,
        /// The joules in them.
        joules: f64,
    },
    /// Stretches without readings that are too long to bridge.
    Gap {
        /// The column.
        column: String,
        /// How many.
        gaps: usize,
        /// The longest, s.
        longest_s: f64,
        /// How long after the recording's begin the first one is, s.
        from_s: f64,
    },
    /// The column shows a mean.
    Averaged {
        /// The column.
        column: String,
        /// Over how long, s.
        seconds: f64,
    },
    /// What the column's readings are a mean over is not known.
    WindowAssumed {
        /// The column.
        column: String,
        /// What is taken, s.
        seconds: f64,
    },
    /// No power limit is known.
    CeilingAssumed {
        /// The card.
        card: String,
        /// What is taken, W.
        watts: f64,
    },
    /// Windows that are too short for the sensor.
    WindowsBelowResolution {
        /// How many.
        windows: usize,
        /// Of how many.
        of: usize,
        /// The column.
        column: String,
        /// The shortest window that it can tell, s.
        seconds: f64,
    },
    /// Windows that the recording does not cover.
    WindowsOutside {
        /// How many.
        windows: usize,
        /// Of how many.
        of: usize,
        /// Hours to add to the zone for all of them to lie inside, where one whole number does.
        hours: Option<i64>,
    },
}

impl Warning {
    /// One word for it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Refused { .. } => "malformed_row",
            Self::TimeGoesBack { .. } => "non_monotonic",
            Self::CutLastRow { .. } => "cut_last_row",
            Self::RowsInClusters { .. } => "identity_ambiguous",
            Self::Missing { .. } => "missing",
            Self::OneValue { .. } => "one_value",
            Self::Frozen { .. } => "counter_frozen",
            Self::Bridged { .. } => "bridged",
            Self::Gap { .. } => "gap",
            Self::Averaged { .. } => "averaged",
            Self::WindowAssumed { .. } => "window_assumed",
            Self::CeilingAssumed { .. } => "ceiling_assumed",
            Self::WindowsBelowResolution { .. } => "window_below_resolution",
            Self::WindowsOutside { .. } => "partial",
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { rows, line, why } => {
                write!(to, "{rows} rows left out; the first, line {line}: {why}")
            }
            Self::TimeGoesBack { rows, line } => write!(
                to,
                "{rows} rows left out whose time goes back, from line {line} (a clock was set, or \
                 the zone's clocks changed)"
            ),
            Self::CutLastRow { line } => {
                write!(to, "line {line}, the last, has lost its end and is left out")
            }
            Self::RowsInClusters { rows } => write!(
                to,
                "rows come {rows} at a time and no column says whose they are: if they are of \
                 several cards the figures are worthless; record index,uuid as well"
            ),
            Self::Missing { column, cells, of, fault, line } => write!(
                to,
                "{column}: {cells} of {of} cells hold no number (line {line}: {fault}); they are \
                 left out, not taken for 0 W"
            ),
            Self::OneValue { column, watts, rows } => write!(
                to,
                "{column} is {watts} W in all {rows} rows: a card that did nothing, or a frozen \
                 sensor (record utilization.gpu and temperature.gpu to tell)"
            ),
            Self::Frozen { column, watts, rows, seconds, from_s, work } => write!(
                to,
                "{column} is frozen: {watts} W in {rows} rows, {seconds:.1} s from +{from_s:.3} s, \
                 while {work}"
            ),
            Self::Bridged { column, holes, longest_s, joules } => write!(
                to,
                "{column}: {holes} stretches without readings (the longest {longest_s:.3} s) are \
                 bridged by a straight line: {joules:.3} J"
            ),
            Self::Gap { column, gaps, longest_s, from_s } => write!(
                to,
                "{column}: {gaps} gaps too long to bridge (the longest {longest_s:.1} s, the first \
                 from +{from_s:.3} s): what was drawn in them is not known"
            ),
            Self::Averaged { column, seconds } => write!(
                to,
                "{column}: each reading is the mean over {seconds} s, so that what is shorter is \
                 smeared, and shows late"
            ),
            Self::WindowAssumed { column, seconds } => write!(
                to,
                "no card's name tells what a reading of {column} is the mean over: the sensor's \
                 period, {seconds:.3} s, is taken for it (--card NAME decides)"
            ),
            Self::CeilingAssumed { card, watts } => write!(
                to,
                "no power limit of {card} is known, or its readings pass it: bounds allow \
                 {watts:.0} W; --limit W, or a column power.limit, makes them narrower"
            ),
            Self::WindowsBelowResolution { windows, of, column, seconds } => write!(
                to,
                "{windows} of {of} windows are shorter than the {seconds:.3} s that {column} can \
                 tell apart: what was seen in them is shown, and is no measurement"
            ),
            Self::WindowsOutside { windows, of, hours } => {
                write!(to, "{windows} of {of} windows lie outside the recording")?;
                match hours {
                    Some(hours) => write!(to, "; with the zone {hours:+} h they would lie inside"),
                    None => Ok(()),
                }
            }
        }
    }
}
