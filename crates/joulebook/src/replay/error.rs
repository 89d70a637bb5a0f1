//! Why a recording is refused: what was wrong, where, and what would help.

/// Why a recording, or what was asked of it, is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// No row at all.
    #[error("nothing is in it: nvidia-smi writes a first row `timestamp, …, power.draw [W]`")]
    Empty,
    /// The first row names no columns.
    #[error(
        "the first row names no columns (it reads `{begins}`): record with --format=csv without \
         noheader, or put the header's row back in front"
    )]
    NoHeader {
        /// Where.
        line: usize,
        /// How it reads.
        begins: String,
    },
    /// A column that is needed is not there.
    #[error(
        "no column `{wanted}` (columns: {has}): this reads nvidia-smi's CSV; add {wanted} to its \
         --query-gpu"
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
    /// A recording that counts from its own beginning.
    #[error("the recording counts from its own beginning: give times as +SECONDS")]
    NoAbsoluteClock,
    /// A row of marks that is none.
    #[error("{why}: marks are rows of `start,end` in epoch seconds (a header is allowed)")]
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
            Self::NoHeader { line, .. }
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
            | Self::NoAbsoluteClock => None,
        }
    }
}
