//! A file of marks: two columns, `start,end`, one window a row.

use super::{
    ReplayError,
    stamp::Moment,
    text::{cells, decoded, shortened},
};

/// Windows, as a file gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Start and end, in the file's order.
    pub windows: Vec<(Moment, Moment)>,
}

/// Reads marks. The first row may be a header.
pub fn marks(bytes: &[u8]) -> Result<Marks, ReplayError> {
    let text = decoded(bytes);
    let mut windows = Vec::new();
    let mut first = true;
    for (line, content) in (1..).zip(text.lines()) {
        if content.trim().is_empty() {
            continue;
        }
        let is_header = std::mem::take(&mut first) && is_header(content);
        if is_header {
            continue;
        }
        let refused = |why: String| ReplayError::Marks { line, why };
        let cells = cells(content);
        let [start, end] = cells.as_slice() else {
            return Err(refused(format!("`{}` has {} cells", shortened(content), cells.len())));
        };
        let moment = |text: &str| text.parse::<Moment>().map_err(refused);
        let (start, end) = (moment(start)?, moment(end)?);
        if !in_order(start, end) {
            return Err(refused(format!("`{}` does not end after it starts", shortened(content))));
        }
        windows.push((start, end));
    }
    if windows.is_empty() {
        return Err(ReplayError::Marks { line: 1, why: "no window is in it".to_owned() });
    }
    Ok(Marks { windows })
}

/// A first row of words.
fn is_header(content: &str) -> bool {
    cells(content).iter().all(|cell| cell.starts_with(|letter: char| letter.is_alphabetic()))
}

fn in_order(start: Moment, end: Moment) -> bool {
    match (start, end) {
        (Moment::Epoch(start), Moment::Epoch(end))
        | (Moment::Local(start), Moment::Local(end))
        | (Moment::FromStart(start), Moment::FromStart(end)) => start < end,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_with_or_without_a_header() {
        let with = marks(b"start_epoch_s,end_epoch_s\n1.5,2\n\n3,4.25\n").unwrap();
        let without = marks(b"1.5, 2\r\n3, 4.25").unwrap();
        assert_eq!(with, without);
        assert_eq!(with.windows[1], (Moment::Epoch(3_000_000_000), Moment::Epoch(4_250_000_000)));
    }

    #[test]
    fn what_is_no_mark_is_refused_by_its_line() {
        for (text, line) in [
            ("", 1),
            ("start,end\n", 1),
            ("1,2\n2,1\n", 2),
            ("1,2\n3\n", 2),
            ("start,end\nstart,end\n1,2", 2),
            ("1,nan\n", 1),
            ("1,+2\n", 1),
        ] {
            assert_eq!(marks(text.as_bytes()).unwrap_err().line(), Some(line), "{text:?}");
        }
    }
}
