//! Which card a person means.
//!
//! Decides it from what was asked, the list of cards, and the two environment values by which CUDA
//! numbers them; all are arguments. A bare number is the driver's index. `cuda:N` is CUDA's number,
//! which `CUDA_VISIBLE_DEVICES` and `CUDA_DEVICE_ORDER` decide. A slice of a split card (MIG) has
//! no meter of its own: its card is named, and the answer says that it is shared.
//!
//! Refused: to choose between two cards that what was asked fits equally well.

mod cuda;
mod error;
mod pci;

pub use cuda::visible;
pub use error::IdentityError;
pub use pci::normal_pci;

/// A card, as far as it matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    /// The driver's index.
    pub index: u32,
    /// UUID.
    pub uuid: String,
    /// PCI address, in any usual form.
    pub pci: Option<String>,
    /// Name: cards of one name are alike.
    pub name: String,
    /// Split into instances (MIG).
    pub mig: bool,
    /// The UUIDs of its instances, as far as they can be seen.
    pub slices: Vec<String>,
}

/// The environment values by which CUDA numbers cards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CudaEnvironment {
    /// `CUDA_VISIBLE_DEVICES`; `None` where it is not set, which is not the same as empty.
    pub visible_devices: Option<String>,
    /// `CUDA_DEVICE_ORDER`.
    pub device_order: Option<String>,
}

/// The card that was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The driver's index.
    pub index: u32,
    /// UUID.
    pub uuid: String,
    /// What was asked for is one slice of the card: its share cannot be measured
    /// (`shared_device`), only the whole card.
    pub shared_device: bool,
    /// What a person should know about the choice.
    pub warning: Option<String>,
}

/// Finds the card that `ask` means: an index (`0`), a UUID or the beginning of one, a PCI address,
/// or `cuda:N`.
pub fn resolve(
    ask: &str,
    cards: &[Card],
    environment: &CudaEnvironment,
) -> Result<Identity, IdentityError> {
    let wanted = ask.trim();
    let lower = wanted.to_ascii_lowercase();
    if let Some(number) = lower.strip_prefix("cuda:") {
        let number = number.parse().map_err(|_| IdentityError::malformed(wanted, cards))?;
        return cuda::resolve(number, cards, environment);
    }
    if let Ok(index) = lower.parse::<u32>() {
        let card = cards.iter().find(|card| card.index == index);
        let card = card.ok_or_else(|| IdentityError::no_such_card(wanted, cards))?;
        let warning = cuda::warning(card, cards, environment);
        return Ok(Identity { warning, ..Identity::whole(card) });
    }
    if lower.starts_with("mig-") {
        return slice(wanted, cards);
    }
    if let Some(address) = normal_pci(&lower) {
        let card = cards.iter().find(|card| {
            card.pci.as_deref().and_then(normal_pci).is_some_and(|pci| pci == address)
        });
        return card.map(Identity::whole).ok_or_else(|| IdentityError::no_such_card(wanted, cards));
    }
    by_uuid(wanted, cards).map(Identity::whole)
}

impl Identity {
    fn whole(card: &Card) -> Self {
        Self { index: card.index, uuid: card.uuid.clone(), shared_device: false, warning: None }
    }

    fn slice_of(card: &Card) -> Self {
        Self { shared_device: true, ..Self::whole(card) }
    }
}

/// By a whole UUID, or the beginning of one that fits a single card.
fn by_uuid<'a>(wanted: &str, cards: &'a [Card]) -> Result<&'a Card, IdentityError> {
    let wanted_lower = wanted.to_ascii_lowercase();
    let bare = wanted_lower.strip_prefix("gpu-").unwrap_or(&wanted_lower);
    let uuid = |card: &Card| {
        let uuid = card.uuid.to_ascii_lowercase();
        uuid.strip_prefix("gpu-").map(str::to_owned).unwrap_or(uuid)
    };
    if let Some(card) = cards.iter().find(|card| uuid(card) == bare) {
        return Ok(card);
    }
    let mut fits = cards.iter().filter(|card| !bare.is_empty() && uuid(card).starts_with(bare));
    match (fits.next(), fits.next()) {
        (Some(card), None) => Ok(card),
        (Some(_), Some(_)) => Err(IdentityError::ambiguous_prefix(wanted, cards)),
        (None, _) => Err(IdentityError::no_such_card(wanted, cards)),
    }
}

/// By the UUID of a slice: the card that lists it; by the old form (`MIG-GPU-uuid/instance/…`) the
/// card it names; else the one split card there is.
fn slice(wanted: &str, cards: &[Card]) -> Result<Identity, IdentityError> {
    let listed = |card: &&Card| card.slices.iter().any(|slice| slice.eq_ignore_ascii_case(wanted));
    if let Some(card) = cards.iter().find(listed) {
        return Ok(Identity::slice_of(card));
    }
    let named = wanted.get(4..).unwrap_or_default();
    if named.to_ascii_lowercase().starts_with("gpu-") {
        let uuid = named.split('/').next().unwrap_or_default();
        return by_uuid(uuid, cards).map(Identity::slice_of);
    }
    let mut split = cards.iter().filter(|card| card.mig);
    match (split.next(), split.next()) {
        (Some(card), None) => Ok(Identity::slice_of(card)),
        (Some(_), Some(_)) => Err(IdentityError::unknown_slice(wanted, cards)),
        (None, _) => Err(IdentityError::no_such_card(wanted, cards)),
    }
}

#[cfg(test)]
mod tests;
