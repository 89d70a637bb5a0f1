//! From a listening socket to answered requests, within the limits of `connections`.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tower::Service as _;

use super::{
    Agent,
    connections::{Place, Presence},
    gate,
    guarded::Guarded,
    own::count,
    routes::counted,
};

/// The most a request's header may take.
const HEADER_BYTES: usize = 16 * 1024;
/// How long to wait where the system has nothing left to accept with.
const EXHAUSTED: Duration = Duration::from_millis(50);
/// How long what was sent may stay without a sign that it arrived, ms.
const VANISHED_MS: u32 = 30_000;
/// What one that is turned away is told.
const FULL: &str = "{\"error\": \"too many connections\"}\r\n";

/// Accepts until the agent stops.
pub async fn accept(agent: Arc<Agent>, listener: TcpListener, router: Router) {
    let mut draining = agent.draining.subscribe();
    let mut accepts = true;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = draining.changed() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                accepts = true;
                let_in(&agent, stream, &router);
            }
            Err(error) if is_of_the_client(&error) => {}
            Err(error) => {
                if std::mem::take(&mut accepts) {
                    tracing::warn!("no connection can be accepted: {error}");
                }
                tokio::time::sleep(EXHAUSTED).await;
            }
        }
    }
}

fn is_of_the_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

fn full() -> String {
    format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{FULL}",
        FULL.len()
    )
}

fn let_in(agent: &Arc<Agent>, stream: TcpStream, router: &Router) {
    let Some((place, made_room)) = agent.connections.enter() else {
        count(&agent.counts.turned_away);
        // As much of it as goes at once; nobody waits for it.
        let _ = stream.try_write(full().as_bytes());
        return;
    };
    if made_room {
        count(&agent.counts.cut);
    }
    let number = place.number();
    let task = tokio::spawn(serve(Arc::clone(agent), stream, router.clone(), place));
    agent.connections.served_by(number, task.abort_handle());
}

async fn serve(agent: Arc<Agent>, stream: TcpStream, router: Router, place: Place) {
    // One that says nothing costs no more than its place.
    let mut draining = agent.draining.subscribe();
    let mut first = [0];
    tokio::select! {
        // A look, since readiness alone is assumed at first.
        heard = stream.peek(&mut first) => if !matches!(heard, Ok(1)) { return },
        _ = draining.wait_for(|draining| *draining) => return,
    }
    // A small answer is sent at once; a client that vanished without a word is found out.
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, VANISHED_MS);
    let presence = Arc::clone(&place.presence);
    let io = TokioIo::new(Guarded::new(stream, Arc::clone(&presence)));
    let service = service_fn(|request| {
        answer(Arc::clone(&agent), router.clone(), Arc::clone(&presence), request)
    });
    let connection = http1::Builder::new().max_buf_size(HEADER_BYTES).serve_connection(io, service);
    tokio::pin!(connection);
    tokio::select! {
        _ = &mut connection => return,
        _ = draining.wait_for(|draining| *draining) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

async fn answer(
    agent: Arc<Agent>,
    mut router: Router,
    presence: Arc<Presence>,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let _busy = presence.busy();
    let response = match gate::closed(&agent, &request) {
        Some(refusal) => refusal,
        None => {
            request.extensions_mut().insert(presence);
            router.call(request).await?
        }
    };
    counted(&agent, &response);
    Ok(response)
}
