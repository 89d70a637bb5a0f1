//! The requests in flight, and those that late news may still change: a slab, so that a tick walks
//! them in the order of memory, with a way from a number to a slot.

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

use std::{collections::HashMap, hash::BuildHasherDefault};

use super::request::Request;
use crate::ledger::Numbers;

/// A request's place; how often the slot has been used tells whether it is still the one that was
/// meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    slot: u32,
    used: u32,
}

#[derive(Debug, Default)]
struct Slot {
    used: u32,
    request: Option<Request>,
}

#[derive(Debug, Default)]
pub struct Requests {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_id: HashMap<u64, u32, BuildHasherDefault<Numbers>>,
}

impl Requests {
    pub fn insert(&mut self, request: Request) -> Place {
        let id = request.id;
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(Slot::default());
                u32::try_from(self.slots.len().saturating_sub(1)).unwrap_or(u32::MAX)
            }
        };
        self.by_id.insert(id, slot);
        let Some(place) = self.slots.get_mut(slot as usize) else {
            return Place { slot, used: 0 };
        };
        place.used = place.used.wrapping_add(1);
        place.request = Some(request);
        Place { slot, used: place.used }
    }

    pub fn remove(&mut self, place: Place) -> Option<Request> {
        let slot = self.slots.get_mut(place.slot as usize)?;
        let request = slot.request.take_if(|_| slot.used == place.used)?;
        self.free.push(place.slot);
        self.by_id.remove(&request.id);
        Some(request)
    }

    pub fn place(&self, id: u64) -> Option<Place> {
        let slot = *self.by_id.get(&id)?;
        self.slots.get(slot as usize).map(|it| Place { slot, used: it.used })
    }

    #[inline]
    pub fn get(&self, place: Place) -> Option<&Request> {
        let slot = self.slots.get(place.slot as usize)?;
        slot.request.as_ref().filter(|_| slot.used == place.used)
    }

    #[inline]
    pub fn get_mut(&mut self, place: Place) -> Option<&mut Request> {
        let slot = self.slots.get_mut(place.slot as usize)?;
        slot.request.as_mut().filter(|_| slot.used == place.used)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Place, &Request)> {
        self.slots.iter().zip(0u32..).filter_map(|(slot, number)| {
            let place = Place { slot: number, used: slot.used };
            slot.request.as_ref().map(|request| (place, request))
        })
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }
}
