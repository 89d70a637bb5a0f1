"""Stages: marks inside a window."""

import asyncio
import time

import pytest

from .backends import Card, Counter, Sampler

behaviour, differs = pytest.mark.behaviour, pytest.mark.differs


def two_stages(implementation, backend, **options):
    """0.3 s at 200 W, marked; 0.3 s at 400 W, marked. The mark is the last thing before the end."""
    meter = implementation.Meter(backend, idle_w=70.0, **options)
    backend.card.draw(200.0)
    with meter.sync():
        time.sleep(0.3)
        meter.mark("retrieve")
        backend.card.draw(400.0)
        time.sleep(0.3)
        meter.mark("generate")
    return meter


@behaviour("test_stages")
def test_without_marks(implementation):
    """A window without marks has no stages."""
    meter = implementation.Meter(Counter(Card(400.0)), idle_w=70.0)
    with meter.sync():
        time.sleep(0.02)
    assert dict(meter.result().stages) == {} and "stages" not in meter.result().as_dict(50)


@behaviour("test_stages")
def test_stages_of_a_counter(implementation):
    """A mark closes the stage since the mark before (the first: since the opening); each is charged above idle for its
    own seconds, and where the last mark ends the window they add up to the total."""
    energy = two_stages(implementation, Counter(Card())).result(tokens=412)
    retrieve, generate = energy.stages["retrieve"], energy.stages["generate"]
    assert list(energy.stages) == ["retrieve", "generate"]
    assert retrieve.method == generate.method == "sampled" and generate.backend == "bench_counter"
    assert retrieve.joules == pytest.approx(130.0 * retrieve.seconds, rel=0.2)
    assert generate.joules == pytest.approx(330.0 * generate.seconds, rel=0.2)
    assert retrieve.idle_watts == 70.0 and retrieve.mean_watts == pytest.approx(200.0, rel=0.2)
    assert retrieve.seconds + generate.seconds == pytest.approx(energy.seconds, rel=0.2)
    assert retrieve.joules + generate.joules == pytest.approx(energy.joules, rel=0.2)


@behaviour("test_stages")
def test_after_the_last_mark(implementation):
    """Work after the last mark is part of the total and of no stage."""
    card = Card(200.0)
    meter = implementation.Meter(Counter(card), idle_w=70.0)
    with meter.sync():
        time.sleep(0.3)
        meter.mark("retrieve")
        time.sleep(0.3)
    energy = meter.result(tokens=100)
    assert list(energy.stages) == ["retrieve"]
    assert energy.stages["retrieve"].joules == pytest.approx(energy.joules / 2, rel=0.3)


@behaviour("test_stages")
def test_stages_of_a_gauge(implementation):
    """A gauge's stages are made of the samples that fell into each."""
    energy = two_stages(implementation, Sampler(Card()), interval_s=0.01).result(tokens=200)
    retrieve, generate = energy.stages["retrieve"], energy.stages["generate"]
    assert energy.method == retrieve.method == generate.method == "sampled"
    assert retrieve.mean_watts < generate.mean_watts
    assert retrieve.samples >= 1 and generate.samples >= 1


@behaviour("test_stages")
def test_a_stage_that_nobody_saw(implementation):
    """A stage that the gauge was too slow to see is unknown, with 0 samples; the total is not harmed."""
    meter = implementation.Meter(Sampler(Card(200.0)), idle_w=10.0, interval_s=0.1)
    with meter.sync():
        time.sleep(0.25)
        meter.mark("retrieve")
        meter.mark("blink")
        time.sleep(0.25)
        meter.mark("generate")
    energy = meter.result(tokens=100)
    blink = energy.stages["blink"]
    assert (blink.method, blink.samples) == ("unknown", 0) and blink.as_dict()["joules"] == 0.0
    assert energy.stages["retrieve"].method == "sampled" and energy.method == "sampled"
    assert energy.joules == pytest.approx(190.0 * energy.seconds, rel=0.02)


@behaviour("`Meter._stages`")
def test_a_stage_has_no_estimate(implementation):
    """A stage is never estimated, since its tokens are not known, even where the total is."""
    meter = implementation.Meter(None, idle_w=10.0, joules_per_1k_hint=4100.0)
    with meter.sync():
        meter.mark("a")
    energy = meter.result(tokens=100)
    assert energy.method == "estimated" and energy.stages["a"].method == "unknown"
    assert energy.stages["a"].as_dict()["joules"] == 0.0


@behaviour("`Meter._stages`")
@differs("The same name twice adds up in one stage: a loop that marks each turn loses none.")
def test_the_same_name_twice(implementation, ours):
    """Of two marks with one name the second replaces the first."""
    meter = implementation.Meter(Counter(Card(400.0)), idle_w=70.0)
    with meter.sync():
        for _ in range(2):
            time.sleep(0.3)
            meter.mark("turn")
    energy = meter.result()
    share = 1.0 if ours else 0.5
    assert energy.stages["turn"].joules == pytest.approx(share * energy.joules, rel=0.2)
    assert energy.stages["turn"].seconds == pytest.approx(share * energy.seconds, rel=0.2)


@behaviour("test_stages")
def test_stages_the_async_way(implementation):
    """Marks work in an async window as well."""
    async def window():
        card = Card(200.0)
        meter = implementation.Meter(Counter(card), idle_w=70.0)
        async with meter:
            await asyncio.sleep(0.3)
            meter.mark("retrieve")
            card.draw(400.0)
            await asyncio.sleep(0.3)
            meter.mark("generate")
        return meter.result(tokens=100)

    stages = asyncio.run(window()).stages
    assert stages["retrieve"].joules == pytest.approx(130.0 * stages["retrieve"].seconds, rel=0.2)
    assert stages["generate"].joules == pytest.approx(330.0 * stages["generate"].seconds, rel=0.2)


@behaviour("test_stages")
def test_stages_in_print(implementation):
    """`as_dict` has one dict a stage, with its method and its backend."""
    shape = two_stages(implementation, Counter(Card())).result(tokens=100).as_dict(100)
    assert list(shape["stages"]) == ["retrieve", "generate"]
    assert shape["stages"]["generate"]["method"] == "sampled"
    assert shape["stages"]["generate"]["backend"] == "bench_counter"
    assert "joules_per_token" not in shape["stages"]["generate"]
