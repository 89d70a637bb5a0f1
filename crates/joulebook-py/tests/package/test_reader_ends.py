"""What reads a backend of Python's ends with its window, however that ends, or does not open."""

import asyncio
import signal
import threading
import time

import pytest

from joulebook import Backend, Meter

READS = {"joulebook-backend", "joulebook-mark"}


def gone():
    """No thread reads any more. They have a moment: one may be within its backend."""
    for _ in range(300):
        if not any(thread.name in READS for thread in threading.enumerate()):
            return True
        time.sleep(0.01)
    return False


class Gate:
    """A counter whose reading number `stuck` waits until it is let go, and tells that it is there."""

    name, kind = "gate", "counter"

    def __init__(self, stuck=0, then=lambda: None):
        self.stuck, self.then = stuck, then
        self.reads = self.closes = 0
        self.there, self.free = threading.Event(), threading.Event()

    def hold(self):
        """The next reading is the one."""
        self.stuck = self.reads + 1

    def read_joules(self):
        self.reads += 1
        if self.reads == self.stuck:
            self.there.set()
            self.then()
            self.free.wait(20)
        return 1.0

    def close(self):
        self.closes += 1


def interrupt():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


async def cancelled(task, backend):
    while not backend.there.is_set():
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    backend.free.set()


def test_a_window_that_is_cancelled_while_it_opens(node):
    backend = Gate(stuck=1)

    async def work():
        meter = Meter(backend, interval_s=0.005)
        await cancelled(asyncio.create_task(meter.__aenter__()), backend)
        return meter.result()

    assert asyncio.run(work()).method == "unknown" and gone()


def test_a_window_that_is_cancelled_while_it_closes(node):
    # Only edges are read.
    backend = Gate()

    async def work():
        meter = Meter(backend, interval_s=60.0)
        await meter.__aenter__()
        backend.hold()
        await cancelled(asyncio.create_task(meter.__aexit__(None, None, None)), backend)
        return meter.result()

    assert asyncio.run(work()).seconds > 0 and gone() and backend.closes == 1


@pytest.mark.parametrize("edge", ["opens", "closes"])
def test_a_window_that_trio_cancels(node, edge):
    trio = pytest.importorskip("trio")
    backend = Gate(stuck=1 if edge == "opens" else 0)

    async def work():
        with trio.move_on_after(0.05) as scope:
            async with Meter(backend, interval_s=60.0):
                backend.hold()
                await trio.sleep(20)
        backend.free.set()
        return scope.cancelled_caught

    assert trio.run(work) and gone()


@pytest.mark.parametrize("way", ["sync", "async"])
def test_an_interrupt_while_a_window_opens(node, way):
    backend = Gate(stuck=1, then=interrupt)
    meter = Meter(backend, interval_s=0.005)

    async def work():
        async with meter:
            pass

    with pytest.raises(KeyboardInterrupt):
        if way == "sync":
            meter.start()
        else:
            asyncio.run(work())
    backend.free.set()
    assert gone()


def test_an_interrupt_while_a_window_closes(node):
    backend = Gate(then=interrupt)
    meter = Meter(backend, interval_s=60.0)
    meter.start()
    backend.hold()
    with pytest.raises(KeyboardInterrupt):
        meter.stop()
    backend.free.set()
    now = meter.result().seconds
    assert gone() and meter.result().seconds == now and backend.closes == 1


def test_an_interrupt_of_the_sync_ends_it_too(node):
    def interrupted():
        raise KeyboardInterrupt

    async def work():
        async with Meter(Gate(), interval_s=0.005, sync=interrupted):
            pass

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(work())
    assert gone()


def test_a_window_in_the_place_of_another(node):
    meter = Meter(Gate(), interval_s=0.005)
    meter.start()
    meter.start()
    meter.stop()
    assert gone()


class Own(Backend):
    """A counter that is read with coroutines."""

    name, kind = "own", "counter"
    joules = 0.0

    def __init__(self):
        self.free, self.threads = threading.Event(), []

    async def aread_joules(self):
        return self.joules

    def read_joules(self):
        self.threads.append(threading.current_thread())
        return self.joules

    def close(self):
        self.threads.append(threading.current_thread())


def test_a_window_of_coroutines_that_is_stopped_by_plain_code(node):
    backend = Own()

    async def work():
        meter = Meter(backend, interval_s=0.005)
        await meter.__aenter__()
        meter.stop()
        await asyncio.sleep(0.02)
        return len(asyncio.all_tasks())

    assert asyncio.run(work()) == 1


def test_a_window_that_is_left_open_keeps_no_loop_from_ending(script):
    ran = script("""
import asyncio
from joulebook import Backend, Meter

class Own(Backend):
    name, kind = "own", "counter"
    async def aread_joules(self):
        return 0.0

async def work():
    await Meter(Own(), interval_s=0.005).__aenter__()
    # Both wake in one turn of the loop.
    await asyncio.sleep(0.02)

for _ in range(20):
    asyncio.run(work())
print("over")
""")
    assert (ran.returncode, ran.stdout) == (0, "over\n"), ran.stderr


def test_a_mark_where_a_task_reads_is_read_beside_the_loop(node):
    backend = Own()

    async def work():
        async with Meter(backend, interval_s=60.0, idle_w=0.0) as meter:
            backend.joules = 30.0
            meter.mark("a")
            backend.joules = 40.0
        return meter.result()

    energy = asyncio.run(work())
    assert energy.stages["a"].joules == pytest.approx(30) and energy.joules == pytest.approx(40)
    assert len(backend.threads) == 2 and threading.main_thread() not in backend.threads


def test_a_mark_is_not_held_up_by_a_reading_that_hangs(node):
    class Stuck(Own):
        def read_joules(self):
            super().read_joules()
            self.free.wait(20)

    backend = Stuck()

    async def work():
        async with Meter(backend, interval_s=60.0, joules_per_1k_hint=1000.0) as meter:
            backend.joules = 30.0
            meter.mark("a")
            meter.mark("b")
        backend.free.set()
        return meter.result(3)

    began = time.monotonic()
    energy = asyncio.run(work())
    # Against the twenty seconds that each would hang.
    assert time.monotonic() - began < 5
    assert energy.method == "sampled" and energy.stages["a"].method != "sampled"
    # The first still hangs at the second mark: no thread more for that; then the one that closes.
    assert len(backend.threads) == 2 and gone()


def test_what_has_no_coroutine_to_close_is_closed_off_the_loop(node):
    class Bare:
        name, kind = "bare", "sampler"
        closed_in = None

        def read_watts(self):
            return 1.0

        def close(self):
            self.closed_in = threading.current_thread()

    backend = Bare()

    async def work():
        async with Meter(backend):
            pass

    asyncio.run(work())
    assert backend.closed_in not in (None, threading.main_thread())


def test_closing_from_a_coroutine_holds_no_loop(cards):
    backend = Own()
    asyncio.run(backend.aclose())
    assert threading.main_thread() not in backend.threads and len(backend.threads) == 1
