//! Rust text without what is no shipped code: comments, what stands in quotes, and modules under
//! `#[cfg(test)]`. Not a parser: enough of the lexer to know where those begin and end.

/// The code that ships, with `std :: fs` drawn together to `std::fs`.
pub fn shipped_code(source: &str) -> String {
    without_test_modules(&joined_paths(&without_comments_and_quotes(source)))
}

fn without_comments_and_quotes(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(symbol) = rest.chars().next() {
        let skipped = match symbol {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => 1 + until_unescaped(&rest[1..], '"'),
            'r' if !code.ends_with(|it: char| it.is_alphanumeric() && it != 'b' || it == '_') => {
                raw_string(rest)
            }
            '\'' => character(rest),
            _ => 0,
        };
        // A gap stays, so that what stood on both sides does not become one word.
        code.push(if skipped == 0 { symbol } else { ' ' });
        rest = &rest[skipped.max(symbol.len_utf8())..];
    }
    code
}

/// The length of a block comment, which may hold others.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let (step, change) = match text.as_bytes().get(at..at + 2) {
            Some(b"/*") => (2, 1),
            Some(b"*/") => (2, -1),
            _ => (1, 0),
        };
        at += step;
        depth += change;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The length up to and with the first `quote` that no backslash stands before.
fn until_unescaped(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, symbol) in text.char_indices() {
        if symbol == quote && !escaped {
            return at + 1;
        }
        escaped = symbol == '\\' && !escaped;
    }
    text.len()
}

/// The length of a raw string that begins here, or 0.
fn raw_string(text: &str) -> usize {
    let hashes = text[1..].len() - text[1..].trim_start_matches('#').len();
    let opening = 1 + hashes;
    if !text[opening..].starts_with('"') {
        return 0;
    }
    let closing = format!("\"{}", "#".repeat(hashes));
    let body = opening + 1;
    text[body..].find(&closing).map_or(text.len(), |at| body + at + closing.len())
}

/// The length of a character literal that begins here, or 0 for a lifetime.
fn character(text: &str) -> usize {
    let mut symbols = text.char_indices().skip(1);
    match (symbols.next(), symbols.next()) {
        (Some((_, '\\')), _) => 1 + until_unescaped(&text[1..], '\''),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 0,
    }
}

/// Without the space that may stand around `::`.
fn joined_paths(code: &str) -> String {
    code.split("::").map(str::trim).collect::<Vec<_>>().join("::")
}

/// Without each item that exists in tests alone.
fn without_test_modules(code: &str) -> String {
    const MARKS: [&str; 2] = ["#[cfg(test)]", "#[cfg(all(test,"];
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = MARKS.iter().filter_map(|mark| rest.find(mark)).min() {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = &rest[item_length(rest)..];
    }
    kept + rest
}

/// The length of the item, with its attributes, that begins here: to its `;`, or to the end of its braces.
fn item_length(code: &str) -> usize {
    let mut depth = 0_i32;
    for (at, symbol) in code.char_indices() {
        match symbol {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 && matches!(symbol, ';' | '}') {
            return at + 1;
        }
    }
    code.len()
}

#[test]
fn what_is_in_quotes_or_comments_goes_and_the_rest_stays() {
    for (source, code) in [
        ("a // b\nc", "a  \nc"),
        ("a /* b /* c */ d */ e", "a   e"),
        ("f(\"a\\\"b\") g", "f( ) g"),
        ("r#\"a\"b\"# c", "  c"),
        ("br\"a\\\" c", "b  c"),
        ("for_r in x", "for_r in x"),
        ("'\\'' + '\"' + 'ü' + '\\u{1F}'", "  +   +   +  "),
        ("&'a str", "&'a str"),
        ("\"never closed", " "),
    ] {
        assert_eq!(without_comments_and_quotes(source), code, "{source}");
    }
}

#[test]
fn a_test_module_goes_and_what_follows_stays() {
    let source = "a\n#[cfg(test)]\n#[allow(dead_code)]\nmod tests { fn f() { {} } }\nb";
    assert_eq!(without_test_modules(source), "a\n\nb");
    assert_eq!(without_test_modules("#[cfg(test)] mod tests; b"), " b");
    assert_eq!(without_test_modules("#[cfg(all(test, not(loom)))] mod tests { a } b"), " b");
    let ships = "#[cfg(any(test, unix))] fn f() {} #[cfg(not(test))] fn g() {}";
    assert_eq!(without_test_modules(ships), ships);
    assert_eq!(without_test_modules("#[cfg(test)] fn f(a: [u8; 2]) -> u8 { 1 } b"), " b");
}
