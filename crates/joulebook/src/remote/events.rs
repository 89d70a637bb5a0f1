//! Server-sent events out of a stream of bytes.
//!
//! An event is known when its empty line has come, and stamped with the instant at which that was
//! here. Refused: an event that is too long, one that takes too long to come once it has begun, and
//! bytes that are no text.

use std::io::{self, Read};

use super::RemoteError;

/// The longest event: who is on a card, with all their ancestors, is shorter.
const LONGEST_EVENT: usize = 1 << 20;
/// How long one event may take from its first byte to its last, ns.
const SLOWEST_NS: u64 = 5_000_000_000;
const READ: usize = 16 << 10;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Its name; `message` where it has none.
    pub name: String,
    /// What it says.
    pub data: String,
    /// When it was here, ns.
    pub arrived_ns: u64,
}

/// Events, read one after the other.
pub(super) struct Events<R> {
    reader: R,
    endpoint: String,
    clock: fn() -> u64,
    bytes: Vec<u8>,
    /// How many of them hold no end of an event.
    searched: usize,
    began_ns: u64,
    arrived_ns: u64,
}

impl<R: Read> Events<R> {
    pub fn new(reader: R, endpoint: &str, clock: fn() -> u64) -> Self {
        Self {
            reader,
            endpoint: endpoint.to_owned(),
            clock,
            bytes: Vec::new(),
            searched: 0,
            began_ns: 0,
            arrived_ns: 0,
        }
    }

    /// The next event; waits for it.
    pub fn next(&mut self) -> Result<Event, RemoteError> {
        loop {
            if let Some(end) = self.end() {
                let rest = self.bytes.split_off(end);
                let text = std::mem::replace(&mut self.bytes, rest);
                self.searched = 0;
                self.began_ns = self.arrived_ns;
                let text = String::from_utf8(text).map_err(|_| self.garbage("no text"))?;
                match event(&text, self.arrived_ns) {
                    Some(event) => return Ok(event),
                    // A comment, to keep the connection warm.
                    None => continue,
                }
            }
            if self.bytes.len() > LONGEST_EVENT {
                return Err(self.garbage("an event longer than 1 MiB"));
            }
            self.read()?;
        }
    }

    /// True when an event waits to be taken.
    pub fn has_next(&mut self) -> bool {
        self.end().is_some()
    }

    fn read(&mut self) -> Result<(), RemoteError> {
        let mut chunk = [0; READ];
        let count = loop {
            match self.reader.read(&mut chunk) {
                Ok(count) => break count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(RemoteError::of_io(&self.endpoint, "the stream", &error)),
            }
        };
        self.arrived_ns = (self.clock)();
        if count == 0 {
            let why = "it ended the stream".to_owned();
            return Err(RemoteError::Unreachable { endpoint: self.endpoint.clone(), why });
        }
        if self.bytes.is_empty() {
            self.began_ns = self.arrived_ns;
        } else if self.arrived_ns.saturating_sub(self.began_ns) > SLOWEST_NS {
            let what = "the end of an event".to_owned();
            return Err(RemoteError::Silent { endpoint: self.endpoint.clone(), what });
        }
        self.bytes.extend(chunk.iter().take(count));
        Ok(())
    }

    /// Where the first event ends, its empty line included.
    fn end(&mut self) -> Option<usize> {
        let from = self.searched.saturating_sub(3);
        let rest = self.bytes.get(from..).unwrap_or_default();
        let found = rest.iter().enumerate().find_map(|(at, byte)| {
            let after = rest.get(at + 1..)?;
            match (byte, after) {
                (b'\n', [b'\n', ..]) => Some(at + 2),
                (b'\n', [b'\r', b'\n', ..]) => Some(at + 3),
                _ => None,
            }
        });
        if found.is_none() {
            self.searched = self.bytes.len();
        }
        found.map(|at| from + at)
    }

    fn garbage(&self, what: &str) -> RemoteError {
        RemoteError::Garbage { endpoint: self.endpoint.clone(), what: what.to_owned() }
    }
}

/// The event of some lines; `None` where they hold none.
fn event(text: &str, arrived_ns: u64) -> Option<Event> {
    let (mut name, mut data) = (None, None::<String>);
    for line in text.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = Some(value.to_owned()),
            "data" => match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => data = Some(value.to_owned()),
            },
            _ => {}
        }
    }
    let name = name.unwrap_or_else(|| "message".to_owned());
    data.map(|data| Event { name, data, arrived_ns })
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, thread_local};

    use super::*;

    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(1_000_000_000) };
    }

    fn now() -> u64 {
        NOW.get()
    }

    /// Hands out bytes in pieces, each some time after the one before.
    struct Pieces(Vec<(u64, Vec<u8>)>);

    impl Read for Pieces {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let (wait_ns, mut piece) = self.0.remove(0);
            NOW.set(NOW.get() + wait_ns);
            let rest = piece.split_off(piece.len().min(into.len()));
            if !rest.is_empty() {
                self.0.insert(0, (0, rest));
            }
            into[..piece.len()].copy_from_slice(&piece);
            Ok(piece.len())
        }
    }

    fn events(pieces: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Events<Pieces> {
        Events::new(Pieces(pieces.into_iter().collect()), "http://iris", now)
    }

    fn all(events: &mut Events<Pieces>) -> (Vec<(String, String)>, RemoteError) {
        let mut found = Vec::new();
        loop {
            match events.next() {
                Ok(event) => found.push((event.name, event.data)),
                Err(error) => return (found, error),
            }
        }
    }

    const TEXT: &str = ": warm\n\nevent: energy\ndata: {\"a\":1}\n\nevent:clock\r\nid: 7\r\ndata: x\r\n\
        data: y\r\n\r\ndata: z\n\n";

    #[test]
    fn events_come_out_however_the_bytes_are_cut() {
        let expected = [("energy", "{\"a\":1}"), ("clock", "x\ny"), ("message", "z")];
        let expected: Vec<_> =
            expected.iter().map(|(name, data)| (name.to_string(), data.to_string())).collect();
        for size in 1..TEXT.len() {
            let pieces = TEXT.as_bytes().chunks(size).map(|piece| (1, piece.to_vec()));
            let (found, error) = all(&mut events(pieces));
            assert_eq!(found, expected, "pieces of {size}");
            assert!(matches!(error, RemoteError::Unreachable { .. }), "{error}");
        }
    }

    #[test]
    fn an_event_is_stamped_when_its_last_byte_is_here() {
        let mut events = events([(10, b"data: a".to_vec()), (20, b"\n\ndata: b\n\n".to_vec())]);
        let began_ns = now();
        assert_eq!(events.next().unwrap().arrived_ns, began_ns + 30);
        assert!(events.has_next());
        assert_eq!(events.next().unwrap().arrived_ns, began_ns + 30);
        assert!(!events.has_next());
    }

    #[test]
    fn what_is_too_long_too_slow_or_no_text_is_refused() {
        let long = events([(0, b"data: ".to_vec()), (0, vec![b'x'; LONGEST_EVENT + READ])]).next();
        assert!(matches!(long, Err(RemoteError::Garbage { .. })), "{long:?}");
        // A byte each second never ends.
        let slow = (0..1000).map(|_| (1_000_000_000, b"x".to_vec()));
        let slow = events(slow).next();
        assert!(matches!(slow, Err(RemoteError::Silent { .. })), "{slow:?}");
        // Many events one after the other are not slow.
        let many = (0..100).map(|_| (1_000_000_000, b"data: x\n\n".to_vec()));
        assert_eq!(all(&mut events(many)).0.len(), 100);
        let binary = events([(0, b"data: \xff\xfe\n\n".to_vec())]).next();
        assert!(matches!(binary, Err(RemoteError::Garbage { .. })), "{binary:?}");
    }
}
