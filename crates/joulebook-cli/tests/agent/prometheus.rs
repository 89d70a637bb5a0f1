//! A real Prometheus and its promtool. `./test` brings them; without them the tests say that they are
//! skipped.

use std::{
    io::Write,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;

use super::{
    bench::{Bench, json},
    client::{ask, get},
    server::{Serving, skipped, until},
};

fn program(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("JOULEBOOK_TEST_PROMETHEUS").map(PathBuf::from);
    if folder.is_none() {
        skipped(
            "JOULEBOOK_TEST_PROMETHEUS names no folder with prometheus and promtool (see ./test)",
        );
    }
    folder.map(|folder| folder.join(name))
}

#[test]
fn promtool_finds_nothing_to_say_of_the_page() {
    let Some(promtool) = program("promtool") else { return };
    let bench = Bench::with(
        "card 0\ncounter period_ms=20\ncard 1\nfault 0 inf energy lost\ncard 2\ncounter supported=0\n",
    );
    assert_eq!(bench.say(["idle", "--gpu", "0", "--seconds", "2"]).code, Some(0));
    let serving = Serving::on(&bench, &[]);
    let page = serving.until("/metrics", |answer| {
        ["idle_watts", "energy_joules_total", "gpu=\"2\""].iter().all(|it| answer.body.contains(it))
    });
    let check = |page: &str| {
        let mut child = Command::new(&promtool)
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    };
    assert_eq!(check(&page.body), (Some(0), String::new()));
    // It has an eye for what is wrong.
    let (code, said) = check("joulebook_card_milliwatts N/A\n");
    assert!(code != Some(0) && !said.is_empty());
    // NVIDIA's own names are not Prometheus's; that they are read is all that is asked for.
    let (code, said) = check(&serving.get("/dcgm/metrics").body);
    assert!(code == Some(3) && !said.contains("error while linting"), "{said}");
}

/// A Prometheus that scrapes one address every 200 ms.
struct Prometheus {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    fn of(program: &PathBuf, target: SocketAddr, token: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let file = folder.path().join("prometheus.yml");
        let authorization = token.map_or(String::new(), |token| {
            format!("    authorization: {{credentials: \"{token}\"}}\n")
        });
        let text = format!(
            "global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}\nscrape_configs:\n  - job_name: agent\n\
             {authorization}    static_configs: [{{targets: [\"{target}\"]}}]\n"
        );
        std::fs::write(&file, text).unwrap();
        let child = Command::new(program)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let prometheus = Self { child, address, _folder: folder };
        until(|| std::net::TcpStream::connect(address).ok());
        prometheus
    }

    /// The only series of a query: its value, or its values in time.
    fn ask(&self, query: &str) -> Option<Value> {
        let coded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let answer = get(self.address, &format!("/api/v1/query?query={coded}"));
        if answer.status == 503 {
            // It has only just begun.
            return None;
        }
        assert_eq!(answer.status, 200, "{}", answer.body);
        // Without a length it comes in chunks; of one, here.
        let start = answer.body.find('{').unwrap();
        let end = answer.body.rfind('}').unwrap();
        let result = json(&answer.body[start..=end])["data"]["result"].clone();
        let [series] = result.as_array().unwrap().as_slice() else { return None };
        Some(series.clone())
    }

    fn number(&self, query: &str) -> Option<f64> {
        self.ask(query)?["value"][1].as_str()?.parse().ok()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn agent_exporter_04_increase_over_restarts_invents_no_joules() {
    let Some(program) = program("prometheus") else { return };
    // 300 W from a register that outlives the agents.
    let epoch_ns = joulebook_lab::clock::system_ns(joulebook_lab::scenario::ClockKind::Monotonic);
    let bench = Bench::with(&format!(
        "epoch_ns {epoch_ns}\ncard 0\nidle 300\ncounter period_ms=20 base_mj=81234700\n"
    ));
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let begin = || {
        let bind = address.to_string();
        Serving::begin(&bench, &mut bench.joulebook(["agent", "--bind", &bind]))
    };
    let mut serving = begin();
    let prometheus = Prometheus::of(&program, address, None);
    const ENERGY: &str = "joulebook_card_energy_joules_total";
    until(|| prometheus.number(ENERGY));
    for _ in 0..3 {
        thread::sleep(Duration::from_secs(3));
        assert_eq!(serving.stop(), Some(0));
        serving = begin();
    }
    thread::sleep(Duration::from_secs(3));
    let samples = prometheus.ask(&format!("{ENERGY}[5m]")).unwrap();
    let samples: Vec<(f64, f64)> = samples["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| (pair[0].as_f64().unwrap(), pair[1].as_str().unwrap().parse().unwrap()))
        .collect();
    let resets = samples.windows(2).filter(|pair| pair[1].1 < pair[0].1).count();
    assert_eq!(resets, 3, "{samples:?}");
    let increase = prometheus.number(&format!("increase({ENERGY}[5m])")).unwrap();
    let seconds = samples.last().unwrap().0 - samples[0].0;
    // It also guesses what lay before its first and behind its last sample, as much as a scrape apart.
    let scrape = seconds / (samples.len() - 1) as f64;
    let most = 300.0 * (seconds + 2.0 * scrape + 0.2);
    assert!(increase > 0.5 * 300.0 * seconds && increase <= most, "{increase} J in {seconds} s");
    assert_eq!(prometheus.number("joulebook_card_reader_up"), Some(1.0));
    let watts = prometheus.number("joulebook_card_power_watts").unwrap();
    assert!((watts - 300.0).abs() < 120.0, "{watts}");
}

#[test]
fn prometheus_sees_a_card_go_and_shows_a_token() {
    let Some(program) = program("prometheus") else { return };
    let bench = Bench::with("card 0\nidle 231.4\ncounter period_ms=20\nfault 4 inf all unknown\n");
    let token = "an-unguessable-word-of-some-length";
    let file = bench.path("token");
    std::fs::write(&file, token).unwrap();
    let serving = Serving::on(&bench, &["--token-file", file.to_str().unwrap()]);
    let prometheus = Prometheus::of(&program, serving.address, Some(token));
    let watts = until(|| prometheus.number("joulebook_card_power_watts"));
    assert!((watts - 231.4).abs() < 90.0, "{watts}");
    // The series ends at once, and is not carried on.
    until(|| prometheus.number("joulebook_card_reader_up").filter(|up| *up == 0.0));
    until(|| prometheus.number("joulebook_card_power_watts").is_none().then_some(()));
    let asked = ask(serving.address, "GET", "/metrics", "");
    assert_eq!(asked.status, 401);
}
