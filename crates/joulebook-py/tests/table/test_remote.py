"""A remote node, read through its agent.

The agent speaks giul's shape and says what the test tells it.
"""

import asyncio
import time

import pytest

behaviour, differs = pytest.mark.behaviour, pytest.mark.differs

CARD = "card 0\n  dynamic\n"
HINT = 4100.0


@pytest.fixture
def alone(machine):
    """A host without a card of its own."""
    return machine(CARD, nvml=False, smi=False)


def window(at, url, seconds=1.8, way="async", readable=True, **options):
    node = at.implementation.Node(name="lily", idle_w=11.0, gpu_index=1, is_local=False, power_endpoint=url)
    if readable:
        at.ready(node)
    meter = at.implementation.Meter.for_node(node, interval_s=0.02, **options)

    async def run():
        async with meter:
            await asyncio.sleep(seconds)

    if way == "async":
        asyncio.run(run())
    else:
        with meter.sync():
            time.sleep(seconds)
    return at.seen(meter.result(tokens=100), 100)


@behaviour("test_meter")
@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_remote_node_is_measured(alone, agent, way):
    """A window on a node with an agent is sampled, source `remote`, backend `remote_agent`, charged above that node's
    floor, for the card of its gpu_index."""
    energy = alone.play(window, url=agent.url, way=way)
    assert (energy.method, energy.source, energy.backend) == ("sampled", "remote", "remote_agent")
    assert energy.mean_watts == pytest.approx(85.0) and energy.shape["source"] == "remote"
    assert energy.joules == pytest.approx(74.0 * energy.seconds, rel=0.02) and energy.samples >= 1
    assert {"gpu": ["1"]} in [query for path, query in agent.asked if path == "/power"]


@behaviour("`Meter._window`")
@differs("power.draw is a mean over up to a second; a window shorter than what its readings average over is not measured by "
         "them (`window_below_resolution`), but estimated or unknown.")
def test_a_short_window(alone, agent, ours):
    """A window of any length that got a reading is sampled."""
    energy = alone.play(window, url=agent.url, seconds=0.3, joules_per_1k_hint=HINT)
    assert energy.method == ("estimated" if ours else "sampled")
    if ours:
        assert energy.extended["error"] == "window_below_resolution"


@behaviour("`RemoteAgent`")
def test_an_endpoint_with_a_slash(alone, agent):
    """A slash at the end of the endpoint does no harm."""
    assert alone.play(window, url=agent.url + "/").method == "sampled"


@behaviour("test_meter")
@pytest.mark.parametrize("way", ["sync", "async"])
def test_an_agent_that_is_not_there(alone, way):
    """An agent that cannot be reached costs the measurement and not the request: estimated, 0 samples."""
    energy = alone.play(window, url="http://127.0.0.1:1", seconds=0.05, way=way, readable=False, joules_per_1k_hint=HINT,
                        timeout_s=0.05)
    assert (energy.method, energy.samples, energy.source) == ("estimated", 0, "remote")
    assert energy.joules == pytest.approx(410.0)


BAD = {
    "503": (503, None), "404": (404, b'{"error": "no gpu 1"}'), "no JSON": (200, b"<html>"),
    "no watts": (200, b'{"gpu": 1}'), "null": (200, b'{"watts": null}'), "a list": (200, b"[]"),
    "words": (200, b'{"watts": "[N/A]"}'),
}


@behaviour("`RemoteAgent.read_watts`")
@pytest.mark.parametrize("answer", BAD)
def test_an_agent_that_cannot_say(alone, agent, answer):
    """An agent that answers with an error or with something else costs the measurement and not the request."""
    agent.status, agent.body = BAD[answer]
    energy = alone.play(window, url=agent.url, seconds=0.1, readable=False, joules_per_1k_hint=HINT)
    assert (energy.method, energy.samples) == ("estimated", 0)


def reads(at, url, gpu_index=1, **options):
    agent = at.implementation.RemoteAgent(url, gpu_index, **options)
    again = agent.read_watts(), agent.read_watts()

    async def read():
        watts = await agent.aread_watts(), await agent.aread_joules()
        await agent.aclose()
        return watts

    return {"watts": again, "async": asyncio.run(read()), "joules": agent.read_joules(), "name": agent.name,
            "kind": agent.kind, "gpu_index": agent.gpu_index, "timeout_s": agent.timeout_s,
            "closed": agent.close()}


@behaviour("`RemoteAgent`")
def test_the_agents_reader(alone, agent):
    """`RemoteAgent(endpoint, gpu_index=0, timeout_s=2.0)` reads watts, blocking or awaited, and no joules; it is named
    `remote_agent`, of kind "sampler"."""
    assert alone.play(reads, url=agent.url) == {
        "watts": [85.0, 85.0], "async": [85.0, None], "joules": None, "name": "remote_agent", "kind": "sampler",
        "gpu_index": 1, "timeout_s": 2.0, "closed": None}


@behaviour("test_meter")
def test_the_reader_of_an_agent_that_is_not_there(alone):
    """Where the agent cannot be reached both reads are None."""
    seen = alone.play(reads, url="http://127.0.0.1:1", gpu_index=0, timeout_s=0.2)
    assert seen["watts"] == [None, None] and seen["async"] == [None, None]
