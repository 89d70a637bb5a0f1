//! What goes wrong with a simulated card.

use super::Span;

/// Something that goes wrong for a while.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// When.
    pub span: Span,
    /// With what.
    pub target: Target,
    /// How.
    pub effect: Effect,
}

/// Which calls a fault meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The energy register.
    Energy,
    /// The averaged power register.
    Power,
    /// The instant power register.
    Instant,
    /// Every read by field id.
    Fields,
    /// Memory.
    Memory,
    /// Utilisation.
    Utilization,
    /// Process lists.
    Processes,
    /// The name.
    Name,
    /// Looking the card up.
    Handle,
    /// Starting the library.
    Init,
    /// Every call about the card.
    All,
}

/// What a fault does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// The energy register starts at this many mJ at the fault's start (`reset`: 0).
    Set(i64),
    /// The energy register is off by this many mJ.
    Jump(i64),
    /// It shows what it showed at the fault's start.
    Stuck,
    /// It shows this.
    Value(f64),
    /// The call fails.
    Refuse(Refusal),
    /// The call takes this long, ns.
    Hang(i64),
}

/// How a driver call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The card has no such reading.
    NotSupported,
    /// The card fell off the bus.
    Lost,
    /// An error without a name.
    Unknown,
    /// The driver did not answer.
    Timeout,
    /// There is nothing to show.
    NoData,
    /// Not for this user.
    NoPermission,
    /// There is no such thing.
    NotFound,
    /// The library was not started.
    Uninitialized,
    /// The arguments are wrong.
    Invalid,
    /// The driver is not loaded.
    NoDriver,
    /// Library and driver are of different versions.
    Mismatch,
    /// The card must be reset.
    ResetRequired,
}

/// Something that goes wrong with the `nvidia-smi` program for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmiFault {
    /// When.
    pub span: Span,
    /// How.
    pub effect: SmiEffect,
}

/// What the `nvidia-smi` program does wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SmiEffect {
    /// It ends with this code, and says this.
    Exit {
        /// The exit code.
        code: i32,
        /// What it prints first.
        text: String,
    },
    /// It waits this long before it goes on, ns.
    Hang(i64),
    /// It prints this line.
    Garbage(String),
    /// It prints nothing.
    Empty,
    /// It dies without a word.
    Die,
    /// It stops printing while this lasts.
    Pause,
    /// It prints this in the column of that field.
    Field {
        /// The field, as queries name it.
        field: String,
        /// What stands in its cell.
        text: String,
    },
}

impl Target {
    /// The words of the grammar.
    pub const WORDS: &[(&'static str, Self)] = &[
        ("energy", Self::Energy),
        ("power", Self::Power),
        ("instant", Self::Instant),
        ("fields", Self::Fields),
        ("mem", Self::Memory),
        ("util", Self::Utilization),
        ("procs", Self::Processes),
        ("name", Self::Name),
        ("handle", Self::Handle),
        ("init", Self::Init),
        ("all", Self::All),
    ];
}

impl Refusal {
    /// The words of the grammar.
    pub const WORDS: &[(&'static str, Self)] = &[
        ("notsupported", Self::NotSupported),
        ("lost", Self::Lost),
        ("unknown", Self::Unknown),
        ("timeout", Self::Timeout),
        ("nodata", Self::NoData),
        ("noperm", Self::NoPermission),
        ("notfound", Self::NotFound),
        ("uninit", Self::Uninitialized),
        ("invalid", Self::Invalid),
        ("nodriver", Self::NoDriver),
        ("mismatch", Self::Mismatch),
        ("resetreq", Self::ResetRequired),
    ];

    /// What a reader of the card makes of it.
    pub const fn fault(self) -> joulebook_core::Fault {
        use joulebook_core::Fault;
        match self {
            Self::NotSupported => Fault::NotSupported,
            Self::Lost | Self::ResetRequired => Fault::Lost,
            Self::Timeout => Fault::Timeout,
            Self::NoData => Fault::NotReady,
            Self::NoPermission => Fault::Permission,
            Self::NotFound => Fault::Absent,
            Self::NoDriver | Self::Mismatch => Fault::DriverAbsent,
            Self::Unknown | Self::Uninitialized | Self::Invalid => Fault::Unknown,
        }
    }
}
