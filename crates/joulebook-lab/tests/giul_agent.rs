//! The remote reader against the real agents of the `giul` package, 0.1.0 and 0.2.0, which read the
//! lab's `nvidia-smi`. `./test` brings the Python; without it the tests say that they are skipped.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "the file is tests"
)]

#[cfg(test)]
mod giul_agent {
    use std::{
        fs,
        net::TcpListener,
        os::unix::fs::PermissionsExt,
        path::{Path, PathBuf},
        process::{Child, Command, Stdio},
        thread,
        time::Duration,
    };

    use joulebook::{
        Backend, Fault, Measurement, Meter, Method, Node, Source, Tenancy,
        clock::now_ns,
        core::{Flags, estimate::Rule},
        nvml::Fit,
    };
    use joulebook_lab::{Load, Scenario, clock::system_ns, scenario::ClockKind};

    const LONG: Duration = Duration::from_secs(20);
    /// Its power changes all the while; its sensor averages over a second. 4 s in, a tenant comes.
    const SCENARIO: &str = "driver 555.42.06
card 0
  idle 70
  square 0 inf period_ms=1700 duty=0.5 w=300
  sensor period_ms=100 window_ms=1000
  mem total_mib=81559 base_mib=500
  proc 0 inf 41 30000 /opt/vllm/bin/python
  proc 4 inf 42 9000 /home/else/train
card 1
  idle 55
";

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Release {
        Old,
        New,
    }

    /// A giul-agent on a machine of its own, until this is dropped.
    struct Agent {
        folder: tempfile::TempDir,
        python: PathBuf,
        release: Release,
        port: u16,
        epoch_ns: i64,
        child: Option<Child>,
    }

    impl Agent {
        fn new(release: Release) -> Option<Self> {
            let Some(python) = std::env::var_os("JOULEBOOK_TEST_PYTHON").map(PathBuf::from) else {
                eprintln!("skipped: JOULEBOOK_TEST_PYTHON names no Python with giul (see ./test)");
                return None;
            };
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("scenario"), SCENARIO).unwrap();
            let tool = folder.path().join("nvidia-smi");
            let script = format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_nvidia-smi"));
            fs::write(&tool, script).unwrap();
            fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let epoch_ns = system_ns(ClockKind::Monotonic);
            let mut agent = Self { folder, python, release, port, epoch_ns, child: None };
            drop(listener);
            agent.start();
            Some(agent)
        }

        fn start(&mut self) {
            let mut command = Command::new(&self.python);
            command
                .args(["-m", "giul.agent", "--host", "127.0.0.1", "--port"])
                .arg(self.port.to_string())
                .env("PATH", format!("{}:/usr/bin:/bin", self.folder.path().display()))
                .env("FAKEGPU_SCENARIO", self.folder.path().join("scenario"))
                .env("FAKEGPU_EPOCH_NS", self.epoch_ns.to_string())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if self.release == Release::Old {
                let site = Path::new(&self.python).parent().unwrap().parent().unwrap();
                command.env("PYTHONPATH", site.join("giul-0.1"));
            }
            self.child = Some(command.spawn().unwrap());
        }

        fn stop(&mut self) {
            if let Some(mut child) = self.child.take() {
                let _ = child.kill();
                let _ = child.wait();
            }
        }

        fn node(&self) -> Node {
            let endpoint = format!("http://127.0.0.1:{}", self.port);
            let interval = Duration::from_millis(100);
            Node { interval, ..Node::at(endpoint, "0") }.idle_watts(70.0)
        }

        /// What card 0 really drew between two instants of our clock, J.
        fn truth_j(&self, from_ns: u64, to_ns: u64) -> f64 {
            let scenario = Scenario::parse(SCENARIO).unwrap();
            let load = Load::new(&scenario.cards[0], None);
            let before_ns = now_ns();
            let system = system_ns(ClockKind::Monotonic) - self.epoch_ns;
            let ahead_ns = system - before_ns.midpoint(now_ns()) as i64;
            load.energy(from_ns as i64 + ahead_ns, to_ns as i64 + ahead_ns)
        }
    }

    impl Drop for Agent {
        fn drop(&mut self) {
            self.stop();
        }
    }

    fn until(mut holds: impl FnMut() -> bool) {
        for _ in 0..3000 {
            if holds() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("it did not come about");
    }

    /// Waits for some readings more.
    fn follows(meter: &Meter) {
        let card = &meter.cards()[0];
        let more = card.series().pushed() + 15;
        until(|| card.series().pushed() >= more && card.trouble().is_none());
    }

    fn window(agent: &Agent, meter: &Meter, length: Duration) -> (Measurement, f64) {
        let before_ns = now_ns();
        let window = meter.open();
        thread::sleep(length);
        let pending = window.close();
        let after_ns = now_ns();
        let settled = pending.settle(LONG);
        (settled, agent.truth_j(before_ns, after_ns))
    }

    /// The figure is the gauge's, and lies within its bound.
    fn holds(measured: &Measurement, truth_j: f64) {
        assert_eq!((measured.rule, measured.backend), (Some(Rule::Gauge), "remote_agent"));
        assert_eq!(measured.source, Source::Remote);
        let gross_j = measured.gross_joules.unwrap_or_else(|| panic!("no figure: {measured:?}"));
        let bound_j = measured.bound_joules.unwrap_or_else(|| panic!("no bound: {measured:?}"));
        assert!((gross_j - truth_j).abs() <= bound_j + 0.5, "{truth_j} J is not {measured:?}");
    }

    fn reads(release: Release) {
        let Some(mut agent) = Agent::new(release) else { return };
        let meter = Meter::for_node(&agent.node()).unwrap();
        follows(&meter);
        let card = &meter.cards()[0];
        assert_eq!(card.device().backend, Backend::RemoteAgent);
        assert!(card.device().name.contains("H100"), "{:?}", card.device());
        let connection = card.connection().unwrap().now();
        assert_eq!((connection.streams, connection.agent), (false, None));
        let (settled, truth_j) = window(&agent, &meter, Duration::from_millis(3400));
        assert_eq!(settled.method, Method::Sampled, "{settled:?}");
        holds(&settled, truth_j);
        // Shorter than what its sensor averages over: watts over the network tell nothing of it.
        let (short, _) = window(&agent, &meter, Duration::from_millis(300));
        assert_eq!(
            (short.method, short.error),
            (Method::Unknown, Some(Fault::WindowBelowResolution))
        );

        // Away and back, within what a gauge may bridge.
        let before_ns = now_ns();
        let spanning = meter.open();
        thread::sleep(Duration::from_millis(500));
        agent.stop();
        until(|| card.trouble().is_some());
        let gone = meter.open().close().settle(LONG);
        assert_eq!((gone.method, gone.joules), (Method::Unknown, None), "{gone:?}");
        assert_eq!(joulebook::probe_node(&agent.node()), None);
        agent.start();
        follows(&meter);
        let pending = spanning.close();
        let after_ns = now_ns();
        let spanned = pending.settle(LONG);
        holds(&spanned, agent.truth_j(before_ns, after_ns));
        assert!(spanned.flags.contains(Flags::BRIDGED), "{spanned:?}");
        assert!(spanned.bridged_joules.is_some(), "{spanned:?}");
    }

    #[test]
    fn the_agent_of_0_1_0_is_read() {
        reads(Release::Old);
    }

    #[test]
    fn the_agent_of_0_2_0_is_read() {
        reads(Release::New);
    }

    #[test]
    fn what_an_old_agent_does_not_say_is_not_known() {
        let Some(agent) = Agent::new(Release::Old) else { return };
        until(|| joulebook::probe_node(&agent.node()).is_some());
        let state = joulebook::probe_node(&agent.node()).unwrap();
        assert_eq!((state.gpu, state.memory_used_mib), (Some(0), Some(30_500)));
        assert_eq!((state.memory_total_mib, state.compute_apps), (None, None));
        assert_eq!(joulebook::fits(&agent.node(), 1), Fit::Unknown);
        let node = Node { serving_match: Some("vllm".into()), ..agent.node() };
        let meter = Meter::for_node(&node).unwrap();
        follows(&meter);
        let (settled, _) = window(&agent, &meter, Duration::from_millis(2000));
        assert_eq!((settled.tenancy, settled.contended_by), (Tenancy::Unknown, None));
    }

    #[test]
    fn a_newer_agent_says_who_is_there_and_what_is_free() {
        let Some(agent) = Agent::new(Release::New) else { return };
        until(|| joulebook::probe_node(&agent.node()).is_some());
        let apps = || joulebook::probe_node(&agent.node()).unwrap().compute_apps;
        until(|| apps().is_some_and(|apps| apps.len() == 2));
        let state = joulebook::probe_node(&agent.node()).unwrap();
        assert_eq!(state.memory_free_mib, Some(81_559 - 39_500));
        let Fit::No { short_by_mib, held_by } = joulebook::fits(&agent.node(), 50_000) else {
            panic!("it does not fit: {state:?}");
        };
        assert_eq!(short_by_mib, 50_000 - (81_559 - 39_500));
        assert_eq!(held_by, ["/home/else/train (9000 MiB)", "/opt/vllm/bin/python (30000 MiB)"]);
        let node = Node { serving_match: Some("vllm".into()), ..agent.node() };
        let meter = Meter::for_node(&node).unwrap();
        follows(&meter);
        let (settled, _) = window(&agent, &meter, Duration::from_millis(2000));
        assert_eq!((settled.tenancy, settled.method), (Tenancy::Foreign, Method::Unknown));
        assert_eq!(settled.contended_by.as_deref(), Some("/home/else/train (9000 MiB)"));
        // A card that is not there, beside one that is.
        let other = Meter::for_node(&Node { gpus: vec!["7".into()], ..agent.node() }).unwrap();
        until(|| other.cards()[0].trouble() == Some(Fault::Absent));
        let named = Meter::for_node(&Node { gpus: vec!["GPU-1".into()], ..agent.node() }).unwrap();
        until(|| named.cards()[0].trouble() == Some(Fault::Absent));
        assert_eq!(meter.cards()[0].trouble(), None);
    }
}
