//! A server of language-model requests whose true joules are known: the lab's engine in real time
//! behind the usual HTTP interface, driving a simulated card.
//!
//! `/v1/models`, `/v1/completions` and `/v1/chat/completions` are answered as other servers of that
//! interface do; `/truth` says what each request that is over truly cost, and what the card drew
//! between two instants. The card is one of a [`Machine`](crate::machine::Machine): whatever reads it
//! through the lab's `libnvidia-ml.so.1` or `nvidia-smi` sees what the engine draws.
//!
//! Invariants: an answer's tokens are the engine's, one chunk each, sent when they are emitted;
//! counts of tokens depend on the text alone; a client who leaves is let go. Nothing here measures.

mod body;
mod desk;
mod home;
mod route;
mod truth;
mod words;

use std::{io, net::SocketAddr, sync::Arc};

use axum::serve::ListenerExt;
use tokio::{net::TcpListener, runtime::Runtime};

pub use home::{Home, HomeError};
pub use truth::{CardTruth, RequestTruth, Truth};
pub use words::tokens;

use crate::{
    clock::Clock,
    control::ControlError,
    engine::{self, Arrivals, Hardware, live::LiveEngine},
    scenario::ClockKind,
};
use desk::{Desk, Shared};

/// What a server is.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens; port 0 is any that is free.
    pub listen: SocketAddr,
    /// The name of its one model.
    pub model: String,
    /// The most tokens of a prompt and its answer together.
    pub context_tokens: u64,
    /// The engine.
    pub hardware: Hardware,
    /// Each of so many answers breaks off half-way with an error; 0: none does.
    pub break_every: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            model: "lab-8b".to_owned(),
            context_tokens: 131_072,
            hardware: Hardware::default(),
            break_every: 0,
        }
    }
}

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Its card could not be driven.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// It has no runtime.
    #[error("no runtime for the server: {0}")]
    Runtime(io::Error),
    /// It cannot listen there.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
}

/// A running server. Dropped, it is gone at once, whoever still waits for an answer.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

impl Server {
    /// Starts one that drives the card of a machine at home.
    pub fn start(settings: Settings, home: &Home) -> Result<Self, ServeError> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder
            .worker_threads(2)
            .thread_name("lab-serve")
            .enable_all()
            .build()
            .map_err(ServeError::Runtime)?;
        let refused = |error| ServeError::Listen { address: settings.listen, error };
        let listener = runtime.block_on(TcpListener::bind(settings.listen)).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let shared = Arc::new(Shared::new(settings, home));
        let desk = Desk::new(Arc::clone(&shared), home.control()?);
        let engine = engine::Settings {
            arrivals: Arrivals::None,
            hardware: shared.settings.hardware,
            ..engine::Settings::default()
        };
        let clock = Clock::system(ClockKind::Monotonic, home.epoch_ns());
        let engine = LiveEngine::start(engine, clock, desk);
        *desk::lock(&shared.engine) = Some(engine);
        // Without it each token waits for the acknowledgement of the one before.
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let routes = route::routes(Arc::clone(&shared));
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Ok(Self { address, shared, runtime: Some(runtime) })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL that clients are given.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What its card truly drew between two instants of the system's monotonic clock.
    pub fn card(&self, from_ns: i64, to_ns: i64) -> CardTruth {
        self.shared.card(from_ns, to_ns)
    }

    /// What its requests truly cost so far.
    pub fn truth(&self) -> Truth {
        self.shared.truth()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        self.shared.leave_all();
        // Its thread ends by itself.
        desk::lock(&self.shared.engine).take();
    }
}

#[cfg(test)]
mod tests;
