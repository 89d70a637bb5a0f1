//! A slow way: a relay that hands on every byte so much later, either way.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a part of tests and of measurements"
)]

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// The port of a relay to `port` that is late by `there` and `back`.
pub fn relay(port: u16, there: Duration, back: Duration) -> u16 {
    start(&TcpListener::bind("127.0.0.1:0").unwrap(), port, there, back)
}

/// One on a port that was chosen before, without delay.
pub fn relay_on(own: u16, port: u16) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", own)).unwrap();
    start(&listener, port, Duration::ZERO, Duration::ZERO)
}

fn start(listener: &TcpListener, port: u16, there: Duration, back: Duration) -> u16 {
    let listener = listener.try_clone().unwrap();
    let own = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
            for stream in [&client, &server] {
                stream.set_nodelay(true).unwrap();
            }
            carry(client.try_clone().unwrap(), server.try_clone().unwrap(), there);
            carry(server, client, back);
        }
    });
    own
}

fn carry(mut from: TcpStream, mut to: TcpStream, late: Duration) {
    let (send, receive) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut bytes = [0; 16 << 10];
        while let Ok(count) = from.read(&mut bytes) {
            if count == 0 || send.send((Instant::now() + late, bytes[..count].to_vec())).is_err() {
                break;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in receive {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
