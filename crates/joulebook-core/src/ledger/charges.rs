//! What each request has been charged: a slab, so that whoever charges the same requests tick by
//! tick need not look each of them up.
//!
//! A hint says where an account lies. A wrong one costs a look-up and is never believed: the number
//! that stands there decides.

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

use std::{collections::HashMap, hash::BuildHasherDefault};

use super::{Numbers, Phase, RequestId};

/// No place: whoever hints so is looked up.
pub const NOWHERE: u32 = u32::MAX;

/// A request's two accounts, µJ.
#[derive(Clone, Copy, Debug, Default)]
pub struct Charge {
    pub prefill_uj: i128,
    pub decode_uj: i128,
    request: u64,
    held: bool,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Charges {
    slots: Vec<Charge>,
    free: Vec<u32>,
    by_id: HashMap<RequestId, u32, BuildHasherDefault<Numbers>>,
}

impl Charge {
    pub const fn of_mut(&mut self, phase: Phase) -> &mut i128 {
        match phase {
            Phase::Prefill => &mut self.prefill_uj,
            Phase::Decode => &mut self.decode_uj,
        }
    }
}

impl Charges {
    /// Where a request's accounts lie; they are opened where it has none.
    pub fn place(&mut self, request: RequestId) -> u32 {
        if let Some(place) = self.by_id.get(&request) {
            return *place;
        }
        let charge = Charge { request: request.0, held: true, ..Charge::default() };
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.slots.push(Charge::default());
                u32::try_from(self.slots.len().saturating_sub(1)).unwrap_or(NOWHERE)
            }
        };
        if let Some(slot) = self.slots.get_mut(place as usize) {
            *slot = charge;
        }
        self.by_id.insert(request, place);
        place
    }

    pub fn get(&self, request: RequestId) -> Option<&Charge> {
        self.slots.get(*self.by_id.get(&request)? as usize)
    }

    /// A request's accounts, which are likely to lie where the hint says.
    #[inline]
    pub fn at_mut(&mut self, request: RequestId, hint: u32) -> Option<&mut Charge> {
        let here = |slot: &Charge| slot.held && slot.request == request.0;
        let hinted = self.slots.get(hint as usize).is_some_and(here);
        let place = if hinted { hint } else { self.place(request) };
        self.slots.get_mut(place as usize)
    }

    /// Closes a request's accounts; what they held.
    pub fn remove(&mut self, request: RequestId) -> Charge {
        let Some(place) = self.by_id.remove(&request) else { return Charge::default() };
        self.free.push(place);
        self.slots.get_mut(place as usize).map_or_else(Charge::default, std::mem::take)
    }

    /// Requests with an open account, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (RequestId, &Charge)> {
        self.slots.iter().filter(|slot| slot.held).map(|slot| (RequestId(slot.request), slot))
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_hint_is_never_believed() {
        let mut charges = Charges::default();
        let (one, two) = (RequestId(1), RequestId(2));
        let place = charges.place(one);
        charges.at_mut(one, place).unwrap().decode_uj = 5;
        charges.at_mut(two, place).unwrap().decode_uj = 7;
        assert_eq!(charges.get(one).unwrap().decode_uj, 5);
        assert_eq!(charges.remove(one).decode_uj, 5);
        // Its place is somebody else's now.
        let three = RequestId(3);
        assert_eq!(charges.place(three), place);
        charges.at_mut(one, place).unwrap().decode_uj = 9;
        let decode_uj = |id| charges.get(RequestId(id)).map(|it| it.decode_uj);
        assert_eq!([decode_uj(1), decode_uj(2), decode_uj(3)], [Some(9), Some(7), Some(0)]);
        assert_eq!((charges.len(), charges.iter().count()), (3, 3));
    }
}
