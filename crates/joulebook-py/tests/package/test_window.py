"""Windows: how they open and close, and what they leave alone."""

import asyncio
import threading
import time

import pytest

import joulebook
from joulebook import Energy, Meter, Node

from .conftest import IDLE_W, near


def busy(draw, seconds=0.5, watts=350.0):
    draw(watts)
    time.sleep(seconds)
    draw(IDLE_W)


def test_a_block_is_measured_at_once_and_settled(node, draw):
    meter = Meter.for_node(node)
    with meter as entered:
        busy(draw)
    assert entered is meter
    now, settled = meter.result(100), meter.settle(tokens=100)
    assert near(now, 300) and near(settled, 300)
    assert (now.settled, settled.settled) == (False, True)
    assert now.rule == "raw" and settled.rule in ("alone", "shared")
    assert settled.bound_joules < now.bound_joules
    assert abs(settled.joules - 300 * settled.seconds) <= settled.bound_joules
    # The answer at once stays what it was.
    assert meter.result(100) == now


def test_the_two_forms(node, draw):
    with Meter.for_node(node) as meter:
        busy(draw, 0.3)
    energy = meter.result(50)
    assert set(energy.as_dict(50)) == {
        "joules", "method", "seconds", "samples", "mean_watts", "idle_watts", "source", "backend",
        "joules_per_token", "tokens_per_joule"}
    extended = energy.as_dict(50, extended=True)
    assert extended["bound_joules"] == pytest.approx(energy.bound_joules, rel=1e-3)
    assert extended["tenancy"] == energy.tenancy and extended["rule"] == "raw"
    unknown = Meter(None).result()
    assert (unknown.joules, unknown.known_joules, unknown.method) == (0.0, None, "unknown")
    assert unknown.as_dict()["joules"] == 0.0 and unknown.as_dict(extended=True)["joules"] is None
    assert unknown.error == "absent"


def test_nested_code_marks_the_window_it_is_in(node, draw):
    def retrieve():
        busy(draw, 0.2)
        joulebook.mark("retrieve")

    assert joulebook.current() is None
    joulebook.mark("nowhere")
    with Meter.for_node(node) as meter:
        assert joulebook.current() is meter
        retrieve()
        retrieve()
        thread = threading.Thread(target=joulebook.mark, args=("another thread's",))
        thread.start()
        thread.join()
    assert joulebook.current() is None
    assert list(meter.result().stages) == ["retrieve"]


def test_a_task_has_its_own_window(node):
    async def request(name):
        async with Meter.for_node(node) as meter:
            await asyncio.sleep(0.01)
            assert joulebook.current() is meter
            joulebook.mark(name)
        return list(meter.result().stages)

    async def both():
        return await asyncio.gather(request("a"), request("b"))

    assert asyncio.run(both()) == [["a"], ["b"]]


def test_a_window_inside_another_takes_nothing_from_it(node, draw):
    with Meter.for_node(node) as outer:
        with Meter.for_node(node, joules_per_1k_hint=1.0) as inner:
            assert joulebook.current() is inner
            busy(draw)
        assert joulebook.current() is outer
    outside, inside = outer.settle(), inner.settle()
    assert near(outside, 300) and near(inside, 300)
    assert "overlap" not in outside.flags and "overlap" not in inside.flags


def test_windows_side_by_side_inside_another_say_so(node, draw):
    async def request():
        async with Meter.for_node(node) as meter:
            await asyncio.sleep(0.3)
        return meter.result()

    async def all_of_them():
        async with Meter.for_node(node) as total:
            draw(350.0)
            energies = await asyncio.gather(request(), request())
        return total.result(), *energies

    total, *energies = asyncio.run(all_of_them())
    assert near(total, 300) and "overlap" not in total.flags
    assert all(near(energy, 300) and "overlap" in energy.flags for energy in energies)


def test_windows_side_by_side_share_when_they_settle(node, draw):
    async def request():
        meter = Meter.for_node(node)
        async with meter:
            await asyncio.sleep(0.4)
        return meter.result(), await meter.asettle()

    async def both():
        draw(350.0)
        return await asyncio.gather(request(), request())

    for now, settled in asyncio.run(both()):
        assert near(now, 300) and "overlap" in now.flags
        assert near(settled, 150)


def test_an_exception_goes_through_and_is_measured(node, draw):
    meter = Meter.for_node(node)
    error = ValueError("of the work")
    with pytest.raises(ValueError) as caught, meter:
        busy(draw, 0.3)
        raise error
    assert caught.value is error and near(meter.result(), 300)


def test_a_window_that_is_no_block(node, draw):
    meter = Meter.for_node(node)
    meter.start()
    assert joulebook.current() is None
    busy(draw, 0.3)
    meter.mark("a")
    so_far = meter.result()
    meter.stop()
    meter.stop()
    assert near(so_far, 300) and list(meter.result().stages) == ["a"]


def test_used_again_it_starts_afresh(node):
    meter = Meter.for_node(node)
    with meter:
        meter.mark("first")
        time.sleep(0.05)
    with meter.sync():
        meter.mark("second")
        with meter:
            meter.mark("third")
    assert list(meter.result().stages) == ["third"]
    assert joulebook.current() is None


def test_never_opened_it_keeps_quiet(node):
    meter = Meter.for_node(node, joules_per_1k_hint=1000.0)
    assert meter.result().method == "unknown"
    assert (meter.result(2).method, meter.result(2).joules) == ("estimated", 2.0)
    meter.mark("nothing")
    meter.__exit__(None, None, None)
    assert meter.settle(0.01).method == "unknown"
    assert meter.result(-5).method == meter.result(None).method == "unknown"


def test_the_callers_sync(node):
    calls = []
    with Meter.for_node(node, sync=lambda: calls.append(joulebook.current())) as meter:
        pass
    assert calls == [meter]
    with Meter.for_node(node, sync=lambda: 1 / 0):
        pass

    def interrupted():
        raise KeyboardInterrupt

    meter = Meter.for_node(node, sync=interrupted)
    with pytest.raises(KeyboardInterrupt), meter:
        time.sleep(0.05)
    assert meter.result().seconds >= 0.05 and joulebook.current() is None


def test_several_cards_add_up(node, draw):
    both = Node("both", gpus=[0, "1"], idle_w=[IDLE_W, IDLE_W])
    meter = Meter.for_node(both)
    assert both.is_local and meter.idle_w == 2 * IDLE_W and meter.backend_name == "nvml_counter"
    with meter:
        draw(350.0, card=1)
        busy(draw)
    energy = meter.settle()
    assert near(energy, 600) and energy.idle_watts == 2 * IDLE_W


def test_without_a_floor_nothing_is_charged_above_it(node, draw):
    for floorless in (Node(gpus=[0]), Node(idle_w=None, is_local=True)):
        with Meter.for_node(floorless) as meter:
            busy(draw, 0.3)
        energy = meter.result()
        assert (energy.method, energy.error) == ("unknown", "no_baseline")
        assert energy.gross_joules > 0 and energy.as_dict()["idle_watts"] == 0.0


def test_what_is_set_on_a_meter_holds_from_the_next_window(node, draw):
    meter = Meter.for_node(node)
    meter.idle_w, meter.joules_per_1k_hint, meter.source = 0.0, 500.0, "bench"
    with meter:
        busy(draw, 0.3)
    energy = meter.result(4)
    assert near(energy, 350) and energy.source == energy.as_dict()["source"] == "bench"
    assert (meter.idle_w, meter.joules_per_1k_hint) == (0.0, 500.0)
    with pytest.raises(ValueError, match="idle_w"):
        meter.idle_w = -1.0


def test_energies_are_values(node, draw):
    import copy
    import pickle

    with Meter.for_node(node) as meter:
        busy(draw, 0.2)
        meter.mark("a")
    energy = meter.settle()
    assert pickle.loads(pickle.dumps(energy)) == copy.deepcopy(energy) == energy
    assert energy.__replace__(joules=1.0).joules == 1.0
    match energy:
        case Energy(_, "sampled", seconds):
            assert seconds == energy.seconds
    with pytest.raises(ValueError, match="'guessed' is none of"):
        Energy(1.0, "guessed", 1.0)


def test_a_node_that_says_nonsense_is_refused_at_once_or_told_of(node, caplog):
    with pytest.raises(ValueError, match="idle_w"):
        Node(idle_w=-1.0)
    with pytest.raises(TypeError):
        Node(idle_w="much")

    class Odd:
        idle_w, is_local = float("nan"), True

    with caplog.at_level("WARNING", logger="joulebook"), Meter.for_node(Odd()) as meter:
        pass
    assert meter.result(1).method == "unknown" and "idle_w" in caplog.text


def test_a_card_that_is_not_there_is_told_of_once(cards, caplog):
    gone = Node(gpu_index=7, is_local=True)
    with caplog.at_level("WARNING", logger="joulebook"):
        for _ in range(3):
            with Meter.for_node(gone) as meter:
                pass
    assert (meter.backend_name, meter.source, meter.sampling, meter.backend) == ("none", "none", False, None)
    assert meter.warnings and len(caplog.records) == 1
