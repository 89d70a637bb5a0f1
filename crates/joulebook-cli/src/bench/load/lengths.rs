//! How long prompts and answers are: all alike, or drawn from a file.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use joulebook_lab::draw::Draw;

use crate::bench::record::Lengths;

/// The most tokens that a length may ask for.
const MOST: u64 = 1 << 24;

/// A file of lengths: a line has the tokens of a prompt and of its answer, apart by white space or
/// a comma; `#` begins a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LengthFile {
    path: PathBuf,
    pairs: Vec<(u64, u64)>,
}

/// Lengths of prompts and answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All alike: tokens of prompts and of answers.
    Fixed(u64, u64),
    /// Drawn.
    Drawn(LengthFile),
}

/// Why a file of lengths was refused.
#[derive(Debug, thiserror::Error)]
pub enum LengthsError {
    /// It could not be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A line that is none of ours.
    #[error(
        "{}:{line}: `{text}` is not two lengths of 1 to {MOST} tokens (prompt, answer)",
        path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// It has no line.
    #[error("{} has no lengths in it", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl LengthFile {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, LengthsError> {
        let text = fs::read_to_string(path)
            .map_err(|error| LengthsError::Unreadable { path: path.to_owned(), error })?;
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, LengthsError> {
        let mut pairs = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let said = line.split('#').next().unwrap_or_default().trim();
            if said.is_empty() {
                continue;
            }
            let cells = said.split([',', ' ', '\t']).filter(|cell| !cell.is_empty());
            let lengths: Vec<u64> = cells
                .filter_map(|cell| cell.parse().ok().filter(|it| (1..=MOST).contains(it)))
                .collect();
            let count = said.split([',', ' ', '\t']).filter(|cell| !cell.is_empty()).count();
            match lengths.as_slice() {
                [prompt, answer] if count == 2 => pairs.push((*prompt, *answer)),
                // A table may have a header.
                _ if number == 1 && !said.starts_with(|it: char| it.is_ascii_digit()) => {}
                _ => {
                    let (path, text) = (path.to_owned(), said.chars().take(60).collect());
                    return Err(LengthsError::Malformed { path, line: number, text });
                }
            }
        }
        if pairs.is_empty() {
            return Err(LengthsError::Empty { path: path.to_owned() });
        }
        Ok(Self { path: path.to_owned(), pairs })
    }
}

impl Sizes {
    /// A prompt's length and an answer's.
    pub fn draw(&self, draw: &mut Draw) -> (u64, u64) {
        match self {
            Self::Fixed(prompt, answer) => (*prompt, *answer),
            Self::Drawn(file) => {
                let at = draw.below(file.pairs.len() as u64);
                let pair = usize::try_from(at).ok().and_then(|at| file.pairs.get(at));
                pair.copied().unwrap_or((1, 1))
            }
        }
    }

    /// The same as records have it, of prompts and of answers.
    pub fn lengths(&self) -> (Lengths, Lengths) {
        match self {
            Self::Fixed(prompt, answer) => {
                (Lengths::Fixed { tokens: *prompt }, Lengths::Fixed { tokens: *answer })
            }
            Self::Drawn(file) => {
                let path = file.path.display().to_string();
                let lengths = Lengths::File { path, entries: file.pairs.len() as u64 };
                (lengths.clone(), lengths)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<(u64, u64)>, String> {
        let file = LengthFile::parse(Path::new("lengths"), text);
        file.map(|file| file.pairs).map_err(|error| error.to_string())
    }

    #[test]
    fn pairs_are_read_and_what_is_none_is_named() {
        let text = "prompt,answer\n128,64\n\n# a remark\n 4000\t8 # long\n";
        assert_eq!(parsed(text), Ok(vec![(128, 64), (4000, 8)]));
        for (text, complaint) in [
            ("1 2\n3\n", "lengths:2: `3`"),
            ("1 2 3\n", "lengths:1"),
            ("1 0\n", "lengths:1"),
            ("1 -2\n", "lengths:1"),
            ("# nothing\n", "no lengths"),
        ] {
            let refused = parsed(text).unwrap_err();
            assert!(refused.contains(complaint), "{refused}");
        }
    }

    #[test]
    fn lengths_are_drawn_from_the_seed_alone() {
        let file = LengthFile::parse(Path::new("lengths"), "1 2\n3 4\n5 6\n").unwrap();
        let sizes = Sizes::Drawn(file);
        let of = |seed| {
            let mut draw = Draw::new(seed);
            (0..30).map(|_| sizes.draw(&mut draw)).collect::<Vec<_>>()
        };
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
        assert!(of(3).contains(&(5, 6)));
    }
}
