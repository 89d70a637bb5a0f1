"""What waits holds neither an event loop nor the interpreter."""

import asyncio
import json
import subprocess
import sys
import threading
import time

import pytest

from joulebook import Meter, Node, fits, probe_node
from table.lab import Machine

from .conftest import IDLE_W, near


async def measured(node, draw):
    async with Meter.for_node(node) as meter:
        draw(350.0)
        await asyncio.sleep(0.3)
    draw(IDLE_W)
    return meter, await meter.asettle()


def test_under_asyncio(node, draw):
    meter, energy = asyncio.run(measured(node, draw))
    assert energy.settled and near(energy, 300) and meter.result().rule == "raw"


def test_under_uvloop(node, draw):
    uvloop = pytest.importorskip("uvloop")
    _, energy = uvloop.run(measured(node, draw))
    assert energy.settled and near(energy, 300)


def test_under_trio(node, draw):
    trio = pytest.importorskip("trio")

    async def work():
        async with Meter.for_node(node) as meter:
            draw(350.0)
            await trio.sleep(0.3)
        draw(IDLE_W)
        return await meter.asettle(), await probe_node(node), await fits(node, 1)

    energy, state, fit = trio.run(work)
    assert energy.settled and near(energy, 300)
    assert state["gpu"] == 0 and fit


def test_entering_and_leaving_give_the_loop_no_turn(node):
    async def turns():
        taken = 0

        async def count():
            nonlocal taken
            while True:
                taken += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(count())
        await asyncio.sleep(0)
        before = taken
        for _ in range(100):
            async with Meter.for_node(node):
                pass
        task.cancel()
        return taken - before

    assert asyncio.run(turns()) == 0


def test_a_hundred_settle_on_one_thread(node):
    async def one():
        async with Meter.for_node(node) as meter:
            await asyncio.sleep(0.05)
        return await meter.asettle()

    async def hundred():
        energies = await asyncio.gather(*(one() for _ in range(100)))
        return energies, threading.active_count()

    before = threading.active_count()
    energies, threads = asyncio.run(hundred())
    assert all(energy.settled for energy in energies) and threads <= before


def test_other_threads_run_while_one_settles(node):
    counted = []

    def settle():
        for _ in range(5):
            with Meter.for_node(node) as meter:
                pass
            meter.settle()
        counted.append(turns)

    turns = 0
    thread = threading.Thread(target=settle)
    thread.start()
    while thread.is_alive():
        turns += 1
        time.sleep(0.001)
    # Each waits for a publish or two of 20 ms.
    assert counted and counted[0] > 20


def test_a_settling_that_is_given_up(node):
    async def given_up():
        async with Meter.for_node(node) as meter:
            pass
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(meter.asettle(), 0.0)
        task = asyncio.create_task(meter.asettle())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # In time with nothing: the answer that stands.
        return await meter.asettle(0.0)

    assert asyncio.run(given_up()).seconds > 0


def test_a_loop_that_is_gone_by_then(node):
    async def left_behind():
        async with Meter.for_node(node) as meter:
            pass
        asyncio.get_running_loop().create_task(meter.asettle())
        await asyncio.sleep(0)

    asyncio.run(left_behind())
    with Meter.for_node(node) as meter:
        time.sleep(0.1)
    assert meter.settle().settled


def test_a_notebooks_cell_may_wait(monkeypatch):
    import builtins

    from joulebook._wait import loop_library, may_wait

    async def cell():
        return loop_library(), may_wait()

    assert may_wait() and asyncio.run(cell()) == ("asyncio", False)
    monkeypatch.setattr(builtins, "__IPYTHON__", True, raising=False)
    assert asyncio.run(cell()) == ("asyncio", True)


SLOW = """
import asyncio, json, sys, time
from joulebook import Meter, Node

async def main():
    late, done = [], False

    async def tick():
        while not done:
            asked = time.perf_counter()
            await asyncio.sleep(0.001)
            late.append(time.perf_counter() - asked)

    ticker = asyncio.create_task(tick())
    await asyncio.sleep(0.05)
    for _ in range(2):
        async with Meter.for_node(Node(idle_w=10.0, is_local=True), joules_per_1k_hint=1.0) as meter:
            await asyncio.sleep(0.3)
        await meter.asettle()
    done = True
    await ticker
    # Of these machines one call of the program takes two seconds: nobody waits so long for a turn.
    print(json.dumps({"worst_s": max(late), "method": meter.result(1).method}))

asyncio.run(main())
"""


def test_no_loop_waits_for_a_slow_program(cards):
    machine = Machine(cards.lab, "joulebook", "card 0\n idle 100\n", nvml=False,
                      wrapper='sleep 2\nexec "$LAB_SMI" "$@"')
    try:
        ran = subprocess.run([sys.executable, "-c", SLOW], env=machine.environment, capture_output=True,
                             text=True, timeout=60)
    finally:
        machine.close()
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    assert said["worst_s"] < 2.0, said


def test_the_state_of_a_card_that_only_the_program_can_read(cards):
    machine = Machine(cards.lab, "joulebook", "card 0\n idle 100\n mem total_mib=1000 base_mib=200\n", nvml=False)
    ask = "import joulebook, json; print(json.dumps([joulebook.read_gpu_state(0), joulebook.read_gpu_state(7)]))"
    try:
        ran = subprocess.run([sys.executable, "-c", ask], env=machine.environment, capture_output=True, text=True,
                             timeout=60)
    finally:
        machine.close()
    state, none = json.loads(ran.stdout)
    assert none is None and (state["gpu"], state["watts"], state["compute_apps"]) == (0, 100.0, [])
    assert (state["memory_total_mib"], state["memory_free_mib"]) == (1000, 800)


def test_the_state_of_a_card(node, cards):
    state = asyncio.run(probe_node(node))
    assert state["gpu"] == 0 and state["watts"] == IDLE_W and state["compute_apps"] == []
    assert asyncio.run(probe_node(None)) is None and asyncio.run(probe_node(Node())) is None
    free = state["memory_free_mib"]
    assert asyncio.run(fits(node, free)).fits is True
    short = asyncio.run(fits(node, free + 5))
    assert not short and (short.fits, short.short_by_mib) == (False, 5)
    unknown = asyncio.run(fits(Node(), 1))
    assert not unknown and unknown.fits is None
