//! Answers: JSON and text, as all routes give them.

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;

/// A refusal in the shape of old clients.
#[derive(Debug, Default, Serialize)]
pub struct Refusal<'a> {
    /// What is wrong, for a person.
    pub error: &'a str,
    /// What there is instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<&'a str>,
}

/// JSON with a status.
pub fn json(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(text) => with(status, "application/json", text),
        // Numbers, words and lists of them: there is nothing that could not be written.
        Err(_) => with(StatusCode::SERVICE_UNAVAILABLE, "application/json", Vec::new()),
    }
}

/// A refusal with a status.
pub fn refuse(status: StatusCode, error: &str) -> Response<Body> {
    json(status, &Refusal { error, detail: None })
}

/// Text of a kind, with a status.
pub fn with(status: StatusCode, kind: &'static str, text: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
