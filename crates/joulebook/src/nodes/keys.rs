//! The keys that the file knows, and which of them somebody may have meant.

use toml::de::DeTable;

use super::check::{Wrong, list_of_tables};

const FILE_KEYS: &[&str] = &["node"];
const NODE_KEYS: &[&str] = &["name", "endpoint", "token_file", "card"];
const CARD_KEYS: &[&str] =
    &["gpu", "idle_watts", "serving_match", "serving_port", "serving_pid", "contention_ignore"];

/// Refuses the first key that is not known.
pub(super) fn check(file: &DeTable<'_>) -> Result<(), Wrong> {
    known(file, FILE_KEYS, "the file")?;
    for node in list_of_tables(file, "node") {
        known(node, NODE_KEYS, "a node")?;
        for card in list_of_tables(node, "card") {
            known(card, CARD_KEYS, "a card")?;
        }
    }
    Ok(())
}

fn known(table: &DeTable<'_>, keys: &[&str], of: &str) -> Result<(), Wrong> {
    let unknown = table.keys().filter(|key| !keys.contains(&key.get_ref().as_ref()));
    // In the order of the text, not of the alphabet.
    let Some(key) = unknown.min_by_key(|key| key.span().start) else { return Ok(()) };
    let name = key.get_ref().as_ref();
    let what = match nearest(name, keys) {
        Some(near) => format!("{name:?} is no key of {of}; is {near:?} meant?"),
        None => format!("{name:?} is no key of {of}; it knows {}", keys.join(", ")),
    };
    Err((key.span().start, what))
}

/// The known key that is nearest, where one is near enough to have been meant.
fn nearest<'a>(name: &str, keys: &[&'a str]) -> Option<&'a str> {
    let lower = name.to_lowercase().replace('-', "_");
    let near = keys.iter().map(|key| (distance(&lower, key), *key)).min()?;
    (near.0 <= near.1.len().max(lower.len()) / 2).then_some(near.1)
}

/// How many letters must be put in, taken out or changed.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (number, letter) in from.chars().enumerate() {
        let mut corner = number;
        let mut left = number + 1;
        let mut next = vec![left];
        for (above, other) in row.iter().skip(1).zip(&to) {
            let change = corner + usize::from(letter != *other);
            corner = *above;
            left = change.min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_counted_in_letters() {
        for (from, to, expected) in [
            ("", "", 0),
            ("a", "", 1),
            ("gpu", "gpu", 0),
            ("gup", "gpu", 2),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
            assert_eq!(distance(to, from), expected, "{to} {from}");
        }
    }

    #[test]
    fn what_was_meant_is_named_where_it_is_near() {
        for (name, expected) in [
            ("idle_wats", Some("idle_watts")),
            ("Idle-Watts", Some("idle_watts")),
            ("serving_prot", Some("serving_port")),
            ("ignore", None),
            ("gpus", Some("gpu")),
            ("colour", None),
        ] {
            assert_eq!(nearest(name, CARD_KEYS), expected, "{name}");
        }
    }
}
