"""Windows on the lab's card by several tools, in turn, beside the truth. See measure/peers.

Each tool is a worker process of its own with the card open in it; it does one window at a time when
told to: open, set the card to 400 W, sleep, set it to 70 W, close. So the load of a window is the
window's own, and its energy above idle is 330 W over exactly the time that the card was set to 400
W, which the lab's control memory integrates. The tools take turns, with a quiet gap of random length
after every window, so that the card's publishes fall anywhere and the machine's noise on all alike.
One lane (thread) a card; the cards differ in how often their counters publish.
"""

import argparse
import collections
import importlib.metadata
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "crates", "joulebook-lab", "python"))
from joulebook_live import Live  # noqa: E402

IDLE_W, BUSY_W = 70.0, 400.0
LENGTHS_S = (0.02, 0.1, 0.25, 1.0)
PERIODS_MS = (100, 20)
PEERS = {"giul": "giul", "zeus": "zeus", "landauer": "landauer-gap"}


def scenario(path):
    with open(path, "w") as file:
        for card, period_ms in enumerate(PERIODS_MS):
            print(f"card {card}", file=file)
            print(f"  uuid GPU-00000000-0000-4000-8000-{card:012d}", file=file)
            print(f"  pci 0000:{card + 1:02x}:00.0", file=file)
            print(f"  idle {IDLE_W:g}", file=file)
            print("  dynamic", file=file)
            print(f"  counter period_ms={period_ms} jitter_ms=1", file=file)


# What a worker does: `begin()` opens a window of that tool, `end(token)` closes it and returns
# joules above idle, or None where the tool gives no number.


def giul_tool(card):
    from giul import Meter, Node

    node = Node(name="lab", gpu_index=card, idle_w=IDLE_W, is_local=True)

    def begin():
        meter = Meter.for_node(node).sync()
        meter.__enter__()
        return meter

    def end(meter):
        meter.__exit__(None, None, None)
        energy = meter.result()
        return energy.joules if energy.method == "sampled" else None

    return begin, end


def zeus_tool(card):
    import warnings

    from zeus.monitor import ZeusMonitor

    warnings.filterwarnings("ignore", message="The energy consumption of one or more GPUs")
    monitor = ZeusMonitor(gpu_indices=[card], cpu_indices=[])

    def begin():
        monitor.begin_window("window", sync_execution=False)
        return "window"

    def end(token):
        measured = monitor.end_window(token, sync_execution=False)
        return measured.gpu_energy[card] - IDLE_W * measured.time

    return begin, end


def landauer_tool(card):
    import joules

    session = joules.Session(gpus=[card], cpu=False)
    assert [device["method"] for device in session.devices] == ["nvml counter"], session.devices

    def begin():
        return session.begin("window")

    def end(token):
        measured = session.end(token)
        return measured["energy_j"] - IDLE_W * measured["duration_s"]

    return begin, end


TOOLS = {"giul": giul_tool, "zeus": zeus_tool, "landauer": landauer_tool}


def work(tool, card, control):
    """A worker: windows on its input, answers in JSON on its output."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a tool prints is no answer
    live = Live(control)
    begin, end = TOOLS[tool](card)

    def background_ns():
        return time.process_time_ns() - time.thread_time_ns()

    began, began_cpu_ns = time.monotonic(), background_ns()
    print(json.dumps({"ready": True}), file=answers)
    for line in sys.stdin:
        seconds = float(line.removeprefix("window "))
        open_ns = live.now_ns()
        cpu_ns = -time.thread_time_ns()
        token = begin()
        cpu_ns += time.thread_time_ns()
        live.set(card, BUSY_W)
        time.sleep(seconds)
        live.set(card, IDLE_W)
        cpu_ns -= time.thread_time_ns()
        joules = end(token)
        cpu_ns += time.thread_time_ns()
        answer = {"joules": joules, "cpu_ns": cpu_ns}
        window = {"open_ns": open_ns, "close_ns": live.now_ns(), "answers": {"": answer}}
        print(json.dumps(window), file=answers)
    background = {"background_ns": background_ns() - began_cpu_ns, "seconds": time.monotonic() - began}
    print(json.dumps(background), file=answers)


class Worker:
    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answer("begin")

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.answer(line)

    def answer(self, what):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended at: {what} (exit code {self.process.wait()})")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        background = self.answer("end")
        self.process.wait()
        return background


def lane(card, options, folder, control, found, background):
    """All windows on one card, one at a time."""
    live = Live(control)
    chance = random.Random(card)
    python = [sys.executable, os.path.abspath(__file__), "--control", control, "--card", str(card)]
    period_ms = PERIODS_MS[card]
    ours = [options.ours, str(card), control]
    workers = [Worker(name, [*python, "--worker", name]) for name in TOOLS]
    workers.append(Worker("unprobed", [*ours, os.path.join(folder, "unprobed")]))
    workers.append(Worker("probed", [*ours, os.path.join(folder, f"probed-{card}"), str(period_ms)]))
    turns = [(worker, seconds) for worker in workers for seconds in LENGTHS_S]
    time.sleep(2.5)
    for number in range(options.windows):
        chance.shuffle(turns)
        for worker, seconds in turns:
            window = worker.ask(f"window {seconds}")
            t0, t1 = window["open_ns"], window["close_ns"]
            truth = live.joules(card, t0, t1, IDLE_W) - IDLE_W * (t1 - t0) / 1e9
            for which, answer in window["answers"].items():
                found[period_ms, seconds, worker.name, which].append((truth, answer))
            time.sleep(chance.uniform(*options.gap))
        if card == 0:
            print(f"round {number + 1} of {options.windows}", file=sys.stderr)
    for worker in workers:
        background[period_ms, worker.name] = worker.close()


def label(tool, which):
    if tool in PEERS:
        package = PEERS[tool]
        return f"{package} {importlib.metadata.version(package)}"
    return f"joulebook, {tool}, {which}"


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "–"


def error(windows):
    return share(sum(abs(a["joules"] - t) for t, a in windows), sum(t for t, _ in windows))


def accuracy(windows):
    """Σ|error|/Σtruth of the windows that a number was given for, and how many were kept: were
    given one above 0. A tool that says 0 J has given a number; one that says "unknown" has not."""
    given = [(truth, answer) for truth, answer in windows if answer["joules"] is not None]
    kept = [(truth, answer) for truth, answer in given if answer["joules"] > 0]
    if len(kept) == len(windows):
        return error(given)
    beside = "" if len(kept) == len(given) else f", {error(kept)} off"
    return f"{error(given)} (kept {len(kept)} of {len(windows)}{beside})"


def evidence(windows):
    """By which rule, and whether the bound held."""
    given = [(truth, answer) for truth, answer in windows if answer["joules"] is not None]
    by_rule = collections.defaultdict(list)
    for truth, answer in given:
        by_rule[answer["rule"]].append((truth, answer))
    violated = sum(abs(answer["joules"] - truth) > answer["bound"] for truth, answer in given)
    rules = ", ".join(f"{rule} {len(some)} ({error(some)} off)" for rule, some in sorted(by_rule.items()))
    return f"{rules}; outside its bound {violated}"


def cpu(cells):
    took_ns = sorted(answer["cpu_ns"] for windows in cells for _, answer in windows)
    return f"{took_ns[len(took_ns) // 2] / 1e3:.0f} µs"


def table(heads, rows):
    print("| " + " | ".join(heads) + " |")
    print("|" + " --- |" * len(heads))
    for cells in rows:
        print("| " + " | ".join(cells) + " |")
    print()


def about(options):
    with open("/proc/cpuinfo") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    describe = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(describe, capture_output=True, text=True, cwd=HERE).stdout.strip()
    return (f"`measure/peers --windows {options.windows}` at {commit}, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} "
            f"UTC; {models[0] if models else 'unknown processor'}, {os.cpu_count()} cores; Linux {platform.release()}, "
            f"Python {platform.python_version()}; load before {os.getloadavg()[1]:.1f}")


def report(found, background):
    lengths = [f"{seconds * 1000:g} ms" for seconds in LENGTHS_S]
    rows = [*((tool, "") for tool in TOOLS), *((profile, which) for profile in ("unprobed", "probed")
                                               for which in ("now", "settle"))]
    for period_ms in PERIODS_MS:
        def cells(tool, which):
            return [found[period_ms, seconds, tool, which] for seconds in LENGTHS_S]

        print(f"Counter each {period_ms} ms, ± 1 ms: Σ∣error∣/Σtruth of joules above idle, by length of window\n")
        table(["tool", *lengths, "CPU a window"],
              [[label(*row), *map(accuracy, cells(*row)), cpu(cells(*row))] for row in rows])
        table(["rule and bound", *lengths],
              [[label(*row), *map(evidence, cells(*row))] for row in rows if row[1]])
    print("CPU time of the other threads of each tool's process\n")
    table(["tool", *(f"counter each {period_ms} ms" for period_ms in PERIODS_MS)],
          [[label(tool, "background").removesuffix(", background"),
            *(f"{max(0, took['background_ns'] / took['seconds'] / 1e3):.0f} µs a second"
              for took in (background[period_ms, tool] for period_ms in PERIODS_MS))]
           for tool in [*TOOLS, "unprobed", "probed"]])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ours", help="the example `peers` of the crate joulebook (measure/peers says it)")
    parser.add_argument("--windows", type=int, default=40, help="windows a cell")
    parser.add_argument("--gap", type=float, nargs=2, default=(0.5, 1.0), metavar=("LEAST", "MOST"),
                        help="quiet time after each window, s")
    parser.add_argument("--worker", choices=TOOLS, help=argparse.SUPPRESS)
    parser.add_argument("--card", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--control", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options.worker, options.card, options.control)
    if options.windows < 1:
        parser.error("--windows: at least 1")

    began, head = time.monotonic(), about(options)
    found, background, failures = collections.defaultdict(list), {}, []
    with tempfile.TemporaryDirectory() as folder:
        control = os.path.join(folder, "live")
        live = Live.create(control, cards=len(PERIODS_MS))
        for card in range(len(PERIODS_MS)):
            live.set(card, IDLE_W)
        os.environ["FAKEGPU_SCENARIO"] = os.path.join(folder, "cards.scenario")
        os.environ["FAKEGPU_CONTROL"] = control
        os.environ["FAKEGPU_EPOCH_NS"] = str(time.monotonic_ns())
        scenario(os.environ["FAKEGPU_SCENARIO"])

        def one(card):
            try:
                lane(card, options, folder, control, found, background)
            except Exception as failure:  # the other lane goes on
                failures.append(f"card {card}: {failure!r}")

        lanes = [threading.Thread(target=one, args=(card,)) for card in range(len(PERIODS_MS))]
        for each in lanes:
            each.start()
        for each in lanes:
            each.join()
    if failures:
        sys.exit("\n".join(failures))
    print(f"{head}, after {os.getloadavg()[1]:.1f} (of 5 min); {(time.monotonic() - began) / 60:.0f} minutes; "
          f"{options.windows} windows a cell.\n")
    report(found, background)


if __name__ == "__main__":
    main()
