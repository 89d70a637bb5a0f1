//! How an agent begins and ends.

use std::{
    io::Write,
    net::TcpListener,
    os::unix::net::UnixDatagram,
    process::{Command, Stdio},
    time::Duration,
};

use rustix::process::Signal;

use super::{
    bench::{Bench, said},
    client::{Events, connect},
    server::Serving,
};

const CARD: &str = "card 0\nidle 77\ncounter period_ms=20\n";

#[test]
fn a_signal_drains_it_and_it_ends_well() {
    for signal in [Signal::TERM, Signal::INT] {
        let bench = Bench::with(CARD);
        let mut serving = Serving::on(&bench, &[]);
        let mut events = Events::open(serving.address, "/v1/cards/stream");
        let _idle = connect(serving.address);
        let mut half = connect(serving.address);
        half.write_all(b"GET /power HTTP/1.1\r\n").unwrap();
        assert_eq!(events.next().unwrap().0, "hello");
        serving.signal(signal);
        // A stream ends between two events.
        while events.next().is_some() {}
        // What idles, and a request that is not all there, is not waited for.
        assert_eq!(serving.child.wait().unwrap().code(), Some(0));
        assert_eq!(serving.errors(), "");
    }
}

#[test]
fn a_second_one_says_so_in_a_line_and_fails() {
    let bench = Bench::with(CARD);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = bench.say(["agent", "--bind", &address]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    assert!(said.err.contains(&address) && said.err.contains("is taken"), "{}", said.err);
    let said = bench.say(["agent", "--bind", "192.0.2.1:0"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("cannot listen on 192.0.2.1:0"), "{}", said.err);
}

#[test]
fn a_port_can_be_taken_again_at_once() {
    let bench = Bench::with(CARD);
    let mut first = Serving::on(&bench, &[]);
    let address = first.address.to_string();
    assert_eq!(first.get("/power").status, 200);
    assert_eq!(first.stop(), Some(0));
    let second = Serving::begin(&bench, &mut bench.joulebook(["agent", "--bind", &address]));
    assert_eq!(second.get("/power").status, 200);
}

#[test]
fn a_service_manager_is_told_when_it_serves_and_when_it_stops() {
    for abstract_name in [false, true] {
        let bench = Bench::with(CARD);
        let path = bench.path("notify");
        let (socket, name) = if abstract_name {
            use std::os::{linux::net::SocketAddrExt, unix::net::SocketAddr};
            let name = format!("joulebook-test-{}", std::process::id());
            let address = SocketAddr::from_abstract_name(&name).unwrap();
            (UnixDatagram::bind_addr(&address).unwrap(), format!("@{name}"))
        } else {
            (UnixDatagram::bind(&path).unwrap(), path.to_str().unwrap().to_owned())
        };
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut command = bench.joulebook(["agent", "--bind", "127.0.0.1:0"]);
        let mut serving = Serving::begin(&bench, command.env("NOTIFY_SOCKET", &name));
        let mut heard = [0; 256];
        let mut hear = || {
            let length = socket.recv(&mut heard).unwrap();
            String::from_utf8(heard[..length].to_vec()).unwrap()
        };
        assert_eq!(hear(), "READY=1\nSTATUS=serving 1 card\n");
        assert_eq!(serving.get("/power").status, 200);
        assert_eq!(serving.stop(), Some(0));
        assert_eq!(hear(), "STOPPING=1\n");
    }
}

#[test]
fn a_host_without_cards_is_told_so_and_not_served() {
    let bench = Bench::without_cards();
    let mut command = bench.joulebook(["agent", "--bind", "127.0.0.1:0"]);
    let without = said(command.env("JOULEBOOK_SMI", bench.path("none")));
    assert_eq!((without.code, without.out.as_str()), (Some(2), ""));
    for words in ["there is no card here to serve", "libnvidia-ml.so.1", "nvidia-smi"] {
        assert!(without.err.contains(words), "{words}: {}", without.err);
    }
    let empty = Bench::with("driver 570.1\n").say(["agent", "--bind", "127.0.0.1:0"]);
    assert_eq!(empty.code, Some(2));
    assert!(empty.err.contains("lists no card"), "{}", empty.err);
}

#[test]
fn what_is_asked_for_wrongly_is_refused_before_it_serves() {
    let bench = Bench::with(CARD);
    for (arguments, words) in [
        (["--gpu", "7"], "this host has gpu 0"),
        (["--bind", "example.org"], "give an address"),
        (["--connections", "0"], "from 1 to 65536"),
        (["--token-file", "/nonexistent"], "/nonexistent"),
    ] {
        let said = said(bench.joulebook(["agent", "--bind", "127.0.0.1:0"]).args(arguments));
        assert!(said.code == Some(2) || said.code == Some(1), "{arguments:?}: {:?}", said.code);
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
}

#[test]
fn the_unit_is_one_that_systemd_knows() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let unit =
        std::fs::read_to_string(format!("{root}/packaging/joulebook-agent.service")).unwrap();
    // Where the program is not installed the unit's path would be the complaint.
    let here = unit.replace("/usr/bin/joulebook", env!("CARGO_BIN_EXE_joulebook"));
    assert!(here.contains("Type=notify") && here != unit);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("joulebook-agent.service");
    std::fs::write(&path, here).unwrap();
    let verify = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&path)
        .stdin(Stdio::null())
        .output();
    match verify {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let about = said.lines().filter(|line| line.contains("joulebook-agent"));
            assert_eq!(about.collect::<Vec<_>>(), Vec::<&str>::new());
            assert!(output.status.success(), "{said}");
        }
        Err(error) => super::server::skipped(&format!("systemd-analyze: {error}")),
    }
}
