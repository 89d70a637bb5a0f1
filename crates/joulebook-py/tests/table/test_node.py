"""What a Node says about a card."""

import dataclasses
import math
from types import SimpleNamespace

import pytest

behaviour, differs = pytest.mark.behaviour, pytest.mark.differs


@behaviour("`Node`")
def test_defaults(implementation):
    """Everything has a default: no name, card 0, idle 0 W, not local, no endpoint, no serving_match, a floor of
    512 MiB, nothing ignored."""
    node = implementation.Node()
    assert (node.name, node.gpu_index, node.is_local, node.power_endpoint) == ("", 0, False, None)
    assert node.idle_w == 0.0
    assert (node.serving_match, node.contention_floor_mib, node.contention_ignore) == (None, 512, ())


@behaviour("`Node`")
def test_by_position(implementation):
    """Fields can be given by position, in the order name, gpu_index, idle_w, is_local, power_endpoint, serving_match,
    contention_floor_mib, contention_ignore."""
    node = implementation.Node("iris", 1, 38.0, True, "http://iris:9402", "vllm", 256, ("Xorg",))
    named = implementation.Node(name="iris", gpu_index=1, idle_w=38.0, is_local=True,
                                power_endpoint="http://iris:9402", serving_match="vllm", contention_floor_mib=256,
                                contention_ignore=("Xorg",))
    assert node == named and node != implementation.Node("lily")
    assert (node.gpu_index, node.idle_w, node.contention_ignore) == (1, 38.0, ("Xorg",))


@behaviour("`Node`")
def test_it_is_frozen(implementation):
    """A Node cannot be changed, only copied with changes (`dataclasses.replace`)."""
    node = implementation.Node(name="iris", idle_w=38.0)
    with pytest.raises(AttributeError):
        node.idle_w = 1.0
    moved = dataclasses.replace(node, gpu_index=1)
    assert (moved.gpu_index, moved.idle_w, node.gpu_index) == (1, 38.0, 0)


@behaviour("`Node`")
def test_it_can_be_a_key(implementation):
    """A Node is hashable: it can be the key of a table of meters."""
    node = implementation.Node(name="iris", contention_ignore=("Xorg",))
    assert {node: 1}[implementation.Node(name="iris", contention_ignore=("Xorg",))] == 1


@behaviour("`Meter.for_node`")
def test_any_object_will_do(implementation):
    """A node can be any object with `idle_w` and `is_local`; attributes that it does not have take the defaults."""
    node = SimpleNamespace(idle_w=12.0, is_local=False)
    meter = implementation.Meter.for_node(node, joules_per_1k_hint=100.0)
    assert (meter.idle_w, meter.backend_name, meter.source, meter.node) == (12.0, "none", "none", node)
    assert not meter.watches_contention
    with meter.sync():
        pass
    assert meter.result(tokens=10).joules == 1.0


@behaviour("`Meter.for_node`")
@differs("Attributes that are missing take the defaults, these two as well.")
def test_an_object_that_says_nothing(implementation, ours):
    """An object without `idle_w` or `is_local` is an AttributeError in the request."""
    def meter():
        return implementation.Meter.for_node(SimpleNamespace(name="gone"))

    if ours:
        assert meter().backend_name == "none"
    else:
        with pytest.raises(AttributeError):
            meter()


@behaviour("`Node`")
@differs("It is refused where it is said, with ValueError, and not subtracted from every figure of that node.")
@pytest.mark.parametrize("idle_w", [-5.0, math.inf, math.nan])
def test_a_floor_that_is_no_power(implementation, ours, idle_w):
    """A floor below 0, infinite, or no number is taken as it is: −5 W adds 5 W to every window."""
    if ours:
        with pytest.raises(ValueError, match="no power"):
            implementation.Node(idle_w=idle_w)
    else:
        floor = implementation.Meter.for_node(implementation.Node(idle_w=idle_w)).idle_w
        assert floor == idle_w or math.isnan(floor)


@behaviour("`Meter.for_node`")
@differs("A node that cannot be read (here: its floor is a word) costs the measurement, and the log says why.")
def test_an_object_that_says_nonsense(implementation, ours):
    """A node whose floor is a word raises out of the request, when its window is asked."""
    node = SimpleNamespace(idle_w="cold", is_local=False)
    meter = implementation.Meter.for_node(node, joules_per_1k_hint=100.0)
    with meter.sync():
        pass
    if ours:
        assert meter.result(tokens=10).method == "estimated"
    else:
        with pytest.raises(TypeError):
            meter.result(tokens=10).as_dict()
