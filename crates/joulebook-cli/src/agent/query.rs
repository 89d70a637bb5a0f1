//! The query of an address, read as Python's `parse_qs` and `int` read it, which the first agents of
//! this kind were written with: the first value counts, an empty one is none.

/// The first value of this name.
pub fn value(query: &str, name: &str) -> Option<String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut values = pairs
        .filter(|(key, value)| !value.is_empty() && decoded(key).as_deref() == Some(name))
        .map(|(_, value)| decoded(value));
    // What is no text is no integer either.
    values.next().map(Option::unwrap_or_default)
}

/// A whole number with or without a sign, and spaces around it.
pub fn integer(text: &str) -> Option<i128> {
    text.trim().parse().ok()
}

/// `+` is a space, `%41` an A.
fn decoded(text: &str) -> Option<String> {
    let mut rest = text.as_bytes();
    let mut plain = Vec::with_capacity(text.len());
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after.split_at_checked(2)) {
            (b'%', Some((digits, beyond))) if digits.iter().all(u8::is_ascii_hexdigit) => {
                let digits = std::str::from_utf8(digits).ok()?;
                plain.push(u8::from_str_radix(digits, 16).ok()?);
                rest = beyond;
            }
            (b'+', _) => plain.push(b' '),
            _ => plain.push(*byte),
        }
    }
    String::from_utf8(plain).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_python_reads_them() {
        for (query, expected) in [
            ("gpu=1", Some("1")),
            ("gpu=1&gpu=2", Some("1")),
            ("gpu=&gpu=2", Some("2")),
            ("gpu=", None),
            ("gpu", None),
            ("", None),
            ("other=1&gpu=%31", Some("1")),
            ("%67pu=+7+", Some(" 7 ")),
            ("gpu=a=b", Some("a=b")),
            ("gpu=%", Some("%")),
            ("gpu=%zz1", Some("%zz1")),
            ("gpu=%+1", Some("% 1")),
            ("gpu=%ff", Some("")),
            ("GPU=1", None),
        ] {
            assert_eq!(value(query, "gpu").as_deref(), expected, "{query}");
        }
    }

    #[test]
    fn integers_are_integers() {
        for (text, expected) in
            [("1", Some(1)), (" 7 ", Some(7)), ("+2", Some(2)), ("-1", Some(-1)), ("007", Some(7))]
        {
            assert_eq!(integer(text), expected, "{text}");
        }
        for text in ["", "banana", "1.0", "0x1", "1e3", "1 2", "٣"] {
            assert_eq!(integer(text), None, "{text}");
        }
        assert_eq!(integer(&"9".repeat(60)), None);
    }
}
