//! Connections to one server, kept open between requests.
//!
//! A connection carries one request at a time; a request that finds none idle opens another before
//! its clock starts. TCP_NODELAY is set: without it a request waits for the acknowledgement of the
//! last one's tail.

use std::{
    io,
    net::SocketAddr,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// A connection that can take a request.
pub type Connection = SendRequest<Full<Bytes>>;

/// The connections to a server.
#[derive(Debug)]
pub struct Pool {
    addresses: Vec<SocketAddr>,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    /// To a server at one of these addresses.
    pub const fn new(addresses: Vec<SocketAddr>) -> Self {
        Self { addresses, idle: Mutex::new(Vec::new()) }
    }

    /// A connection, and whether it has been used before.
    pub async fn take(&self) -> io::Result<(Connection, bool)> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(mut connection) = idle else { return Ok((self.open().await?, false)) };
            // One that the server has closed meanwhile is none.
            if connection.ready().await.is_ok() {
                return Ok((connection, true));
            }
        }
    }

    /// A new connection.
    pub async fn open(&self) -> io::Result<Connection> {
        let stream = TcpStream::connect(self.addresses.as_slice()).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        tokio::spawn(async move {
            // Its end is seen by whoever uses it.
            let _ = connection.await;
        });
        Ok(sender)
    }

    /// Gives one back whose answer has been read to its end.
    pub fn give(&self, connection: Connection) {
        if !connection.is_closed() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }

    /// Closes those that are idle.
    pub fn clear(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
