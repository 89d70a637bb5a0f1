//! Which cards this host has: by the driver's library, else by the program `nvidia-smi`.
//!
//! Decides what "no card here" is: no driver and no program. A driver that is there and fails, or does
//! not answer, has cards that cannot be read now, which is another thing.

use std::sync::Arc;

use joulebook::{
    Fault,
    nvml::{self, Driver, LoadError},
    smi::{Feed, Program, SmiCardInfo, SmiError},
};

use super::Why;

/// A card of the inventory.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The driver's index.
    pub index: u32,
    /// Empty where even that cannot be read.
    pub uuid: String,
    /// The card's name.
    pub name: String,
    /// PCI address.
    pub pci: Option<String>,
    /// The driver's version.
    pub driver: Option<String>,
    /// Why it cannot be described.
    pub refused: Option<Why>,
}

impl PartialEq for Found {
    fn eq(&self, other: &Self) -> bool {
        let word = |found: &Self| found.refused.as_ref().map(|why| why.fault);
        (self.index, &self.uuid, word(self)) == (other.index, &other.uuid, word(other))
    }
}

/// What a look came to.
pub enum Inventory {
    /// These cards.
    Cards(Vec<Found>),
    /// There is none here, in words.
    Nothing(String),
    /// It cannot be seen now.
    Unknown(Why),
}

/// Looks. `feed` is the running tool, where it was asked.
pub fn list(feed: &mut Option<Arc<Feed>>) -> Inventory {
    match nvml::cards(&Driver::shared()) {
        Ok(inventory) => {
            let unreadable = inventory.unreadable.iter().map(|(index, fault)| {
                let words = nvml::explain(*fault).to_owned();
                let refused = Some(Why { fault: *fault, words });
                Found { index: *index, name: "unknown".to_owned(), refused, ..Found::default() }
            });
            let mut found: Vec<Found> =
                inventory.cards.iter().map(Found::by_driver).chain(unreadable).collect();
            found.sort_by_key(|found| found.index);
            if found.is_empty() {
                let words = "the NVIDIA driver is loaded and lists no card";
                return Inventory::Nothing(words.to_owned());
            }
            Inventory::Cards(found)
        }
        Err(error) => by_program(&error, feed),
    }
}

fn by_program(nvml: &LoadError, feed: &mut Option<Arc<Feed>>) -> Inventory {
    let listed = match feed {
        Some(feed) => feed.cards(),
        None => {
            let program = Program::default();
            let missing = |error: std::io::Error| SmiError::Missing {
                program: program.path().display().to_string(),
                reason: error.to_string(),
            };
            Feed::of(&program).map_err(missing).and_then(|started| feed.insert(started).cards())
        }
    };
    match listed {
        Ok(cards) if !cards.is_empty() => {
            Inventory::Cards(cards.iter().map(Found::by_program).collect())
        }
        Ok(_) => Inventory::Nothing(format!("{nvml}; and nvidia-smi lists no card")),
        Err(smi) if nvml.fault() == Fault::DriverAbsent && smi.fault() == Fault::DriverAbsent => {
            Inventory::Nothing(format!("{nvml}\nnor does nvidia-smi show one: {smi}"))
        }
        Err(smi) => {
            let fault =
                if nvml.fault() == Fault::DriverAbsent { smi.fault() } else { nvml.fault() };
            let words = crate::words::one_line(&format!("{nvml}; {smi}"));
            Inventory::Unknown(Why { fault, words })
        }
    }
}

impl Found {
    fn by_driver(card: &nvml::CardInfo) -> Self {
        Self::of(card.index, &card.uuid, &card.name, card.pci.as_ref(), card.driver.as_ref())
    }

    fn by_program(card: &SmiCardInfo) -> Self {
        Self::of(card.index, &card.uuid, &card.name, card.pci.as_ref(), card.driver.as_ref())
    }

    /// A card that could be described.
    fn of(
        index: u32,
        uuid: &str,
        name: &str,
        pci: Option<&String>,
        driver: Option<&String>,
    ) -> Self {
        Self {
            index,
            uuid: uuid.to_owned(),
            name: name.to_owned(),
            pci: pci.cloned(),
            driver: driver.cloned(),
            refused: None,
        }
    }
}
