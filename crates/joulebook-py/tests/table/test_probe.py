"""What a card looks like now, to decide whether to spend something on it."""

import asyncio

import pytest

behaviour, differs = pytest.mark.behaviour, pytest.mark.differs

CARD = """card 0
  name Bench 9000
  mem total_mib=81920 base_mib=512
  util gpu=97
  idle 96
  counter period_ms=20
  proc 0 inf 4242 18200 /opt/run, v2/serve --ids 1,2
  proc 0 inf 77 335 /usr/bin/first
"""
NO_LIST = "card 0\n  idle 96\n  fault 0 inf procs unknown\n"
SIZELESS = "card 0\n  idle 96\n  proc 0 inf 4242 -1 /opt/serve\n  proc 0 inf 77 335 /usr/bin/first\n"
APPS = [{"pid": 77, "used_mib": 335, "name": "/usr/bin/first"},
        {"pid": 4242, "used_mib": 18200, "name": "/opt/run, v2/serve --ids 1,2"}]
KEYS = {"gpu", "watts", "memory_used_mib", "memory_total_mib", "memory_free_mib", "utilization_pct", "compute_apps"}


def by_pid(apps):
    return sorted(apps, key=lambda app: app["pid"])


def asked(at, index=0, patience_s=20.0):
    """All that is asked of a card without a window."""
    giul = at.implementation
    node = giul.Node(gpu_index=index, is_local=True)
    # A package that has a recorder needs its first reading.
    at.until(lambda: asyncio.run(giul.probe_node(node)), seconds=min(patience_s, 2.0))
    return {"power": giul.read_power_w(index), "apps": giul.read_compute_apps(index),
            "state": giul.read_gpu_state(index), "probe": asyncio.run(giul.probe_node(node)),
            "sampler": at.until(giul.SmiSampler(index).read_watts, seconds=patience_s)}


@behaviour("README, Probing a card")
@differs("The state has the card's `name` too, as an agent's answer has: local and remote in one shape.")
def test_the_state_of_a_card(machine, ours):
    """`read_gpu_state(n)` has gpu, watts, memory_used_mib, memory_total_mib, memory_free_mib (total less used),
    utilization_pct and compute_apps."""
    state = machine(CARD).once(asked)["state"]
    assert set(state) == (KEYS | {"name"} if ours else KEYS)
    assert state["watts"] == 96.0 and isinstance(state["watts"], float)
    # Base memory and the two processes.
    assert (state["gpu"], state["memory_total_mib"], state["memory_used_mib"]) == (0, 81920, 19047)
    assert state["memory_free_mib"] == 81920 - 19047 and state["utilization_pct"] == 97
    assert by_pid(state["compute_apps"]) == APPS
    assert state.get("name", "Bench 9000") == "Bench 9000"


@behaviour("README, Probing a card")
def test_a_local_probe(machine):
    """`await probe_node(node)` of a local node is the same as `read_gpu_state`."""
    seen = machine(CARD).once(asked)
    assert seen["probe"] == seen["state"]


@behaviour("`read_power_w`")
def test_power(machine):
    """`read_power_w(n)` and `SmiSampler(n).read_watts()` are the card's watts."""
    seen = machine(CARD).once(asked)
    assert seen["power"] == seen["sampler"] == 96.0


@behaviour("`read_compute_apps`")
def test_processes(machine):
    """`read_compute_apps(n)` lists pid, used_mib and name of each process; a name keeps its commas and its arguments."""
    assert by_pid(machine(CARD).once(asked)["apps"]) == APPS


@behaviour("`read_gpu_state`")
@differs("`read_compute_apps` is None there: unknown is not nobody. Loop over `read_compute_apps(n) or ()`.")
@pytest.mark.parametrize(("index", "there"), [(7, True), (0, False)])
def test_a_card_that_is_not_there(machine, ours, index, there):
    """For a card that is not there, and on a host without anything, power, state and probe are None and the list is
    empty; nothing is raised."""
    seen = machine(CARD, nvml=there, smi=there).play(asked, index=index, patience_s=0.5)
    assert seen == {"power": None, "apps": None if ours else [], "state": None, "probe": None, "sampler": None}


@behaviour("`read_compute_apps`")
@differs("A process whose memory is not known is listed, with `used_mib` None: it is there.")
def test_a_process_of_unknown_size(machine, ours):
    """A process whose memory reads N/A is left out of the list."""
    apps = by_pid(machine(SIZELESS).play(asked)["apps"])
    first = {"pid": 77, "used_mib": 335, "name": "/usr/bin/first"}
    assert apps == ([first, {"pid": 4242, "used_mib": None, "name": "/opt/serve"}] if ours else [first])


@behaviour("`read_compute_apps`")
@differs("It is None, in a card's state as well: unknown is not nobody.")
def test_processes_that_cannot_be_listed(machine, ours):
    """Where the processes cannot be listed the list is empty, and the state is there all the same."""
    seen = machine(NO_LIST).play(asked)
    assert seen["state"]["watts"] == 96.0
    assert seen["apps"] == seen["state"]["compute_apps"] == (None if ours else [])


def probed(at, **node):
    return asyncio.run(at.implementation.probe_node(at.implementation.Node(**node)))


def probed_nobody(at):
    return asyncio.run(at.implementation.probe_node(None))


@behaviour("`probe_node`")
def test_a_remote_probe(machine, agent):
    """A remote node's probe is its agent's answer, for the card of its gpu_index."""
    agent.state["compute_apps"] = APPS
    state = machine(CARD).play(probed, gpu_index=1, power_endpoint=agent.url + "/")
    assert state == {"gpu": 1, **agent.state}
    assert ("/power", {"gpu": ["1"]}) in agent.asked


@behaviour("`probe_node`")
@differs("giul's agent says an empty list too where it could not list the processes: None, unknown.")
def test_an_agent_that_lists_nobody(machine, agent, ours):
    """An agent's empty list of processes is nobody."""
    state = machine(CARD).play(probed, gpu_index=1, power_endpoint=agent.url)
    assert state["compute_apps"] == (None if ours else [])


@behaviour("`probe_node`")
def test_a_probe_that_fails(machine, agent):
    """A probe is None, which is unknown and not fine, where there is no node, no way to ask, nobody who answers, an
    error, or no JSON."""
    here = machine(CARD)
    assert here.play(probed_nobody) is None
    assert here.play(probed) is None
    assert here.play(probed, power_endpoint="http://127.0.0.1:1") is None
    agent.status = 503
    assert here.play(probed, power_endpoint=agent.url) is None
    agent.status, agent.body = 200, b"<html>"
    assert here.play(probed, power_endpoint=agent.url) is None


@behaviour("`probe_node`")
def test_a_local_probe_that_only_the_agent_can_answer(machine, agent):
    """A local node whose host has no means of its own is asked through its endpoint."""
    alone = machine(CARD, nvml=False, smi=False)
    assert alone.play(probed, is_local=True, power_endpoint=agent.url)["watts"] == 85.0
