//! Which cards a command is about.

use std::{env, sync::Arc};

use anyhow::Context as _;
use joulebook::{
    Fault,
    identity::{self, CudaEnvironment},
    nvml::{self, CardInfo, Driver, LoadError},
};

use crate::context::Usage;

/// The cards that were asked for, or why there are none.
pub enum Found {
    /// These, and what a person should know about the choice.
    Cards(Vec<CardInfo>, Vec<String>),
    /// There is no card or no driver here; in words, with what to do.
    Nothing(Fault, String),
}

/// The cards asked for, or all of them where none is. `Err`: the driver library is broken, or the
/// asker names a card that does not exist.
pub fn find(driver: &Arc<Driver>, asked: &[String]) -> anyhow::Result<Found> {
    let inventory = match nvml::cards(driver) {
        Ok(inventory) => inventory,
        Err(error) if is_absence(&error) => {
            return Ok(Found::Nothing(error.fault(), error.to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    let mut warnings: Vec<String> = inventory
        .unreadable
        .iter()
        .map(|(index, fault)| {
            format!("card {index} cannot be read ({fault}): {}", nvml::explain(*fault))
        })
        .collect();
    if inventory.cards.is_empty() {
        let mut why = "the NVIDIA driver is loaded and lists no card that can be read".to_owned();
        for warning in warnings {
            why = why + "\n" + &warning;
        }
        return Ok(Found::Nothing(Fault::Absent, why));
    }
    if asked.is_empty() {
        return Ok(Found::Cards(inventory.cards, warnings));
    }
    let listed: Vec<identity::Card> = inventory.cards.iter().map(Into::into).collect();
    let environment = CudaEnvironment {
        visible_devices: env::var("CUDA_VISIBLE_DEVICES").ok(),
        device_order: env::var("CUDA_DEVICE_ORDER").ok(),
    };
    let mut chosen: Vec<CardInfo> = Vec::new();
    for ask in asked {
        let found = identity::resolve(ask, &listed, &environment)
            .map_err(|error| Usage(error.to_string()))?;
        warnings.extend(found.warning);
        let card = inventory.cards.iter().find(|card| card.uuid == found.uuid);
        let card = card.context("the driver's list of cards changed meanwhile; ask again")?;
        if !chosen.contains(card) {
            chosen.push(card.clone());
        }
    }
    Ok(Found::Cards(chosen, warnings))
}

/// No driver here, which is a state of the machine; a library that is there and broken is not.
fn is_absence(error: &LoadError) -> bool {
    match error {
        LoadError::Missing { .. } => true,
        LoadError::Refused { fault, .. } => *fault == Fault::DriverAbsent,
        _ => false,
    }
}
