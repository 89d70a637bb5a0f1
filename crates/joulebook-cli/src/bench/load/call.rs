//! One request: sent, read to its end, its pieces stamped as they come.
//!
//! A piece's instant is that of the read that brought its last byte. A connection that turns out to
//! have been closed by the server before it answered anything is replaced once, and the clock starts
//! again; any other failure is the request's.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use joulebook::{books::Ticket, books::Usage, clock::now_ns};
use tokio::sync::watch;

use super::{
    pieces::{Lines, Piece, said},
    pool::{Connection, Pool},
};
use crate::bench::record::Outcome;

/// The most of an error's body that is read.
const ERROR_BODY: usize = 64 << 10;

/// What is sent.
#[derive(Clone, Debug)]
pub struct Call {
    /// The resource's path.
    pub path: String,
    /// Host and port.
    pub authority: String,
    /// What else stands in its head.
    pub headers: HeaderMap,
    /// What it is called, in its head.
    pub name: String,
    /// Its body.
    pub body: Bytes,
    /// It may take so long.
    pub patience: Duration,
}

/// What came of it. Instants of pieces are ns after it was sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// When it was sent, ns of the clock.
    pub sent_ns: u64,
    /// The status, where there was an answer.
    pub status: Option<u16>,
    /// The first piece with a choice.
    pub first_piece_ns: Option<u64>,
    /// Each piece with content.
    pub content_ns: Vec<u64>,
    /// The last piece with a choice.
    pub last_piece_ns: Option<u64>,
    /// When it was over.
    pub ended_ns: u64,
    /// What was used, where the answer says so.
    pub usage: Option<Usage>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed.
    pub error: Option<String>,
    /// The target could not be reached, or left.
    pub lost: bool,
}

/// Why a request failed.
struct Failure {
    why: String,
    /// Nothing of an answer had come, and the connection was an old one.
    stale: bool,
    lost: bool,
}

impl Failure {
    fn told(why: impl Into<String>) -> Self {
        Self { why: why.into(), stale: false, lost: false }
    }

    fn lost(why: impl std::fmt::Display) -> Self {
        Self { why: why.to_string(), stale: false, lost: true }
    }
}

impl Call {
    /// Sends it and reads its answer; the ticket hears of each piece. Given up when told to.
    pub async fn make(
        &self,
        pool: &Pool,
        ticket: &mut Ticket,
        give_up: &mut watch::Receiver<bool>,
    ) -> Answer {
        let mut answer = Answer { sent_ns: now_ns(), ..Answer::default() };
        let end = tokio::select! {
            end = tokio::time::timeout(self.patience, self.exchange(pool, ticket, &mut answer)) => {
                let late = || Failure::told(format!("no end within {:?}", self.patience));
                end.unwrap_or_else(|_| Err(late()))
            }
            // The sender lives as long as the run.
            _ = give_up.wait_for(|it| *it) => {
                answer.outcome = Outcome::Cancelled;
                answer.ended_ns = now_ns().saturating_sub(answer.sent_ns);
                return answer;
            }
        };
        match end {
            Ok(()) => answer.outcome = Outcome::Done,
            Err(failure) => {
                answer.outcome = Outcome::Failed;
                answer.error = Some(failure.why);
                answer.lost = failure.lost;
            }
        }
        answer.ended_ns = now_ns().saturating_sub(answer.sent_ns);
        answer
    }

    async fn exchange(
        &self,
        pool: &Pool,
        ticket: &mut Ticket,
        answer: &mut Answer,
    ) -> Result<(), Failure> {
        let (mut connection, reused) = pool.take().await.map_err(Failure::lost)?;
        answer.sent_ns = now_ns();
        let first = self.once(&mut connection, ticket, answer).await;
        let failure = match first {
            Ok(()) => {
                pool.give(connection);
                return Ok(());
            }
            Err(failure) => failure,
        };
        if !(failure.stale && reused) {
            return Err(failure);
        }
        let mut connection = pool.open().await.map_err(Failure::lost)?;
        *answer = Answer { sent_ns: now_ns(), ..Answer::default() };
        self.once(&mut connection, ticket, answer).await?;
        pool.give(connection);
        Ok(())
    }

    async fn once(
        &self,
        connection: &mut Connection,
        ticket: &mut Ticket,
        answer: &mut Answer,
    ) -> Result<(), Failure> {
        let request = self.request().map_err(|error| Failure::told(error.to_string()))?;
        let sent = connection.send_request(request).await;
        let response = sent.map_err(|error| Failure { stale: true, ..Failure::lost(error) })?;
        answer.status = Some(response.status().as_u16());
        if response.status() != StatusCode::OK {
            return Err(Failure::told(refusal(response).await));
        }
        let kind = response.headers().get(header::CONTENT_TYPE);
        let streamed = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        if streamed {
            stream(response, ticket, answer).await
        } else {
            whole(response, ticket, answer).await
        }
    }

    fn request(&self) -> http::Result<Request<Full<Bytes>>> {
        let mut request = Request::post(&self.path)
            .header(header::HOST, &self.authority)
            .header(header::CONTENT_TYPE, "application/json")
            .header("x-request-id", &self.name)
            .body(Full::new(self.body.clone()))?;
        request.headers_mut().extend(self.headers.clone());
        Ok(request)
    }
}

async fn stream(
    response: Response<Incoming>,
    ticket: &mut Ticket,
    answer: &mut Answer,
) -> Result<(), Failure> {
    let mut body = response.into_body();
    let mut lines = Lines::default();
    let (mut ended, mut error) = (false, None);
    while let Some(frame) = body.frame().await {
        let at_ns = now_ns().saturating_sub(answer.sent_ns);
        let frame = frame.map_err(|error| Failure::lost(format!("the stream broke off: {error}")));
        let frame = match frame {
            // What follows the end of the answer is not missed.
            Err(_) if ended => break,
            frame => frame?,
        };
        let Some(bytes) = frame.data_ref() else { continue };
        lines.push(bytes, |line| match Piece::of_line(line) {
            Some(Piece::Part { choice, content, ends, usage }) => {
                ended |= ends;
                answer.note(at_ns, choice, content, usage, ticket);
            }
            Some(Piece::Done) => ended = true,
            Some(Piece::Error(why)) => error = error.take().or(Some(why)),
            None => {}
        });
    }
    match (error, ended) {
        (Some(why), _) => Err(Failure::told(why)),
        (None, true) if answer.first_piece_ns.is_none() => Err(Failure::told("an empty answer")),
        (None, true) => Ok(()),
        (None, false) => Err(Failure::lost("the stream ended before the answer did")),
    }
}

async fn whole(
    response: Response<Incoming>,
    ticket: &mut Ticket,
    answer: &mut Answer,
) -> Result<(), Failure> {
    let read = response.into_body().collect().await;
    let bytes = read.map_err(|error| Failure::lost(format!("the answer broke off: {error}")))?;
    let at_ns = now_ns().saturating_sub(answer.sent_ns);
    match Piece::of_json(&bytes.to_bytes()) {
        Piece::Part { choice: true, content, usage, .. } => {
            answer.note(at_ns, true, content, usage, ticket);
            Ok(())
        }
        Piece::Part { .. } | Piece::Done => Err(Failure::told("an empty answer")),
        Piece::Error(why) => Err(Failure::told(why)),
    }
}

impl Answer {
    fn note(
        &mut self,
        at_ns: u64,
        choice: bool,
        content: bool,
        usage: Option<Usage>,
        ticket: &mut Ticket,
    ) {
        if choice {
            self.first_piece_ns.get_or_insert(at_ns);
            self.last_piece_ns = Some(at_ns);
        }
        if content {
            ticket.tokens(1);
            self.content_ns.push(at_ns);
        }
        self.usage = usage.or(self.usage);
    }
}

/// What a server that refuses says.
async fn refusal(response: Response<Incoming>) -> String {
    let status = response.status();
    let limited = http_body_util::Limited::new(response.into_body(), ERROR_BODY);
    let bytes = limited.collect().await.map(http_body_util::Collected::to_bytes);
    let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let why = serde_json::from_str(&text).map_or_else(
        |_| text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect(),
        |body: serde_json::Value| said(body.get("error").unwrap_or(&body)),
    );
    format!("HTTP {}: {why}", status.as_u16())
}
