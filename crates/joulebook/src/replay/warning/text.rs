//! The warnings for people.

use std::fmt;

use super::Warning;

impl fmt::Display for Warning {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { rows, line, why } => {
                write!(
                    to,
                    "{rows} {} left out; the first, line {line}: {why}",
                    if *rows == 1 { "row" } else { "rows" }
                )
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
            Self::OneReading { column } => write!(
                to,
                "{column}: one reading, which is a power and no energy: record it again and again \
                 (nvidia-smi -lms 100, amd-smi metric --watch 1)"
            ),
            Self::StampsTruncated { doubled, elapsed } => {
                write!(to, "stamps are cut to whole seconds")?;
                if *doubled > 0 {
                    write!(to, ", and {doubled} rows have that of the row before")?;
                }
                match elapsed {
                    true => write!(to, ": the log's elapsed seconds are its clock instead"),
                    false => write!(to, ": a reading may be up to 1 s later than its stamp"),
                }
            }
            Self::StampsOfLoop { seconds } => write!(
                to,
                "each tick has one stamp for all cards, the logger's own and not the tool's: a \
                 reading may have been taken up to {seconds:.3} s (one turn) after or before it"
            ),
            Self::UnitAssumed { column, unit } => {
                write!(to, "{column}: no unit is written; {unit} is what this column is in")
            }
            Self::HeaderMisnamed { named, used } => write!(
                to,
                "the header's names are not in the order of the columns: `{named}` is the same for \
                 several rows of a tick, and `{used}` tells cards apart, so that one is taken (say \
                 what the columns are with --columns)"
            ),
            Self::ShortRows { cells, without } => write!(
                to,
                "no row has more than {cells} cells: the columns {without} of the header are not there"
            ),
            Self::Inferred { columns } => write!(
                to,
                "there is no header; by their cells the columns are taken for {columns} (--columns \
                 decides)"
            ),
            Self::CutTick { line, has, of } => write!(
                to,
                "the last tick, up to line {line}, has {has} of {of} cards: the others end a tick \
                 earlier"
            ),
            Self::Instances { card, instances } => write!(
                to,
                "{card} is parted into {instances} MIG instances: its power is that of all of them, \
                 and none has a figure of its own"
            ),
            Self::LabelsIgnored { labels } => write!(
                to,
                "labels that change from row to row are no names of series and are left out: {labels}"
            ),
            Self::Parts { label } => write!(
                to,
                "counters that differ in `{label}` are parts of one thing, so their sum is its energy"
            ),
            Self::MarkRefused { line, why } => write!(to, "line {line}: {why}"),
            Self::Restarted { column, times, from_s } => write!(
                to,
                "{column}: the counter fell or jumped {times} times, first at +{from_s:.3} s: what it \
                 counted across is not known"
            ),
            Self::SlowSensor { card, seconds } => write!(
                to,
                "{card} has a sensor that follows its power slowly, which is a lag and no mean over a \
                 window: bounds allow for {seconds} s at each edge"
            ),
            Self::Covers { column, what } => {
                write!(to, "{column} covers {what}, not a card alone")
            }
            Self::WindowsUncertain { windows, of, seconds } => write!(
                to,
                "where {windows} of {of} windows lie is known to {seconds:.2} s only; their bounds \
                 allow for it"
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
