//! Prompts of a wanted length, made of plain words.
//!
//! How many tokens a word has is the server's affair; it is asked once, with two short requests, and
//! prompts are made to measure. Each prompt begins with words of its own, so that no cache of
//! prefixes answers for it. What a prompt really had stands in each answer's usage.

use joulebook_lab::draw::Draw;

/// Short and common, so that most vocabularies hold each as one token.
const WORDS: [&str; 24] = [
    "the", "of", "and", "energy", "joule", "watt", "token", "hello", "world", "apple", "river",
    "stone", "time", "house", "light", "water", "paper", "green", "table", "music", "north",
    "small", "early", "right",
];

/// So many words are a round.
pub const ROUND: u64 = WORDS.len() as u64;

/// How a server counts the tokens of a prompt: so many for all, and so many a word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counting {
    /// Of the template around it.
    pub around: f64,
    /// A word.
    pub word: f64,
}

impl Default for Counting {
    /// Where a server does not tell: as most vocabularies count.
    fn default() -> Self {
        Self { around: 8.0, word: 1.1 }
    }
}

impl Counting {
    /// From what two prompts of so many words had.
    pub fn of(short: (u64, u64), long: (u64, u64)) -> Option<Self> {
        let words = long.0.checked_sub(short.0).filter(|words| *words > 0)?;
        let tokens = long.1.checked_sub(short.1).filter(|tokens| *tokens > 0)?;
        let word = tokens as f64 / words as f64;
        Some(Self { around: (short.1 as f64 - word * short.0 as f64).max(0.0), word })
    }

    /// How many words a prompt of so many tokens needs; one at least.
    pub fn words(self, tokens: u64) -> u64 {
        ((tokens as f64 - self.around) / self.word).round().max(1.0) as u64
    }

    /// How many tokens a prompt of so many words is likely to have.
    pub fn tokens(self, words: u64) -> u64 {
        (self.around + self.word * words as f64).round() as u64
    }
}

/// So many words: each of them once, in any order, then all again in another. So whole rounds have
/// the same tokens in every prompt, whatever the vocabulary makes of a word.
pub fn text(draw: &mut Draw, words: u64) -> String {
    let mut text = String::new();
    let mut round: Vec<&str> = Vec::new();
    for _ in 0..words {
        if round.is_empty() {
            round.extend(WORDS);
        }
        let at = usize::try_from(draw.below(round.len() as u64)).unwrap_or(0);
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(round.swap_remove(at.min(round.len() - 1)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_made_to_measure() {
        // Three tokens for two words, and ten around.
        let counting = Counting::of((40, 70), (200, 310)).unwrap();
        assert_eq!(counting, Counting { around: 10.0, word: 1.5 });
        assert_eq!((counting.words(160), counting.tokens(100)), (100, 160));
        assert_eq!(counting.words(3), 1, "no prompt is empty");
        assert_eq!(Counting::of((40, 70), (200, 70)), None);
        let text = |seed| text(&mut Draw::new(seed), 96);
        assert_eq!(text(1).split(' ').count(), 96);
        assert_eq!(text(1).len(), text(2).len(), "four rounds of all words");
        assert_ne!(text(1), text(2));
    }

    #[test]
    fn prompts_begin_differently() {
        let begins: std::collections::BTreeSet<String> =
            (0..50).map(|seed| text(&mut Draw::new(seed), 4)).collect();
        assert!(begins.len() > 45, "{}", begins.len());
    }
}
