//! The requests in flight, and those that late news may still change: a slab, so that a tick walks
//! them in the order of memory, with a way from a number to a slot.

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

use std::{collections::HashMap, hash::BuildHasherDefault};

use super::request::Request;
use crate::ledger::Numbers;

/// A request's place; the number tells whether it is still the one that was meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub slot: u32,
    pub id: u64,
}

#[derive(Debug, Default)]
pub struct Requests {
    slots: Vec<Option<Request>>,
    free: Vec<u32>,
    by_id: HashMap<u64, u32, BuildHasherDefault<Numbers>>,
}

impl Requests {
    pub fn insert(&mut self, request: Request) -> Place {
        let id = request.id;
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(None);
                u32::try_from(self.slots.len().saturating_sub(1)).unwrap_or(u32::MAX)
            }
        };
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = Some(request);
        }
        self.by_id.insert(id, slot);
        Place { slot, id }
    }

    pub fn remove(&mut self, place: Place) -> Option<Request> {
        let slot = self.slots.get_mut(place.slot as usize)?;
        let request = slot.take_if(|request| request.id == place.id)?;
        self.free.push(place.slot);
        self.by_id.remove(&place.id);
        Some(request)
    }

    pub fn place(&self, id: u64) -> Option<Place> {
        self.by_id.get(&id).map(|slot| Place { slot: *slot, id })
    }

    pub fn get(&self, place: Place) -> Option<&Request> {
        let request = self.slots.get(place.slot as usize)?.as_ref()?;
        (request.id == place.id).then_some(request)
    }

    pub fn get_mut(&mut self, place: Place) -> Option<&mut Request> {
        let request = self.slots.get_mut(place.slot as usize)?.as_mut()?;
        (request.id == place.id).then_some(request)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Place, &Request)> {
        let place = |(slot, request): (usize, &'_ Request)| Place {
            slot: u32::try_from(slot).unwrap_or(u32::MAX),
            id: request.id,
        };
        self.slots.iter().enumerate().filter_map(move |(slot, request)| {
            request.as_ref().map(|request| (place((slot, request)), request))
        })
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }
}
