//! What is refused before it is looked at: other methods, bodies, and clients without the token.
//!
//! Invariants: no byte of a request's body is read, and nothing that a client sends is sent back.
//! Without the token `/healthz` says whether the default card can be read and nothing else, for
//! whoever restarts services; all else is closed.

use axum::body::Body;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};

use super::{Agent, answer::refuse, power};

/// The answer to a request that gets no further; `None` for one that does.
pub fn closed<B>(agent: &Agent, request: &Request<B>) -> Option<Response<Body>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let error = "this agent only tells: GET and HEAD";
        let mut response = hung_up(refuse(StatusCode::METHOD_NOT_ALLOWED, error));
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Some(response);
    }
    let headers = request.headers();
    let length = headers.get(header::CONTENT_LENGTH);
    if headers.contains_key(header::TRANSFER_ENCODING) || length.is_some_and(|length| length != "0")
    {
        let error = "a request to this agent has no body";
        return Some(hung_up(refuse(StatusCode::BAD_REQUEST, error)));
    }
    let shown = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let is_let_in = agent.token.as_ref().is_none_or(|token| token.is_shown_by(shown));
    if is_let_in {
        return None;
    }
    if request.uri().path() == power::HEALTH && shown.is_none() {
        return Some(power::health_alone(agent));
    }
    let error = "this agent asks for a token: Authorization: Bearer …";
    let mut response = refuse(StatusCode::UNAUTHORIZED, error);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    Some(response)
}

/// The connection ends with this answer, so that what follows the header is never read.
fn hung_up(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
