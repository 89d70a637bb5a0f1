"""The Python package beside giul on the lab's cards. See measure/python, and python_worker.py.

Each package is a process of its own; both read the same cards. A machine without the driver library
reads through the lab's nvidia-smi, which costs 12 ms of CPU before it answers; a remote card is read
from an agent in giul's shape in this process, whose CPU time is in nobody's account.
"""

import argparse
import collections
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import peers
from peers import IDLE_W, Live, Worker, accuracy, cpu, evidence, table
from peers_smi import tree_cpu_s

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "crates", "joulebook-py", "tests"))

PACKAGES = ("giul", "joulebook")
PARTS = ("import", "cost", "held", "loop", "accuracy")
LENGTHS_S = (0.02, 0.1, 1.0)
SERVING = "vllm"
# What measures windows beside the truth: a package, and the folder of what is known of the cards.
MEASURERS = {"giul": ("giul", "unprobed"), "joulebook, unprobed": ("joulebook", "unprobed"),
             "joulebook, probed": ("joulebook", "probed")}


def scenario(path, spawn_ms=12, how="spin", tenants=True):
    with open(path, "w") as file:
        print(f"smi spawn_ms={spawn_ms} mode={how}", file=file)
        for card, period_ms in enumerate(peers.PERIODS_MS):
            print(f"card {card}\n  uuid GPU-00000000-0000-4000-8000-{card:012d}\n  pci 0000:{card + 1:02x}:00.0\n"
                  f"  idle {IDLE_W:g}\n  dynamic\n  counter period_ms={period_ms} jitter_ms=1", file=file)
            if tenants:
                print(f"  proc 0 inf 4242 8000 /opt/{SERVING}/bin/python", file=file)


class Bench:
    """A machine, and workers on it."""

    def __init__(self, options, **machine):
        self.options = options
        self._folder = tempfile.TemporaryDirectory()
        folder = self.folder = self._folder.name
        self.control = os.path.join(folder, "live")
        live = Live.create(self.control, cards=len(peers.PERIODS_MS))
        for card in range(len(peers.PERIODS_MS)):
            live.set(card, IDLE_W)
        self.live = live
        self.scenario = os.path.join(folder, "cards.scenario")
        scenario(self.scenario, **machine)
        lab = os.path.abspath(options.lab)
        command = [os.path.join(lab, "joulebook-lab"), "driver", "--dir", os.path.join(folder, "driver")]
        self.driver = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        os.mkdir(os.path.join(folder, "none"))
        with open(os.path.join(folder, "none", "libnvidia-ml.so.1"), "wb"):
            pass  # in the way of a real card's library
        self.tools = os.path.join(folder, "bin")
        os.mkdir(self.tools)
        os.symlink(os.path.join(lab, "nvidia-smi"), os.path.join(self.tools, "nvidia-smi"))
        self.epoch_ns = time.monotonic_ns()

    def environment(self, nvml=True, smi=True, state="unprobed"):
        path = os.environ["PATH"]
        return {**os.environ, "FAKEGPU_SCENARIO": self.scenario, "FAKEGPU_CONTROL": self.control,
                "FAKEGPU_EPOCH_NS": str(self.epoch_ns), "XDG_STATE_HOME": os.path.join(self.folder, state),
                "LD_LIBRARY_PATH": self.driver if nvml else os.path.join(self.folder, "none"),
                "PATH": f"{self.tools}{os.pathsep}{path}" if smi else path}

    def probe(self, state):
        """Has the program find out, and keep there, how the cards publish."""
        program = os.path.join(os.path.dirname(sys.executable), "joulebook")
        subprocess.run([program, "probe"], check=True, env=self.environment(state=state), stdout=subprocess.DEVNULL)

    @contextlib.contextmanager
    def worker(self, package, card=1, name=None, **tools):
        environment, kept = self.environment(**tools), dict(os.environ)
        command = [sys.executable, os.path.join(HERE, "python_worker.py"), package, str(card), self.control]
        os.environ.update(environment)  # what Worker starts inherits it
        try:
            worker = Worker(name or package, command)
        finally:
            os.environ.clear()
            os.environ.update(kept)
        yield worker
        worker.close()

    def close(self):
        self._folder.cleanup()


def ask(worker, **what):
    return worker.ask(json.dumps(what))


def micro(seconds):
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


def importing(options):
    """Importing each package in a fresh interpreter, less an interpreter that imports nothing."""
    bench = Bench(options)
    spent = collections.defaultdict(list)
    statements = {"nothing": "pass", **{package: f"import {package}" for package in PACKAGES}}
    programs = list(statements.items())
    for _ in range(options.imports):
        random.shuffle(programs)
        for name, statement in programs:
            began, used = time.perf_counter(), os.times()
            subprocess.run([sys.executable, "-c", statement], check=True, env=bench.environment())
            after = os.times()
            cpu_s = after.children_user + after.children_system - used.children_user - used.children_system
            spent[name].append((time.perf_counter() - began, cpu_s))
    bench.close()
    wall = {name: statistics.median(wall for wall, _ in times) for name, times in spent.items()}
    cpu = {name: statistics.mean(cpu for _, cpu in times) for name, times in spent.items()}
    print(f"Importing it, median of {options.imports} interpreters, less one that imports nothing "
          f"({wall['nothing'] * 1e3:.0f} ms)\n")
    table(["package", "time", "CPU"],
          [[peers_label(name), f"{(wall[name] - wall['nothing']) * 1e3:.0f} ms",
            f"{(cpu[name] - cpu['nothing']) * 1e3:.0f} ms"] for name in PACKAGES])


PATHS = {"counter": {}, "nvidia-smi": {"nvml": False}, "remote": {"nvml": False, "smi": False},
         "none": {"nvml": False, "smi": False}}


def cost(options):
    """What a window costs by each way of reading a card."""
    from table.agent import Agent  # noqa: PLC0415 (beside the tests)

    agent = Agent()
    agent.state["compute_apps"] = [{"pid": 4242, "used_mib": 8000, "name": f"/opt/{SERVING}/bin/python"}]
    bench, rows = Bench(options), []
    for path, tools in PATHS.items():
        for watched in (False, True):
            for way in ("sync", "async"):
                row = []
                for package in PACKAGES:
                    quick = package == "joulebook" or path == "none" or (path == "counter" and not watched)
                    count = options.cheap if quick else options.dear
                    with bench.worker(package, **tools) as worker:
                        took = ask(worker, do="cost", path=path, watched=watched, endpoint=agent.url, count=count,
                                   way=way)
                    expected = {"counter": "nvml_counter", "nvidia-smi": "smi_sampler", "remote": "remote_agent",
                                "none": "none"}[path]
                    assert took["backend"] == expected, (package, path, took["backend"])
                    row.append(took)
                giul, ours = row
                rows.append([f"{path}{', contention watched' if watched else ''}", way, micro(giul["cpu_s"]),
                             micro(ours["cpu_s"]), micro(ours["caller_s"]), micro(giul["wall_s"]),
                             micro(ours["wall_s"]), f"{ours['rest'] * 1e3:.1f} ms a second"])
                print(f"{path} {watched} {way}", file=sys.stderr)
    bench.close()
    agent.close()
    print("CPU of a window (made for its node, opened, closed, asked), children included, less what the process "
          "spends without one\n")
    table(["path", "way", "giul", "joulebook", "of it the caller's", "giul, elapsed", "joulebook, elapsed",
           "joulebook without a window"], rows)


def held(options):
    """Windows open at once, through nvidia-smi and on a counter."""
    rows = []
    for path, tools in (("nvidia-smi", {"nvml": False}), ("counter", {})):
        for watched in (False, True):
            bench = Bench(options)
            bench.live.set(1, peers.BUSY_W)
            for package in PACKAGES:
                with bench.worker(package, **tools) as worker:
                    ask(worker, do="backend", path=path, watched=watched)
                    time.sleep(1)
                    pid = worker.process.pid
                    began, began_s = time.monotonic(), tree_cpu_s(pid)
                    said = ask(worker, do="held", path=path, watched=watched, count=100, seconds=options.hold)
                    cpu_s, wall_s = tree_cpu_s(pid) - began_s, time.monotonic() - began
                rows.append([f"{path}{', contention watched' if watched else ''}", peers_label(package),
                             f"{cpu_s:.2f} s", f"{wall_s:.1f} s", f"{said['sampled']}", f"{said['joules']:.0f} J"])
            bench.close()
    print(f"100 async windows open for {options.hold:g} s at once\n")
    table(["path", "package", "CPU, children included", "until all had their figure", "sampled", "together"], rows)


def loop(options):
    """The longest wait of a 1 ms ticker, while nvidia-smi, or the agent, takes 2 s to answer."""
    from table.agent import Agent  # noqa: PLC0415 (beside the tests)

    slow = Agent()
    slow.delay_s = 2.0
    rows = []
    for path, tools in (("nvidia-smi", {"nvml": False}), ("remote", {"nvml": False, "smi": False})):
        for watched in (False, True):
            row = [f"{path}{', contention watched' if watched else ''}"]
            bench = Bench(options, spawn_ms=2000, how="sleep")
            for package in PACKAGES:
                with bench.worker(package, **tools) as worker:
                    said = ask(worker, do="loop", path=path, watched=watched, endpoint=slow.url, seconds=options.loop)
                row += [waited(said), str(said["windows"])]
            rows.append(row)
            bench.close()
    bench = Bench(options)
    with bench.worker("joulebook") as worker:
        alone = ask(worker, do="loop", path=None, watched=False, endpoint=None, seconds=options.loop)
    bench.close()
    slow.close()
    print(f"How long a ticker of 1 ms waited beyond it in {options.loop:g} s of async windows of 0.5 s, one after the "
          f"other, while a call takes 2 s: the worst (999 of 1000; without any windows {waited(alone)})\n")
    table(["path", "giul", "windows", "joulebook", "windows"], rows)


def waited(said):
    return f"{said['worst_s'] * 1e3:.1f} ms ({said['mostly_s'] * 1e3:.1f})"


def accurate(options):
    """Windows through the Python API beside the truth: the cells of measure/peers, reduced."""
    bench, found = Bench(options, tenants=False), collections.defaultdict(list)
    bench.probe("probed")
    for card, period_ms in enumerate(peers.PERIODS_MS):
        with contextlib.ExitStack() as stack:
            workers = [stack.enter_context(bench.worker(package, card, name, state=state))
                       for name, (package, state) in MEASURERS.items()]
            for worker in workers:
                ask(worker, do="backend", path="counter", watched=False)
            chance = random.Random(card)
            turns = [(worker, seconds) for worker in workers for seconds in LENGTHS_S]
            time.sleep(2.5)
            for _ in range(options.windows):
                chance.shuffle(turns)
                for worker, seconds in turns:
                    window = worker.ask(f"window {seconds}")
                    t0, t1 = window["open_ns"], window["close_ns"]
                    truth = bench.live.joules(card, t0, t1, IDLE_W) - IDLE_W * (t1 - t0) / 1e9
                    for which, answer in window["answers"].items():
                        found[period_ms, seconds, worker.name, which].append((truth, answer))
                    time.sleep(chance.uniform(0.5, 0.8))
    bench.close()
    heads = [f"{seconds * 1000:g} ms" for seconds in LENGTHS_S]
    for period_ms in peers.PERIODS_MS:
        print(f"Counter each {period_ms} ms, ± 1 ms: Σ∣error∣/Σtruth of joules above idle, {options.windows} windows "
              "a cell\n")
        rows = [("giul", ""), *((name, which) for name in list(MEASURERS)[1:] for which in ("now", "settle"))]
        cells = {row: [found[period_ms, seconds, *row] for seconds in LENGTHS_S] for row in rows}
        table(["package", *heads, "CPU of the caller a window"],
              [[peers_label(name) + (f", {which}" if which else ""), *map(accuracy, cells[name, which]),
                cpu(cells[name, which])] for name, which in rows])
        table(["rule and bound", *heads],
              [[f"{name}, {which}", *map(evidence, cells[name, which])] for name, which in rows[1:]])


def peers_label(name):
    return f"giul {peers.importlib.metadata.version('giul')}" if name == "giul" else name


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"of: {' '.join(PARTS)} (default: all)")
    parser.add_argument("--lab", required=True, help="the folder of joulebook-lab and its nvidia-smi")
    parser.add_argument("--windows", type=int, default=20, help="windows a cell of accuracy")
    parser.add_argument("--imports", type=int, default=21, help="interpreters for each import")
    parser.add_argument("--cheap", type=int, default=20_000, help="windows of a path that costs little")
    parser.add_argument("--dear", type=int, default=20, help="windows of a path that starts programs")
    parser.add_argument("--hold", type=float, default=10.0, help="how long windows are held open at once, s")
    parser.add_argument("--loop", type=float, default=8.0, help="how long a ticker is watched, s")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; parts are {', '.join(PARTS)}")
    began = time.monotonic()
    head = peers.about(options).replace("measure/peers", "measure/python")
    runs = {"import": importing, "cost": cost, "held": held, "loop": loop, "accuracy": accurate}
    for part in options.parts or PARTS:
        runs[part](options)
    print(f"{head}, after {os.getloadavg()[1]:.1f} (of 5 min); {(time.monotonic() - began) / 60:.0f} minutes.")


if __name__ == "__main__":
    main()
