//! Objects one after another, as a loop of a tool writes them.

use serde_json::Value;

use super::{Log, ReplayError, text::shortened};

/// One object or list, and where it begins.
pub(super) struct Document {
    pub line: usize,
    pub value: Value,
}

/// All objects of a text; whatever stands behind the last whole one is a cut end.
pub(super) fn documents(text: &str, format: &'static str) -> Result<Vec<Document>, ReplayError> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut documents = Vec::new();
    // Each begins where the last has ended; line breaks up to there are counted once.
    let (mut counted, mut line) = (0, 1);
    loop {
        let begin = stream.byte_offset();
        let Some(value) = stream.next() else { break };
        let blank = text.get(begin..).unwrap_or_default();
        let begin = begin + (blank.len() - blank.trim_start().len());
        line += text.get(counted..begin).unwrap_or_default().matches('\n').count();
        counted = begin;
        match value {
            Ok(value) => documents.push(Document { line, value }),
            Err(error) if documents.is_empty() => {
                let why = format!("{} (`{}`)", error, shortened(text.trim_start()));
                return Err(ReplayError::NotThisFormat { line: error.line().max(1), format, why });
            }
            Err(_) => break,
        }
    }
    Ok(documents)
}

/// A text or a number as text.
pub(super) fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A log of answers, unless nothing was read, or several answers cannot be put in time.
pub(super) fn done(log: Log) -> Result<Log, ReplayError> {
    let Some(first) = log.rows.first() else {
        let why = log.refused.first().map_or("no card is in it", |refused| refused.why.as_str());
        let line = log.refused.first().map_or(1, |refused| refused.line);
        return Err(ReplayError::NoRows { line, why: why.to_owned() });
    };
    let again = log.rows.iter().skip(1).find(|row| row.card == first.card);
    match again {
        Some(row) if row.at_ns == first.at_ns => {
            let why = "the same card again, and nothing says when: print the time before each \
                       answer of the loop, or use the tool's own --watch"
                .to_owned();
            Err(ReplayError::NotThisFormat { line: row.line, format: log.format, why })
        }
        _ => Ok(log),
    }
}
