//! HTTP to one agent: an address, a token, and answers of limited size in limited time.
//!
//! An address is checked before anything is asked of it. Redirects are not followed (a token would
//! go with them) and the environment's proxy is not used (nodes are asked directly). `https` is
//! refused as long as it is not spoken: a tunnel or a mesh carries plain `http`.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::de::DeserializeOwned;
use ureq::{Agent, Body, http, http::Response};

use super::RemoteError;

/// The largest answer that is read: a description of a thousand cards is smaller.
const LONGEST_ANSWER: u64 = 4 << 20;
/// What is shown of an error that an agent explains.
const LONGEST_SAID: usize = 200;
/// An agent that keeps a stream says something each second; one that says nothing for so long is
/// gone.
const SILENCE: Duration = Duration::from_secs(5);

/// An agent's address, checked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Endpoint(String);

/// One agent, to be asked.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    endpoint: Endpoint,
    token: Option<String>,
    timeout: Duration,
}

impl Endpoint {
    /// Checks it; asks nothing.
    pub fn parse(text: &str) -> Result<Self, RemoteError> {
        let refuse = |why: &str| RemoteError::Endpoint {
            endpoint: text.chars().take(LONGEST_SAID).collect(),
            why: why.to_owned(),
        };
        let plain = text.trim().trim_end_matches('/');
        let uri: http::Uri =
            plain.parse().map_err(|error: http::uri::InvalidUri| refuse(&error.to_string()))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(refuse("https is not spoken yet (use a tunnel or a mesh)"));
            }
            _ => return Err(refuse("it does not begin with http://")),
        }
        let authority = uri.authority().ok_or_else(|| refuse("it names no host"))?;
        if authority.host().is_empty() {
            return Err(refuse("it names no host"));
        }
        if authority.as_str().contains('@') {
            return Err(refuse("it holds a password (use token_file)"));
        }
        // What the parser leaves: `host:` and ports that are none.
        let port = authority.as_str().rsplit_once(']').map_or(authority.as_str(), |(_, port)| port);
        if port.contains(':') && authority.port_u16().is_none_or(|port| port == 0) {
            return Err(refuse("its port is no number from 1 to 65535"));
        }
        if uri.query().is_some() || plain.contains('#') {
            return Err(refuse("it has a query"));
        }
        Ok(Self(plain.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The token in a file: its first line.
fn token(path: &Path) -> Result<String, RemoteError> {
    let refuse = |why: String| RemoteError::Token { path: path.to_owned(), why };
    let text = fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    let token = text.lines().next().unwrap_or_default().trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(refuse("its first line must be one word of plain characters".to_owned()));
    }
    Ok(token.to_owned())
}

impl Client {
    /// To this agent, with the token in that file.
    pub fn new(
        endpoint: &Endpoint,
        token_file: Option<&PathBuf>,
        timeout: Duration,
    ) -> Result<Self, RemoteError> {
        let token = token_file.map(|path| token(path)).transpose()?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(concat!("joulebook/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(timeout))
            .timeout_connect(Some(timeout))
            .timeout_send_request(Some(timeout))
            .timeout_recv_response(Some(timeout))
            .build();
        Ok(Self { agent: config.into(), endpoint: endpoint.clone(), token, timeout })
    }

    /// Where it is.
    pub fn endpoint(&self) -> &str {
        self.endpoint.as_str()
    }

    /// What the agent answers to a path.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, RemoteError> {
        let text = self.text(path)?;
        serde_json::from_str(&text).map_err(|error| self.garbage(&format!("to {path}: {error}")))
    }

    fn text(&self, path: &str) -> Result<String, RemoteError> {
        let request = self.agent.get(self.url(path)).config();
        let request = request.timeout_global(Some(self.timeout)).build();
        let response = self.call(request, path)?;
        read(response).map_err(|error| RemoteError::of_http(self.endpoint(), path, error))
    }

    /// A stream of what the agent has to tell, and does not end by itself.
    pub fn stream(&self, path: &str) -> Result<impl Read + use<>, RemoteError> {
        let request = self.agent.get(self.url(path)).config();
        let request = request.timeout_per_read(Some(SILENCE)).build();
        let request = request.header("accept", "text/event-stream");
        let response = self.call(request, path)?;
        if !is_stream(&response) {
            return Err(self.garbage(&format!("{path} is no stream of events")));
        }
        Ok(response.into_body().into_reader())
    }

    /// Whether the agent has a stream there; asks for the head of its answer alone. One that does
    /// not know, or does not answer in time, has none.
    pub fn has_stream(&self, path: &str) -> bool {
        let request = self.agent.head(self.url(path)).config();
        let request = request.timeout_global(Some(self.timeout)).build();
        // Who does not know heads may send a body all the same; nothing else is to be read there.
        let request = request.header("connection", "close");
        self.call(request, path).is_ok_and(|response| is_stream(&response))
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.endpoint.as_str())
    }

    fn call(
        &self,
        request: ureq::RequestBuilder<ureq::typestate::WithoutBody>,
        path: &str,
    ) -> Result<Response<Body>, RemoteError> {
        let request = match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        };
        let what = path.split('?').next().unwrap_or(path);
        let response =
            request.call().map_err(|error| RemoteError::of_http(self.endpoint(), what, error))?;
        let status = response.status().as_u16();
        if status == 200 {
            return Ok(response);
        }
        let (endpoint, path) = (self.endpoint().to_owned(), path.to_owned());
        Err(match status {
            401 | 403 => RemoteError::Refused { endpoint, status },
            404 => RemoteError::NotFound { endpoint, path, said: said(response) },
            _ => RemoteError::Status { endpoint, path, status, said: said(response) },
        })
    }

    pub fn garbage(&self, what: &str) -> RemoteError {
        RemoteError::Garbage { endpoint: self.endpoint().to_owned(), what: what.to_owned() }
    }
}

fn is_stream(response: &Response<Body>) -> bool {
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream"))
}

fn read(response: Response<Body>) -> Result<String, ureq::Error> {
    response.into_body().into_with_config().limit(LONGEST_ANSWER).read_to_string()
}

/// How an agent explains itself: `error` of a JSON object, else nothing.
fn said(response: Response<Body>) -> String {
    #[derive(serde::Deserialize)]
    struct Said {
        error: String,
    }
    let text = read(response).unwrap_or_default();
    let Ok(Said { error }) = serde_json::from_str(&text) else { return String::new() };
    let plain: String =
        error.chars().filter(|letter| !letter.is_control()).take(LONGEST_SAID).collect();
    format!(": {plain}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_before_they_are_asked() {
        for good in [
            "http://10.0.0.7:9402",
            "http://iris",
            "http://iris:9402/",
            " http://[fd00::7]:9402 ",
            "http://[::1]",
            "http://mesh/iris",
        ] {
            let endpoint = Endpoint::parse(good);
            assert_eq!(endpoint.unwrap().as_str(), good.trim().trim_end_matches('/'));
        }
        for (bad, why) in [
            ("", "http"),
            ("iris:9402", "http://"),
            ("https://iris:9402", "tunnel"),
            ("ftp://iris", "http://"),
            ("http://", ""),
            ("http://:9402", "host"),
            ("http://iris:94o2", ""),
            ("http://iris:0", "port"),
            ("http://iris:99999", "port"),
            ("http://iris:", "port"),
            ("http://me:secret@iris:9402", "token_file"),
            ("http://iris:9402?x=1", "query"),
            ("http://iris:9402#x", "query"),
            ("http://iris node:9402", ""),
            ("http://iris\r\nx: y", ""),
            ("\u{0}", ""),
        ] {
            let error = Endpoint::parse(bad).expect_err(bad);
            assert!(error.to_string().contains(why), "{bad:?}: {error}");
            assert_eq!(error.fault(), joulebook_core::Fault::Absent);
        }
    }

    #[test]
    fn a_token_is_one_word() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        for (text, good) in [
            ("s3cret\nx y\n", true),
            ("", false),
            ("\nx", false),
            ("two words", false),
            ("ü", false),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(token(&path).is_ok(), good, "{text:?}");
        }
        assert!(token(&folder.path().join("none")).unwrap_err().to_string().contains("none"));
    }
}
