"""Backends that are written in Python: read beside the work, never in its way."""

import asyncio
import threading
import time

import pytest

import joulebook
from joulebook import Backend, Meter, NvmlCounter, SmiSampler, counter_for

from .conftest import near


class Counter:
    name, kind = "own", "counter"

    def __init__(self):
        self.joules = 100.0
        self.threads = set()

    def read_joules(self):
        self.threads.add(threading.current_thread().name)
        return self.joules


class Gauge:
    name, kind = "own", "sampler"

    def __init__(self, *says):
        self.says = list(says)

    def read_watts(self):
        say = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if isinstance(say, BaseException):
            raise say
        return say() if callable(say) else say


def window(backend, seconds=0.1, **options):
    meter = Meter(backend, interval_s=0.01, joules_per_1k_hint=1000.0, **options)
    with meter:
        time.sleep(seconds)
    return meter.result(3)


def test_a_registers_window_is_what_it_moved(node):
    backend = Counter()
    meter = Meter(backend, idle_w=10.0, source="local")
    with meter:
        backend.joules += 30
        meter.mark("a")
        backend.joules += 70
        meter.mark("b")
        backend.joules += 5
    energy = meter.result()
    assert energy.joules == pytest.approx(105 - 10 * energy.seconds) and energy.method == "sampled"
    assert [stage.joules for stage in energy.stages.values()] == pytest.approx([30, 70], abs=0.1)
    assert (energy.backend, energy.source, energy.rule) == ("own", "local", "raw")
    assert backend.threads == {"joulebook-backend"}


def test_a_register_under_an_event_loop(node):
    backend = Counter()

    async def request():
        async with Meter(backend, idle_w=0.0) as meter:
            backend.joules += 30
            await asyncio.sleep(0.01)
        return await meter.asettle()

    assert asyncio.run(request()).joules == pytest.approx(30)


def test_coroutines_of_its_own_run_on_the_callers_loop(node):
    loops = set()

    class Own(Backend):
        name, kind = "own", "counter"
        joules = 0.0

        async def aread_joules(self):
            loops.add(asyncio.get_running_loop())
            self.joules += 10
            return self.joules

    async def request():
        async with Meter(Own(), interval_s=0.02) as meter:
            await asyncio.sleep(0.05)
        return asyncio.get_running_loop(), meter.result()

    loop, energy = asyncio.run(request())
    assert loops == {loop} and energy.method == "sampled" and energy.joules >= 20


NONSENSE = [None, float("nan"), float("inf"), -1.0, "[N/A]", 1e9, OSError("gone"), [1.0]]


@pytest.mark.parametrize("say", NONSENSE, ids=str)
def test_what_is_no_power_is_no_reading(node, say):
    energy = window(Gauge(say))
    assert (energy.method, energy.joules, energy.mean_watts) == ("estimated", 3.0, 0.0)
    assert energy.rejected == energy.polls > 0 and energy.error
    # One among others costs nothing.
    energy = window(Gauge(110.0, say, 110.0), idle_w=10.0)
    assert energy.method == "sampled" and energy.mean_watts == 110.0 and energy.rejected == 1


@pytest.mark.parametrize("jump", [1e6, -5.0, None], ids=str)
def test_a_register_that_jumps_is_not_believed(node, jump):
    backend = Counter()
    meter = Meter(backend, interval_s=0.01, joules_per_1k_hint=1000.0)
    with meter:
        time.sleep(0.05)
        backend.joules = None if jump is None else backend.joules + jump
        time.sleep(0.05)
    energy = meter.result(3)
    assert (energy.method, energy.joules) == ("estimated", 3.0) and energy.error


def test_a_gauge_that_dies_is_not_held_on(node):
    end = time.monotonic() + 0.1
    energy = window(Gauge(lambda: 200.0 if time.monotonic() < end else None), 0.3)
    assert energy.method == "estimated" and energy.error == "unknown"


class Hanging(Exception):
    pass


@pytest.mark.parametrize("kind", ["counter", "sampler"])
@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_backend_that_hangs_costs_no_more_than_patience(node, kind, way):
    free = threading.Event()

    class Stuck:
        name = "stuck"

        def read_watts(self):
            free.wait(20)

        read_joules = read_watts

    backend = Stuck()
    backend.kind = kind
    meter = Meter(backend, joules_per_1k_hint=1000.0)

    async def request():
        async with meter:
            meter.mark("a")

    began = time.monotonic()
    if way == "sync":
        with meter:
            meter.mark("a")
    else:
        asyncio.run(asyncio.wait_for(request(), 10))
    took = time.monotonic() - began
    free.set()
    assert meter.result(3).method == "estimated"
    # Against the twenty seconds that it hangs.
    assert took < 5


def test_it_is_watched_for_tenants_where_its_node_says_whose_work_is_ours(node):
    shared = joulebook.Node(idle_w=10.0, is_local=True, serving_match="vllm")
    meter = Meter(Gauge(110.0), idle_w=10.0, interval_s=0.01, node=shared)
    assert meter.watches_contention
    with meter:
        time.sleep(0.1)
    energy = meter.result()
    assert energy.tenancy == "alone" and energy.method == "sampled" and not energy.contended


def test_our_own_are_read_natively_until_somebody_puts_a_reading_in(node, draw, monkeypatch):
    meter = Meter(counter_for(0), idle_w=50.0, source="local")
    assert isinstance(meter.backend, NvmlCounter) and meter.backend_name == "nvml_counter"
    with meter:
        draw(350.0)
        time.sleep(0.4)
    assert near(meter.settle(), 300) and meter.settle().backend == "nvml_counter"
    meter = Meter.for_node(node)
    monkeypatch.setattr(meter.backend, "read_joules", iter([5.0, 25.0] + [25.0] * 9).__next__)
    meter.idle_w = 0.0
    with meter:
        pass
    assert meter.result().joules == pytest.approx(20.0)


def test_what_a_backend_says_by_itself(node, cards):
    counter = NvmlCounter(0)
    before = counter.read_joules()
    time.sleep(0.2)
    assert counter.read_joules() > before > 0 and counter.read_watts() == 50.0
    assert asyncio.run(counter.aread_watts()) == 50.0
    assert counter_for(5) is None
    with pytest.raises(RuntimeError, match="no energy counter"):
        NvmlCounter(5)
    assert SmiSampler(0).read_joules() is None
    assert joulebook.read_power_w(0) == 50.0 and joulebook.read_compute_apps(0) == []
