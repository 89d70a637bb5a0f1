//! Elements and texts of a simple XML text, in their order. No entities beyond the five, no
//! namespaces: enough for what tools print, and nothing is ever fetched or expanded.

/// One thing in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event<'a> {
    /// An element begins: its name, and all of its attributes as they are written.
    Open(&'a str, &'a str),
    /// Text between elements, trimmed.
    Text(&'a str),
    /// An element ends.
    Close(&'a str),
}

/// The events of a text with the line that each begins on; a cut end yields no half of a tag.
pub(super) fn events(text: &str) -> Vec<(usize, Event<'_>)> {
    let mut events = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(begin) = rest.find('<') {
        let (before, tag) = rest.split_at(begin);
        let trimmed = before.trim();
        if !trimmed.is_empty() {
            events.push((line, Event::Text(trimmed)));
        }
        line += before.matches('\n').count();
        let close = if tag.starts_with("<!--") { "-->" } else { ">" };
        let Some(end) = tag.find(close) else { break };
        let (tag, after) = tag.split_at(end + close.len());
        let inside = tag.trim_start_matches('<').trim_end_matches('>');
        if let Some(name) = inside.strip_prefix('/') {
            events.push((line, Event::Close(name.trim())));
        } else if !inside.starts_with(['?', '!']) {
            let own = inside.strip_suffix('/');
            let inside = own.unwrap_or(inside).trim();
            let (name, attributes) = inside.split_once(char::is_whitespace).unwrap_or((inside, ""));
            events.push((line, Event::Open(name, attributes.trim())));
            if own.is_some() {
                events.push((line, Event::Close(name)));
            }
        }
        line += tag.matches('\n').count();
        rest = after;
    }
    events
}

/// An attribute's value.
pub(super) fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = attributes.split_once(&format!("{name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

#[test]
fn elements_come_in_their_order_and_a_cut_end_is_left_out() {
    let text = "<?xml?>\n<a id=\"7\"><!-- <b> -->\n <b>1 W</b><c/></a><d";
    let events: Vec<_> = events(text);
    let wanted = [
        (2, Event::Open("a", "id=\"7\"")),
        (3, Event::Open("b", "")),
        (3, Event::Text("1 W")),
        (3, Event::Close("b")),
        (3, Event::Open("c", "")),
        (3, Event::Close("c")),
        (3, Event::Close("a")),
    ];
    assert_eq!(events, wanted);
    assert_eq!(attribute("id=\"7\" x=\"8\"", "x"), Some("8"));
}
