//! Why a node has no meter.

use joulebook_core::Fault;

use crate::{identity::IdentityError, nvml::LoadError, remote::RemoteError, smi::SmiError};

/// Why a node has no meter. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum MeterError {
    /// The driver library is missing or refuses.
    #[error(transparent)]
    Driver(#[from] LoadError),
    /// The cards asked for cannot be named.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The driver is there and has no card.
    #[error("the NVIDIA driver is loaded and lists no card that can be read{0}")]
    NoCards(String),
    /// The node names no card.
    #[error("the node names no card: give at least one GPU index, UUID or PCI address")]
    NoneAsked,
    /// The card has neither a counter nor a gauge.
    #[error(
        "card {index} ({name}) reports neither energy nor power to its driver; on a Jetson, read \
         the board's INA sensors instead"
    )]
    NotSupported {
        /// The driver's index.
        index: u32,
        /// The card's name.
        name: String,
    },
    /// Neither the driver's library nor `nvidia-smi` reads the cards.
    #[error("{nvml}\nnor can nvidia-smi stand in for the driver library: {smi}")]
    Unreadable {
        /// Why the library cannot.
        nvml: Box<MeterError>,
        /// Why the program cannot.
        smi: Box<MeterError>,
    },
    /// The program cannot read the cards.
    #[error(transparent)]
    Smi(#[from] SmiError),
    /// The cards are another host's, and no agent there can be asked.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The cards are another host's, and the node does not say where.
    #[error(
        "the node's cards are another host's, and it names no agent there: give power_endpoint"
    )]
    NoEndpoint,
    /// A declared idle floor that is no power, or not one for each card.
    #[error("idle floor: {0}")]
    Idle(String),
}

impl MeterError {
    /// True where the cards cannot be read this way, false where they were asked for wrongly.
    pub(super) const fn is_of_the_reader(&self) -> bool {
        matches!(self, Self::Driver(_) | Self::NoCards(_) | Self::NotSupported { .. })
    }

    /// The same, where the program was asked too.
    pub(super) const fn is_of_this_host(&self) -> bool {
        self.is_of_the_reader() || matches!(self, Self::Unreadable { .. } | Self::Smi(_))
    }

    /// The word for it.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Driver(error) => error.fault(),
            Self::Identity(error) => error.fault(),
            Self::Smi(error) => error.fault(),
            Self::Remote(error) => error.fault(),
            // The library is the better reader, so its word stands.
            Self::Unreadable { nvml, .. } => nvml.fault(),
            Self::NoCards(_) | Self::NoneAsked | Self::NoEndpoint | Self::Idle(_) => Fault::Absent,
            Self::NotSupported { .. } => Fault::NotSupported,
        }
    }
}
