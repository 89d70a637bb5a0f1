//! Why no card could be named.

use std::fmt::Write;

use joulebook_core::Fault;

use super::Card;

/// Why no card could be named: what was asked, what there is, what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// It has none of the forms a card is named by.
    #[error("\"{ask}\" names no card; name it by index (0), UUID, PCI address or cuda:N\n{cards}")]
    Malformed {
        /// What was asked.
        ask: String,
        /// The cards there are.
        cards: String,
    },
    /// There is none of that name.
    #[error(
        "there is no card \"{ask}\"; name one by index (0), UUID, PCI address or cuda:N\n{cards}"
    )]
    NoSuchCard {
        /// What was asked.
        ask: String,
        /// The cards there are.
        cards: String,
    },
    /// It fits several.
    #[error("\"{ask}\" could be more than one card: {why}\n{cards}")]
    Ambiguous {
        /// What was asked.
        ask: String,
        /// Why, and what to do.
        why: String,
        /// The cards there are.
        cards: String,
    },
    /// CUDA does not see that many.
    #[error("CUDA sees no device \"{ask}\" here (CUDA_VISIBLE_DEVICES={visible}): {why}\n{cards}")]
    NotVisible {
        /// What was asked.
        ask: String,
        /// The value of the variable.
        visible: String,
        /// Why, and what to do.
        why: String,
        /// The cards there are.
        cards: String,
    },
}

impl IdentityError {
    /// The word for it.
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Malformed { .. } | Self::NoSuchCard { .. } | Self::NotVisible { .. } => {
                Fault::Absent
            }
            Self::Ambiguous { .. } => Fault::IdentityAmbiguous,
        }
    }

    pub(super) fn malformed(ask: &str, cards: &[Card]) -> Self {
        Self::Malformed { ask: ask.to_owned(), cards: list(cards) }
    }

    pub(super) fn no_such_card(ask: &str, cards: &[Card]) -> Self {
        Self::NoSuchCard { ask: ask.to_owned(), cards: list(cards) }
    }

    pub(super) fn ambiguous_prefix(ask: &str, cards: &[Card]) -> Self {
        Self::ambiguous(ask, "give more of the UUID", cards)
    }

    pub(super) fn unknown_slice(ask: &str, cards: &[Card]) -> Self {
        Self::ambiguous(ask, "several cards are split and none lists it; name its card", cards)
    }

    pub(super) fn ambiguous(ask: &str, why: &str, cards: &[Card]) -> Self {
        Self::Ambiguous { ask: ask.to_owned(), why: why.to_owned(), cards: list(cards) }
    }

    pub(super) fn not_visible(
        number: usize,
        visible: Option<&str>,
        why: &str,
        cards: &[Card],
    ) -> Self {
        Self::NotVisible {
            ask: format!("cuda:{number}"),
            visible: visible.map_or_else(|| "not set".to_owned(), |value| format!("\"{value}\"")),
            why: why.to_owned(),
            cards: list(cards),
        }
    }
}

/// The cards in one line.
fn list(cards: &[Card]) -> String {
    if cards.is_empty() {
        return "there are no cards here".to_owned();
    }
    let mut line = "cards here:".to_owned();
    for (place, card) in cards.iter().enumerate() {
        let separator = if place == 0 { "" } else { ";" };
        // Writing to a string does not fail.
        let _ = write!(line, "{separator} {} {} ({})", card.index, card.name, card.uuid);
    }
    line
}
