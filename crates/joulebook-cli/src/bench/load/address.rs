//! Where a server is, and whether that is this machine.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};

use http::Uri;

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
    /// In front of every path: ends in `/v1`.
    prefix: String,
}

impl Address {
    /// From a URL as people write it, with or without `/v1`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Uri = whole.parse().map_err(|error| format!("{text} is no URL: {error}"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(format!(
                    "{text}: a server is measured over http; https is not spoken here (name the \
                     server itself, not what stands in front of it)"
                ));
            }
            _ => return Err(format!("{text}: only http is spoken here")),
        }
        let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        if authority.contains('@') {
            return Err("a URL with credentials in it would end up in the record: give them with \
                        --header"
                .to_owned());
        }
        let host = uri.host().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| format!("{text} names no host"))?;
        let path = uri.path().trim_end_matches('/');
        let prefix = if path.ends_with("/v1") { path.to_owned() } else { format!("{path}/v1") };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port: uri.port_u16().unwrap_or(80), prefix })
    }

    /// As it stands in records.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.authority(), self.prefix)
    }

    /// Host and port, as requests carry them.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// The path of a resource (`models`).
    pub fn path(&self, resource: &str) -> String {
        format!("{}/{resource}", self.prefix)
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The addresses that its name stands for.
    pub fn resolve(&self) -> std::io::Result<Vec<SocketAddr>> {
        (self.host.as_str(), self.port).to_socket_addrs().map(Iterator::collect)
    }

    /// True when it is this machine: a loopback address, or one of this machine's own.
    pub fn is_local(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost")
            || self.resolve().is_ok_and(|all| all.iter().any(|address| is_own(address.ip())))
    }
}

/// Only an address of this machine can be bound.
fn is_own(address: IpAddr) -> bool {
    address.is_loopback() || address.is_unspecified() || UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_as_people_write_them() {
        for (text, url) in [
            ("http://localhost:8000", "http://localhost:8000/v1"),
            ("http://localhost:8000/", "http://localhost:8000/v1"),
            ("http://localhost:8000/v1/", "http://localhost:8000/v1"),
            ("gpu-7:9", "http://gpu-7:9/v1"),
            ("http://[::1]:80/openai", "http://[::1]:80/openai/v1"),
            ("http://10.0.0.1", "http://10.0.0.1:80/v1"),
        ] {
            assert_eq!(Address::parse(text).unwrap().url(), url, "{text}");
        }
        for text in ["", "http://", "https://a", "ftp://a", "http://me:secret@a", "http://a b"] {
            let refused = Address::parse(text).unwrap_err();
            assert!(!refused.contains("secret"), "{refused}");
        }
    }

    #[test]
    fn this_machine_is_told_from_others() {
        let is_local = |text: &str| Address::parse(text).unwrap().is_local();
        for text in
            ["localhost:1", "LOCALHOST:1", "127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "0.0.0.0:1"]
        {
            assert!(is_local(text), "{text}");
        }
        // Addresses set aside for documentation are nobody's.
        for text in ["192.0.2.7:1", "[2001:db8::7]:1"] {
            assert!(!is_local(text), "{text}");
        }
    }
}
