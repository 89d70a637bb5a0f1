//! Why a recording is refused: what was wrong, where, and what would help.

/// Why a recording, or what was asked of it, is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// No row at all.
    #[error("nothing is in it: nvidia-smi writes a first row `timestamp, …, power.draw [W]`")]
    Empty,
    /// No format that is known.
    #[error(
        "this is in no format that is known (it begins `{begins}`); read are: {known}. A CSV needs a \
         first row that names a column of time and one of power (`time,watts`); --format forces a \
         format, --columns names the columns of rows without a header"
    )]
    UnknownFormat {
        /// The first line that is not blank.
        line: usize,
        /// How it begins.
        begins: String,
        /// What could be read.
        known: String,
    },
    /// Not the format that was asked for.
    #[error("this is no {format}: {why}")]
    NotThisFormat {
        /// Where.
        line: usize,
        /// The format.
        format: &'static str,
        /// Why it is not.
        why: String,
    },
    /// A file of windows where a log of power is wanted.
    #[error(
        "this is no log of power: its columns (`{columns}`) are windows of work; read the log of the \
         card with `--marks` and this file"
    )]
    Windows {
        /// Where its header is.
        line: usize,
        /// The header.
        columns: String,
    },
    /// The first row names no columns.
    #[error(
        "the first row names no columns (it reads `{begins}`), and which column is the power cannot be \
         told from its cells: name them with --columns timestamp,index,power.draw,… in their order, or \
         record with --format=csv without noheader"
    )]
    NoHeader {
        /// Where.
        line: usize,
        /// How it reads.
        begins: String,
    },
    /// A column that is needed is not there.
    #[error(
        "no column `{wanted}` (columns: {has}); with nvidia-smi, add {wanted} to its --query-gpu"
    )]
    NoColumn {
        /// Where the header is.
        line: usize,
        /// What is wanted.
        wanted: &'static str,
        /// What there is.
        has: String,
    },
    /// A column's unit is not known.
    #[error(
        "column `{column}` is in `{unit}`, which is no unit of power that is known (W, mW, kW)"
    )]
    UnknownUnit {
        /// Where.
        line: usize,
        /// Which column.
        column: String,
        /// Its unit.
        unit: String,
    },
    /// A column has no unit, in its header or in its cells.
    #[error("column `{column}` has no unit: write `{column} [W]` in the header if it is in watts")]
    NoUnit {
        /// Where the header is.
        line: usize,
        /// Which column.
        column: String,
    },
    /// A second header with other columns.
    #[error("another header with other columns begins here: split the file at this row")]
    HeaderChanged {
        /// Where.
        line: usize,
    },
    /// Rows of several cards, and nothing that tells whose they are.
    #[error(
        "this row has the stamp of line {before}, and no column says whose it is: several cards \
         cannot be told apart; record with --query-gpu=timestamp,index,uuid,… (or -i for one card)"
    )]
    CardsUnnamed {
        /// Where.
        line: usize,
        /// The row with the same stamp.
        before: usize,
    },
    /// No row could be read.
    #[error("none of its rows can be read: {why}")]
    NoRows {
        /// The first row that could not.
        line: usize,
        /// Why.
        why: String,
    },
    /// No column of power has a number.
    #[error("no reading of power in {rows} rows: the first cell of `{column}` reads `{fault}`")]
    NoReadings {
        /// The first row.
        line: usize,
        /// How many rows there are.
        rows: usize,
        /// A column of power.
        column: String,
        /// What its first cell says.
        fault: joulebook_core::Fault,
    },
    /// The column asked for is not there, or empty.
    #[error("no readings in a column `{wanted}`; columns of power: {has}")]
    NoSuchColumn {
        /// What was asked for.
        wanted: String,
        /// What there is.
        has: String,
    },
    /// Idle floors that cannot be matched to cards.
    #[error("{given} idle floors for {cards} cards: give one a card in their order, or their sum")]
    IdleFloors {
        /// How many were given.
        given: usize,
        /// How many cards there are.
        cards: usize,
    },
    /// Epoch seconds against stamps without a zone.
    #[error(
        "the log's stamps have no zone, so epoch seconds cannot be matched to them: say the zone \
         of the recording, as --tz +01:00 (a whole file, and times written as in the log, need none)"
    )]
    NeedsZone,
    /// A time since a recording's beginning against a wall clock.
    #[error(
        "these times count from a beginning that the log does not tell: give them as +SECONDS from \
         its first row, or by the clock of its stamps"
    )]
    NoElapsedClock,
    /// Times of day, and a date is asked for.
    #[error(
        "the log tells the time of day and no date: give times as HH:MM:SS, or as +SECONDS from its \
         first row"
    )]
    NoDate,
    /// A recording that counts from its own beginning.
    #[error("the recording counts from its own beginning: give times as +SECONDS")]
    NoAbsoluteClock,
    /// Columns that are named in another order than they stand.
    #[error(
        "the header names are not in the order of the columns: `{power}` reads like {reads}, and \
         `{other}` like nvidia-smi's power; say what the columns are with --columns"
    )]
    HeaderOrder {
        /// Where the header is.
        line: usize,
        /// The column that is called power.
        power: String,
        /// What its cells look like.
        reads: String,
        /// The column that looks like power.
        other: String,
    },
    /// A row of marks that is none.
    #[error(
        "{why}: marks are rows of `start,end[,name]`, or have a header with columns of start and end \
         (or of end and duration)"
    )]
    Marks {
        /// Where.
        line: usize,
        /// What is wrong.
        why: String,
    },
}

impl ReplayError {
    /// Where in the file, from 1.
    pub const fn line(&self) -> Option<usize> {
        match self {
            Self::UnknownFormat { line, .. }
            | Self::NotThisFormat { line, .. }
            | Self::Windows { line, .. }
            | Self::HeaderOrder { line, .. }
            | Self::NoHeader { line, .. }
            | Self::NoColumn { line, .. }
            | Self::UnknownUnit { line, .. }
            | Self::NoUnit { line, .. }
            | Self::HeaderChanged { line }
            | Self::CardsUnnamed { line, .. }
            | Self::NoRows { line, .. }
            | Self::NoReadings { line, .. }
            | Self::Marks { line, .. } => Some(*line),
            Self::Empty
            | Self::NoSuchColumn { .. }
            | Self::IdleFloors { .. }
            | Self::NeedsZone
            | Self::NoElapsedClock
            | Self::NoDate
            | Self::NoAbsoluteClock => None,
        }
    }
}
