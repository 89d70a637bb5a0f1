"""The bench against the lab's server: tables in Markdown. See measure/bench."""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

# The lab's engine, as its own settings have it.
IDLE_W, FIXED_S, EACH_S, FIXED_W, RISE_W, RISE_B = 70.0, 6.4e-3, 0.08e-3, 385.0, 235.0, 60.0
PREFILL_J = 32e-6 * 620.0


def decode_token(sequences):
    """True joules above idle of a decode token among so many sequences."""
    seconds = FIXED_S + EACH_S * sequences
    return seconds * (FIXED_W + RISE_W * (1 - math.exp(-sequences / RISE_B))) / sequences


def line(points):
    """c and d of c + d/B by least squares of relative errors."""
    rows = [(1 / b, y, 1 / (y * y)) for b, y in points]
    n, x, y = (sum(w * f(a, b) for a, b, w in rows) for f in (lambda a, b: 1, lambda a, b: a, lambda a, b: b))
    xx, xy = (sum(w * f(a, b) for a, b, w in rows) for f in (lambda a, b: a * a, lambda a, b: a * b))
    d = (n * xy - x * y) / (n * xx - x * x)
    return (y - d * x) / n, d


class Lab:
    """The lab's server, and the environment in which its card is seen."""

    def __init__(self, target, folder):
        self.program = target / "release" / "joulebook"
        self.folder = folder
        command = [str(target / "release" / "joulebook-lab"), "serve", "--listen", "127.0.0.1:0"]
        command += ["--home", str(folder / "machine")]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = self.server.stdout.readline().split()[-1]
        exports = self.server.stdout.readline().split()[1:]
        self.environment = dict(os.environ, JOULEBOOK_STATE_DIR=str(folder / "state"))
        for name, value in (export.split("=", 1) for export in exports):
            if name in ("FAKEGPU_SCENARIO", "JOULEBOOK_NVML"):
                self.environment[name] = value
        # As a user would: once for a card.
        subprocess.run([str(self.program), "probe"], env=self.environment, check=True, stdout=sys.stderr)

    def close(self):
        self.server.kill()
        self.server.wait()

    def bench(self, name, *options):
        folder = self.folder / name
        command = [str(self.program), "bench", "--url", self.url, "-o", str(folder), *options]
        subprocess.run(command, env=self.environment, check=True, stdout=sys.stderr)
        record = json.loads((folder / "record.json").read_text())
        requests = [json.loads(text) for text in (folder / "requests.jsonl").read_text().splitlines()]
        return record, requests

    def truth(self, query=""):
        with urllib.request.urlopen(f"{self.url}/truth{query}") as answer:
            return json.load(answer)

    def drawn(self, record, repeat):
        """What the card truly drew above idle in a window, J."""
        ahead_ns = time.time_ns() - time.monotonic_ns()
        opened = round(record["started_unix_s"] * 1e9) - ahead_ns + repeat["opened_ns"]
        closed = opened + repeat["window_ns"]
        return self.truth(f"?from_ns={opened}&to_ns={closed}")["card"]["joules_above_idle"]


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("| " + " | ".join("---" for _ in head) + " |")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def law(lab, seconds):
    """J/token = c + d/B, found again."""
    levels = [1, 2, 4, 8, 16, 32, 64]
    prompt, answer = 128, 256
    record, _ = lab.bench(
        "law", "--concurrency", ",".join(map(str, levels)), "--prompt-tokens", str(prompt),
        "--answer-tokens", str(answer), "--duration", f"{seconds}s", "--repeats", "2", "--warm-up", "3s",
    )
    rows, measured, true = [], [], []
    for level, rung in zip(levels, record["rungs"]):
        tokens = record[f"c{level}_output_tokens"]
        drawn = sum(lab.drawn(record, repeat) for repeat in rung["repeats"])
        counter = record[f"c{level}_gpu_counter_energy_above_idle_j"]
        gauge = record[f"c{level}_gpu_rail_energy_above_idle_j"]
        formula = (prompt * PREFILL_J + (answer - 1) * decode_token(level)) / answer
        measured.append((level, counter / tokens))
        true.append((level, drawn / tokens))
        off = lambda joules: f"{(joules / drawn - 1) * 100:+.2f} %"
        rows.append([str(level), f"{tokens}", f"{drawn / tokens:.4f}", f"{counter / tokens:.4f} ({off(counter)})",
                     f"{gauge / tokens:.4f} ({off(gauge)})", f"{formula:.4f}"])
    table(["B", "tokens", "truth, J/token above idle", "by the counter", "by the gauge", "the engine's formulas"], rows)
    (c, d), (true_c, true_d) = line(measured), line(true)
    print(f"c + d/B by the counter: {c:.4f} + {d:.4f}/B; of the truth: {true_c:.4f} + {true_d:.4f}/B "
          f"(c {(c / true_c - 1) * 100:+.2f} %, d {(d / true_d - 1) * 100:+.2f} %).\n")


def mixed(path, count, seed):
    """Lengths of the mixed load: 70 % chat, 30 % long prompts with short answers."""
    draw = random.Random(seed)
    normal = lambda median, sigma: median * math.exp(sigma * draw.gauss(0, 1))
    pairs = []
    for _ in range(count):
        if draw.random() < 0.3:
            pairs.append((min(max(normal(4000, 0.6), 500), 16000), max(normal(60, 0.6), 4)))
        else:
            pairs.append((max(normal(200, 0.9), 12), min(max(normal(300, 0.8), 4), 2000)))
    path.write_text("".join(f"{int(prompt)} {int(answer)}\n" for prompt, answer in pairs))


def errors(lab, requests):
    """Receipts against the truth of each request, %, and how many truths lie in the model's range."""
    truths = {truth["name"]: truth["prefill_joules"] + truth["decode_joules"] for truth in lab.truth()["requests"] if truth["name"]}
    off, within = [], 0
    for request in requests:
        receipt = request.get("receipt") or {}
        if request["phase"] != "measured" or receipt.get("joules") is None:
            continue
        true = truths[f"{request['rung']}-{request['repeat']}-{request['number']}"]
        off.append(abs(receipt["joules"] / true - 1) * 100)
        within += receipt["model_low"] <= true <= receipt["model_high"]
    return sorted(off), within


def points(lab, seconds):
    """Isolated points, the fit, and the ledger with it."""
    record, _ = lab.bench("points", "--isolated", "--duration", f"{seconds}s", "--warm-up", "3s")
    del record
    rho = lab.folder / "rho.toml"
    said = subprocess.run([str(lab.program), "bench", "fit", str(lab.folder / "points"), "-o", str(rho)],
                          check=True, capture_output=True, text=True).stdout
    print("```text\n" + said.strip() + "\n```\n")
    true = line([(b, decode_token(b) / PREFILL_J) for b in (1, 8, 32, 128)])
    print(f"The engine's own at those points: {true[0]:.3f} + {true[1]:.2f}/B.\n")
    print("The ledger in simulated time (`joulebook-lab score --load mixed`, 3 seeds), median and p95 of the errors of\n"
          "requests, with ρ = 8, with the engine's own ρ, and with the one stored here (`--rho FILE`):\n")
    score = [str(lab.program.parent / "joulebook-lab"), "score", "--load", "mixed", "--rule", "rho8",
             "--rule", "calibrated", "--json"]
    found = {}
    for name, more in (("own", []), ("stored", ["--rho", str(rho)])):
        out = subprocess.run(score + more, check=True, capture_output=True, text=True).stdout
        for text in out.splitlines():
            judged = json.loads(text)
            if not judged["overload"]:
                row = judged["rate_per_second"], judged["mean_in_flight"], judged["knowledge"]
                rule = "8" if judged["rule"] == "rho8" else name
                errors_of = judged["all_seeds"]
                found.setdefault(row, {})[rule] = (
                    f"{errors_of['median_error_share'] * 100:.2f} %, {errors_of['p95_error_share'] * 100:.1f} %")
    table(["rate", "in flight", "known", "ρ = 8", "the engine's own ρ", "the stored ρ"],
          [[f"{rate:g}/s", f"{flight:.0f}", known, of["8"], of["own"], of["stored"]] for (rate, flight, known), of in sorted(found.items())])
    lengths = lab.folder / "mixed.txt"
    mixed(lengths, 2000, 1)
    rows = []
    for rate in (1, 4):
        for name, more in (("ρ = 8", []), ("stored ρ", ["--rho", str(rho)])):
            folder = f"mixed-{rate}-{len(rows)}"
            _, requests = lab.bench(folder, "--rate", str(rate), "--lengths", str(lengths), "--duration",
                                    f"{max(60, 6 * seconds)}s", "--warm-up", "5s", "--cool-down", "2s", *more)
            off, within = errors(lab, requests)
            rows.append([f"{rate}/s", name, str(len(off)), f"{statistics.median(off):.1f} %",
                         f"{off[int(len(off) * 0.95)]:.1f} %", f"{within / len(off) * 100:.0f} %"])
    print("The receipts of mixed load in real time (seen from the client: arrival only):\n")
    table(["rate", "rule", "requests", "median", "p95", "truth in the model's range"], rows)


def constant(lab, seconds):
    """A card that draws 300 W all the time."""
    del seconds
    scenario = lab.folder / "constant.scenario"
    scenario.write_text("card 0\nidle 300\n")
    rows = []
    tool = lab.program.parent / "nvidia-smi"
    for reader in ("nvml", "nvidia-smi"):
        environment = dict(lab.environment, FAKEGPU_SCENARIO=str(scenario))
        if reader == "nvidia-smi":
            environment.update(JOULEBOOK_NVML="/nonexistent", JOULEBOOK_SMI=str(tool))
        for span in (2, 3, 5, 10, 20, 30, 60):
            folder = lab.folder / f"constant-{reader}-{span}"
            command = [str(lab.program), "bench", "--baseline", "1s", "-o", str(folder), "--", "sleep", str(span)]
            subprocess.run(command, env=environment, check=True, stdout=sys.stderr)
            record = json.loads((folder / "record.json").read_text())
            figure = lambda key: f"{record[key]:.2f} W ({(record[key] / 300 - 1) * 100:+.2f} %)" if key in record else "–"
            cost = record["gpu_rail_sampler_cpu_s"] / record["gpu_rail_sampler_wall_s"] * 100
            rows.append([reader, f"{span} s", figure("command_gpu_rail_mean_power_w"), str(record["command_gpu_rail_power_samples"]),
                         figure("command_gpu_counter_mean_power_w"), f"{cost:.2f} %"])
    table(["read through", "window", "gauge", "readings", "counter", "reader's CPU"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", help="law, points, constant")
    parser.add_argument("--target", type=Path, default=Path("target"))
    parser.add_argument("--seconds", type=int, default=15, help="of a window")
    arguments = parser.parse_args()
    all_parts = {"law": law, "points": points, "constant": constant}
    cores = os.cpu_count()
    model = next((text.split(":", 1)[1].strip() for text in open("/proc/cpuinfo") if text.startswith("model name")), "unknown")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    print(f"Commit {commit}; {model}, {cores} cores; load before {os.getloadavg()[0]:.1f}; windows of {arguments.seconds} s.\n")
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(arguments.target.resolve(), Path(folder))
        try:
            for name in arguments.what or all_parts:
                print(f"## {name}\n", flush=True)
                all_parts[name](lab, arguments.seconds)
        finally:
            lab.close()
    print(f"Load after: {os.getloadavg()[0]:.1f}.")


main()
