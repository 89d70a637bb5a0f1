"""The child of `lab.Machine`: plays scenes that it is told on its input, answers on its output."""

import asyncio
import importlib
import inspect
import json
import os
import sys
import time
import traceback
from types import SimpleNamespace

from .implementation import Implementation
from .lab import Live, Seen


# In the scenario: by then it is known that a card does not list its processes.
LATEST_S = 0.7


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a package prints is no answer
    implementation = Implementation(sys.argv[1])
    at = SimpleNamespace(
        implementation=implementation,
        live=Live(os.environ["FAKEGPU_CONTROL"]),
        folder=os.environ["LAB_FOLDER"],
        seen=Seen.of,
        until=until,
        at=at_second,
        second=second,
        ready=lambda *nodes: ready(implementation, nodes),
        truth=lambda card, window_ns, idle_w=0.0: truth(at.live, card, window_ns, idle_w),
    )
    begun = False
    for line in sys.stdin:
        ask = json.loads(line)
        try:
            scene = getattr(importlib.import_module(ask["module"]), ask["scene"])
            if not begun:
                # Before anything has looked at the card, and after all that takes its time.
                os.environ["FAKEGPU_EPOCH_NS"] = str(time.monotonic_ns())
                begun = True
            returned = scene(at, **ask["arguments"])
            if inspect.isawaitable(returned):
                returned = asyncio.run(returned)
            answer = {"returned": returned}
        except BaseException:
            answer = {"raised": traceback.format_exc()}
        print(json.dumps(answer), file=answers)


def truth(live, card, window_ns, idle_w):
    """What a card drew above idle in a window, J."""
    t0, t1 = window_ns
    return live.joules(card, t0, t1) - idle_w * (t1 - t0) / 1e9


def ready(implementation, nodes):
    """Waits until a window on each node sees its card, and who is on it: a recorder may need a moment for its first
    reading, and a busy host gives it late."""
    def sees(node):
        with implementation.Meter.for_node(node, interval_s=0.05).sync() as meter:
            time.sleep(0.05)
        energy = meter.result()
        watched = not implementation.is_ours or not meter.watches_contention
        return energy.mean_watts > 0 and (watched or energy.tenancy != "unknown" or second() > LATEST_S)

    for node in nodes:
        until(lambda: sees(node))


def second():
    """The time of the scenario."""
    return (time.monotonic_ns() - int(os.environ["FAKEGPU_EPOCH_NS"])) / 1e9


def at_second(wanted):
    """Waits for a time of the scenario, which must not be over."""
    left = wanted - second()
    if left < 0:
        raise RuntimeError(f"the scenario is {-left:.3f} s past its second {wanted}")
    time.sleep(left)


def until(ask, seconds=20.0, every=0.02):
    """Asks until the answer is true, for a good while; the last answer."""
    end = time.monotonic() + seconds
    while not (answer := ask()) and time.monotonic() < end:
        time.sleep(every)
    return answer


if __name__ == "__main__":
    main()
