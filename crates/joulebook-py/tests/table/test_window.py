"""A window, on a card made of Python.

The card draws what the test says, so what the window must come to is known; its backends are of no
base class, like those that people write.
"""

import asyncio
import threading
import time

import pytest

from .backends import Backend, Card, Counter, Sampler, Scripted

behaviour, differs = pytest.mark.behaviour, pytest.mark.differs

HINT = 4100.0


def near(energy, watts, tolerance=0.02):
    """Whether it is charged so many watts above idle for its length."""
    return energy.joules == pytest.approx(watts * energy.seconds, rel=tolerance)


def counted(energy, backend):
    """Whether it is charged what the register counted from its reading at the opening to that at the end."""
    return energy.joules == pytest.approx(backend.between() - energy.idle_watts * energy.seconds, rel=1e-6)


@behaviour("README, What a joule means here")
def test_a_counter_is_charged_above_idle(implementation):
    """joules = measured − idle_w × seconds, on an energy register."""
    backend = Counter(Card(400.0))
    meter = implementation.Meter(backend, idle_w=70.0, source="local")
    with meter.sync():
        time.sleep(0.3)
    energy = meter.result(tokens=400)
    assert energy.method == "sampled" and counted(energy, backend) and near(energy, 330.0, 0.5)
    assert energy.mean_watts == pytest.approx(backend.between() / energy.seconds) and energy.idle_watts == 70.0


@behaviour("README, What a joule means here")
def test_a_gauge_is_charged_above_idle(implementation):
    """joules = measured − idle_w × seconds, on samples of power."""
    meter = implementation.Meter(Sampler(Card(110.0)), idle_w=10.0, interval_s=0.01, source="local")
    with meter.sync():
        time.sleep(0.2)
    energy = meter.result(tokens=50)
    assert energy.method == "sampled" and near(energy, 100.0)
    assert energy.mean_watts == pytest.approx(110.0) and energy.samples >= 2


@behaviour("`Meter`")
def test_the_defaults_of_a_meter(implementation):
    """`Meter(backend)` has idle_w 0.0, interval_s 0.25, no hint, source "none", no node, and reads as what it is given:
    idle_w, interval_s, joules_per_1k_hint, source, backend, node."""
    backend, node = Sampler(), implementation.Node(name="iris")
    meter = implementation.Meter(backend)
    assert (meter.backend, meter.idle_w, meter.interval_s) == (backend, 0.0, 0.25)
    assert (meter.joules_per_1k_hint, meter.source, meter.node) == (0.0, "none", None)
    meter = implementation.Meter(backend, 9.0, 0.5, HINT, "local", None, node)
    assert (meter.idle_w, meter.interval_s, meter.joules_per_1k_hint) == (9.0, 0.5, HINT)
    assert (meter.source, meter.node) == ("local", node)


@behaviour("`Meter.backend_name`")
def test_what_a_meter_says_of_its_backend(implementation):
    """`backend_name` is the backend's own name, or "none"; `sampling` says whether there is one."""
    meter = implementation.Meter(Sampler())
    assert meter.backend_name == "bench_sampler" and meter.sampling is True
    assert meter.result().backend == "bench_sampler"
    meter = implementation.Meter(None)
    assert meter.backend is None and meter.backend_name == "none" and meter.sampling is False


@behaviour("`EnergyMeter`")
def test_the_old_name(implementation):
    """`EnergyMeter` is `Meter`."""
    assert implementation.EnergyMeter is implementation.Meter


@behaviour("test_meter, README rule 2")
@pytest.mark.parametrize("kind", [Counter, Sampler])
def test_no_fabricated_zero(implementation, kind):
    """A window at or below the idle floor failed to measure: it is estimated with tokens and a hint, never a sampled 0."""
    meter = implementation.Meter(kind(Card(15.7)), idle_w=25.0, joules_per_1k_hint=HINT, interval_s=0.02)
    with meter.sync():
        time.sleep(0.12)
    energy = meter.result(tokens=28)
    assert energy.method == "estimated" and energy.joules == pytest.approx(HINT * 28 / 1000)
    # What tried, and what was seen, is still said.
    assert energy.backend == kind.name and energy.mean_watts == pytest.approx(15.7, rel=0.3)
    assert energy.samples >= 1


@behaviour("test_meter, README rule 2")
@pytest.mark.parametrize(("hint", "tokens"), [(0.0, 28), (HINT, 0), (HINT, -1)])
def test_unknown_and_not_a_guess(implementation, hint, tokens):
    """Without tokens or without a hint such a window is unknown, 0.0 joules."""
    meter = implementation.Meter(Sampler(Card(15.7)), idle_w=25.0, joules_per_1k_hint=hint)
    with meter.sync():
        time.sleep(0.02)
    energy = meter.result(tokens=tokens)
    assert energy.as_dict()["method"] == "unknown" and energy.as_dict()["joules"] == 0.0


@behaviour("`Energy`")
def test_an_unknown_figure(implementation, ours):
    """`joules` of an unknown window is 0.0."""
    meter = implementation.Meter(None, idle_w=25.0)
    with meter.sync():
        pass
    energy = meter.result(tokens=28)
    assert energy.method == "unknown" and energy.joules == 0.0
    if ours:
        assert energy.known_joules is None


@behaviour("test_meter")
def test_no_backend(implementation):
    """Without a backend: estimated with tokens and a hint, else unknown; backend and source "none"."""
    meter = implementation.Meter(None, idle_w=25.0, joules_per_1k_hint=HINT)
    with meter.sync():
        time.sleep(0.01)
    energy = meter.result(tokens=1000)
    assert (energy.method, energy.joules, energy.backend, energy.source) == ("estimated", HINT, "none", "none")
    assert energy.seconds >= 0.01 and energy.samples == 0 and energy.mean_watts == 0.0
    assert meter.result().method == "unknown"


@behaviour("test_meter")
def test_one_window_asked_with_several_tokens(implementation):
    """`result` can be asked again, with other tokens: the same window."""
    meter = implementation.Meter(Sampler(Card(200.0)), idle_w=50.0, interval_s=0.01)
    with meter.sync():
        time.sleep(0.2)
    one, two = meter.result(tokens=1), meter.result(tokens=2)
    assert one.joules == two.joules and one.seconds == two.seconds
    assert two.per_token(2) == one.joules / 2


@behaviour("`Meter`")
@differs("`samples` counts distinct updates of the sensor that the figure stands on, not polls and marks.")
def test_samples_on_a_counter(implementation, ours):
    """`samples` is 2 and one a mark on a counter, 2 for a stage."""
    meter = implementation.Meter(Counter(Card(400.0)), idle_w=70.0)
    with meter.sync():
        time.sleep(0.15)
        meter.mark("a")
        time.sleep(0.15)
    energy = meter.result()
    if ours:
        assert energy.samples >= 2
    else:
        assert energy.samples == 3 and energy.stages["a"].samples == 2


@behaviour("`Meter.sync`")
def test_the_block_is_given_the_meter(implementation):
    """`with meter.sync() as m` gives the meter itself; so does `with meter as m`."""
    meter = implementation.Meter(Sampler(Card(200.0)))
    with meter.sync() as given:
        assert given is meter
    with meter as given:
        assert given is meter


@behaviour("`Meter`")
def test_the_async_block_is_given_the_meter(implementation):
    """`async with meter as m` gives the meter itself, and measures the same."""
    async def window():
        meter = implementation.Meter(backend, idle_w=70.0, source="local")
        async with meter as given:
            assert given is meter
            await asyncio.sleep(0.3)
        return meter.result(tokens=100)

    backend = Counter(Card(400.0))
    energy = asyncio.run(window())
    assert energy.method == "sampled" and counted(energy, backend)


@behaviour("test_meter")
def test_a_gauge_the_async_way(implementation):
    """An async window polls the gauge while it is open."""
    async def window():
        meter = implementation.Meter(Sampler(Card(110.0)), idle_w=10.0, interval_s=0.01)
        async with meter:
            await asyncio.sleep(0.2)
        return meter.result(tokens=100)

    energy = asyncio.run(window())
    assert energy.method == "sampled" and near(energy, 100.0) and energy.samples >= 3


@behaviour("`Backend.aread_watts`")
def test_the_async_read_is_the_async_windows(implementation):
    """An async window asks `aread_watts` where a backend has its own."""
    class Native(Backend):
        name, kind = "native", "sampler"

        async def aread_watts(self):
            self.reads += 1
            return 85.0

    async def window():
        meter = implementation.Meter(Native(), idle_w=11.0, interval_s=0.01, source="remote")
        async with meter:
            await asyncio.sleep(0.2)
        return meter.result(tokens=100)

    energy = asyncio.run(window())
    assert (energy.method, energy.source) == ("sampled", "remote") and energy.mean_watts == pytest.approx(85.0)
    assert energy.as_dict(100)["source"] == "remote" and near(energy, 74.0)


@behaviour("`Backend`")
def test_a_backend_of_the_packages_own_base(implementation):
    """A class can derive from `Backend` and give `name`, `kind` and `read_watts` alone."""
    class Mine(implementation.Backend):
        name = "mine"
        kind = "sampler"

        def read_watts(self):
            return 150.0

    async def window(meter):
        async with meter:
            await asyncio.sleep(0.2)

    for run in ("sync", "async"):
        meter = implementation.Meter(Mine(), idle_w=50.0, interval_s=0.01)
        if run == "async":
            asyncio.run(window(meter))
        else:
            with meter.sync():
                time.sleep(0.2)
        energy = meter.result()
        assert (energy.method, energy.backend) == ("sampled", "mine")
        assert energy.mean_watts == pytest.approx(150.0)


@behaviour("`Backend`")
def test_the_base_says_nothing(implementation):
    """`Backend()` itself is named "none", of kind "none", reads None in all four ways, and can be closed."""
    backend = implementation.Backend()
    assert (backend.name, backend.kind) == ("none", "none")
    assert backend.read_watts() is None and backend.read_joules() is None
    backend.close()

    async def read():
        await backend.aclose()
        return await backend.aread_watts(), await backend.aread_joules()

    assert asyncio.run(read()) == (None, None)


@behaviour("`Meter.__aexit__`")
def test_a_blocking_gauge_is_read_off_the_loop(implementation):
    """A gauge that blocks is read off the event loop: other tasks go on meanwhile."""
    class Slow(Sampler):
        def read_watts(self):
            time.sleep(0.3)
            return super().read_watts()

    async def window():
        turns, done = 0, False

        async def count():
            nonlocal turns
            while not done:
                turns += 1
                await asyncio.sleep(0.005)

        counting = asyncio.create_task(count())
        meter = implementation.Meter(Slow(Card(200.0)), idle_w=50.0, interval_s=0.01)
        async with meter:
            await asyncio.sleep(0.3)
        done = True
        await counting
        return turns

    # One turn in 0.3 s where the loop were held by a read.
    assert asyncio.run(window()) > 10


@behaviour("`Meter.__aexit__`")
@differs("It is read at its end too, which is waited for a quarter of a second at the most; but two readings do not show "
         "what was between them: a gauge does not measure a window shorter than the interval at which it is read "
         "(`window_below_resolution`).")
def test_the_last_reading(implementation, ours):
    """A window shorter than the interval gets one more reading when it closes: two in all, and is sampled."""
    backend = Sampler(Card(200.0))
    meter = implementation.Meter(backend, idle_w=50.0, interval_s=10.0)
    with meter.sync():
        time.sleep(0.05)
    energy = meter.result()
    assert backend.reads == 2 and energy.mean_watts == pytest.approx(200.0)
    if ours:
        assert energy.method == "unknown" and energy.error == "window_below_resolution"
    else:
        assert energy.method == "sampled" and energy.samples == 2


@behaviour("`Meter.__init__`")
def test_the_interval(implementation):
    """A gauge is read every `interval_s` while the window is open."""
    backends = {interval_s: Sampler(Card(200.0)) for interval_s in (0.02, 5.0)}
    for interval_s, backend in backends.items():
        with implementation.Meter(backend, interval_s=interval_s).sync():
            time.sleep(0.3)
    assert backends[0.02].reads >= 5 > backends[5.0].reads >= 1


@behaviour("test_counter")
def test_the_card_is_waited_for(implementation):
    """`sync` is called once, at the end and before the clock stops and the register is read: what it waits for belongs
    to the window."""
    card, called = Card(70.0), []

    def wait():
        called.append(meter.result().seconds)
        card.draw(400.0)
        time.sleep(0.3)
        card.draw(70.0)

    meter = implementation.Meter(Counter(card), idle_w=70.0, sync=wait)
    with meter.sync():
        assert not called
    energy = meter.result()
    assert len(called) == 1 and energy.seconds >= 0.3 > called[0]
    # From 70 W to 400 and back: above idle it is the waiting alone.
    assert energy.method == "sampled" and energy.joules == pytest.approx(330.0 * card.seconds_at(400.0), rel=0.2)


@behaviour("test_counter")
def test_a_failing_sync(implementation):
    """A `sync` that raises does not break the request, and the window closes all the same."""
    def fail():
        raise RuntimeError("the device is lost")

    backend = Counter(Card(400.0))
    meter = implementation.Meter(backend, idle_w=70.0, sync=fail)
    with meter.sync():
        time.sleep(0.3)
    assert meter.result().method == "sampled" and counted(meter.result(), backend)


@behaviour("`Meter.__exit__`")
def test_an_exception_goes_on(implementation):
    """A window that an exception closes measures, and the exception goes on untouched."""
    backend = Counter(Card(400.0))
    meter = implementation.Meter(backend, idle_w=70.0)
    error = ValueError("the request's own")
    with pytest.raises(ValueError) as raised:
        with meter.sync():
            time.sleep(0.3)
            raise error
    assert raised.value is error and meter.result().method == "sampled" and counted(meter.result(), backend)


@behaviour("`Meter.__aexit__`")
def test_a_cancelled_request(implementation):
    """An async window whose task is cancelled measures, and the cancellation goes on."""
    async def request(meter):
        async with meter:
            await asyncio.sleep(60)

    async def cancelled():
        meter = implementation.Meter(backend, idle_w=70.0)
        task = asyncio.create_task(request(meter))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return meter.result()

    backend = Counter(Card(400.0))
    energy = asyncio.run(cancelled())
    assert energy.method == "sampled" and counted(energy, backend) and energy.seconds < 30


@behaviour("README rule 3")
def test_a_silent_gauge_costs_a_measurement(implementation):
    """A backend that answers None costs the measurement, never the request."""
    meter = implementation.Meter(Scripted(None), idle_w=10.0, interval_s=0.01, joules_per_1k_hint=HINT)
    with meter.sync():
        time.sleep(0.03)
    energy = meter.result(tokens=100)
    assert energy.method == "estimated" and energy.samples == 0 and energy.mean_watts == 0.0
    assert energy.backend == "scripted"


@behaviour("`Meter.__exit__`")
@pytest.mark.parametrize("run", ["sync", "async"])
def test_the_backend_is_closed(implementation, run):
    """A backend is closed when its window is."""
    backend = Sampler(Card(200.0))
    meter = implementation.Meter(backend, interval_s=0.01)

    async def window():
        async with meter:
            await asyncio.sleep(0.02)

    if run == "sync":
        with meter.sync():
            time.sleep(0.02)
    else:
        asyncio.run(window())
    assert backend.closes == 1


@behaviour("test_meter")
@pytest.mark.parametrize("kind", [Counter, Sampler])
def test_no_thread_is_left(implementation, kind):
    """A sync window polls in a thread of its own, which is over when the window is."""
    before = set(threading.enumerate())
    with implementation.Meter(kind(Card(200.0)), interval_s=0.01).sync():
        time.sleep(0.05)
    end = time.monotonic() + 10
    while set(threading.enumerate()) - before and time.monotonic() < end:
        time.sleep(0.01)
    assert set(threading.enumerate()) <= before


@behaviour("`Meter.result`")
@differs("Asked before it has closed, a window says how it stands so far, on a counter too.")
def test_asked_while_it_is_open(implementation, ours):
    """`result` of a window that is still open says its seconds so far; on a counter it is unknown."""
    meter = implementation.Meter(Counter(Card(400.0)), idle_w=70.0)
    with meter.sync():
        time.sleep(0.3)
        energy = meter.result()
    assert 0.3 <= energy.seconds < 10 and energy.seconds < meter.result().seconds
    assert energy.method == ("sampled" if ours else "unknown")


@behaviour("`Meter`")
def test_several_windows_at_once(implementation):
    """Windows that are open at once on one card are each charged whole."""
    async def window(backend):
        meter = implementation.Meter(backend, idle_w=70.0)
        async with meter:
            await asyncio.sleep(0.3)
        return meter.result()

    async def both():
        return await asyncio.gather(*map(window, backends))

    card = Card(400.0)
    backends = Counter(card), Counter(card)
    for energy, backend in zip(asyncio.run(both()), backends):
        assert energy.method == "sampled" and counted(energy, backend)
