//! A load on an agent, or on any other HTTP server beside it: `measure/agent` runs it.
//!
//!     agent_load requests ADDRESS PATH CLIENTS SECONDS PID...   one request after the other, each client
//!     agent_load streams ADDRESS PATH CLIENTS SECONDS PID...    clients of a stream
//!     agent_load flood ADDRESS PATH CONNECTIONS HELD PID...     connections that only stand open, while
//!                                                               another client asks for PATH
//!
//! Prints a row of a table in Markdown. CPU is what those processes and their children that have ended
//! took meanwhile, by the system's own count.

#![allow(clippy::print_stdout, reason = "its output is its result")]

use std::{
    error::Error,
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const NANOS: u64 = 60_000_000_000;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [what, address, path, first, second, pids @ ..] = words.as_slice() else {
        return Err("usage: agent_load requests|streams|flood ADDRESS PATH N M PID...".into());
    };
    let pids: Vec<u32> = pids.iter().map(|pid| pid.parse()).collect::<Result<_, _>>()?;
    let address: SocketAddr = address.parse()?;
    match *what {
        "requests" => requests(address, path, first.parse()?, second.parse()?, &pids),
        "streams" => streams(address, path, first.parse()?, second.parse()?, &pids),
        "flood" => flood(address, path, first.parse()?, second.parse()?, &pids),
        other => Err(format!("{other} is none of requests, streams, flood").into()),
    }
}

/// CPU seconds of processes and of their children that have ended.
fn cpu_s(pids: &[u32]) -> f64 {
    let ticks = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        // After the name: utime, stime, cutime, cstime are fields 12 to 15.
        let numbers = fields.iter().skip(11).take(4).map(|field| field.parse::<u64>().unwrap_or(0));
        numbers.sum::<u64>()
    };
    pids.iter().map(ticks).sum::<u64>() as f64 / 100.0
}

fn resident_mib(pids: &[u32]) -> f64 {
    let kib = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(0.0)
    };
    pids.iter().map(kib).sum::<f64>() / 1024.0
}

/// A client that keeps its connection where the server does.
struct Client {
    address: SocketAddr,
    request: Vec<u8>,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

impl Client {
    fn new(address: SocketAddr, path: &str) -> Self {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes();
        Self { address, request, stream: None, buffer: vec![0; 64 * 1024] }
    }

    /// One request; the status and how long the answer is.
    fn ask(&mut self) -> Outcome<(u16, usize)> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(Duration::from_secs(30)))?;
                stream
            }
        };
        stream.write_all(&self.request)?;
        let mut filled = 0;
        loop {
            let room = self.buffer.get_mut(filled..).ok_or("too long an answer")?;
            let read = stream.read(room)?;
            filled += read;
            let text = String::from_utf8_lossy(self.buffer.get(..filled).unwrap_or_default());
            let whole = text.find("\r\n\r\n").map(|end| {
                let head = text.get(..end).unwrap_or_default().to_lowercase();
                let length = head.lines().find_map(|line| {
                    line.strip_prefix("content-length:")?.trim().parse::<usize>().ok()
                });
                (end + 4 + length.unwrap_or(0), head)
            });
            match whole {
                Some((length, head)) if filled >= length => {
                    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
                    if head.starts_with("http/1.1") && !head.contains("connection: close") {
                        self.stream = Some(stream);
                    }
                    return Ok((status.ok_or("no status")?, length));
                }
                _ if read == 0 => return Err("it was closed".into()),
                _ => {}
            }
        }
    }
}

fn requests(
    address: SocketAddr,
    path: &str,
    clients: usize,
    seconds: u64,
    pids: &[u32],
) -> Outcome {
    let over = Arc::new(AtomicBool::new(false));
    let begun = Instant::now();
    let cpu_before = cpu_s(pids);
    let threads: Vec<_> = (0..clients)
        .map(|_| {
            let (over, path) = (Arc::clone(&over), path.to_owned());
            thread::spawn(move || -> Outcome<(Histogram<u64>, u64, usize)> {
                let mut client = Client::new(address, &path);
                let mut times = Histogram::<u64>::new_with_bounds(1, NANOS, 3)?;
                let (mut errors, mut length) = (0, 0);
                while !over.load(Ordering::Relaxed) {
                    let asked = Instant::now();
                    match client.ask() {
                        Ok((200, bytes)) => {
                            length = bytes;
                            times.record(u64::try_from(asked.elapsed().as_nanos())?)?;
                        }
                        Ok(_) | Err(_) => errors += 1,
                    }
                }
                Ok((times, errors, length))
            })
        })
        .collect();
    thread::sleep(Duration::from_secs(seconds));
    over.store(true, Ordering::Relaxed);
    let mut all = Histogram::<u64>::new_with_bounds(1, NANOS, 3)?;
    let (mut errors, mut length) = (0, 0);
    for thread in threads {
        let (times, failed, bytes) = thread.join().map_err(|_| "a client died")??;
        all.add(times)?;
        errors += failed;
        length = length.max(bytes);
    }
    let elapsed_s = begun.elapsed().as_secs_f64();
    let cpu_s = cpu_s(pids) - cpu_before;
    let us = |quantile: f64| all.value_at_quantile(quantile) as f64 / 1e3;
    let rate = all.len() as f64 / elapsed_s;
    println!(
        "{clients} | {rate:.0} | {:.0} µs | {:.0} µs | {:.1} µs | {:.0} | {length} | {errors} |",
        us(0.5),
        us(0.99),
        cpu_s / all.len().max(1) as f64 * 1e6,
        all.len() as f64 / cpu_s.max(0.01),
    );
    Ok(())
}

fn streams(address: SocketAddr, path: &str, clients: usize, seconds: u64, pids: &[u32]) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (events, bytes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let least = runtime.block_on(async {
        let mut tasks = Vec::new();
        for _ in 0..clients {
            let mut stream = tokio::net::TcpStream::connect(address).await?;
            let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            let (events, bytes) = (Arc::clone(&events), Arc::clone(&bytes));
            tasks.push(tokio::spawn(async move {
                let (mut own, mut buffer) = (0_u64, vec![0; 16 * 1024]);
                let until = tokio::time::Instant::now() + Duration::from_secs(seconds);
                while let Ok(Ok(read)) =
                    tokio::time::timeout_at(until, stream.read(&mut buffer)).await
                {
                    if read == 0 {
                        break;
                    }
                    let piece = buffer.get(..read).unwrap_or_default();
                    let ends =
                        piece.windows(14).filter(|it| it == b"event: energy\n").count() as u64;
                    own += ends;
                    events.fetch_add(ends, Ordering::Relaxed);
                    bytes.fetch_add(read as u64, Ordering::Relaxed);
                }
                own
            }));
        }
        let (cpu_before, begun) = (cpu_s(pids), Instant::now());
        tokio::time::sleep(Duration::from_secs(seconds.saturating_sub(1))).await;
        let cpu = (cpu_s(pids) - cpu_before) / begun.elapsed().as_secs_f64();
        let resident = resident_mib(pids);
        let (mut least, mut most) = (u64::MAX, 0);
        for task in tasks {
            let own = task.await?;
            (least, most) = (least.min(own), most.max(own));
        }
        Outcome::Ok((least, most, cpu, resident))
    })?;
    let (least, most, cpu, resident) = least;
    let each = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64 / seconds as f64;
    println!(
        "{clients} | {:.0} | {least} to {most} | {:.1} MB/s | {:.1} % of a core | {resident:.1} MiB |",
        each(&events),
        each(&bytes) / 1e6,
        cpu * 100.0,
    );
    Ok(())
}

fn flood(address: SocketAddr, path: &str, connections: u64, held: usize, pids: &[u32]) -> Outcome {
    let over = Arc::new(AtomicBool::new(false));
    let asked = {
        let (over, path) = (Arc::clone(&over), path.to_owned());
        thread::spawn(move || -> Outcome<(Histogram<u64>, u64)> {
            let mut times = Histogram::<u64>::new_with_bounds(1, NANOS, 3)?;
            let mut errors = 0;
            while !over.load(Ordering::Relaxed) {
                let asked = Instant::now();
                // A connection of its own each time, as a health check has.
                match Client::new(address, &path).ask() {
                    Ok((200, _)) => times.record(u64::try_from(asked.elapsed().as_nanos())?)?,
                    Ok(_) | Err(_) => errors += 1,
                }
                thread::sleep(Duration::from_millis(10));
            }
            Ok((times, errors))
        })
    };
    let (before, begun) = (resident_mib(pids), Instant::now());
    let mut idle = std::collections::VecDeque::new();
    for number in 0..connections {
        // One source address has not ports enough for all of them.
        let source = Ipv4Addr::new(127, 0, u8::try_from(number / 2_000 % 200)?, 2);
        if let Ok(stream) = connect_from(source, address) {
            idle.push_back(stream);
        }
        if idle.len() > held {
            idle.pop_front();
        }
    }
    let elapsed = begun.elapsed().as_secs_f64();
    let after = resident_mib(pids);
    over.store(true, Ordering::Relaxed);
    let (times, errors) = asked.join().map_err(|_| "the health check died")??;
    let ms = |nanos: u64| nanos as f64 / 1e6;
    println!(
        "{connections} | {elapsed:.0} s | {} | {:.2} ms | {:.2} ms | {:.2} ms | {errors} | {before:.1} to {after:.1} MiB |",
        times.len(),
        ms(times.value_at_quantile(0.5)),
        ms(times.value_at_quantile(0.99)),
        ms(times.max()),
    );
    Ok(())
}

fn connect_from(source: Ipv4Addr, address: SocketAddr) -> Outcome<TcpStream> {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    rustix::net::sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddr::new(source.into(), 0))?;
    connect(&socket, &address)?;
    Ok(TcpStream::from(socket))
}
