//! CUDA's numbers: what `cuda:N` is, given the two environment values.
//!
//! CUDA reads `CUDA_VISIBLE_DEVICES` from the left and stops at the first entry that is no card of
//! its; entries are numbers of its own order, UUIDs (or their beginnings), or slices. Its own order
//! is by PCI address only where `CUDA_DEVICE_ORDER` says `PCI_BUS_ID`; else it is "fastest first",
//! which nobody outside can know unless all cards are alike.

use super::{Card, CudaEnvironment, Identity, IdentityError, by_uuid, normal_pci, slice};

const REMEDY: &str = "CUDA numbers unlike cards by speed; set CUDA_DEVICE_ORDER=PCI_BUS_ID or name \
                      the card by its UUID";

/// The cards that CUDA sees here, in its order: those that a job was given.
pub fn visible(
    cards: &[Card],
    environment: &CudaEnvironment,
) -> Result<Vec<Identity>, IdentityError> {
    let Some(value) = environment.visible_devices.as_deref() else {
        // All of them: which they are needs no order.
        return Ok(by_address(cards).into_iter().map(as_cuda_sees).collect());
    };
    let entries = entries(value);
    let order = order(cards, environment);
    let mut found: Vec<Identity> = Vec::new();
    for entry in entries {
        let Some(identity) = entry_card(entry, cards, order.as_deref())? else { break };
        found.push(identity);
    }
    Ok(found)
}

/// The card of CUDA's number.
pub(super) fn resolve(
    number: usize,
    cards: &[Card],
    environment: &CudaEnvironment,
) -> Result<Identity, IdentityError> {
    let order = order(cards, environment);
    let Some(value) = environment.visible_devices.as_deref() else {
        if number >= cards.len() {
            return Err(IdentityError::not_visible(number, None, "there are fewer cards", cards));
        }
        let order = order.ok_or_else(|| unordered(&format!("cuda:{number}"), cards))?;
        return order.get(number).copied().map(as_cuda_sees).ok_or_else(|| {
            IdentityError::not_visible(number, None, "there are fewer cards", cards)
        });
    };
    for (place, entry) in entries(value).into_iter().enumerate() {
        if place < number {
            // An earlier entry that is no card hides all later ones.
            if is_card(entry, cards) {
                continue;
            }
        } else if let Some(identity) = entry_card(entry, cards, order.as_deref())? {
            return Ok(identity);
        }
        let why = format!("its entry \"{entry}\" is no card here, and hides those after it");
        return Err(IdentityError::not_visible(number, Some(value), &why, cards));
    }
    let why = "it has fewer entries";
    Err(IdentityError::not_visible(number, Some(value), why, cards))
}

/// What to say when somebody names a card by the driver's index where CUDA's number of the same
/// value is, or may be, another card.
pub(super) fn warning(
    taken: &Card,
    cards: &[Card],
    environment: &CudaEnvironment,
) -> Option<String> {
    let number = taken.index;
    let cuda = match resolve(usize::try_from(number).ok()?, cards, environment) {
        Ok(identity) if identity.uuid == taken.uuid => return None,
        Ok(identity) => format!("is {}", identity.uuid),
        Err(IdentityError::Ambiguous { .. }) => "may be another card".to_owned(),
        Err(_) => "does not exist here".to_owned(),
    };
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
    Some(format!(
        "{number} is the driver's index: took {} ({}). CUDA's device {number} {cuda} \
         (CUDA_VISIBLE_DEVICES {}, CUDA_DEVICE_ORDER {}); for CUDA's, ask for cuda:{number} or a \
         UUID",
        taken.name,
        taken.uuid,
        shown(&environment.visible_devices),
        shown(&environment.device_order),
    ))
}

fn entries(value: &str) -> Vec<&str> {
    if value.trim().is_empty() { Vec::new() } else { value.split(',').map(str::trim).collect() }
}

/// The cards in CUDA's own order, where it can be known.
fn order<'a>(cards: &'a [Card], environment: &CudaEnvironment) -> Option<Vec<&'a Card>> {
    let by_bus = environment.device_order.as_deref().map(str::trim) == Some("PCI_BUS_ID");
    let alike = cards.windows(2).all(|pair| matches!(pair, [a, b] if a.name == b.name));
    (by_bus || alike).then(|| by_address(cards))
}

/// By PCI address where all have one, else by the driver's index, which follows it.
fn by_address(cards: &[Card]) -> Vec<&Card> {
    let mut sorted: Vec<&Card> = cards.iter().collect();
    let address = |card: &Card| {
        // The domain may have more digits than four: the longer is the higher.
        card.pci.as_deref().and_then(normal_pci).map(|pci| (pci.len(), pci))
    };
    if cards.iter().all(|card| address(card).is_some()) {
        sorted.sort_by_cached_key(|card| address(card));
    } else {
        sorted.sort_by_key(|card| card.index);
    }
    sorted
}

/// A split card shows itself to CUDA as one of its slices.
fn as_cuda_sees(card: &Card) -> Identity {
    if card.mig { Identity::slice_of(card) } else { Identity::whole(card) }
}

/// Whether CUDA takes the entry for a device; which one it is may still be unknown.
fn is_card(entry: &str, cards: &[Card]) -> bool {
    match entry.parse::<i64>() {
        Ok(number) => usize::try_from(number).is_ok_and(|number| number < cards.len()),
        Err(_) if is_slice(entry) => {
            !matches!(slice(entry, cards), Err(IdentityError::NoSuchCard { .. }))
        }
        Err(_) => by_uuid(entry, cards).is_ok(),
    }
}

/// The card of one entry; `None` for an entry that CUDA takes for none.
fn entry_card(
    entry: &str,
    cards: &[Card],
    order: Option<&[&Card]>,
) -> Result<Option<Identity>, IdentityError> {
    if !is_card(entry, cards) {
        return Ok(None);
    }
    if let Ok(number) = entry.parse::<usize>() {
        let order = order.ok_or_else(|| unordered(entry, cards))?;
        return Ok(order.get(number).copied().map(as_cuda_sees));
    }
    if is_slice(entry) {
        return slice(entry, cards).map(Some);
    }
    by_uuid(entry, cards).map(as_cuda_sees).map(Some)
}

fn is_slice(entry: &str) -> bool {
    entry.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("mig-"))
}

fn unordered(ask: &str, cards: &[Card]) -> IdentityError {
    IdentityError::ambiguous(ask, REMEDY, cards)
}
