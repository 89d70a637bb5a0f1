//! The token that clients must show, where one is asked for.
//!
//! Invariants: how long a comparison takes says nothing of how much of the token was right; the
//! token is in no message, log or answer.

use std::{fmt, fs, hint::black_box, path::Path};

use anyhow::Context as _;

/// Shorter ones are guessed.
const LEAST_LENGTH: usize = 16;

/// What stands behind `Authorization: Bearer `.
#[derive(Clone)]
pub struct Token(Vec<u8>);

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

impl Token {
    /// The first line of a file.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let text = fs::read_to_string(path).with_context(|| format!("the token file {shown}"))?;
        let token = text.lines().next().unwrap_or_default().trim();
        let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
        if token.len() < LEAST_LENGTH || !is_plain {
            anyhow::bail!(
                "the token file {shown} must begin with a line of at least {LEAST_LENGTH} letters, \
                 digits or signs without spaces: `openssl rand -hex 32 >{shown}` makes one"
            );
        }
        Ok(Self(token.as_bytes().to_vec()))
    }

    /// Whether a header's value shows this token.
    pub fn is_shown_by(&self, authorization: Option<&[u8]>) -> bool {
        const SCHEME: &[u8] = b"bearer ";
        let shown = authorization.and_then(|value| {
            let (scheme, token) = value.split_at_checked(SCHEME.len())?;
            scheme.eq_ignore_ascii_case(SCHEME).then_some(token)
        });
        shown.is_some_and(|shown| same(&self.0, shown.trim_ascii()))
    }
}

/// Equality whose time depends on the length of what is shown alone.
fn same(token: &[u8], shown: &[u8]) -> bool {
    let mut differs = u8::from(token.len() != shown.len());
    for (place, byte) in shown.iter().enumerate() {
        let own = token.get(place % token.len().max(1)).copied().unwrap_or_default();
        differs |= black_box(own ^ byte);
    }
    black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_the_token() {
        let token = Token(b"0123456789abcdef".to_vec());
        let shown = |value: &str| token.is_shown_by(Some(value.as_bytes()));
        assert!(shown("Bearer 0123456789abcdef"));
        assert!(shown("bearer 0123456789abcdef "));
        for other in [
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0123456789abcdef",
            "Bearer 0123456789abcdeF",
            "Bearer ",
            "Basic 0123456789abcdef",
            "0123456789abcdef",
            "",
        ] {
            assert!(!shown(other), "{other}");
        }
        assert!(!token.is_shown_by(None));
        assert_eq!(format!("{token:?}"), "Token(…)");
    }

    #[test]
    fn a_token_that_can_be_guessed_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        for text in ["", "short\n", "has a space in it all along\n"] {
            fs::write(&path, text).unwrap();
            assert!(Token::read(&path).unwrap_err().to_string().contains("openssl"), "{text:?}");
        }
        fs::write(&path, "0123456789abcdef\nmore\n").unwrap();
        assert!(Token::read(&path).unwrap().is_shown_by(Some(b"Bearer 0123456789abcdef")));
        assert!(Token::read(&folder.path().join("none")).is_err());
    }
}
