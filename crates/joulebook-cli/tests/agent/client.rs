//! An HTTP client that does what it is told, right or wrong.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

/// What came.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        super::bench::json(&self.body)
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

/// One request in a connection of its own.
pub fn get(address: SocketAddr, path: &str) -> Answer {
    ask(address, "GET", path, "")
}

/// The same with a method and more header lines.
pub fn ask(address: SocketAddr, method: &str, path: &str, lines: &str) -> Answer {
    let text =
        format!("{method} {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n{lines}\r\n");
    send(address, text.as_bytes())
}

/// Sends bytes and reads until the end.
pub fn send(address: SocketAddr, bytes: &[u8]) -> Answer {
    let mut stream = connect(address);
    // What is refused early may not be taken whole.
    let _ = stream.write_all(bytes);
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    parsed(&String::from_utf8(text).unwrap())
}

pub fn parsed(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

/// A request on a connection that stays open.
pub fn again(stream: &mut TcpStream, path: &str) -> Answer {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "it was closed: {head}");
    }
    let mut answer = parsed(&head);
    let length = answer.header("content-length").unwrap().parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    answer.body = String::from_utf8(body).unwrap();
    answer
}

/// Server-sent events as they come.
pub struct Events {
    reader: BufReader<TcpStream>,
}

impl Events {
    pub fn open(address: SocketAddr, path: &str) -> Self {
        let mut stream = connect(address);
        // HTTP/1.0, so that nothing but the events comes.
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: here\r\n\r\n").as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "it was closed: {head}");
        }
        let answer = parsed(&head);
        assert_eq!(answer.status, 200, "{head}");
        assert_eq!(answer.header("content-type"), Some("text/event-stream"), "{head}");
        Self { reader }
    }
}

impl Iterator for Events {
    type Item = (String, Value);

    fn next(&mut self) -> Option<Self::Item> {
        let mut lines = [String::new(), String::new(), String::new()];
        for line in &mut lines {
            if self.reader.read_line(line).unwrap() == 0 {
                return None;
            }
        }
        let [event, data, blank] = lines;
        assert_eq!(blank, "\n");
        let event = event.strip_prefix("event: ").unwrap().trim_end().to_owned();
        Some((event, super::bench::json(data.strip_prefix("data: ").unwrap())))
    }
}
