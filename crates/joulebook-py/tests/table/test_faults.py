"""Faults that giul meets badly.

Each line says what goes wrong and what giul 0.2.0 makes of it, and then what joulebook does.
"""

import asyncio
import json
import math
import time

import pytest

from .backends import Backend, Card, Counter, Sampler, Scripted

fault, differs = pytest.mark.fault, pytest.mark.differs

giul_says = "what goes wrong, and what giul makes of it"

HINT = 4100.0
IDLE_W, BUSY_W = 70.0, 400.0
OURS, EVAL = "4201 20000 VLLM::EngineCore", "/home/projects/venvs/eval/bin/python"
CARD = f"card 0\n  idle {IDLE_W:g}\n  step 0 {BUSY_W:g}\n  counter period_ms=5\n  sensor window_ms=20 period_ms=20\n"


def window(at, begin=1.5, end=2.5, way="sync", readable=True, **node):
    """A window between two times of the scenario, and how long it took to leave it."""
    node = at.implementation.Node(**{"idle_w": IDLE_W, "is_local": True, **node})
    if readable:
        at.ready(node)
    meter = at.implementation.Meter.for_node(node, interval_s=0.05, joules_per_1k_hint=HINT)
    at.at(begin)

    async def run():
        async with meter:
            await asyncio.sleep(end - begin)
            meter.mark("a")
            return time.monotonic()

    if way == "async":
        async def timed():
            ended = await run()
            return ended, time.monotonic()

        ended, left = asyncio.run(timed())
    else:
        with meter.sync():
            time.sleep(end - begin)
            meter.mark("a")
            ended = time.monotonic()
        left = time.monotonic()
    return {"energy": at.seen(meter.result(tokens=100), 100), "leaving_s": left - ended}


def held(energy, watts):
    """Whether a sampled figure is within its own bound of so many watts above idle."""
    return abs(energy.joules - (watts - IDLE_W) * energy.seconds) <= energy.extended["bound_joules"]


@fault("unknown tenancy")
@differs("It is there, so the window is contended, by a name with `(N/A MiB)`: what is not known is not small.")
def test_a_tenant_whose_memory_reads_na(fresh, ours):
    """A foreign process whose memory reads N/A: left out, so the window is sampled and uncontended."""
    energy = fresh(f"{CARD}  proc 0 inf {OURS}\n  proc 0 inf 3522 -1 {EVAL}\n").play(
        window, serving_match="vllm")["energy"]
    assert energy.method == ("estimated" if ours else "sampled")
    assert energy.contended_by == (f"{EVAL} (N/A MiB)" if ours else "")


@fault("unknown tenancy")
@differs("The window says `tenancy: unknown` (with `extended=True`), and never `alone`.")
def test_a_process_query_that_fails(fresh, ours):
    """Processes that cannot be listed: taken for nobody, and nothing says so."""
    energy = fresh(f"{CARD}  fault 0 inf procs unknown\n").play(window, serving_match="vllm")["energy"]
    assert energy.method == "sampled" and not energy.contended
    if ours:
        assert energy.extended["tenancy"] == "unknown"


@fault("unknown tenancy")
@differs("The same: it is there.")
def test_a_remote_tenant_whose_memory_is_null(machine, agent, ours):
    """An agent that lists a process with `used_mib` null: left out."""
    agent.state["compute_apps"] = [{"pid": 3522, "used_mib": None, "name": EVAL}]
    energy = machine(CARD, nvml=False, smi=False).play(remote, url=agent.url, serving_match="vllm")
    assert energy.contended is ours


def remote(at, url, seconds=0.8, way="sync", **node):
    node = at.implementation.Node(idle_w=IDLE_W, power_endpoint=url, **node)
    meter = at.implementation.Meter.for_node(node, interval_s=0.05, joules_per_1k_hint=HINT, timeout_s=1.0)

    async def run():
        async with meter:
            await asyncio.sleep(seconds)

    if way == "async":
        asyncio.run(run())
    else:
        with meter.sync():
            time.sleep(seconds)
    return at.seen(meter.result(tokens=100), 100)


INFINITE = [math.inf, -math.inf, math.nan]


def is_printable(energy):
    """Whether everything it says is JSON."""
    json.dumps(energy.as_dict(100), allow_nan=False)
    return True


@fault("inf watts")
@differs("Such a reading is refused: it is never part of a figure.")
@pytest.mark.parametrize("watts", INFINITE)
def test_a_gauge_that_says_infinity(implementation, ours, watts):
    """A gauge that says inf, −inf or nan: inf joules, sampled, or a mean that is no number."""
    meter = implementation.Meter(Scripted(200.0, watts, 200.0), idle_w=IDLE_W, interval_s=0.02,
                                 joules_per_1k_hint=HINT)
    with meter.sync():
        time.sleep(0.3)
    energy = meter.result(tokens=100)
    if ours:
        assert is_printable(energy) and energy.mean_watts == pytest.approx(200.0)
    else:
        with pytest.raises(ValueError):
            is_printable(energy)


@fault("inf watts")
@differs("Such an answer is refused.")
@pytest.mark.parametrize("body", [b'{"watts": Infinity}', b'{"watts": 1e999}', b'{"watts": "inf"}'])
def test_an_agent_that_says_infinity(machine, agent, ours, body):
    """An agent that says Infinity, 1e999 or "inf": sampled, inf joules."""
    agent.body = body
    energy = machine(CARD, nvml=False, smi=False).play(remote, url=agent.url, seconds=0.3)
    if ours:
        assert energy.method == "estimated" and energy.mean_watts == 0.0
    else:
        assert energy.method == "sampled" and energy.joules == math.inf


@fault("inf watts")
@differs("Such a cell is refused.")
def test_a_program_that_says_infinity(fresh, ours):
    """nvidia-smi that prints inf in its cell of power: sampled, inf joules."""
    energy = fresh(f"{CARD}  fault 0 inf smi.power.draw text inf\n  fault 0 inf smi.power.draw.instant text inf\n"
                   "  fault 0 inf smi.power.draw.average text inf\n", nvml=False).play(window, readable=False)["energy"]
    if ours:
        assert energy.method == "estimated" and energy.mean_watts == 0.0
    else:
        assert energy.method == "sampled" and energy.joules == math.inf


@fault("a register that jumps")
@differs("No card draws that much in that time: the jump is not counted.")
def test_a_register_that_jumps_by_a_megajoule(fresh, ours):
    """A register that jumps by 1 MJ within a window: a million joules, sampled."""
    energy = fresh(f"{CARD}  fault 2 inf energy jump 1000000000\n").play(window, end=3.0)["energy"]
    if ours:
        assert energy.method != "sampled" or held(energy, BUSY_W)
        assert energy.mean_watts < 2 * BUSY_W
    else:
        assert energy.method == "sampled" and energy.joules > 1e6


STEPPING = "card 0\n  idle 10\n  step 0 30\n  counter period_ms=5\n  fault 2 inf energy jump -5000\n"


@fault("a step back")
@differs("The step is seen and said (`counter_glitch` or `counter_reset`), and the figure, if there is one, is within its "
         "bound.")
def test_a_register_that_steps_back(fresh, ours):
    """A register that steps back by 5 J within a window that has drawn more: 5 J too few, sampled."""
    energy = fresh(STEPPING).play(window, idle_w=10.0)["energy"]
    truth = 20.0 * energy.seconds
    if ours:
        assert energy.method != "sampled" or abs(energy.joules - truth) <= energy.extended["bound_joules"], energy
        assert {"counter_glitch", "counter_reset"} & set(energy.extended["flags"]), energy
    else:
        assert energy.method == "sampled" and energy.joules == pytest.approx(truth - 5.0, abs=1.0)


class Dying(Sampler):
    """A gauge that is gone after some reads."""

    def __init__(self, card, reads):
        super().__init__(card)
        self.left = reads

    def read_watts(self):
        self.left -= 1
        return super().read_watts() if self.left >= 0 else None


@fault("a reader that dies")
@differs("What was not seen is not extrapolated: the window is not sampled.")
@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_gauge_that_dies(implementation, ours, way):
    """A gauge that dies early in a window: the mean of what it said is taken for the whole window, sampled."""
    meter = implementation.Meter(Dying(Card(BUSY_W), reads=4), idle_w=IDLE_W, interval_s=0.02,
                                 joules_per_1k_hint=HINT)

    async def run():
        async with meter:
            await asyncio.sleep(0.8)

    if way == "async":
        asyncio.run(run())
    else:
        with meter.sync():
            time.sleep(0.8)
    energy = meter.result(tokens=100)
    assert energy.method == ("estimated" if ours else "sampled")
    assert energy.mean_watts == pytest.approx(BUSY_W) or ours


@fault("a reader that dies")
@differs("The same.")
def test_an_agent_that_dies(machine, agent, ours):
    """An agent that goes down early in a window: the same."""
    agent.dies_after = 5
    energy = machine(CARD, nvml=False, smi=False).play(remote, url=agent.url, seconds=2.5)
    assert energy.method == ("estimated" if ours else "sampled")


@fault("a reader that dies")
@differs("The same.")
def test_a_program_that_dies(fresh, ours):
    """nvidia-smi that fails from early in a window on: the same."""
    energy = fresh(f"{CARD}  fault 2 inf smi.exit 9 NVIDIA-SMI has failed\n", nvml=False).play(
        window, end=4.5)["energy"]
    assert energy.method == ("estimated" if ours else "sampled")


HANG_S = 6.0


@fault("an nvidia-smi that hangs")
@differs("Leaving the window waits for nobody: a recorder of its own reads the card.")
@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_program_that_hangs(fresh, ours, way):
    """nvidia-smi that hangs while a window closes: the request waits for it, up to 5 s."""
    took_s = fresh(f"{CARD}  fault 2.4 3.5 smi.hang x {HANG_S * 1000:g}\n", nvml=False).play(window, way=way)["leaving_s"]
    if ours:
        assert took_s < HANG_S / 20
    else:
        assert took_s > HANG_S / 3


@fault("an agent that hangs")
@differs("The same: leaving the window waits for nobody.")
@pytest.mark.parametrize("way", ["sync", "async"])
def test_an_agent_that_hangs(machine, agent, ours, way):
    """An agent that does not answer while a window closes: the request waits for it until its time is out."""
    timeout_s = 3.0
    agent.hangs_after = 2
    took_s = machine(CARD, nvml=False, smi=False).play(leave_remote, url=agent.url, way=way, timeout_s=timeout_s)
    if ours:
        assert took_s < timeout_s / 10
    else:
        assert took_s > timeout_s / 2


def leave_remote(at, url, way, timeout_s):
    """How long it takes to leave a window."""
    node = at.implementation.Node(idle_w=IDLE_W, power_endpoint=url)
    meter = at.implementation.Meter.for_node(node, interval_s=0.05, timeout_s=timeout_s)

    async def run():
        async with meter:
            await asyncio.sleep(1.5)
            ended = time.monotonic()
        return time.monotonic() - ended

    if way == "async":
        return asyncio.run(run())
    with meter.sync():
        time.sleep(1.5)
        ended = time.monotonic()
    return time.monotonic() - ended


MALFORMED = ["http://[", "http://host:99999", "not a url", "http://ho st/", "ftp://host", "//", "http://\x00",
             "http://:0"]


@fault("a malformed endpoint")
@differs("It costs the measurement, and the log says what is wrong with it.")
@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_malformed_endpoint(machine, ours, way):
    """An endpoint that is no URL: some raise out of the async window, into the request."""
    came_to = machine(CARD, nvml=False, smi=False).play(endpoints, way=way)
    assert all(outcome == "estimated" for outcome in came_to.values()) == (ours or way == "sync"), came_to


def endpoints(at, way):
    """What each malformed endpoint comes to: a method, or what was raised."""
    outcomes = {}
    for url in MALFORMED:
        try:
            outcomes[url] = remote(at, url, seconds=0.05, way=way, serving_match="vllm").get("seen")["method"]
        except Exception as error:
            outcomes[url] = repr(error)
    return outcomes


TRANSIENT = ["energy unknown", "energy timeout", "all lost", "handle unknown", "init unknown", "init nodriver"]


@fault("one transient failure")
@differs("Only \"not supported\" is remembered: the counter is back at the next window.")
@pytest.mark.parametrize("failure", TRANSIENT)
def test_one_transient_failure(fresh, ours, failure):
    """One failure of the library when a card is first asked: the card has no counter for the life of the process."""
    names = fresh(f"{CARD}  fault 0 1.5 {failure}\n").play(first_and_next)
    assert names["next"]["backend"] == ("nvml_counter" if ours else "smi_sampler")
    assert names["energy"].method == "sampled"


def first_and_next(at):
    """A meter while the fault lasts, and one after it."""
    node = at.implementation.Node(idle_w=IDLE_W, is_local=True)
    with at.implementation.Meter.for_node(node).sync():
        at.at(1.0)

    def again():
        with at.implementation.Meter.for_node(node, interval_s=0.1).sync() as meter:
            time.sleep(0.5)
        return meter if meter.result().method == "sampled" else None

    at.until(lambda: at.second() > 2.0)
    meter = at.until(again, seconds=6.0)
    return {"next": {"backend": meter.backend_name}, "energy": at.seen(meter.result())}


@fault("a Meter used twice")
@differs("It starts afresh.")
@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_meter_used_twice(implementation, ours, way):
    """A Meter used for a second window: the first window's samples are averaged in, and its marks and stages are still
    there."""
    card = Card(BUSY_W)
    meter = implementation.Meter(Sampler(card), idle_w=IDLE_W, interval_s=0.02)

    async def run(name):
        async with meter:
            await asyncio.sleep(0.2)
            meter.mark(name)

    def once(name):
        if way == "async":
            asyncio.run(run(name))
        else:
            with meter.sync():
                time.sleep(0.2)
                meter.mark(name)

    once("first")
    card.draw(100.0)
    once("second")
    energy = meter.result()
    assert (energy.mean_watts == pytest.approx(100.0)) == ours
    assert list(energy.stages) == (["second"] if ours else ["first", "second"])
    assert (energy.joules == pytest.approx(30.0 * energy.seconds, rel=0.02)) == ours


@fault("a Meter used twice")
@differs("It starts afresh.")
def test_a_contended_meter_used_twice(fresh, ours):
    """A Meter whose first window was contended: its second still is."""
    energies = fresh(f"{CARD}  proc 0 inf {OURS}\n  proc 0 2 3522 4806 {EVAL}\n").play(twice)
    assert [energy.contended for energy in energies] == [True, not ours]


def twice(at):
    node = at.implementation.Node(idle_w=IDLE_W, is_local=True, serving_match="vllm")
    meter = at.implementation.Meter.for_node(node)
    at.at(1.5)
    with meter.sync():
        time.sleep(0.2)
    first = at.seen(meter.result())
    at.at(3.5)
    with meter.sync():
        time.sleep(0.5)
    return [first, at.seen(meter.result())]


@fault("stages of a contended window")
@differs("They are not sampled (rule 4): a stage's energy is no more ours than the total's.")
def test_stages_of_a_contended_window(fresh, ours):
    """A contended window with stages: the stages still read sampled, and print as clean figures."""
    energy = fresh(f"{CARD}  proc 0 inf {OURS}\n  proc 0 inf 3522 4806 {EVAL}\n").play(
        window, serving_match="vllm")["energy"]
    assert energy.contended and energy.method == "estimated"
    stage = energy.stages["a"]
    assert stage.method == ("unknown" if ours else "sampled")
    assert energy.shape["stages"]["a"]["method"] == stage.method


class Raising(Backend):
    """A driver's binding that raises in every way."""

    name, kind = "raising", "sampler"

    def read_watts(self):
        raise OSError("the device is gone")

    async def aread_watts(self):
        raise OSError("the device is gone")


@fault("a backend that raises")
@differs("It costs the measurement, never the request.")
def test_a_gauge_that_raises(implementation, ours):
    """A gauge whose read raises: the exception comes out of the async window, into the request."""
    meter = implementation.Meter(Raising(), joules_per_1k_hint=HINT, interval_s=0.02)

    async def request():
        async with meter:
            await asyncio.sleep(0.05)

    if ours:
        asyncio.run(request())
        assert meter.result(tokens=100).method == "estimated"
    else:
        with pytest.raises(OSError):
            asyncio.run(request())


@fault("a backend that raises")
@differs("It costs the measurement, never the request.")
@pytest.mark.parametrize("when", ["opening", "mark", "closing"])
def test_a_register_that_raises(implementation, ours, when):
    """A register whose read raises, at the opening, a mark or the closing: the exception comes out of there."""
    class Once(Counter):
        def read_joules(self):
            if raises:
                raise OSError("the device is gone")
            return super().read_joules()

    meter = implementation.Meter(Once(Card(BUSY_W)), idle_w=IDLE_W, joules_per_1k_hint=HINT)
    raises = False

    def request():
        nonlocal raises
        raises = when == "opening"
        with meter.sync():
            raises = when == "mark"
            meter.mark("a")
            raises = when == "closing"
            time.sleep(0.05)

    if ours:
        request()
        assert meter.result(tokens=100).method in ("sampled", "estimated")
    else:
        with pytest.raises(OSError):
            request()
