//! The pieces of an answer: server-sent events cut from bytes as they come, and what each of them
//! carries.
//!
//! A piece has content when it brings text of the answer, reasoning and tool calls included; an
//! empty first piece and the last one with the reason for the end have none. Usage is taken from
//! wherever it stands last. Refused: an event that is an error, one that is no JSON.

use joulebook::books::{TokenSource, Usage};
use serde::Deserialize;
use serde_json::Value;

/// The longest line that is kept.
const LONGEST: usize = 16 << 20;

/// Cuts lines out of bytes.
#[derive(Debug, Default)]
pub struct Lines {
    rest: Vec<u8>,
}

/// What an event is.
#[derive(Debug, PartialEq)]
pub enum Piece {
    /// A part of the answer.
    Part {
        /// It has a choice, with content or not.
        choice: bool,
        /// It brings content.
        content: bool,
        /// It says why the answer ends.
        ends: bool,
        /// What was used, where it says so.
        usage: Option<Usage>,
    },
    /// Nothing more comes.
    Done,
    /// The server gives up, and why.
    Error(String),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    choices: Vec<Choice>,
    usage: Option<UsageBody>,
    error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice {
    delta: Option<Delta>,
    message: Option<Delta>,
    text: Option<String>,
    finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta {
    content: Option<Value>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    tool_calls: Option<Vec<Value>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct UsageBody {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl Lines {
    /// More bytes; each line that is whole now.
    pub fn push(&mut self, bytes: &[u8], mut line: impl FnMut(&str)) {
        self.rest.extend_from_slice(bytes);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            if self.rest.len() > LONGEST {
                self.rest.clear();
            }
            return;
        };
        let whole: Vec<u8> = self.rest.drain(..=end).collect();
        for text in whole.split(|byte| *byte == b'\n') {
            line(String::from_utf8_lossy(text).trim_end_matches('\r'));
        }
    }
}

impl Piece {
    /// Of a line of a stream; none where it carries no data (a comment, an event's name, a blank).
    pub fn of_line(line: &str) -> Option<Self> {
        let data = line.strip_prefix("data:")?.trim();
        match data {
            "" => None,
            "[DONE]" => Some(Self::Done),
            data => Some(Self::of_json(data.as_bytes())),
        }
    }

    /// Of a body of JSON: an event's, or an answer's in one piece.
    pub fn of_json(bytes: &[u8]) -> Self {
        let event: Event = match serde_json::from_slice(bytes) {
            Ok(event) => event,
            Err(error) => return Self::Error(format!("the answer is no JSON: {error}")),
        };
        if let Some(error) = event.error {
            return Self::Error(said(&error));
        }
        Self::Part {
            choice: !event.choices.is_empty(),
            content: event.choices.iter().any(Choice::has_content),
            ends: event.choices.iter().any(|choice| choice.finish_reason.is_some()),
            usage: event.usage.map(UsageBody::usage),
        }
    }
}

/// What a server says of an error, in a line.
pub fn said(error: &Value) -> String {
    let message = error.get("message").or_else(|| error.get("error")).unwrap_or(error);
    let text = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(300).collect()
}

impl Choice {
    fn has_content(&self) -> bool {
        let is_text = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        let delta = self.delta.as_ref().or(self.message.as_ref());
        is_text(&self.text) || delta.is_some_and(|delta| delta.has_content(is_text))
    }
}

impl Delta {
    fn has_content(&self, is_text: impl Fn(&Option<String>) -> bool) -> bool {
        let content = match &self.content {
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Array(parts)) => !parts.is_empty(),
            _ => false,
        };
        content
            || is_text(&self.reasoning_content)
            || is_text(&self.reasoning)
            || self.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty())
    }
}

impl UsageBody {
    fn usage(self) -> Usage {
        let cached = self.prompt_tokens_details.and_then(|details| details.cached_tokens);
        let reasoning = self.completion_tokens_details.and_then(|it| it.reasoning_tokens);
        Usage {
            prompt: self.prompt_tokens,
            cached,
            completion: self.completion_tokens,
            reasoning,
            source: TokenSource::Usage,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn part(choice: bool, content: bool, ends: bool) -> Piece {
        Piece::Part { choice, content, ends, usage: None }
    }

    #[test]
    fn pieces_with_content_are_told_from_those_without() {
        for (line, piece) in [
            // llama.cpp's first and last, vLLM's first, reasoning, a completion's.
            (
                r#"data: {"choices":[{"delta":{"role":"assistant","content":null}}]}"#,
                part(true, false, false),
            ),
            (
                r#"data: {"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
                part(true, false, false),
            ),
            (r#"data: {"choices":[{"delta":{"content":"a"}}]}"#, part(true, true, false)),
            (r#"data: {"choices":[{"delta":{"reasoning_content":"a"}}]}"#, part(true, true, false)),
            (r#"data:{"choices":[{"text":"a"}]}"#, part(true, true, false)),
            (
                r#"data: {"choices":[{"finish_reason":"length","delta":{}}]}"#,
                part(true, false, true),
            ),
            ("data: [DONE]", Piece::Done),
            (
                r#"data: {"error":{"code":500,"message":"no\n more"}}"#,
                Piece::Error("no more".to_owned()),
            ),
        ] {
            assert_eq!(Piece::of_line(line), Some(piece), "{line}");
        }
        for line in ["", ": ping", "event: message", "data:"] {
            assert_eq!(Piece::of_line(line), None, "{line}");
        }
        assert!(matches!(Piece::of_line("data: <html>"), Some(Piece::Error(_))));
    }

    #[test]
    fn usage_is_taken_with_its_details() {
        let line = r#"data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,
            "prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":null}}"#;
        let Some(Piece::Part { usage: Some(usage), choice: false, .. }) =
            Piece::of_line(&line.replace('\n', " "))
        else {
            panic!("it has a usage");
        };
        assert_eq!((usage.prompt, usage.cached, usage.completion), (Some(9), Some(8), Some(4)));
        assert_eq!(usage.source, TokenSource::Usage);
    }

    #[test]
    fn lines_are_whole_wherever_the_bytes_are_cut() {
        let text = "data: ä\r\n\r\ndata: b\n";
        for cut in 0..text.len() {
            let (mut lines, mut seen) = (Lines::default(), Vec::new());
            let (left, right) = text.as_bytes().split_at(cut);
            for bytes in [left, right] {
                lines.push(bytes, |line| seen.extend((!line.is_empty()).then(|| line.to_owned())));
            }
            assert_eq!(seen, ["data: ä", "data: b"], "cut at {cut}");
        }
    }
}
