"""What reads a card, on the lab's cards."""

import asyncio

import pytest

behaviour, differs = pytest.mark.behaviour, pytest.mark.differs

COUNTER = "card 0\n  dynamic\n  counter period_ms=20\n  sensor window_ms=20 period_ms=20\n"
NO_COUNTER = "card 0\n  dynamic\n  counter supported=0\n"
LATE_COUNTER = "card 0\n  dynamic\n  counter period_ms=20\n  fault 0 2 energy notsupported\n"


def chosen(at, **node):
    """What a meter of a node is made of."""
    node = at.implementation.Node(name="iris", idle_w=38.0, **node)
    meter = at.implementation.Meter.for_node(node, joules_per_1k_hint=4100.0)
    return {"backend": meter.backend_name, "source": meter.source, "idle_w": meter.idle_w, "sampling": meter.sampling,
            "hint": meter.joules_per_1k_hint, "kind": getattr(meter.backend, "kind", None),
            "same_node": meter.node is node}


@behaviour("test_counter")
def test_the_counter_is_preferred(machine):
    """A local card with an energy register is read by it: backend `nvml_counter`, of kind "counter", source `local`."""
    seen = machine(COUNTER).play(chosen, is_local=True)
    assert seen == {"backend": "nvml_counter", "source": "local", "idle_w": 38.0, "sampling": True, "hint": 4100.0,
                    "kind": "counter", "same_node": True}


@behaviour("README, Backends")
@differs("Between the register and the program stands the driver's power gauge (`nvml_power`): no program is started "
         "where the library answers.")
def test_a_card_without_a_counter(machine, ours):
    """A card whose register is not supported is read through nvidia-smi: `smi_sampler`."""
    seen = machine(NO_COUNTER).play(chosen, is_local=True)
    assert (seen["backend"], seen["source"]) == ("nvml_power" if ours else "smi_sampler", "local")
    assert seen["kind"] == "sampler"


def without(at, module, **node):
    """The same where a Python package is not installed."""
    import sys

    sys.modules[module] = None
    return chosen(at, **node)


@behaviour("README, test_counter")
@differs("The driver's library is read by the package itself: nothing else is to be installed.")
def test_without_the_nvml_extra(fresh, ours):
    """Without nvidia-ml-py (the extra `nvml`) there is no counter: nvidia-smi is read."""
    seen = fresh(COUNTER).play(without, module="pynvml", is_local=True)
    assert seen["backend"] == ("nvml_counter" if ours else "smi_sampler")


@behaviour("README, `Meter.for_node`")
@differs("HTTP is spoken by the package itself: nothing else is to be installed.")
def test_without_the_remote_extra(fresh, ours):
    """Without httpx (the extra `remote`) a remote node has no backend."""
    seen = fresh(COUNTER).play(without, module="httpx", power_endpoint="http://127.0.0.1:9")
    assert seen["backend"] == ("remote_agent" if ours else "none")


@behaviour("test_counter")
def test_a_host_without_the_library(machine):
    """Where NVML cannot be had a local card is read through nvidia-smi."""
    seen = machine(COUNTER, nvml=False).play(chosen, is_local=True)
    assert (seen["backend"], seen["source"], seen["kind"]) == ("smi_sampler", "local", "sampler")


@behaviour("test_meter")
def test_a_host_with_nothing(machine):
    """A host with neither still imports and makes meters: no backend, named "none"; source "none"."""
    seen = machine(COUNTER, nvml=False, smi=False).play(chosen, is_local=True)
    assert seen == {"backend": "none", "source": "none", "idle_w": 38.0, "sampling": False, "hint": 4100.0,
                    "kind": None, "same_node": True}


@behaviour("README, Backends")
def test_the_agent_of_a_remote_node(machine):
    """A node with a power_endpoint that is not local is read by its agent, `remote_agent`, source `remote`, even where
    this host has a card."""
    seen = machine(COUNTER).play(chosen, power_endpoint="http://127.0.0.1:9", gpu_index=1)
    assert (seen["backend"], seen["source"], seen["kind"]) == ("remote_agent", "remote", "sampler")


@behaviour("`Meter.for_node`")
def test_a_local_node_that_only_its_agent_can_read(machine):
    """A local node falls back to its power_endpoint where neither NVML nor nvidia-smi can be had."""
    seen = machine(COUNTER, nvml=False, smi=False).play(chosen, is_local=True, power_endpoint="http://127.0.0.1:9")
    assert (seen["backend"], seen["source"]) == ("remote_agent", "remote")


@behaviour("README, Backends")
def test_a_node_that_cannot_be_read(machine):
    """A node that is not local and has no endpoint has no backend."""
    seen = machine(COUNTER).play(chosen)
    assert (seen["backend"], seen["source"], seen["kind"]) == ("none", "none", None)


def hints(at):
    class Tier:
        joules_per_1k_hint = 250.0

    class Silent:
        joules_per_1k_hint = None

    for_node = at.implementation.Meter.for_node
    node = at.implementation.Node()
    return [meter.joules_per_1k_hint for meter in (
        for_node(node), for_node(node, Tier()), for_node(node, tier=Tier(), joules_per_1k_hint=40.0),
        for_node(node, Tier(), joules_per_1k_hint=0.0), for_node(node, Silent()), for_node(node, object()),
        for_node(None, Tier()))]


@behaviour("`Meter.for_node`")
def test_where_the_hint_comes_from(machine):
    """The hint is `joules_per_1k_hint`, else the tier's attribute of that name, else 0; a hint of 0 that is given goes
    before the tier's."""
    assert machine(COUNTER).play(hints) == [0.0, 250.0, 40.0, 0.0, 0.0, 0.0, 250.0]


def nobody(at):
    meter = at.implementation.Meter.for_node(None, joules_per_1k_hint=4100.0, interval_s=0.5)
    with meter.sync():
        pass
    return {"none": meter.backend is None, "interval_s": meter.interval_s, "energy": at.seen(meter.result(tokens=1000))}


@behaviour("test_meter")
def test_no_node_at_all(machine):
    """`for_node(None)` is a meter without a card: it keeps the time, and estimates."""
    seen = machine(COUNTER).play(nobody)
    assert seen["none"] and seen["interval_s"] == 0.5
    energy = seen["energy"]
    assert (energy.method, energy.joules, energy.source) == ("estimated", 4100.0, "none") and energy.seconds > 0


def probed(at):
    """Whether the card has a counter: at once, again when that may have changed, and after forgetting."""
    counter_for, forget = at.implementation.counter_for, at.implementation.reset_probe_cache
    at.until(lambda: counter_for(0) is not None, seconds=2.5)
    remembered = counter_for(0) is None
    forget()
    return {"remembered": remembered, "then": at.until(lambda: counter_for(0) is not None)}


@behaviour("README, Backends")
def test_support_is_asked_once(fresh):
    """That a card has no register is asked once and remembered, until `reset_probe_cache()`."""
    assert fresh(LATE_COUNTER).play(probed) == {"remembered": True, "then": True}


def counter(at, index):
    backend = at.implementation.counter_for(index)
    if backend is None:
        return None
    at.live.set(0, 400.0)
    before = backend.read_joules()
    t0 = at.live.now_ns()
    at.until(lambda: at.live.now_ns() - t0 > 2_000_000_000)
    after = asyncio.run(backend.aread_joules())
    return {"name": backend.name, "kind": backend.kind, "gpu_index": backend.gpu_index, "joules": after - before,
            "truth": at.live.joules(0, t0, at.live.now_ns()), "watts": backend.read_watts(),
            "awaited": asyncio.run(backend.aread_watts()), "isinstance": isinstance(backend, at.implementation.NvmlCounter)}


@behaviour("test_counter")
def test_the_counter_itself(machine):
    """`counter_for(n)` is an NvmlCounter whose `read_joules()` is cumulative joules: the difference of two is what the
    card drew; `read_watts()` is its power; both can be awaited."""
    seen = machine(COUNTER).play(counter, index=0)
    assert (seen["name"], seen["kind"], seen["gpu_index"], seen["isinstance"]) == ("nvml_counter", "counter", 0, True)
    # A publish of 20 ms at each end, and for ours a poll of 100 ms.
    assert seen["joules"] == pytest.approx(seen["truth"], rel=0.2)
    assert seen["watts"] == pytest.approx(400.0, rel=0.3) and seen["awaited"] == pytest.approx(400.0, rel=0.3)


@behaviour("`counter_for`")
@pytest.mark.parametrize(("scenario", "index", "nvml"), [(COUNTER, 5, True), (NO_COUNTER, 0, True),
                                                         (COUNTER, 0, False)])
def test_no_counter(machine, scenario, index, nvml):
    """`counter_for` is None, and raises nothing, for a card that is not there, one without a register, and where NVML
    cannot be had."""
    assert machine(scenario, nvml=nvml).play(counter, index=index) is None


def lost(at):
    """A counter of a card that is lost meanwhile."""
    backend = at.implementation.counter_for(0)
    before = backend.read_joules()
    at.at(1.5)
    at.until(lambda: backend.read_joules() is None, seconds=3.0)
    return {"before": before, "joules": backend.read_joules(), "watts": backend.read_watts()}


@behaviour("`NvmlCounter.read_joules`")
def test_a_counter_that_fails(fresh):
    """A counter that cannot be read any more is None and raises nothing, and so is its power."""
    seen = fresh(COUNTER + "  fault 1.4 inf all lost\n").play(lost)
    assert seen["before"] >= 0 and seen["joules"] is None and seen["watts"] is None


def imported(at):
    import sys

    import importlib.metadata as metadata

    module = at.implementation.module
    required = [line for line in metadata.requires(at.implementation.name) or [] if "extra ==" not in line]
    return {"version": module.__version__ == metadata.version(at.implementation.name), "required": required,
            "all": sorted(set(module.__all__)), "has": all(hasattr(module, name) for name in module.__all__),
            "asyncio": "asyncio" in sys.modules}


@behaviour("`__init__`, README")
def test_the_package(machine):
    """The package needs no other, has a `__version__`, and exports Energy, EnergyMeter, Meter, Node, NvmlCounter,
    RemoteAgent, SmiSampler, probe_node, read_compute_apps, read_gpu_state."""
    seen = machine(COUNTER, nvml=False, smi=False).play(imported)
    assert seen["version"] and seen["has"] and seen["required"] == []
    assert {"Energy", "EnergyMeter", "Meter", "Node", "NvmlCounter", "RemoteAgent", "SmiSampler", "probe_node",
            "read_compute_apps", "read_gpu_state", "__version__"} <= set(seen["all"])
