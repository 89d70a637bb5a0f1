//! A running agent on a machine of its own.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    bench::Bench,
    client::{Answer, get},
};

/// The agent, until this is dropped.
pub struct Serving {
    pub child: Child,
    pub address: SocketAddr,
    /// What it said when it began.
    pub said: Vec<String>,
    errors: std::path::PathBuf,
}

impl Serving {
    /// On this machine, with more arguments.
    pub fn on(bench: &Bench, arguments: &[&str]) -> Self {
        Self::begin(bench, bench.joulebook(["agent", "--bind", "127.0.0.1:0"]).args(arguments))
    }

    /// This command.
    pub fn begin(bench: &Bench, command: &mut Command) -> Self {
        let errors = bench.path("agent.err");
        let file = std::fs::File::options().create(true).append(true).open(&errors).unwrap();
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file).spawn();
        let mut child = child.unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = Vec::new();
        while !said.last().is_some_and(|line: &String| line.contains("ends it")) {
            let Some(line) = lines.next() else {
                panic!("it ended: {}", std::fs::read_to_string(&errors).unwrap_or_default());
            };
            said.push(line.unwrap());
        }
        // So that it never writes into a pipe that nobody reads.
        thread::spawn(move || lines.for_each(drop));
        let address = said[0].split_once("http://").unwrap().1;
        let address = address.split([' ', ',']).next().unwrap().parse().unwrap();
        Self { child, address, said, errors }
    }

    pub fn get(&self, path: &str) -> Answer {
        get(self.address, path)
    }

    /// Standard error so far.
    pub fn errors(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap()
    }

    /// Memory of it in RAM, KiB.
    pub fn resident_kib(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Its threads.
    pub fn threads(&self) -> u64 {
        self.status("Threads:")
    }

    /// Its open descriptors.
    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    fn status(&self, name: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends it as a service manager does; its exit code.
    pub fn stop(&mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.child.wait().unwrap().code()
    }

    /// Asks until the answer is of that kind, for a good while.
    pub fn until(&self, path: &str, is_it: impl Fn(&Answer) -> bool) -> Answer {
        until(|| Some(self.get(path)).filter(|answer| is_it(answer)))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks again until there is an answer, for a good while.
pub fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "no such answer came");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Says why a test does nothing, where the test runner cannot swallow it.
pub fn skipped(why: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}
