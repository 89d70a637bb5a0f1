//! Clients that mean harm, or are broken: nothing grows, nothing of theirs comes back, and the others
//! are served meanwhile.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use super::{
    bench::Bench,
    client::{again, ask, connect, send},
    server::{Serving, until},
};

const CARD: &str = "card 0\nidle 77\ncounter period_ms=100\n";

/// A sample of the page of metrics.
fn metric(serving: &Serving, name: &str) -> f64 {
    let page = serving.get("/metrics").body;
    let line = page.lines().find(|line| line.starts_with(name)).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn only_get_and_head_are_answered_and_bodies_are_not_read() {
    let bench = Bench::with(CARD);
    let serving = Serving::on(&bench, &[]);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "BREW"] {
        for path in ["/power", "/nowhere"] {
            let answer = ask(serving.address, method, path, "X-Mark: mark-of-mine\r\n");
            assert_eq!(answer.status, 405, "{method}");
            assert_eq!(answer.header("allow"), Some("GET, HEAD"));
            assert!(!answer.body.contains("mark-of-mine"), "{}", answer.body);
        }
    }
    // The answer comes before the body, and the connection ends with it.
    for lines in ["Content-Length: 1000000000\r\n", "Transfer-Encoding: chunked\r\n"] {
        for (method, status) in [("GET", 400), ("POST", 405)] {
            let answer = ask(serving.address, method, "/power", lines);
            assert_eq!(answer.status, status, "{method} {lines}");
            assert_eq!(answer.header("connection"), Some("close"));
        }
    }
    assert_eq!(ask(serving.address, "GET", "/power", "Content-Length: 0\r\n").status, 200);
}

#[test]
fn what_is_no_request_is_refused_and_nothing_of_it_comes_back() {
    let bench = Bench::with(CARD);
    let serving = Serving::on(&bench, &[]);
    let mark = "mark-of-mine";
    let long = "x".repeat(100_000);
    let many = "X-A: b\r\n".repeat(500);
    for (what, bytes, most) in [
        (
            "a huge header",
            format!("GET /power HTTP/1.1\r\nHost: h\r\nX-{mark}: {long}\r\n\r\n"),
            431,
        ),
        ("many headers", format!("GET /power HTTP/1.1\r\nHost: h\r\n{many}\r\n"), 431),
        ("a huge path", format!("GET /{mark}{long} HTTP/1.1\r\nHost: h\r\n\r\n"), 431),
        ("no HTTP", format!("{mark}\r\n\r\n"), 400),
        ("TLS", "\u{16}\u{3}\u{1}\u{2}\r\n\r\n".to_owned(), 400),
        ("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), 505),
        ("a bad version", "GET /power HTTP/9.9\r\n\r\n".to_owned(), 505),
        (
            "two lengths",
            format!(
                "GET /{mark} HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"
            ),
            400,
        ),
        (
            "a path of tricks",
            format!(
                "GET /../../etc/passwd?{mark} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
            ),
            404,
        ),
        (
            "an encoded one",
            format!(
                "GET /..%2f..%2fetc%2fpasswd%00{mark} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
            ),
            404,
        ),
        (
            "somebody else's",
            format!(
                "GET http://{mark}/admin HTTP/1.1\r\nHost: {mark}\r\nConnection: close\r\n\r\n"
            ),
            404,
        ),
    ] {
        let answer = send(serving.address, bytes.as_bytes());
        assert!(
            (400..=most.max(431)).contains(&answer.status)
                || answer.status == most
                || answer.status == 0,
            "{what}: {answer:?}"
        );
        let all = format!("{}{}", answer.head, answer.body);
        assert!(!all.contains(mark) && !all.contains("root:"), "{what}: {all}");
    }
    assert_eq!(serving.get("/healthz").status, 200);
}

#[test]
fn connections_beyond_the_limit_make_room_and_shut_nobody_out() {
    let bench = Bench::with(CARD);
    let serving = Serving::on(&bench, &["--connections", "64"]);
    let mut working = connect(serving.address);
    assert_eq!(again(&mut working, "/power").status, 200);
    // Until memory has settled.
    let flood = |number: usize| {
        let mut idle: Vec<TcpStream> = Vec::new();
        for count in 0..number {
            let mut stream = connect(serving.address);
            if count % 2 == 0 {
                stream.write_all(b"GET /power HT").unwrap();
            }
            idle.push(stream);
            if count % 50 == 0 {
                assert_eq!(serving.get("/healthz").status, 200);
                // One that works is not the one that waits longest.
                assert_eq!(again(&mut working, "/power").status, 200);
            }
            if idle.len() > 500 {
                idle.drain(..250);
            }
        }
    };
    let mut flood = flood;
    flood(1000);
    let before = (serving.resident_kib(), serving.threads());
    flood(4000);
    assert!(serving.descriptors() < 64 + 64, "{}", serving.descriptors());
    assert!(
        serving.resident_kib() < before.0 + 2048,
        "{} KiB from {}",
        serving.resident_kib(),
        before.0
    );
    assert_eq!(serving.threads(), before.1);
    assert!(metric(&serving, "joulebook_agent_connections_cut_total") > 4000.0);
    assert!(metric(&serving, "joulebook_agent_connections{") <= 64.0);
}

#[test]
fn streams_beyond_the_limit_are_turned_away() {
    let bench = Bench::with(CARD);
    let serving = Serving::on(&bench, &["--connections", "8"]);
    let mut streams: Vec<TcpStream> = (0..8).map(|_| connect(serving.address)).collect();
    for stream in &mut streams {
        stream.write_all(b"GET /v1/cards/stream HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        let mut some = [0; 256];
        assert!(stream.read(&mut some).unwrap() > 0);
    }
    let answer = serving.get("/healthz");
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("too many connections"), "{answer:?}");
    assert_eq!(answer.header("content-length"), Some(answer.body.len().to_string().as_str()));
    drop(streams);
    until(|| (serving.get("/healthz").status == 200).then_some(()));
    assert!(metric(&serving, "joulebook_agent_connections_turned_away_total") >= 1.0);
}

#[test]
fn a_header_that_never_ends_is_cut() {
    let bench = Bench::with(CARD);
    let serving = Serving::on(&bench, &[]);
    let mut slow: Vec<TcpStream> = (0..20).map(|_| connect(serving.address)).collect();
    let begun = Instant::now();
    let mut open = slow.len();
    // A byte now and then keeps none of them.
    while open > 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{open} are still open");
        for stream in &mut slow {
            let _ = stream.write_all(b"G");
        }
        thread::sleep(Duration::from_millis(500));
        open = slow.iter_mut().map(is_open).filter(|open| *open).count();
        assert_eq!(serving.get("/healthz").status, 200);
    }
    assert!(metric(&serving, "joulebook_agent_connections_cut_total") >= 20.0);
}

fn is_open(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let mut some = [0; 256];
    let open = loop {
        match stream.read(&mut some) {
            Ok(0) => break false,
            Ok(_) => {}
            Err(error) => break error.kind() == std::io::ErrorKind::WouldBlock,
        }
    };
    stream.set_nonblocking(false).unwrap();
    open
}

#[test]
fn a_client_that_goes_in_the_middle_leaves_nothing() {
    let bench = Bench::with(CARD);
    let serving = Serving::on(&bench, &[]);
    let before = serving.descriptors();
    for number in 0..300 {
        let mut stream = connect(serving.address);
        let request: &[u8] = match number % 3 {
            0 => b"GET /metr",
            1 => b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n",
            _ => b"GET /v1/cards/stream HTTP/1.1\r\nHost: h\r\n\r\n",
        };
        stream.write_all(request).unwrap();
        if number % 2 == 0 {
            // Half of it stays open.
            stream.shutdown(std::net::Shutdown::Write).unwrap();
        }
    }
    until(|| (serving.descriptors() <= before + 2).then_some(()));
    assert_eq!(serving.get("/healthz").status, 200);
}
