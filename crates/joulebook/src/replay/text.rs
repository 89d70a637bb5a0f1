//! From bytes to rows of cells.

use std::borrow::Cow;

/// The text of a file. PowerShell's `>` writes UTF-16 with a mark in front; what is no UTF-8 is
/// replaced and will fail as the cell it stands in.
pub(crate) fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    let wide = |rest: &[u8], word: fn([u8; 2]) -> u16| {
        let words = rest.chunks_exact(2).map(|pair| match pair {
            [first, second] => word([*first, *second]),
            _ => 0,
        });
        char::decode_utf16(words).map(|letter| letter.unwrap_or('\u{fffd}')).collect::<String>()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes).into(),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes).into(),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest),
        _ => String::from_utf8_lossy(bytes),
    }
}

/// The cells of a row, trimmed; a comma inside double quotes is part of its cell.
pub(crate) fn cells(line: &str) -> Vec<&str> {
    let mut cells = Vec::new();
    let (mut begin, mut quoted) = (0, false);
    for (at, letter) in line.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => {
                cells.push(bare(line.get(begin..at).unwrap_or_default()));
                begin = at + 1;
            }
            _ => {}
        }
    }
    cells.push(bare(line.get(begin..).unwrap_or_default()));
    cells
}

fn bare(cell: &str) -> &str {
    let cell = cell.trim();
    let inside = cell.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.map_or(cell, str::trim)
}

/// The start of a text, for messages.
pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    let clean: String = text.chars().filter(|letter| !letter.is_control()).take(MOST).collect();
    if text.chars().nth(MOST).is_some() { format!("{clean}…") } else { clean }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_text_whatever_wrote_them() {
        assert_eq!(decoded(b"\xef\xbb\xbfab"), "ab");
        assert_eq!(decoded(b"\xff\xfea\0b\0"), "ab");
        assert_eq!(decoded(b"\xfe\xff\0a\0b\0"), "ab");
        assert_eq!(decoded(b"a\xff"), "a\u{fffd}");
    }

    #[test]
    fn a_comma_in_quotes_parts_nothing() {
        assert_eq!(cells("a, \"b, c\" ,d"), ["a", "b, c", "d"]);
        assert_eq!(cells("a,,"), ["a", "", ""]);
        assert_eq!(cells("\"a, b"), ["\"a, b"]);
    }
}
