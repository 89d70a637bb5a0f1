//! Text and tokens: how many tokens a text has, and which words an answer is made of.
//!
//! A token is a word of up to six bytes between white space, or a piece of six bytes of a longer
//! one. So the count is the same for everybody, needs no vocabulary, and is close to what real
//! models count.

/// The most bytes of a word that one token holds.
const WORD_BYTES: usize = 6;
/// What a chat's template adds for each message.
pub(super) const MESSAGE_TOKENS: u64 = 4;

const WORDS: [&str; 12] = [
    " the", " card", " drew", " some", " more", " joules", " while", " it", " wrote", " this",
    " and", " that",
];

/// How many tokens a text has.
pub fn tokens(text: &str) -> u64 {
    text.split_whitespace().map(|word| word.len().div_ceil(WORD_BYTES) as u64).sum()
}

/// Token number `number` of any answer.
pub(super) fn word(number: u64) -> &'static str {
    usize::try_from(number).ok().and_then(|at| WORDS.get(at % WORDS.len())).unwrap_or(&" more")
}

/// How long the answer to a prompt is where the model itself ends it: the same for the same prompt,
/// a few hundred tokens.
pub(super) fn natural_length(prompt: &str) -> u64 {
    let hash = prompt.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let length = crate::draw::Draw::new(hash).log_normal(300.0, 0.8);
    length.clamp(4.0, 2000.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_by_their_bytes() {
        for (text, count) in
            [("", 0), (" \n", 0), ("the card", 2), ("consumption", 2), ("ééé é", 2)]
        {
            assert_eq!(tokens(text), count, "{text:?}");
        }
        let answer: String = (0..100).map(word).collect();
        assert_eq!(tokens(&answer), 100);
    }

    #[test]
    fn an_answer_ends_where_its_prompt_says() {
        assert_eq!(natural_length("a"), natural_length("a"));
        let lengths: Vec<u64> =
            (0..200).map(|number| natural_length(&format!("prompt {number}"))).collect();
        assert!(lengths.iter().all(|length| (4..=2000).contains(length)));
        assert!(lengths.iter().any(|length| *length < 200), "{lengths:?}");
        assert!(lengths.iter().any(|length| *length > 500), "{lengths:?}");
    }
}
