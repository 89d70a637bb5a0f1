//! The HTTP interface: what is answered where, whole or in chunks.

use std::{
    convert::Infallible,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    Json, Router,
    body::{Body as HttpBody, Bytes},
    extract::{Query, State, rejection::JsonRejection},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    body::{Asked, Body, Form},
    desk::{Answer, Piece, Shared},
    words::word,
};
use crate::engine::Job;

type Server = State<Arc<Shared>>;

pub(super) fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/health", get(|| async {}))
        .route("/v1/models", get(models))
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(completion))
        .route("/truth", get(truth))
        .with_state(shared)
}

async fn models(State(shared): Server) -> Json<Value> {
    let model = json!({
        "id": shared.settings.model, "object": "model", "created": 0, "owned_by": "joulebook-lab",
        "max_model_len": shared.settings.context_tokens,
    });
    Json(json!({"object": "list", "data": [model]}))
}

#[derive(Deserialize)]
struct Span {
    from_ns: Option<i64>,
    to_ns: Option<i64>,
}

async fn truth(State(shared): Server, Query(span): Query<Span>) -> Response {
    let mut truth = shared.truth();
    if let (Some(from_ns), Some(to_ns)) = (span.from_ns, span.to_ns) {
        truth.card = Some(shared.card(from_ns, to_ns));
    }
    Json(truth).into_response()
}

async fn chat(
    State(shared): Server,
    headers: HeaderMap,
    body: Result<Json<Body>, JsonRejection>,
) -> Response {
    answer(&shared, Form::Chat, &headers, body).await
}

async fn completion(
    State(shared): Server,
    headers: HeaderMap,
    body: Result<Json<Body>, JsonRejection>,
) -> Response {
    answer(&shared, Form::Completion, &headers, body).await
}

async fn answer(
    shared: &Arc<Shared>,
    form: Form,
    headers: &HeaderMap,
    body: Result<Json<Body>, JsonRejection>,
) -> Response {
    let asked = match body {
        Ok(Json(body)) => body.asked(form, &shared.settings),
        Err(rejection) => Err((400, rejection.body_text())),
    };
    let asked = match asked {
        Ok(asked) => asked,
        Err((status, why)) => return refused(status, &why),
    };
    let job = Job {
        prompt_tokens: asked.prompt_tokens,
        cached_tokens: 0,
        answer_tokens: asked.answer_tokens,
        patience_ns: None,
        parent: None,
    };
    let name = headers.get("x-request-id").and_then(|name| name.to_str().ok()).map(str::to_owned);
    let Some(answer) = shared.submit(job, name) else {
        return refused(503, "the engine is gone");
    };
    let breaks = shared.breaks(answer.id);
    let page = Page { asked, answer, model: shared.settings.model.clone(), breaks };
    if asked.stream { page.stream() } else { page.whole().await }
}

fn refused(status: u16, why: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(error(status.as_u16(), why))).into_response()
}

fn error(code: u16, message: &str) -> Value {
    json!({"error": {"message": message, "type": "invalid_request_error", "code": code}})
}

/// An answer on its way to its client.
struct Page {
    asked: Asked,
    answer: Answer,
    model: String,
    breaks: bool,
}

/// Where a stream stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Role,
    Tokens(u64),
    Over,
}

impl Page {
    /// An answer that breaks off does so here.
    fn is_broken(&self, emitted: u64) -> bool {
        self.breaks && emitted >= u64::from(self.asked.answer_tokens) / 2
    }

    async fn whole(mut self) -> Response {
        let mut emitted = 0;
        while let Some(Piece::Tokens(count)) = self.answer.pieces.recv().await {
            emitted += u64::from(count);
            if self.is_broken(emitted) {
                return refused(500, "the answer breaks off, as was asked for");
            }
        }
        if emitted < u64::from(self.asked.answer_tokens) {
            return refused(503, "the engine is gone");
        }
        let text: String = (0..emitted).map(word).collect();
        let (name, said) = match self.asked.form {
            Form::Chat => ("message", json!({"role": "assistant", "content": text})),
            Form::Completion => ("text", json!(text)),
        };
        let choice = json!({"index": 0, name: said, "finish_reason": self.reason()});
        Json(self.page(json!([choice]), false, Some(emitted))).into_response()
    }

    fn stream(self) -> Response {
        let begin = if self.asked.form == Form::Chat { Stage::Role } else { Stage::Tokens(0) };
        let chunks = stream::unfold((self, begin), |(mut page, stage)| async move {
            let (text, next) = page.next(stage).await?;
            Some((Ok::<_, Infallible>(Bytes::from(text)), (page, next)))
        });
        let kind =
            [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
        (kind, HttpBody::from_stream(chunks)).into_response()
    }

    /// What is sent next, and where the stream stands then.
    async fn next(&mut self, stage: Stage) -> Option<(String, Stage)> {
        let emitted = match stage {
            Stage::Role => 0,
            Stage::Tokens(emitted) => emitted,
            Stage::Over => return None,
        };
        match self.answer.pieces.recv().await {
            Some(Piece::Tokens(count)) => {
                let upto = emitted + u64::from(count);
                if self.is_broken(upto) {
                    let why = error(500, "the answer breaks off, as was asked for");
                    return Some((event(&why), Stage::Over));
                }
                let mut text = String::new();
                if stage == Stage::Role {
                    let delta = json!({"role": "assistant", "content": ""});
                    text += &event(&self.chunk(&delta, None));
                }
                for number in emitted..upto {
                    text += &event(&self.chunk(&self.delta(word(number)), None));
                }
                Some((text, Stage::Tokens(upto)))
            }
            Some(Piece::End) => {
                let mut text = event(&self.chunk(&self.delta(""), Some(self.reason())));
                if self.asked.usage {
                    text += &event(&self.page(json!([]), true, Some(emitted)));
                }
                Some((text + "data: [DONE]\n\n", Stage::Over))
            }
            // The server goes down.
            None => None,
        }
    }

    fn delta(&self, text: &str) -> Value {
        match self.asked.form {
            Form::Chat if text.is_empty() => json!({}),
            Form::Chat => json!({"content": text}),
            Form::Completion => json!(text),
        }
    }

    fn chunk(&self, delta: &Value, reason: Option<&str>) -> Value {
        let name = if self.asked.form == Form::Chat { "delta" } else { "text" };
        self.page(json!([{"index": 0, name: delta, "finish_reason": reason}]), true, None)
    }

    /// A chunk or a whole answer; with its usage where so many tokens are told.
    fn page(&self, choices: Value, chunk: bool, emitted: Option<u64>) -> Value {
        let (id, object) = match (self.asked.form, chunk) {
            (Form::Chat, true) => ("chatcmpl", "chat.completion.chunk"),
            (Form::Chat, false) => ("chatcmpl", "chat.completion"),
            (Form::Completion, _) => ("cmpl", "text_completion"),
        };
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
        let mut page = json!({
            "id": format!("{id}-{}", self.answer.id), "object": object, "created": created,
            "model": self.model, "choices": choices,
        });
        if let (Some(emitted), Some(page)) = (emitted, page.as_object_mut()) {
            page.insert("usage".to_owned(), self.usage(emitted));
        }
        page
    }

    fn usage(&self, emitted: u64) -> Value {
        let prompt = u64::from(self.asked.prompt_tokens);
        json!({
            "prompt_tokens": prompt, "completion_tokens": emitted,
            "total_tokens": prompt + emitted, "prompt_tokens_details": {"cached_tokens": 0},
        })
    }

    const fn reason(&self) -> &'static str {
        if self.asked.cut { "length" } else { "stop" }
    }
}

fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}
