//! What is to be said of a recording beside its figures, as a type.

mod text;

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
    /// A column has one reading: a power, and no energy.
    OneReading {
        /// The columns.
        column: String,
    },
    /// Stamps are cut to whole seconds.
    StampsTruncated {
        /// How many rows share a stamp with the one before.
        doubled: usize,
        /// True where seconds since the beginning are used in their place.
        elapsed: bool,
    },
    /// One stamp for a whole tick, made by a loop and not by the tool that read the cards.
    StampsOfLoop {
        /// How far from it a reading may have been taken, s.
        seconds: f64,
    },
    /// No unit is written anywhere.
    UnitAssumed {
        /// The column.
        column: String,
        /// What is taken.
        unit: &'static str,
    },
    /// The header's names stand in another order than the columns.
    HeaderMisnamed {
        /// The column that should tell cards apart, and does not.
        named: String,
        /// The one that does.
        used: String,
    },
    /// The header names more columns than rows have.
    ShortRows {
        /// Cells in a row.
        cells: usize,
        /// The names without cells.
        without: String,
    },
    /// There is no header; what the columns are was told by their cells.
    Inferred {
        /// What was taken.
        columns: String,
    },
    /// The last tick has lost cards.
    CutTick {
        /// Its last line.
        line: usize,
        /// Cards it has.
        has: usize,
        /// Cards there are.
        of: usize,
    },
    /// Instances share a card's power.
    Instances {
        /// The card.
        card: String,
        /// How many.
        instances: usize,
    },
    /// Labels that are no part of a series' name.
    LabelsIgnored {
        /// Their names.
        labels: String,
    },
    /// Counters that stand for parts of one thing.
    Parts {
        /// What they are told apart by.
        label: String,
    },
    /// A mark of the log that is no window.
    MarkRefused {
        /// Its line.
        line: usize,
        /// Why.
        why: String,
    },
    /// A counter that fell or jumped.
    Restarted {
        /// The column.
        column: String,
        /// How often.
        times: usize,
        /// When first, s after the beginning.
        from_s: f64,
    },
    /// The sensor follows power slowly.
    SlowSensor {
        /// The card.
        card: String,
        /// What is allowed for it, s.
        seconds: f64,
    },
    /// A column covers more than the card.
    Covers {
        /// The column.
        column: String,
        /// What it covers.
        what: &'static str,
    },
    /// Windows whose place is known only so well.
    WindowsUncertain {
        /// How many.
        windows: usize,
        /// Of how many.
        of: usize,
        /// The worst, s.
        seconds: f64,
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
            Self::OneReading { .. } => "one_reading",
            Self::StampsTruncated { .. } => "stamps_truncated",
            Self::StampsOfLoop { .. } => "stamps_of_loop",
            Self::UnitAssumed { .. } => "unit_assumed",
            Self::HeaderMisnamed { .. } => "header_misnamed",
            Self::ShortRows { .. } => "short_rows",
            Self::Inferred { .. } => "columns_inferred",
            Self::CutTick { .. } => "cut_tick",
            Self::Instances { .. } => "instances",
            Self::LabelsIgnored { .. } => "labels_ignored",
            Self::Parts { .. } => "parts",
            Self::MarkRefused { .. } => "mark_refused",
            Self::Restarted { .. } => "counter_reset",
            Self::SlowSensor { .. } => "slow_sensor",
            Self::Covers { .. } => "covers_more",
            Self::WindowsUncertain { .. } => "window_uncertain",
            Self::WindowsBelowResolution { .. } => "window_below_resolution",
            Self::WindowsOutside { .. } => "partial",
        }
    }
}
