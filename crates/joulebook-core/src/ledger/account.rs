//! The accounts of a card: a closed set.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A request, by its number in the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Somebody else on the card, by process id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(pub u32);

/// Which part of a request's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Reading the prompt.
    Prefill,
    /// Writing the answer.
    Decode,
}

/// Where a microjoule can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Account {
    /// What was counted; the other side of all others.
    Register,
    /// Counted, not settled yet.
    Suspense,
    /// What the card draws with no model.
    IdleOff,
    /// What keeping the model loaded adds; all idle, until the card has been seen without one.
    IdleResident,
    /// A request's.
    Request(RequestId, Phase),
    /// What requests hold together that nothing can be booked on any more.
    Closed(Phase),
    /// Somebody else's, by utilisation.
    Foreign(TenantId),
    /// Active energy while somebody else was there, and whose it was cannot be told.
    ForeignUnresolved,
    /// Active energy that nobody known caused.
    Unattributed,
    /// Counted, but when is not known.
    Gap,
}

impl fmt::Display for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Register => formatter.write_str("register"),
            Self::Suspense => formatter.write_str("suspense"),
            Self::IdleOff => formatter.write_str("idle/off"),
            Self::IdleResident => formatter.write_str("idle/resident"),
            Self::Request(RequestId(id), Phase::Prefill) => {
                write!(formatter, "request/{id}/prefill")
            }
            Self::Request(RequestId(id), Phase::Decode) => write!(formatter, "request/{id}/decode"),
            Self::Closed(Phase::Prefill) => formatter.write_str("closed/prefill"),
            Self::Closed(Phase::Decode) => formatter.write_str("closed/decode"),
            Self::Foreign(TenantId(id)) => write!(formatter, "foreign/{id}"),
            Self::ForeignUnresolved => formatter.write_str("foreign/unresolved"),
            Self::Unattributed => formatter.write_str("unattributed"),
            Self::Gap => formatter.write_str("gap"),
        }
    }
}

impl FromStr for Account {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("`{text}` is no account");
        let request = |rest: &str| {
            let (id, phase) = rest.split_once('/')?;
            let phase = match phase {
                "prefill" => Phase::Prefill,
                "decode" => Phase::Decode,
                _ => return None,
            };
            Some(Self::Request(RequestId(id.parse().ok()?), phase))
        };
        match text {
            "register" => Ok(Self::Register),
            "suspense" => Ok(Self::Suspense),
            "idle/off" => Ok(Self::IdleOff),
            "idle/resident" => Ok(Self::IdleResident),
            "closed/prefill" => Ok(Self::Closed(Phase::Prefill)),
            "closed/decode" => Ok(Self::Closed(Phase::Decode)),
            "foreign/unresolved" => Ok(Self::ForeignUnresolved),
            "unattributed" => Ok(Self::Unattributed),
            "gap" => Ok(Self::Gap),
            _ => match text.split_once('/') {
                Some(("request", rest)) => request(rest).ok_or_else(unknown),
                Some(("foreign", id)) => {
                    id.parse().map(|id| Self::Foreign(TenantId(id))).map_err(|_| unknown())
                }
                _ => Err(unknown()),
            },
        }
    }
}

impl Serialize for Account {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Account {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}
