//! Why another host's agent cannot be read.

use std::{io, path::PathBuf};

use joulebook_core::Fault;

/// Why another host's agent cannot be read. Each says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// What was given is no address of an agent.
    #[error("{endpoint:?} is no agent's address: {why}; give http://HOST:PORT")]
    Endpoint {
        /// What was given.
        endpoint: String,
        /// What is wrong with it.
        why: String,
    },
    /// The token cannot be had.
    #[error("the agent's token cannot be read from {}: {why}", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Nobody answers there.
    #[error(
        "{endpoint}: {why}; is an agent running there (joulebook agent), and is it let through?"
    )]
    Unreachable {
        /// Where.
        endpoint: String,
        /// What the system said.
        why: String,
    },
    /// It did not answer in time.
    #[error("{endpoint} did not answer in time ({what})")]
    Silent {
        /// Where.
        endpoint: String,
        /// What was waited for.
        what: String,
    },
    /// It wants another token, or one at all.
    #[error("{endpoint} refuses our token ({status}): name the file that holds it (token_file)")]
    Refused {
        /// Where.
        endpoint: String,
        /// The status.
        status: u16,
    },
    /// It does not know what was asked for.
    #[error("{endpoint} has no {path}{said}")]
    NotFound {
        /// Where.
        endpoint: String,
        /// What was asked for.
        path: String,
        /// What it said.
        said: String,
    },
    /// It cannot answer now.
    #[error("{endpoint} answers {status} to {path}{said}")]
    Status {
        /// Where.
        endpoint: String,
        /// What was asked for.
        path: String,
        /// The status.
        status: u16,
        /// What it said.
        said: String,
    },
    /// What it answered makes no sense.
    #[error("{endpoint} answers what no agent would ({what}); does another program listen there?")]
    Garbage {
        /// Where.
        endpoint: String,
        /// What is wrong with it.
        what: String,
    },
}

impl RemoteError {
    /// The word for it.
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Endpoint { .. } | Self::Unreachable { .. } | Self::NotFound { .. } => {
                Fault::Absent
            }
            Self::Token { .. } | Self::Refused { .. } => Fault::Permission,
            Self::Silent { .. } => Fault::Timeout,
            Self::Status { .. } => Fault::NotReady,
            Self::Garbage { .. } => Fault::MalformedRow,
        }
    }

    /// True where the asker is to blame, and trying again does not help.
    pub const fn is_of_the_asker(&self) -> bool {
        matches!(self, Self::Endpoint { .. })
    }

    pub(super) fn of_http(endpoint: &str, what: &str, error: ureq::Error) -> Self {
        let endpoint = endpoint.to_owned();
        match error {
            ureq::Error::Timeout(_) => Self::Silent { endpoint, what: what.to_owned() },
            ureq::Error::Io(error) => Self::of_io(&endpoint, what, &error),
            ureq::Error::HostNotFound => {
                Self::Unreachable { endpoint, why: "there is no host of that name".to_owned() }
            }
            ureq::Error::ConnectionFailed => {
                Self::Unreachable { endpoint, why: "no connection".to_owned() }
            }
            other => Self::Garbage { endpoint, what: other.to_string() },
        }
    }

    pub(super) fn of_io(endpoint: &str, what: &str, error: &io::Error) -> Self {
        let endpoint = endpoint.to_owned();
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>());
        match (inner, error.kind()) {
            (Some(ureq::Error::Timeout(_)), _)
            | (None, io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) => {
                Self::Silent { endpoint, what: what.to_owned() }
            }
            (Some(other), _) => Self::Garbage { endpoint, what: other.to_string() },
            (None, io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => {
                Self::Garbage { endpoint, what: error.to_string() }
            }
            (None, _) => Self::Unreachable { endpoint, why: error.to_string() },
        }
    }
}
