"""A process of one of the two packages on the lab's machine. See measure/python and python.py.

It is told one thing a line on its input, and answers in JSON on its output. CPU time is that of the
whole process and of the children that it has reaped; the caller's is that of the thread which opens
and closes the windows.
"""

import asyncio
import importlib
import json
import os
import resource
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "crates", "joulebook-lab", "python"))
from joulebook_live import Live  # noqa: E402

IDLE_W, BUSY_W = 70.0, 400.0
SERVING = "vllm"


def spent_s():
    """CPU time of all threads, and of the children that are over."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + used.ru_utime + used.ru_stime


class Worker:
    def __init__(self, name, card, control):
        package = importlib.import_module(name)
        self.Meter, self.Node = package.Meter, package.Node
        self.ours = name == "joulebook"
        self.card, self.live = card, Live(control)

    def node(self, path, watched, endpoint=None):
        return self.Node(name="lab", gpu_index=self.card, idle_w=IDLE_W, is_local=path not in ("remote", "none"),
                         power_endpoint=endpoint if path == "remote" else None,
                         serving_match=SERVING if watched else None)

    def backend(self, path, watched, endpoint=None):
        """What reads the card, once whatever needs to has been found."""
        node = self.node(path, watched, endpoint)
        with self.Meter.for_node(node).sync() as meter:
            time.sleep(0.3)
        return meter.backend_name

    def cost(self, path, watched, endpoint, count, way):
        """What so many windows cost that do nothing: each made for its node, opened, closed, asked."""
        node = self.node(path, watched, endpoint)
        for_node = self.Meter.for_node

        def windows(count):
            for _ in range(count):
                with for_node(node).sync() as meter:
                    pass
                meter.result(100)

        async def awaited(count):
            for _ in range(count):
                async with for_node(node) as meter:
                    pass
                meter.result(100)

        def run(count):
            asyncio.run(awaited(count)) if way == "async" else windows(count)

        run(3)
        began_s, cpu_s = time.monotonic(), spent_s()
        time.sleep(2)
        rest = (spent_s() - cpu_s) / (time.monotonic() - began_s)
        began_s, cpu_s, caller_s = time.monotonic(), spent_s(), time.thread_time()
        run(count)
        caller_s, cpu_s, wall_s = time.thread_time() - caller_s, spent_s() - cpu_s, time.monotonic() - began_s
        return {"backend": self.backend(path, watched, endpoint), "rest": rest, "caller_s": caller_s / count,
                "cpu_s": max(0.0, cpu_s - rest * wall_s) / count, "wall_s": wall_s / count}

    def held(self, path, watched, count, seconds):
        """So many windows open at once; the caller's own account goes on in the parent."""
        node = self.node(path, watched)

        async def window():
            async with self.Meter.for_node(node) as meter:
                await asyncio.sleep(seconds)
            return await meter.asettle(5) if self.ours else meter.result()

        async def hold():
            return await asyncio.gather(*(window() for _ in range(count)))

        energies = asyncio.run(hold())
        return {"sampled": sum(energy.method == "sampled" for energy in energies),
                "joules": sum(energy.joules for energy in energies)}

    def loop(self, path, watched, endpoint, seconds):
        """How long a ticker of 1 ms had to wait beyond it while windows came and went."""
        node = self.node(path, watched, endpoint)

        async def run():
            waits, over, windows = [], False, 0

            async def tick():
                while not over:
                    began = time.perf_counter()
                    await asyncio.sleep(0.001)
                    waits.append(time.perf_counter() - began - 0.001)

            ticking = asyncio.create_task(tick())
            end = time.monotonic() + seconds
            while path is not None and time.monotonic() < end:
                async with self.Meter.for_node(node) as meter:
                    await asyncio.sleep(0.5)
                    meter.mark("a")
                meter.result(100)
                windows += 1
            await asyncio.sleep(max(0.0, end - time.monotonic()))
            over = True
            await ticking
            waits.sort()
            return {"worst_s": waits[-1], "mostly_s": waits[len(waits) * 999 // 1000], "windows": windows}

        return asyncio.run(run())

    def window(self, seconds):
        """A window whose load is its own; in ours the answer at once and the settled one."""
        open_ns = self.live.now_ns()
        cpu_ns = -time.thread_time_ns()
        meter = self.Meter.for_node(self.node("counter", False)).sync()
        meter.__enter__()
        cpu_ns += time.thread_time_ns()
        self.live.set(self.card, BUSY_W)
        time.sleep(seconds)
        self.live.set(self.card, IDLE_W)
        cpu_ns -= time.thread_time_ns()
        meter.__exit__(None, None, None)
        answers = {"now": meter.result()} if self.ours else {"": meter.result()}
        cpu_ns += time.thread_time_ns()
        close_ns = self.live.now_ns()
        if self.ours:
            answers["settle"] = meter.settle(5)
        return {"open_ns": open_ns, "close_ns": close_ns,
                "answers": {which: self.answer(energy, cpu_ns) for which, energy in answers.items()}}

    def answer(self, energy, cpu_ns):
        answer = {"joules": energy.joules if energy.method == "sampled" else None, "cpu_ns": cpu_ns}
        if self.ours:
            answer |= {"bound": energy.bound_joules, "rule": energy.rule}
        return answer


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a package prints is no answer
    worker = Worker(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    print(json.dumps({"ready": True}), file=answers)
    for line in sys.stdin:
        if line.startswith("window "):
            answer = worker.window(float(line.split()[1]))
        else:
            ask = json.loads(line)
            answer = getattr(worker, ask.pop("do"))(**ask)
        print(json.dumps(answer), file=answers)
    print(json.dumps({}), file=answers)


if __name__ == "__main__":
    main()
