//! The server under test: that it answers, that it lists the model, and how it counts.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use joulebook::books::{Books, Labels};
use joulebook_lab::draw::Draw;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::{
    Address,
    call::{Answer, Call},
    pieces::said,
    pool::Pool,
    prompt::{self, Counting},
};
use crate::bench::record::Outcome;

/// How long the target may take to say which models it has.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most of that answer that is read.
const MODELS_BODY: usize = 16 << 20;
/// Words of the two prompts by which the target's counting is found: whole rounds of them.
const SHORT: u64 = 2 * prompt::ROUND;
const LONG: u64 = 10 * prompt::ROUND;

/// A server, and how it is asked.
#[derive(Debug)]
pub struct Target {
    /// Where it is.
    pub address: Address,
    /// The model asked for.
    pub model: String,
    /// What it says it is.
    pub server: Option<String>,
    /// Chats, or completions.
    pub chat: bool,
    /// Answers are streamed.
    pub stream: bool,
    /// Answers may not end before their length.
    pub ignore_eos: bool,
    /// How long one answer may take.
    pub patience: Duration,
    /// What stands in the head of each request.
    pub headers: HeaderMap,
    /// How it counts.
    pub counting: Counting,
    /// Its connections.
    pub pool: Pool,
}

/// Why a target cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It does not answer.
    #[error("{url} does not answer: {why}")]
    Silent {
        /// Where.
        url: String,
        /// What went wrong.
        why: String,
    },
    /// It has no such model.
    #[error("{url} does not list the model {model}; it lists {listed}")]
    Unlisted {
        /// Where.
        url: String,
        /// What was asked for.
        model: String,
        /// What it has.
        listed: String,
    },
    /// Several models, and none was named.
    #[error("{url} lists {listed}: name one with --model")]
    Unnamed {
        /// Where.
        url: String,
        /// What it has.
        listed: String,
    },
    /// It refuses the very requests that would be measured.
    #[error("{url} refuses a request: {why}{hint}")]
    Refuses {
        /// Where.
        url: String,
        /// What it says.
        why: String,
        /// What to do.
        hint: &'static str,
    },
}

impl Target {
    /// A target that has not been asked anything yet.
    pub fn new(address: Address, headers: HeaderMap) -> Result<Self, Refusal> {
        let addresses = address.resolve().and_then(|all| {
            let none = std::io::Error::new(std::io::ErrorKind::NotFound, "its name means nothing");
            if all.is_empty() { Err(none) } else { Ok(all) }
        });
        let addresses = addresses
            .map_err(|error| Refusal::Silent { url: address.url(), why: error.to_string() })?;
        Ok(Self {
            address,
            model: String::new(),
            server: None,
            chat: true,
            stream: true,
            ignore_eos: true,
            patience: Duration::from_secs(300),
            headers,
            counting: Counting::default(),
            pool: Pool::new(addresses),
        })
    }

    /// Asks which models it has, and takes the one asked for, or its only one.
    pub async fn choose(&mut self, model: Option<&str>) -> Result<(), Refusal> {
        let url = self.address.url();
        let silent = |why: String| Refusal::Silent { url: url.clone(), why };
        let (server, models) = self.models().await.map_err(silent)?;
        let listed = || {
            let shown: Vec<&str> = models.iter().take(8).map(String::as_str).collect();
            match (shown.len(), models.len()) {
                (0, _) => "none".to_owned(),
                (shown_count, all) if shown_count < all => {
                    format!("{}, and {} more", shown.join(", "), all - shown_count)
                }
                _ => shown.join(", "),
            }
        };
        self.model = match (model, models.as_slice()) {
            (Some(model), all) if all.iter().any(|it| it == model) => model.to_owned(),
            (Some(model), _) => {
                return Err(Refusal::Unlisted { url, model: model.to_owned(), listed: listed() });
            }
            (None, [only]) => only.clone(),
            (None, _) => return Err(Refusal::Unnamed { url, listed: listed() }),
        };
        self.server = server;
        Ok(())
    }

    /// True while it answers at all.
    pub async fn is_alive(&self) -> bool {
        self.models().await.is_ok()
    }

    async fn models(&self) -> Result<(Option<String>, Vec<String>), String> {
        let ask = async {
            let mut connection = self.pool.open().await.map_err(|error| error.to_string())?;
            let mut request = Request::get(self.address.path("models"))
                .header(header::HOST, self.address.authority())
                .body(Full::new(Bytes::new()))
                .map_err(|error| error.to_string())?;
            request.headers_mut().extend(self.headers.clone());
            let response = connection.send_request(request).await.map_err(|it| it.to_string())?;
            let status = response.status();
            let named = response.headers().get(header::SERVER);
            let server = named.and_then(|name| name.to_str().ok()).map(str::to_owned);
            let body = Limited::new(response.into_body(), MODELS_BODY).collect().await;
            let bytes = body.map_err(|error| error.to_string())?.to_bytes();
            let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            if !status.is_success() {
                let why = said(body.get("error").unwrap_or(&body));
                return Err(format!("{} on {}: {why}", status, self.address.path("models")));
            }
            let list = body.get("data").and_then(Value::as_array);
            let list = list.ok_or_else(|| {
                format!(
                    "{} lists no models, as servers of this kind do",
                    self.address.path("models")
                )
            })?;
            let name = |model: &Value| model.get("id")?.as_str().map(str::to_owned);
            Ok((server, list.iter().filter_map(name).collect()))
        };
        match tokio::time::timeout(PATIENCE, ask).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("nothing within {PATIENCE:?}")),
        }
    }

    /// Finds how it counts by two short requests, which also show whether it takes ours; false
    /// when its answers do not say how many tokens a prompt had.
    pub async fn measure_counting(&mut self, seed: u64) -> Result<bool, Refusal> {
        let mut counts = Vec::new();
        for words in [SHORT, LONG] {
            let mut draw = Draw::new(seed);
            draw.turn(words);
            let text = prompt::text(&mut draw, words);
            let answer = self.ask_once(&text, 1).await;
            if answer.outcome != Outcome::Done {
                let why = answer.error.unwrap_or_default();
                let about_eos = why.contains("ignore_eos") || why.contains("min_tokens");
                let hint = if about_eos && self.ignore_eos { " (try --no-ignore-eos)" } else { "" };
                return Err(Refusal::Refuses { url: self.address.url(), why, hint });
            }
            let tokens = answer.usage.and_then(|usage| usage.prompt);
            counts.extend(tokens.map(|tokens| (words, tokens)));
        }
        let found = match counts.as_slice() {
            [short, long] => Counting::of(*short, *long),
            _ => None,
        };
        self.counting = found.unwrap_or_default();
        Ok(found.is_some())
    }

    async fn ask_once(&self, text: &str, answer_tokens: u64) -> Answer {
        let (_never, mut give_up) = watch::channel(false);
        let mut ticket = Books::off().open(&Labels::default());
        let call = self.call("check".to_owned(), text, answer_tokens);
        call.make(&self.pool, &mut ticket, &mut give_up).await
    }

    /// A request.
    pub fn call(&self, name: String, text: &str, answer_tokens: u64) -> Call {
        let resource = if self.chat { "chat/completions" } else { "completions" };
        Call {
            path: self.address.path(resource),
            authority: self.address.authority(),
            headers: self.headers.clone(),
            name,
            body: Bytes::from(self.body(text, answer_tokens).to_string()),
            patience: self.patience,
        }
    }

    fn body(&self, text: &str, answer_tokens: u64) -> Value {
        let mut body = Map::new();
        let mut put = |key: &str, value: Value| body.insert(key.to_owned(), value);
        put("model", json!(self.model));
        if self.chat {
            put("messages", json!([{"role": "user", "content": text}]));
        } else {
            put("prompt", json!(text));
        }
        put("max_tokens", json!(answer_tokens));
        put("temperature", json!(0));
        if self.ignore_eos {
            put("ignore_eos", json!(true));
        }
        put("stream", json!(self.stream));
        if self.stream {
            put("stream_options", json!({"include_usage": true}));
        }
        Value::Object(body)
    }
}
