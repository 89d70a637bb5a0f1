//! The real Python packages against the agent: giul's meter and probe, its own agent beside ours, the
//! official parser of metrics, and what aiperf's collector asks of a dcgm-exporter.

use std::{
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use super::{
    bench::Bench,
    client::get,
    server::{Serving, skipped, until},
};

/// 400 W, and a process that serves beside one that does not.
const BUSY: &str = "driver 570.124.06\ncard 0\nname NVIDIA GeForce RTX 5090\nidle 400\n\
    mem total_mib=32607 base_mib=10\nutil gpu=87\ncounter period_ms=20\ninstant period_ms=20\nsensor window_ms=20 period_ms=20\n\
    proc 0 inf 41 12000 /opt/vllm/bin/python\ncard 1\nidle 55\nproc 0 inf 42 600 /usr/bin/train\n";

fn python() -> Option<PathBuf> {
    let python = std::env::var_os("JOULEBOOK_TEST_PYTHON").map(PathBuf::from);
    if python.is_none() {
        skipped(
            "JOULEBOOK_TEST_PYTHON names no Python with giul and prometheus-client (see ./test)",
        );
    }
    python
}

/// What a script says, given the agent's address; it must end well.
fn run(python: &PathBuf, script: &str, arguments: &[&str]) -> String {
    let output = Command::new(python).args(["-c", script]).args(arguments).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    String::from_utf8(output.stdout).unwrap()
}

const METER: &str = r#"
import asyncio, sys, time
import giul
from giul.meter import Meter, Node
from giul.backends import probe_node
from importlib.metadata import version
assert version("giul") == "0.2.0"
url = sys.argv[1]

def node(**more):
    return Node(name="iris", idle_w=70.0, power_endpoint=url, **more)

def check(energy, stages):
    assert (energy.method, energy.source, energy.backend) == ("sampled", "remote", "remote_agent"), energy
    assert energy.samples >= 2, energy
    # Polls that come late on a busy host make single powers vague.
    assert abs(energy.mean_watts - 400) < 120, energy
    # Charged above idle, over its own seconds.
    assert abs(energy.joules / energy.seconds - 330) < 120, energy
    assert sorted(energy.stages) == stages, energy

with Meter.for_node(node(), interval_s=0.05) as meter:
    time.sleep(0.7); meter.mark("prefill"); time.sleep(0.7)
check(meter.result(tokens=100), ["prefill"])
assert meter.result(tokens=100).per_token(100) > 0

async def main():
    async with Meter.for_node(node(serving_match="vllm"), interval_s=0.05) as meter:
        await asyncio.sleep(0.7); meter.mark("prefill"); await asyncio.sleep(0.7)
    check(meter.result(), ["prefill"])
    assert not meter.result().contended

    # Somebody else's work on the card.
    async with Meter.for_node(node(gpu_index=1, serving_match="vllm"), interval_s=0.05) as meter:
        await asyncio.sleep(0.5)
    result = meter.result()
    assert result.contended and result.method == "unknown", result
    assert result.contended_by == "/usr/bin/train (600 MiB)", result

    state = await probe_node(node())
    assert state["gpu"] == 0 and abs(state["watts"] - 400) < 160, state
    assert state["memory_free_mib"] == 32607 - 12010 and state["utilization_pct"] == 87, state
    assert state["compute_apps"] == [{"pid": 41, "used_mib": 12000, "name": "/opt/vllm/bin/python"}], state
    # A card that is not there, and an agent that is not there: unknown, never an error.
    assert await probe_node(node(gpu_index=9)) is None
    gone = Node(power_endpoint="http://127.0.0.1:1", idle_w=70.0)
    assert await probe_node(gone) is None

asyncio.run(main())
"#;

#[test]
fn giuls_own_meter_and_probe_read_this_agent() {
    let Some(python) = python() else { return };
    let bench = Bench::with(BUSY);
    let serving = Serving::on(&bench, &[]);
    run(&python, METER, &[&format!("http://{}", serving.address)]);
}

/// giul's own agent on the same cards.
struct Giul {
    child: Child,
    address: std::net::SocketAddr,
}

impl Giul {
    fn on(bench: &Bench, python: &PathBuf) -> Self {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let tools = PathBuf::from(env!("CARGO_BIN_EXE_joulebook"));
        let path = format!(
            "{}:{}",
            tools.parent().unwrap().display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let child = Command::new(python)
            .args(["-c", "from giul.agent import main; main()", "--host", "127.0.0.1", "--port"])
            .arg(address.port().to_string())
            .env("PATH", path)
            .env("FAKEGPU_SCENARIO", bench.path("scenario"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let giul = Self { child, address };
        until(|| std::net::TcpStream::connect(address).ok());
        giul
    }
}

impl Drop for Giul {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The same keys with values of the same kinds; figures of watts differ.
fn same_shape(ours: &Value, theirs: &Value, path: &str) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            assert_eq!(
                ours.keys().collect::<Vec<_>>(),
                theirs.keys().collect::<Vec<_>>(),
                "{path}"
            );
            for (key, theirs) in theirs {
                match key.as_str() {
                    "watts" => {
                        let pair = (ours[key].as_f64().unwrap(), theirs.as_f64().unwrap());
                        assert!((pair.0 / pair.1 - 1.0).abs() < 0.01, "{path}: {pair:?}");
                    }
                    // Its own words for what its tool said.
                    "detail" => assert!(ours[key].is_string() && theirs.is_string()),
                    _ => same_shape(&ours[key], theirs, path),
                }
            }
        }
        (ours, theirs) => assert_eq!(ours, theirs, "{path}"),
    }
}

#[test]
fn both_agents_answer_alike() {
    let Some(python) = python() else { return };
    // By its gauge, which both read at an instant.
    let gauges = BUSY.replace("counter period_ms=20", "counter supported=0");
    let bench = Bench::with(&gauges.replace("card 1", "card 1\ncounter supported=0"));
    let serving = Serving::on(&bench, &[]);
    let giul = Giul::on(&bench, &python);
    for query in [
        "",
        "?gpu=0",
        "?gpu=1",
        "?gpu=",
        "?gpu",
        "?gpu=1&gpu=0",
        "?gpu=+1",
        "?gpu=%201%20",
        "?other=7",
        "?gpu=9",
        "?gpu=-1",
        "?gpu=banana",
        "?gpu=1.0",
        "?gpu=0x1",
        "?gpu=1;gpu=2",
        "?%67pu=1",
        "?GPU=1",
    ] {
        for path in ["/power", "/healthz"] {
            let path = format!("{path}{query}");
            let (ours, theirs) = (serving.get(&path), get(giul.address, &path));
            assert_eq!(ours.status, theirs.status, "{path}: {} {}", ours.body, theirs.body);
            assert_eq!(ours.header("content-type"), theirs.header("content-type"));
            same_shape(&ours.json(), &theirs.json(), &path);
        }
    }
    for path in ["/", "/power/", "/%70ower", "/nowhere?gpu=1"] {
        let (ours, theirs) = (serving.get(path), get(giul.address, path));
        assert_eq!((ours.status, theirs.status), (404, 404), "{path}");
        let words = theirs.json()["error"].as_str().unwrap().to_owned();
        assert!(
            ours.json()["error"].as_str().unwrap().starts_with(&words),
            "{path}: {}",
            ours.body
        );
    }
}

const PARSED: &str = r##"
import sys, urllib.request
from prometheus_client.parser import text_string_to_metric_families as text
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics

def page(path, accept):
    request = urllib.request.Request(sys.argv[1] + path, headers={"Accept": accept})
    with urllib.request.urlopen(request) as response:
        return response.headers["Content-Type"], response.read().decode()

def samples(families):
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for f in families for s in f.samples}

kind, plain = page("/metrics", "text/plain")
assert kind.startswith("text/plain; version=0.0.4"), kind
opened = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
kind, modern = page("/metrics", opened)
assert kind.startswith("application/openmetrics-text; version=1.0.0"), kind
assert modern.endswith("# EOF\n")
first, second = samples(text(plain)), samples(openmetrics(modern))
assert first.keys() == second.keys(), first.keys() ^ second.keys()
wanted = {"node": "iris", "gpu": "0", "name": 'a "quoted" \\ name', "uuid": "GPU-1ab00000-0000-4000-8000-000000000000"}
labels = tuple(sorted(wanted.items()))
for name in ["energy_joules_total", "register_joules", "power_watts", "reader_up", "resets_total",
             "gaps_total", "read_errors_total", "reads_total", "read_seconds_total"]:
    assert ("joulebook_card_" + name, labels) in first, (name, plain)
assert first[("joulebook_card_reader_up", labels)] == 1
# The energy began with the agent, the register with the driver.
energy, register = (first[("joulebook_card_" + n, labels)] for n in ("energy_joules_total", "register_joules"))
assert 0 < energy < 5000 and register > 900000, (energy, register)
assert any(name == "process_cpu_seconds_total" for name, _ in first)
kinds = {f.name: f.type for f in openmetrics(modern)}
assert kinds["joulebook_card_energy_joules"] == "counter" and kinds["joulebook_card_power_watts"] == "gauge"
"##;

#[test]
fn the_official_parser_reads_both_forms() {
    let Some(python) = python() else { return };
    let bench = Bench::with(
        "card 0\nname a \"quoted\" \\ name\nidle 100\ncounter period_ms=20 base_mj=900000000\n",
    );
    let serving = Serving::on(&bench, &["--name", "iris"]);
    run(&python, PARSED, &[&format!("http://{}", serving.address)]);
}

/// As aiperf's DCGM collector does: `/metrics` put behind the address, HEAD to see whether anybody is
/// there, the official parser, `gpu` as an integer, its own map of fields and its scales.
const AIPERF: &str = r#"
import sys, time, urllib.request
from prometheus_client.parser import text_string_to_metric_families

FIELDS = {"DCGM_FI_DEV_POWER_USAGE": 1, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 1e-9,
          "DCGM_FI_DEV_GPU_UTIL": 1, "DCGM_FI_DEV_FB_USED": 1.048576e-3}
METADATA = ["modelName", "UUID", "pci_bus_id", "device", "Hostname"]

def collect(url):
    with urllib.request.urlopen(urllib.request.Request(url, method="HEAD")) as response:
        assert response.status == 200
    with urllib.request.urlopen(url) as response:
        assert response.headers["Content-Type"].startswith("text/plain")
        page = response.read().decode()
    data, about = {}, {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if "gpu" not in sample.labels:
                continue
            gpu = int(sample.labels["gpu"])
            # From the first line of a card, whatever it shows; all of them must be there.
            about.setdefault(gpu, [sample.labels.get(label) for label in METADATA])
            assert None not in about[gpu], sample
            name = sample.name.removesuffix("_total")
            if name in FIELDS:
                data.setdefault(gpu, {})[name] = sample.value * FIELDS[name]
    return data, about

for address in sys.argv[1:]:
    url = address.rstrip("/")
    url = url if url.endswith("/metrics") else url + "/metrics"
    before, about = collect(url)
    time.sleep(1)
    after, _ = collect(url)
    assert sorted(about) == [0, 1], about
    assert about[0] == ["NVIDIA GeForce RTX 5090", "GPU-1ab00000-0000-4000-8000-000000000000",
                        "00000000:18:00.0", "nvidia0", "iris"], about
    card = after[0]
    assert abs(card["DCGM_FI_DEV_POWER_USAGE"] - 400) < 160, card
    assert card["DCGM_FI_DEV_GPU_UTIL"] == 87 and abs(card["DCGM_FI_DEV_FB_USED"] - 12.593) < 0.01, card
    name = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
    joules = (card[name] - before[0][name]) * 1e6
    assert 200 < joules < 4000, joules
"#;

#[test]
fn what_reads_a_dcgm_exporter_reads_this_agent() {
    let Some(python) = python() else { return };
    let bench = Bench::with(BUSY);
    let serving = Serving::on(&bench, &["--name", "iris"]);
    let at = |path: &str| format!("http://{}{path}", serving.address);
    run(&python, AIPERF, &[&at("/dcgm"), &at("/dcgm/metrics")]);
    // Where a tool knows no other path.
    let alike = Serving::on(&bench, &["--name", "iris", "--dcgm"]);
    run(&python, AIPERF, &[&format!("http://{}", alike.address)]);
    assert!(alike.get("/metrics/joulebook").body.contains("joulebook_card_reader_up"));
    assert!(!alike.get("/metrics").body.contains("joulebook"));
    assert!(!serving.get("/metrics").body.contains("DCGM"));
}
