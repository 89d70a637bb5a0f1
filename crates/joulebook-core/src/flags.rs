//! What else is to be said of an interval or a window: a small set of named marks.

use std::{fmt, ops};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error, ser::SerializeSeq};

/// A set of marks. Intervals carry those of their own stretch; a window carries the union of the
/// intervals it touches, and its own.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(u32);

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $bit:literal, $word:literal;)*) => {
        impl Flags {
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*

            const NAMES: &[(Self, &'static str)] = &[$((Self::$name, $word)),*];
        }
    };
}

flags! {
    /// The register restarted inside.
    COUNTER_RESET = 0, "counter_reset";
    /// The register passed its modulus inside.
    COUNTER_WRAPPED = 1, "counter_wrapped";
    /// The register was set to a higher value inside; the jump is not counted.
    COUNTER_SET = 2, "counter_set";
    /// A reading off the register's line was left out.
    COUNTER_GLITCH = 3, "counter_glitch";
    /// The register did not move for more than ten of its periods while power was drawn.
    COUNTER_FROZEN = 4, "counter_frozen";
    /// A stretch whose energy, or whose place in time, is not known.
    GAP = 5, "gap";
    /// A stretch without readings that was bridged by the trapezoid.
    BRIDGED = 6, "bridged";
    /// The power limit held the clocks down.
    POWER_CAPPED = 7, "power_capped";
    /// The hardware power brake held the clocks down.
    POWER_BRAKED = 8, "power_braked";
    /// Clocks of two hosts moved against each other.
    CLOCK_SKEW = 9, "clock_skew";
    /// Part of what was asked for is not covered.
    PARTIAL = 10, "partial";
    /// Other windows were open on the card at the same time.
    OVERLAP = 11, "overlap";
    /// The idle floor does not fit what was seen.
    BASELINE_SUSPECT = 12, "baseline_suspect";
    /// The stored floor could not be met for longer than it may be carried.
    FLOOR_SUSPECT = 13, "floor_suspect";
    /// Two sources disagreed and one was taken.
    SOURCE_CONFLICT = 14, "source_conflict";
    /// The sensor's averaging window is not known and its update period was taken for it.
    WINDOW_ASSUMED = 15, "window_assumed";
    /// Counter and gauge differ by more than 10 %.
    MISMATCH = 16, "mismatch";
    /// The counter's slope depends on how often it is read.
    POLL_SENSITIVE = 17, "poll_sensitive";
    /// The bound is larger than the value.
    UNRESOLVED = 18, "unresolved";
    /// The idle floor stored for this card is older than a day, or the one that was learnt rests on
    /// nothing seen in the last ten minutes.
    BASELINE_STALE = 19, "baseline_stale";
    /// Somebody else's process was resident.
    FOREIGN = 20, "foreign";
    /// Who is resident could not be seen.
    TENANCY_UNKNOWN = 21, "tenancy_unknown";
    /// A poll failed inside; the counter's next reading spans it.
    HOLE = 22, "hole";
    /// The register's modulus is not known and it fell.
    AMBIGUOUS_WRAP = 23, "ambiguous_wrap";
    /// A gauge's reading that shows the same value as the one before: a poll, not an update.
    REPEATED = 24, "repeated";
}

impl Flags {
    /// No mark.
    pub const NONE: Self = Self(0);

    /// The set as a word, for a ring slot.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The set from a ring slot's word.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Both sets.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set without the other's marks.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// True when all of the other's marks are here.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True when any of the other's marks is here.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// True when no mark is here.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The mark of that word; `None` for a word that is none.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, name)| *name == word).map(|(flag, _)| *flag)
    }

    /// The marks' words, in a fixed order.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, word)| *word)
    }
}

impl ops::BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl ops::BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        *self = self.union(other);
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.words()).finish()
    }
}

impl Serialize for Flags {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for word in self.words() {
            list.serialize_element(word)?;
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for Flags {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = Vec::<String>::deserialize(deserializer)?;
        words.iter().try_fold(Self::NONE, |flags, word| {
            let known = Self::NAMES.iter().find(|(_, name)| name == word);
            let (flag, _) = known.ok_or_else(|| D::Error::custom(format!("no mark `{word}`")))?;
            Ok(flags | *flag)
        })
    }
}
