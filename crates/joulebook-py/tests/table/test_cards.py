"""Windows on the lab's cards, whose true energy is known."""

import asyncio
import time

import pytest

behaviour, differs = pytest.mark.behaviour, pytest.mark.differs

# Registers that publish fast, so that a direct read is nearly the truth.
CARD = "card 0\n  dynamic\n  idle 70\n  counter period_ms=5\n  sensor window_ms=20 period_ms=20\n" \
       "  instant period_ms=20\n"
IDLE_W, BUSY_W = 70.0, 400.0


def window(at, seconds, marks=(), way="sync", readable=True, **options):
    """A window on a busy card, and what it truly cost above idle."""
    node = at.implementation.Node(name="iris", idle_w=IDLE_W, is_local=True)
    at.live.set(0, BUSY_W)
    if readable:
        at.ready(node)
    time.sleep(0.3)
    meter = at.implementation.Meter.for_node(node, **options)

    async def run():
        async with meter:
            opened = at.live.now_ns()
            for mark in marks or (None,):
                await asyncio.sleep(seconds)
                if mark:
                    meter.mark(mark)
            return opened, at.live.now_ns()

    if way == "async":
        span = asyncio.run(run())
    else:
        with meter.sync():
            opened = at.live.now_ns()
            for mark in marks or (None,):
                time.sleep(seconds)
                if mark:
                    meter.mark(mark)
            span = opened, at.live.now_ns()
    energy = meter.result(tokens=100)
    return {"energy": at.seen(energy, 100), "truth": at.truth(0, span, IDLE_W)}


@behaviour("README, Backends")
@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_counter(machine, way):
    """A window on a register is a true measurement: sampled, backend `nvml_counter`, its energy that of the card."""
    seen = machine(CARD).play(window, seconds=2.0, way=way)
    energy, truth = seen["energy"], seen["truth"]
    assert (energy.method, energy.backend, energy.source) == ("sampled", "nvml_counter", "local")
    # Ours is the answer at once of a card that was never probed, read ten times a second.
    assert energy.joules == pytest.approx(truth, rel=0.15)
    assert energy.mean_watts == pytest.approx(BUSY_W, rel=0.15) and energy.idle_watts == IDLE_W
    assert energy.shape["joules_per_token"] == pytest.approx(energy.joules / 100, abs=1e-5)


@behaviour("README, Backends")
@pytest.mark.parametrize("way", ["sync", "async"])
def test_the_program(machine, way):
    """A window through nvidia-smi is the integral of power.draw: sampled, backend `smi_sampler`."""
    seen = machine(CARD, nvml=False).play(window, seconds=2.5, way=way)
    energy, truth = seen["energy"], seen["truth"]
    assert (energy.method, energy.backend, energy.source) == ("sampled", "smi_sampler", "local")
    assert energy.joules == pytest.approx(truth, rel=0.15)
    assert energy.mean_watts == pytest.approx(BUSY_W, rel=0.15) and energy.samples >= 2


# A card whose power.draw is a mean over a second, as on Ampere and later.
AVERAGED = "card 0\n  dynamic\n  idle 70\n  sensor window_ms=1000 period_ms=100\n  instant supported=0\n"


@behaviour("`Meter._window`")
@differs("Read through a mean over a second, a shorter window shows what was before it: it is not measured by that "
         "(`window_below_resolution`), but estimated or unknown.")
def test_a_short_window_through_the_program(machine, ours):
    """A window of any length that got a reading is sampled."""
    energy = machine(AVERAGED, nvml=False).play(window, seconds=0.3, joules_per_1k_hint=4100.0)["energy"]
    assert energy.method == ("estimated" if ours else "sampled")
    if ours:
        assert energy.extended["error"] == "window_below_resolution"


@behaviour("README, Backends")
def test_neither(machine):
    """Without either a window is estimated with a hint, backend `none`."""
    seen = machine(CARD, nvml=False, smi=False).play(window, seconds=0.02, readable=False,
                                                               joules_per_1k_hint=4100.0)
    energy = seen["energy"]
    assert (energy.method, energy.backend, energy.source) == ("estimated", "none", "none")
    assert energy.joules == pytest.approx(410.0)


@behaviour("README, Use")
def test_stages(machine):
    """Stages of a window on a register each have their energy, and add up to it where the last mark ends it."""
    seen = machine(CARD).play(window, seconds=1.0, marks=("retrieve", "generate"))
    energy, truth = seen["energy"], seen["truth"]
    assert list(energy.stages) == ["retrieve", "generate"] and energy.method == "sampled"
    parts = list(energy.stages.values())
    assert all(part.method == "sampled" and part.backend == "nvml_counter" for part in parts)
    assert sum(part.joules for part in parts) == pytest.approx(energy.joules, rel=0.1)
    assert sum(part.joules for part in parts) == pytest.approx(truth, rel=0.2)
    assert set(energy.shape["stages"]) == {"retrieve", "generate"}
