//! What a service manager is told: that the agent serves, and that it is about to stop.
//!
//! The protocol of `sd_notify`: a datagram to the socket that the manager names. Without one nobody
//! is told, and a manager that does not listen costs nothing.

use std::{
    env,
    ffi::OsStr,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
};

const VARIABLE: &str = "NOTIFY_SOCKET";

/// The agent serves, with a line on how.
pub fn ready(status: &str) {
    tell(&format!("READY=1\nSTATUS={status}\n"));
}

/// The agent is about to stop.
pub fn stopping() {
    tell("STOPPING=1\n");
}

fn tell(state: &str) {
    let Some(name) = env::var_os(VARIABLE).filter(|name| !name.is_empty()) else { return };
    let told = address(&name)
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = told {
        tracing::warn!("the service manager cannot be told ({VARIABLE}): {error}");
    }
}

/// A path, or with `@` a name without one.
fn address(name: &OsStr) -> std::io::Result<SocketAddr> {
    match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(name),
    }
}
