//! What clients send, as far as it is heeded, and what is wrong with it.

use serde::Deserialize;
use serde_json::Value;

use super::{
    Settings,
    words::{MESSAGE_TOKENS, natural_length, tokens},
};

/// The fields of both kinds of request that matter here; the others are let pass.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Body {
    model: String,
    messages: Vec<Message>,
    prompt: Value,
    stream: bool,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    min_tokens: u64,
    ignore_eos: bool,
}

#[derive(Debug, Deserialize)]
struct Message {
    #[serde(default)]
    content: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: bool,
}

/// Which of the two interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Chat,
    Completion,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub form: Form,
    pub prompt_tokens: u32,
    pub answer_tokens: u32,
    /// It ends because it is as long as was allowed.
    pub cut: bool,
    pub stream: bool,
    pub usage: bool,
}

/// What is wrong: the status, and the sentence.
pub(super) type Wrong = (u16, String);

impl Body {
    /// What it asks of a server.
    pub fn asked(&self, form: Form, settings: &Settings) -> Result<Asked, Wrong> {
        if self.model != settings.model {
            return Err((404, format!("the model `{}` does not exist", self.model)));
        }
        let (text, count) = match form {
            Form::Chat => self.chat()?,
            Form::Completion => self.completion()?,
        };
        let room = settings.context_tokens.saturating_sub(count);
        if count == 0 || room == 0 {
            let most = settings.context_tokens;
            return Err((400, format!("a prompt of {count} tokens; it must have 1 to {most}")));
        }
        let usual = if form == Form::Chat { room } else { 16 };
        let most = self.max_completion_tokens.or(self.max_tokens).unwrap_or(usual);
        if most == 0 || most > room {
            return Err((400, format!("max_tokens is {most}; there is room for 1 to {room}")));
        }
        let natural =
            if self.ignore_eos { most } else { natural_length(&text).max(self.min_tokens) };
        let answer = natural.min(most);
        let short = |count: u64| u32::try_from(count).map_err(|_| (400, "too long".to_owned()));
        Ok(Asked {
            form,
            prompt_tokens: short(count)?,
            answer_tokens: short(answer)?,
            cut: natural >= most,
            stream: self.stream,
            usage: self.stream_options.as_ref().is_some_and(|options| options.include_usage),
        })
    }

    fn chat(&self) -> Result<(String, u64), Wrong> {
        let mut text = String::new();
        for message in &self.messages {
            match &message.content {
                Value::String(content) => text = text + content + "\n",
                Value::Array(parts) => {
                    let parts = parts.iter().filter_map(|part| part.get("text")?.as_str());
                    parts.for_each(|part| text = std::mem::take(&mut text) + part + "\n");
                }
                Value::Null => {}
                _ => return Err((400, "content must be text or a list of parts".to_owned())),
            }
        }
        let count = tokens(&text) + MESSAGE_TOKENS * self.messages.len() as u64;
        Ok((text, count))
    }

    fn completion(&self) -> Result<(String, u64), Wrong> {
        match &self.prompt {
            Value::String(text) => Ok((text.clone(), tokens(text))),
            Value::Array(parts) if parts.iter().all(Value::is_u64) => {
                Ok((self.prompt.to_string(), parts.len() as u64))
            }
            Value::Array(parts) => match parts.as_slice() {
                [Value::String(text)] => Ok((text.clone(), tokens(text))),
                _ => Err((400, "one prompt at a time, please".to_owned())),
            },
            _ => Err((400, "prompt must be text or tokens".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(form: Form, body: Value) -> Result<Asked, Wrong> {
        let body: Body = serde_json::from_value(body).unwrap();
        body.asked(form, &Settings { context_tokens: 1000, ..Settings::default() })
    }

    #[test]
    fn lengths_are_those_asked_for() {
        let chat = json!({
            "model": "lab-8b", "messages": [{"role": "user", "content": "ten watts for an hour"}],
            "max_tokens": 7, "ignore_eos": true, "temperature": 0, "stream": true,
            "stream_options": {"include_usage": true},
        });
        let (prompt_tokens, answer_tokens) = (5 + 4, 7);
        let whole = Asked {
            form: Form::Chat,
            prompt_tokens,
            answer_tokens,
            cut: true,
            stream: true,
            usage: true,
        };
        assert_eq!(asked(Form::Chat, chat), Ok(whole));
        let parts = json!([{"type": "text", "text": "two words"}]);
        let chat = json!({"model": "lab-8b", "messages": [{"role": "user", "content": parts}]});
        let free = asked(Form::Chat, chat).unwrap();
        assert_eq!((free.prompt_tokens, free.stream, free.usage), (6, false, false));
        assert!((4..=1000).contains(&free.answer_tokens));
        let at_least =
            json!({"model": "lab-8b", "prompt": [1, 2, 3], "min_tokens": 5000, "max_tokens": 900});
        let least = asked(Form::Completion, at_least).unwrap();
        assert_eq!((least.prompt_tokens, least.answer_tokens, least.cut), (3, 900, true));
    }

    #[test]
    fn what_cannot_be_served_is_refused() {
        for (body, status) in [
            (json!({"model": "other", "prompt": "a"}), 404),
            (json!({"model": "lab-8b", "prompt": ""}), 400),
            (json!({"model": "lab-8b", "prompt": ["a", "b"]}), 400),
            (json!({"model": "lab-8b", "prompt": "a", "max_tokens": 1000}), 400),
            (json!({"model": "lab-8b", "prompt": "a", "max_tokens": 0}), 400),
        ] {
            assert_eq!(asked(Form::Completion, body.clone()).unwrap_err().0, status, "{body}");
        }
    }
}
