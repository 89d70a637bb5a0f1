//! A made-up agent: tells of a card of this process, with a clock and habits that a test sets.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use joulebook::{
    Card, Meter, Node,
    clock::now_ns,
    core::{register::Kind, ring::Point},
    wire,
};
use serde::Serialize;

use super::bench::{REST_W, eventually};

/// How the agent behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Habit {
    #[default]
    Good,
    /// Connections are closed, and new ones too.
    Gone,
    /// Says nothing any more, with the connection open.
    Hangs,
    /// Answers what no agent would.
    Garbage,
    /// Each byte takes half a second.
    Drips,
    /// One line without an end.
    Endless,
    /// Publishes from tomorrow.
    Tomorrow,
    /// Wants a token.
    Locked,
    /// Has no stream, and answers to /power.
    OldFashioned,
}

/// The hand that holds it.
#[derive(Debug, Default)]
pub struct Hand {
    habit: Mutex<Habit>,
    /// Its clock less ours, ns.
    pub ahead_ns: AtomicI64,
    boot: Mutex<String>,
    generation: AtomicU64,
    /// What its total began at, µJ.
    base_uj: AtomicI64,
    /// Publishes are not told.
    pub silent: AtomicBool,
    residents: Mutex<Option<wire::Residents>>,
    pub hole: Mutex<Option<&'static str>>,
    /// How often another card was put in the place of the one before.
    pub swapped: AtomicU64,
    pub connections: AtomicU64,
    pub requests: AtomicU64,
    /// How many of them asked for the head of an answer alone.
    pub heads: AtomicU64,
    pub paths: Mutex<Vec<String>>,
}

/// The agent.
pub struct Agent {
    pub hand: Arc<Hand>,
    pub port: u16,
}

impl Hand {
    pub fn is(&self, habit: Habit) {
        *self.habit.lock().unwrap() = habit;
    }

    fn habit(&self) -> Habit {
        *self.habit.lock().unwrap()
    }

    /// The agent ends, and another life of it begins, with a total of its own.
    pub fn reborn(&self, boot: &str, base_uj: i64) {
        *self.boot.lock().unwrap() = boot.to_owned();
        self.base_uj.store(base_uj, Ordering::SeqCst);
    }

    pub fn restarts(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    pub fn residents(&self, residents: wire::Residents) {
        *self.residents.lock().unwrap() = Some(residents);
    }

    fn boot(&self) -> String {
        self.boot.lock().unwrap().clone()
    }

    fn theirs(&self, at_ns: u64) -> u64 {
        at_ns.saturating_add_signed(self.ahead_ns.load(Ordering::SeqCst))
    }

    fn energy(&self, point: &Point) -> wire::EnergyNow {
        let tomorrow_ns = if self.habit() == Habit::Tomorrow { 86_400_000_000_000 } else { 0 };
        wire::EnergyNow {
            gpu: 0,
            boot_id: self.boot(),
            generation: self.generation.load(Ordering::SeqCst),
            t_ns: self.theirs(point.at_ns) + tomorrow_ns,
            delta_ns: point.uncertainty_ns.into(),
            energy_uj: point.energy_uj.saturating_add_signed(self.base_uj.load(Ordering::SeqCst)),
            watts: Some(point.power_uw as f64 / 1e6),
            period_ms: None,
            flags: point.flags.words().map(str::to_owned).collect(),
        }
    }

    fn clock(&self) -> wire::ClockNow {
        wire::ClockNow { boot_id: self.boot(), now_ns: self.theirs(now_ns()) }
    }
}

impl Agent {
    /// An agent of this card, on a port of its own.
    pub fn of(card: &Arc<Card>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let hand = Arc::new(Hand::default());
        hand.reborn("life-1", 5_000_000);
        let (heard, card) = (Arc::clone(&hand), Arc::clone(card));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if heard.habit() == Habit::Gone {
                    continue;
                }
                let (hand, card) = (Arc::clone(&heard), Arc::clone(&card));
                thread::spawn(move || serve(&client, &hand, &card));
            }
        });
        Self { hand, port }
    }

    pub fn endpoint(&self) -> String {
        at(self.port)
    }

    pub fn node(&self) -> Node {
        Node::at(self.endpoint(), "0").idle_watts(REST_W)
    }

    /// A meter of its card that has seen a few publishes.
    pub fn meter(&self) -> Meter {
        meter(&self.node())
    }
}

/// Nobody is on the card, and that can be seen.
pub fn nobody() -> wire::Residents {
    let processes = Some(Vec::new());
    wire::Residents { gpu: 0, from_ns: 0, processes, error: None, family: Vec::new() }
}

pub fn at(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

pub fn meter(node: &Node) -> Meter {
    let meter = Meter::for_node(node).unwrap();
    follows(&meter);
    meter
}

/// Waits for some publishes more.
pub fn follows(meter: &Meter) {
    for card in meter.cards() {
        let until = card.series().pushed() + 10;
        eventually(|| card.series().pushed() >= until && card.trouble().is_none());
    }
}

fn described(card: &Card, hand: &Hand) -> wire::CardSeen {
    let (device, facts) = (card.device(), card.facts());
    let counter = matches!(device.register, Kind::Counter { .. });
    let ms = |seconds: f64| Some(seconds * 1e3);
    let lag = card.profile().probe.as_ref().filter(|_| counter).and_then(|probe| probe.lag_s);
    wire::CardSeen {
        gpu: 0,
        uuid: match hand.swapped.load(Ordering::SeqCst) {
            0 => "GPU-5a5a".into(),
            times => format!("GPU-{times}"),
        },
        pci: Some("0000:18:00.0".into()),
        name: device.name.clone(),
        driver: device.driver.clone(),
        backend: "nvml_counter".into(),
        scope: "gpu".into(),
        counter,
        gauge: true,
        processes: true,
        period_ms: ms(facts.period_s),
        lag_ms: lag.and_then(|lag| ms(lag.value)),
        lag_uncertainty_ms: lag.and_then(|lag| ms(lag.uncertainty)),
        quantum_joules: Some(facts.quantum_j),
        averaging_s: facts.averaging_s,
        limit_watts: device.limit.map(joulebook::Power::watts),
        idle_watts: Some(REST_W),
        deepest_watts: None,
        idle_from: Some("declared".into()),
        up: true,
        error: None,
    }
}

const STREAM_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

/// Answers one connection until it ends.
fn serve(client: &TcpStream, hand: &Hand, card: &Card) -> Option<()> {
    client.set_nodelay(true).unwrap();
    hand.connections.fetch_add(1, Ordering::SeqCst);
    let mut reader = BufReader::new(client.try_clone().unwrap());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
        let (method, path) = line.split_once(' ')?;
        let is_head = method == "HEAD";
        let path = path.split_whitespace().next()?.to_owned();
        let mut authorized = false;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok().filter(|count| *count > 0)?;
            authorized |= header.to_lowercase().trim() == "authorization: bearer s3cret";
            if header.trim().is_empty() {
                break;
            }
        }
        hand.requests.fetch_add(1, Ordering::SeqCst);
        if is_head {
            hand.heads.fetch_add(1, Ordering::SeqCst);
        }
        hand.paths.lock().unwrap().push(path.clone());
        let mut to = client;
        match hand.habit() {
            Habit::Gone => return None,
            Habit::Hangs => {
                thread::sleep(Duration::from_millis(20));
                while hand.habit() == Habit::Hangs {
                    thread::sleep(Duration::from_millis(20));
                }
                return None;
            }
            Habit::Garbage => {
                to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nnot json!").ok()?;
                continue;
            }
            Habit::Locked if !authorized => {
                to.write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n").ok()?;
                continue;
            }
            _ => {}
        }
        let old = hand.habit() == Habit::OldFashioned;
        match path.split('?').next().unwrap_or_default() {
            "/v1/cards" if !old => {
                let cards = wire::Cards {
                    agent: "made-up/1".into(),
                    node: "iris".into(),
                    boot_id: hand.boot(),
                    cards: vec![described(card, hand)],
                };
                answer(to, &cards)?;
            }
            "/v1/clock" if !old => answer(to, &hand.clock())?,
            "/v1/cards/stream" if !old && is_head => to.write_all(STREAM_HEAD).ok()?,
            "/v1/cards/stream" if !old => return stream(to, hand, card, &path),
            "/power" => {
                let watts = card.series().newest()?.power_uw as f64 / 1e6;
                let power = serde_json::json!({
                    "gpu": 0, "name": "made-up V100", "watts": watts,
                    "memory_used_mib": 100, "memory_total_mib": 1000, "memory_free_mib": 900,
                    "utilization_pct": 3, "compute_apps": [],
                });
                answer(to, &power)?;
            }
            _ => {
                // The same to a head: it knows of none, and sends a body that nobody waits for.
                to.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}").ok()?;
            }
        }
    }
}

fn answer(mut to: &TcpStream, body: &impl Serialize) -> Option<()> {
    let body = serde_json::to_string(body).unwrap();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    to.write_all((head + &body).as_bytes()).ok()
}

/// Tells what happens until the connection ends.
fn stream(to: &TcpStream, hand: &Hand, card: &Card, path: &str) -> Option<()> {
    let boot = hand.boot();
    let mut writer = to;
    writer.write_all(STREAM_HEAD).ok()?;
    let hello = wire::Hello {
        agent: "made-up/1".into(),
        node: "iris".into(),
        boot_id: boot.clone(),
        now_ns: hand.theirs(now_ns()),
    };
    tell(to, wire::event::HELLO, &hello)?;
    tell(to, wire::event::CARD, &described(card, hand))?;
    let mut swapped = hand.swapped.load(Ordering::SeqCst);
    let series = card.series();
    let mut next = match since(path, &boot) {
        Some(since_ns) => {
            let is_new = |number: &u64| {
                series.point(*number).is_some_and(|point| hand.theirs(point.at_ns) > since_ns)
            };
            (0..series.pushed()).find(is_new).unwrap_or(series.pushed() - 1)
        }
        None => series.pushed().saturating_sub(1),
    };
    let mut residents = None;
    let mut said_ns = now_ns();
    let mut in_hole = false;
    loop {
        match hand.habit() {
            Habit::Gone | Habit::OldFashioned => return None,
            Habit::Hangs => {
                thread::sleep(Duration::from_millis(20));
                continue;
            }
            Habit::Garbage => tell(to, wire::event::ENERGY, &"not a publish")?,
            Habit::Drips => {
                for byte in b"event: energy\ndata: {\"gpu\": 0, \"boot_id\"".iter().cycle() {
                    if hand.habit() != Habit::Drips {
                        return None;
                    }
                    writer.write_all(&[*byte]).ok()?;
                    thread::sleep(Duration::from_millis(500));
                }
            }
            Habit::Endless => loop {
                writer.write_all(&[b'x'; 4096]).ok()?;
            },
            _ => {}
        }
        if hand.boot() != boot {
            return None;
        }
        let now = hand.residents.lock().unwrap().clone();
        if now != residents {
            residents = now.clone();
            if let Some(now) = now {
                tell(to, wire::event::TENANCY, &now)?;
                said_ns = now_ns();
            }
        }
        if swapped != hand.swapped.load(Ordering::SeqCst) {
            swapped = hand.swapped.load(Ordering::SeqCst);
            tell(to, wire::event::CARD, &described(card, hand))?;
        }
        let hole = *hand.hole.lock().unwrap();
        if let Some(error) = hole.filter(|_| !in_hole) {
            let hole =
                wire::Hole { gpu: 0, from_ns: Some(hand.theirs(now_ns())), error: error.into() };
            tell(to, wire::event::HOLE, &hole)?;
        }
        in_hole = hole.is_some();
        while next < series.pushed() && !in_hole && !hand.silent.load(Ordering::SeqCst) {
            if let Some(point) = series.point(next) {
                tell(to, wire::event::ENERGY, &hand.energy(&point))?;
                said_ns = now_ns();
            }
            next += 1;
        }
        if now_ns() - said_ns > 1_000_000_000 {
            tell(to, wire::event::CLOCK, &hand.clock())?;
            said_ns = now_ns();
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// What a reader that comes back has seen.
fn since(path: &str, boot: &str) -> Option<u64> {
    let (_, query) = path.split_once('?')?;
    let value =
        |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    value("since_ns").filter(|_| value("boot_id") == Some(boot))?.parse().ok()
}

fn tell(mut to: &TcpStream, event: &str, data: &impl Serialize) -> Option<()> {
    let data = serde_json::to_string(data).unwrap();
    to.write_all(format!("event: {event}\ndata: {data}\n\n").as_bytes()).ok()
}
