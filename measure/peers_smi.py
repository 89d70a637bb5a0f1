"""Windows through the lab's nvidia-smi, by giul and by this library, beside the truth.

See measure/peers and peers.py, whose workers, turns and truth these are. Here no worker finds the
driver library, so both read power with the program: one card's is a mean over 1 s, the other's over
100 ms, each published every 100 ms, and a call of the program costs 12 ms of CPU before it answers.
Then what it costs to hold windows open at once, and to watch for other processes beside a counter.
CPU time is that of a worker with all its threads and children, by the kernel's count.
"""

import argparse
import asyncio
import collections
import json
import os
import random
import sys
import tempfile
import threading
import time

import peers
from peers import BUSY_W, IDLE_W, Live, Worker, cpu, error, label, table

LENGTHS_S = (0.1, 0.25, 1.0, 5.0)
AVERAGES_MS = (1000, 100)
SPAWN_MS = 12
SERVING = "vllm"
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def scenario(path):
    # The second is a GA100: its plain power is no mean over a second.
    kinds = ("name NVIDIA H100 80GB HBM3\n  arch 9\n  cc 9.0", "name NVIDIA A100-SXM4-80GB\n  arch 7\n  cc 8.0")
    with open(path, "w") as file:
        print(f"smi spawn_ms={SPAWN_MS} mode=spin", file=file)
        for card, (average_ms, kind) in enumerate(zip(AVERAGES_MS, kinds)):
            print(f"card {card}\n  {kind}", file=file)
            print(f"  uuid GPU-00000000-0000-4000-8000-{card:012d}", file=file)
            print(f"  pci 0000:{card + 1:02x}:00.0", file=file)
            print(f"  idle {IDLE_W:g}\n  dynamic", file=file)
            print(f"  counter period_ms=100 jitter_ms=1\n  instant supported=0", file=file)
            print(f"  sensor window_ms={average_ms} period_ms=100", file=file)
            print(f"  proc 0 inf 4242 8000 /opt/{SERVING}/bin/python", file=file)


def giul(card, control, watched):
    """The worker of giul: windows and held windows on its input, answers in JSON on its output."""
    from giul import Meter, Node

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    live = Live(control)
    node = Node(name="lab", gpu_index=card, idle_w=IDLE_W, is_local=True,
                serving_match=SERVING if watched else None)
    wanted = "nvml_counter" if watched else "smi_sampler"
    assert Meter.for_node(node).backend_name == wanted, Meter.for_node(node).backend_name
    print(json.dumps({"ready": True}), file=answers)

    def window(seconds):
        open_ns = live.now_ns()
        with Meter.for_node(node).sync() as meter:
            live.set(card, BUSY_W)
            time.sleep(seconds)
            live.set(card, IDLE_W)
            # What giul does after that, it does after its own clock has stopped.
            close_ns = live.now_ns()
        energy = meter.result()
        joules = energy.joules if energy.method == "sampled" else None
        return {"open_ns": open_ns, "close_ns": close_ns, "answers": {"": {"joules": joules, "cpu_ns": 0}}}

    async def held(seconds):
        async with Meter.for_node(node) as meter:
            await asyncio.sleep(seconds)
        return meter.result()

    async def hold(count, seconds):
        energies = await asyncio.gather(*(held(seconds) for _ in range(count)))
        sampled = [energy for energy in energies if energy.method == "sampled"]
        return {"sampled": len(sampled), "joules": sum(energy.joules for energy in energies)}

    for line in sys.stdin:
        command, *numbers = line.split()
        if command == "window":
            answer = window(float(numbers[0]))
        else:
            answer = asyncio.run(hold(int(numbers[0]), float(numbers[1])))
        print(json.dumps(answer), file=answers)
    print(json.dumps({}), file=answers)


def tree_cpu_s(pid):
    """CPU time of a process, its children, and those of its children that it has reaped, s."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            ticks = file.read().rpartition(")")[2].split()[11:15]
        own_s = sum(map(int, ticks)) / TICKS_A_SECOND
        children = []
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                children += file.read().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return own_s + sum(map(tree_cpu_s, children))


class Bench:
    """The workers, and what it takes to start one."""

    def __init__(self, options, folder, control):
        self.options, self.folder, self.control = options, folder, control
        self.python = [sys.executable, os.path.abspath(__file__), "--control", control]

    def worker(self, name, card, watched=False):
        # No driver library for those that are to read through the program.
        tool = os.path.abspath(self.options.tool)
        driver = os.path.abspath(self.options.driver)
        os.environ["PATH"] = tool + os.pathsep + self.path
        os.environ["JOULEBOOK_NVML"] = os.path.join(driver if watched else self.folder, "libnvidia-ml.so.1")
        os.environ["LD_LIBRARY_PATH"] = driver if watched else ""
        if name == "giul":
            return Worker(name, [*self.python, "--card", str(card), *(["--watched"] if watched else [])])
        state = os.path.join(self.folder, f"state-{card}")
        return Worker(name, [self.options.ours, str(card), self.control, state,
                             *([f"serving={SERVING}"] if watched else [])])

    path = os.environ["PATH"]


def lane(card, bench, workers, found, spent, background):
    """All windows on one card, one at a time."""
    options, live, chance = bench.options, Live(bench.control), random.Random(card)
    average_ms = AVERAGES_MS[card]
    time.sleep(2.5)
    idle_began = time.monotonic(), tree_cpu_s(workers[1].process.pid)
    time.sleep(5)
    background[average_ms] = ((tree_cpu_s(workers[1].process.pid) - idle_began[1])
                              / (time.monotonic() - idle_began[0]))
    for number in range(options.windows):
        turns = [(worker, seconds) for worker in workers for seconds in LENGTHS_S
                 if seconds < 2 or number % 3 == 0]
        chance.shuffle(turns)
        for worker, seconds in turns:
            began_s = tree_cpu_s(worker.process.pid)
            window = worker.ask(f"window {seconds}")
            spent[average_ms, seconds, worker.name].append(tree_cpu_s(worker.process.pid) - began_s)
            t0, t1 = window["open_ns"], window["close_ns"]
            truth = live.joules(card, t0, t1, IDLE_W) - IDLE_W * (t1 - t0) / 1e9
            for which, answer in window["answers"].items():
                found[average_ms, seconds, worker.name, which].append((truth, answer))
            time.sleep(chance.uniform(*options.gap))
        if card == 0:
            print(f"round {number + 1} of {options.windows}", file=sys.stderr)


def accuracy(windows):
    """Σ|error|/Σtruth of the windows that were given a number, how many, and our own doubts."""
    given = [(truth, answer) for truth, answer in windows if answer["joules"] is not None]
    kept = "" if len(given) == len(windows) else f"kept {len(given)} of {len(windows)}"
    why = sorted({answer["error"] for _, answer in windows if answer.get("error")})
    if not given:
        return f"none of {len(windows)} ({', '.join(why) or 'no number'})"
    bias = 100 * sum(a["joules"] - t for t, a in given) / sum(t for t, _ in given)
    doubts = [kept] if kept else []
    if "bound" in given[0][1]:
        unresolved = sum(answer["unresolved"] for _, answer in given)
        violated = sum(abs(answer["joules"] - truth) > answer["bound"] for truth, answer in given)
        bounds = sorted(answer["bound"] for _, answer in given)
        doubts += [f"± {bounds[len(bounds) // 2]:.0f} J", f"unresolved {unresolved}", f"outside {violated}"]
    return f"{error(given)}, bias {bias:+.1f} %" + (f" ({', '.join(doubts)})" if doubts else f" (all {len(given)})")


def report(found, spent, background):
    lengths = [f"{seconds * 1000:g} ms" for seconds in LENGTHS_S]
    for average_ms in AVERAGES_MS:
        print(f"Power is a mean over {average_ms} ms, published each 100 ms\n")
        rows = [("giul", ""), ("joulebook", "now"), ("joulebook", "settle")]
        cells = {row: [found[average_ms, seconds, *row] for seconds in LENGTHS_S] for row in rows}
        numbers = [str(len(windows)) for windows in cells["giul", ""]]
        table(["tool", *(f"{length} (n = {number})" for length, number in zip(lengths, numbers))],
              [[label(*row) if row[0] == "giul" else f"joulebook, {row[1]}", *map(accuracy, cells[row])]
               for row in rows])
        mean = lambda values: f"{1e3 * sum(values) / len(values):.0f} ms"  # noqa: E731
        table(["CPU a window", *lengths],
              [[label("giul", ""), *(mean(spent[average_ms, seconds, "giul"]) for seconds in LENGTHS_S)],
               ["joulebook, the caller", *(cpu([cell]) for cell in cells["joulebook", "settle"])]])
        print(f"joulebook's recorder and its nvidia-smi together, windows or none: "
              f"{1e3 * background[average_ms]:.1f} ms of CPU a second\n")


def at_once(bench, seconds):
    """Windows open at the same time for so long, on a busy card."""
    rows = []
    Live(bench.control).set(1, BUSY_W)
    for name, counts in (("joulebook", (0, 1, 100)), ("giul", (1, 10, 100))):
        worker = bench.worker(name, 1)
        time.sleep(2)
        for count in counts:
            began, began_s = time.monotonic(), tree_cpu_s(worker.process.pid)
            answer = worker.ask(f"hold {count} {seconds}")
            wall_s, cpu_s = time.monotonic() - began, tree_cpu_s(worker.process.pid) - began_s
            each = f"{1e3 * cpu_s / count:.1f} ms" if count else "–"
            tool = label("giul", "") if name == "giul" else "joulebook"
            rows.append([tool, str(count), f"{cpu_s:.2f} s", each, f"{wall_s:.1f} s", str(answer["sampled"]), f"{round(answer['joules'])} J"])
        worker.close()
    print(f"Windows held open for {seconds} s at once, settled, on a card read through nvidia-smi\n")
    table(["tool", "windows", "CPU, children included", "CPU a window", "until all had their figure", "sampled", "together"],
          rows)


def watched(bench, count):
    """What a window costs on a counter where other processes are watched for."""
    rows = []
    for name in ("giul", "joulebook"):
        worker = bench.worker(name, 0, watched=True)
        time.sleep(2)
        began, began_s = time.monotonic(), tree_cpu_s(worker.process.pid)
        time.sleep(10)
        rest = (tree_cpu_s(worker.process.pid) - began_s) / (time.monotonic() - began)
        began, began_s, called = time.monotonic(), tree_cpu_s(worker.process.pid), 0
        for _ in range(count):
            answers = worker.ask("window 0.1")["answers"]
            called += list(answers.values())[-1]["cpu_ns"]
        wall_s, cpu_s = time.monotonic() - began, tree_cpu_s(worker.process.pid) - began_s
        tool = label("giul", "") if name == "giul" else "joulebook"
        caller = f"{called / count / 1e3:.0f} µs" if called else "–"
        rows.append([tool, f"{1e3 * max(0, cpu_s - rest * wall_s) / count:.2f} ms", caller,
                     f"{1e3 * rest:.1f} ms a second"])
        worker.close()
    print(f"Windows of 100 ms on a counter, other processes watched for ({count} each)\n")
    table(["tool", "CPU a window, children included", "of it the caller's", "with no window open"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ours", help="the example `peers` of the crate joulebook")
    parser.add_argument("--tool", help="the folder of the lab's nvidia-smi")
    parser.add_argument("--driver", help="the folder of the lab's driver library")
    parser.add_argument("--windows", type=int, default=15, help="windows a cell; a third as many of 5 s; 0: cost only")
    parser.add_argument("--gap", type=float, nargs=2, default=(1.2, 1.6), metavar=("LEAST", "MOST"),
                        help="quiet time after each window, s; longer than the sensor's mean")
    parser.add_argument("--card", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--control", help=argparse.SUPPRESS)
    parser.add_argument("--watched", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.card is not None:
        return giul(options.card, options.control, options.watched)
    if options.windows < 0:
        parser.error("--windows: at least 0")

    began, head, failures = time.monotonic(), peers.about(options), []
    found, spent, background = collections.defaultdict(list), collections.defaultdict(list), {}
    with tempfile.TemporaryDirectory() as folder:
        control = os.path.join(folder, "live")
        live = Live.create(control, cards=len(AVERAGES_MS))
        for card in range(len(AVERAGES_MS)):
            live.set(card, IDLE_W)
        os.environ["FAKEGPU_SCENARIO"] = os.path.join(folder, "cards.scenario")
        os.environ["FAKEGPU_CONTROL"] = control
        os.environ["FAKEGPU_EPOCH_NS"] = str(time.monotonic_ns())
        scenario(os.environ["FAKEGPU_SCENARIO"])
        bench = Bench(options, folder, control)
        lanes = [[bench.worker(name, card) for name in ("giul", "joulebook")] for card in range(len(AVERAGES_MS))]

        def one(card):
            try:
                lane(card, bench, lanes[card], found, spent, background)
            except Exception as failure:  # the other lane goes on
                failures.append(f"card {card}: {failure!r}")

        threads = [threading.Thread(target=one, args=(card,)) for card in range(len(AVERAGES_MS))]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        for worker in (worker for workers in lanes for worker in workers):
            worker.close()
        if failures:
            sys.exit("\n".join(failures))
        print(f"{head.replace('measure/peers', 'measure/peers smi')}, after {os.getloadavg()[1]:.1f} (of 5 min).\n")
        if options.windows:
            report(found, spent, background)
        at_once(bench, 10)
        watched(bench, 40)
    print(f"{(time.monotonic() - began) / 60:.0f} minutes")


if __name__ == "__main__":
    main()
