//! Where the agent listens: this host alone, unless it is told otherwise.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use anyhow::bail;
use tokio::net::{TcpListener, TcpSocket};

/// The port of agents of this kind.
pub const PORT: u16 = 9402;
/// Connections that the system keeps until they are accepted.
const BACKLOG: u32 = 4096;

/// `10.0.0.7`, `10.0.0.7:9402`, `::`, `[::]:9402`, `localhost`.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let text = text.trim();
    let named = text.replacen("localhost", "127.0.0.1", 1);
    let bare = named.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&named);
    let parsed = named.parse::<SocketAddr>().ok();
    let alone = || bare.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, PORT));
    parsed.or_else(alone).ok_or_else(|| {
        "give an address of this host with or without a port: 127.0.0.1:9402, 0.0.0.0, [::]:9402"
            .to_owned()
    })
}

/// Listens there; without an address on both loopback addresses, as far as this host has them.
pub fn listen(addresses: &[SocketAddr]) -> anyhow::Result<Vec<TcpListener>> {
    if !addresses.is_empty() {
        return addresses.iter().map(|address| listen_on(*address)).collect();
    }
    let first = listen_on(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT))?;
    let mut listeners = vec![first];
    match bound(SocketAddr::new(Ipv6Addr::LOCALHOST.into(), PORT)) {
        Ok(second) => listeners.push(second),
        // A host without IPv6.
        Err(error) => tracing::debug!("not on [::1]:{PORT}: {error}"),
    }
    Ok(listeners)
}

fn listen_on(address: SocketAddr) -> anyhow::Result<TcpListener> {
    match bound(address) {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => bail!(
            "{address} is taken: another agent runs here already, or another program has this port \
             (`ss -ltnp` shows which); --bind names another address"
        ),
        Err(error) => bail!("cannot listen on {address} (--bind): {error}"),
    }
}

fn bound(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // An agent that was stopped a moment ago keeps no port from the next.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// What a person is told: where it listens, who can reach it, and how to change that.
pub fn words(addresses: &[SocketAddr], has_token: bool) -> String {
    let shown: Vec<String> = addresses.iter().map(|address| format!("http://{address}")).collect();
    let shown = shown.join(" and ");
    let is_local = addresses.iter().all(|address| address.ip().is_loopback());
    let who = match (is_local, has_token) {
        (true, false) => {
            "for this host alone; --bind 0.0.0.0 opens it to others, --token-file FILE to those \
             alone who have the token"
        }
        (true, true) => "for this host alone, with the token; --bind 0.0.0.0 opens it to others",
        (false, true) => "for whoever reaches it and has the token",
        (false, false) => "for whoever reaches it",
    };
    format!("{shown} ({who})")
}

/// True where strangers may read.
pub fn is_open(addresses: &[SocketAddr], has_token: bool) -> bool {
    !has_token && addresses.iter().any(|address| !address.ip().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_understood_as_people_write_them() {
        for (text, expected) in [
            ("127.0.0.1:9402", "127.0.0.1:9402"),
            ("0.0.0.0", "0.0.0.0:9402"),
            ("[::]:80", "[::]:80"),
            ("::1", "[::1]:9402"),
            ("[::1]", "[::1]:9402"),
            ("localhost:7", "127.0.0.1:7"),
        ] {
            assert_eq!(address(text).unwrap().to_string(), expected, "{text}");
        }
        for text in ["", "9402", "example.org", "127.0.0.1:99999", "127.0.0"] {
            assert!(address(text).is_err(), "{text}");
        }
    }
}
