"""A shared card is witnessed, not measured.

The lab's machine has a card for each case, with the processes that are resident there; all windows
are open at once.
"""

import asyncio
import subprocess
import sys
import time

import pytest

behaviour, differs = pytest.mark.behaviour, pytest.mark.differs

OURS = "4201 20000 VLLM::EngineCore"
CHROME = "/opt/google/chrome/chrome --type=gpu-process"
EVAL = "/home/projects/venvs/eval/bin/python"
LONG = "/srv/" + "x" * 200
# Case: processes of its card (pid MiB name), what the node says.
CASES = {
    "foreign": ([OURS, f"3522 4806 {EVAL}"], {}),
    "ours": ([OURS], {}),
    "nobody": ([], {}),
    "small": ([OURS, f"4695 300 {CHROME}"], {}),
    "at the floor": ([OURS, f"4695 512 {CHROME}"], {}),
    "below the floor": ([OURS, f"4695 511 {CHROME}"], {}),
    "its own floor": ([OURS, f"4695 300 {CHROME}"], {"contention_floor_mib": 256}),
    "ignored": ([OURS, f"4695 594 {CHROME}"], {"contention_ignore": ["Chrome"]}),
    "ignored and another": ([OURS, f"4695 594 {CHROME}", f"3522 4806 {EVAL}"], {"contention_ignore": ["chrome"]}),
    "two of ours": ([OURS, "3667 10186 VLLM::EngineCore"], {}),
    "two of ours, one small": ([OURS, "3667 100 VLLM::EngineCore"], {}),
    "dedicated": ([f"3522 9000 {EVAL}"], {"serving_match": None}),
    "several": ([OURS, f"3522 4806 {EVAL}", "3523 900 /a/first, with a comma"], {}),
    "long": ([OURS, f"3524 4806 {LONG}"], {}),
}
SCENARIO = "".join(
    f"card {number}\n  uuid GPU-00000000-0000-4000-8000-{number:012d}\n  pci 0000:{number + 1:02x}:00.0\n"
    f"  idle 16\n  step 0 216\n  counter period_ms=5\n"
    + "".join(f"  proc 0 inf {process}\n" for process in processes)
    for number, (processes, _) in enumerate(CASES.values()))
HINT = 4100.0


def node(at, number, says):
    return at.implementation.Node(**{"name": "iris", "idle_w": 16.0, "gpu_index": number, "is_local": True,
                                     "serving_match": "vllm", **says})


def windows(at, cases):
    """A window on each card, all at once; its energy with tokens and whether it watched."""
    nodes = {name: node(at, number, says) for number, (name, says) in enumerate(cases.items())}
    at.ready(*nodes.values())
    return asyncio.run(all_at_once(at, nodes))


async def all_at_once(at, nodes):
    meters = {name: at.implementation.Meter.for_node(each, joules_per_1k_hint=HINT) for name, each in nodes.items()}

    async def window(name, meter):
        async with meter:
            await asyncio.sleep(0.8)
            meter.mark("a")
        return name, {"energy": at.seen(meter.result(tokens=100), 100), "watches": meter.watches_contention,
                      "without": at.seen(meter.result())}

    return dict(await asyncio.gather(*(window(*each) for each in meters.items())))


@pytest.fixture
def case(machine):
    """`case(name)`: the energy of the window on that card."""
    cases = {name: says for name, (_, says) in CASES.items()}
    return lambda name: machine(SCENARIO).once(windows, cases=cases)[name]


def sampled(seen):
    energy = seen["energy"]
    return (energy.method == "sampled" and energy.contended is False and energy.contended_by == ""
            and not {"contended", "contended_by"} & set(energy.shape))


@behaviour("test_contention, README rule 4")
def test_a_foreign_process(case):
    """A foreign process makes the window contended and says by whom; it is estimated with a hint, never sampled."""
    energy = case("foreign")["energy"]
    assert energy.method == "estimated" and energy.joules == pytest.approx(410.0)
    assert energy.contended is True and energy.contended_by == f"{EVAL} (4806 MiB)"
    assert energy.shape["contended"] is True and energy.shape["contended_by"] == energy.contended_by
    # What tried and what was seen is still said.
    assert energy.backend == "nvml_counter" and energy.mean_watts == pytest.approx(216.0, rel=0.2)


@behaviour("test_contention")
def test_without_a_hint(case):
    """Without tokens or a hint a contended window is unknown."""
    energy = case("foreign")["without"]
    assert energy.method == "unknown" and energy.contended and energy.shape["joules"] == 0.0


@behaviour("test_contention")
@pytest.mark.parametrize("name", ["ours", "nobody"])
def test_our_own_server(case, name):
    """Our own server, or nobody, is no contention."""
    assert sampled(case(name)) and case(name)["watches"] is True


@behaviour("test_contention")
@pytest.mark.parametrize("name", ["small", "below the floor", "at the floor", "its own floor"])
def test_the_floor(case, name):
    """A process is no tenant below `contention_floor_mib`, and one at it."""
    assert sampled(case(name)) == (name in ("small", "below the floor"))


@behaviour("test_contention")
def test_ignored_by_name(case):
    """A process whose name contains one of `contention_ignore`, in any case, is no tenant however large."""
    assert sampled(case("ignored"))


@behaviour("test_contention")
def test_ignoring_excuses_nobody_else(case):
    """`contention_ignore` excuses no other process, and who is ignored is not named."""
    energy = case("ignored and another")["energy"]
    assert energy.method == "estimated" and energy.contended_by == f"{EVAL} (4806 MiB)"


@behaviour("test_contention")
def test_a_second_server_of_our_own_kind(case):
    """Of two servers of our own kind none can be taken for ours: both are named."""
    energy = case("two of ours")["energy"]
    assert energy.method == "estimated"
    assert energy.contended_by == "VLLM::EngineCore (10186 MiB), VLLM::EngineCore (20000 MiB)"


SERVER = """import subprocess, sys
workers = [subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) for _ in range(2)]
print(*(worker.pid for worker in workers), flush=True)
input()
"""


def server_of_two(at):
    """A window beside one server of two real processes, each on the card under the server's name."""
    server = subprocess.Popen([sys.executable, "-c", SERVER, "vllm"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True)
    pids = server.stdout.readline().split()
    with open(f"{at.folder}/scenario", "a") as scenario:
        scenario.writelines(f"  proc 0 inf {pid} 20000 VLLM::Worker_TP{number}\n" for number, pid in enumerate(pids))
    energy = sync_window(at, 0)
    server.communicate("\n")
    return energy


@behaviour("`Meter._note_intruders`")
@differs("Processes of one tree are one server: the workers of a model that spans several processes are no tenants of each "
         "other.")
def test_a_server_of_several_processes(fresh, ours):
    """Two processes of one server of our own kind are contention, too."""
    energy = fresh("card 0\n  idle 16\n  step 0 216\n  counter period_ms=5\n").play(server_of_two)
    assert energy.contended is not ours and energy.method == ("sampled" if ours else "estimated"), energy


@behaviour("`Meter._note_intruders`")
def test_a_small_one_of_our_own_kind(case):
    """A second process of our own kind below the floor is none."""
    assert sampled(case("two of ours, one small"))


@behaviour("README, Contention")
def test_a_node_that_names_no_process(case):
    """A node without a serving_match is taken for dedicated: nothing is looked for."""
    assert sampled(case("dedicated")) and case("dedicated")["watches"] is False


@behaviour("`Meter._note_intruders`")
def test_how_they_are_named(case):
    """Each is named with its full path and its MiB, sorted, joined by a comma; a name is cut at 80 characters."""
    assert case("several")["energy"].contended_by == f"/a/first, with a comma (900 MiB), {EVAL} (4806 MiB)"
    assert case("long")["energy"].contended_by == f"{LONG[:80]} (4806 MiB)"


def sync_window(at, number):
    at.ready(node(at, number, {}))
    meter = at.implementation.Meter.for_node(node(at, number, {}), joules_per_1k_hint=HINT)
    with meter.sync():
        time.sleep(0.5)
    return at.seen(meter.result(tokens=100), 100)


@behaviour("test_contention")
def test_the_sync_window_watches_too(machine):
    """A sync window watches for tenants as an async one does."""
    energy = machine(SCENARIO).play(sync_window, number=0)
    assert energy.method == "estimated" and energy.contended_by == f"{EVAL} (4806 MiB)"


UNREADABLE = ("card 0\n  idle 16\n  step 0 216\n  counter period_ms=5\n  proc 0 inf 4201 20000 VLLM::EngineCore\n"
              "  fault 0 inf procs unknown\n")


@behaviour("test_contention")
def test_a_card_that_does_not_list_its_processes(machine):
    """A card whose state cannot be read is not contended."""
    energy = machine(UNREADABLE).play(sync_window, number=0)
    assert energy.method == "sampled" and not energy.contended


BRIEF = ("card 0\n  idle 16\n  step 0 216\n  counter period_ms=5\n  proc 0 inf 4201 20000 VLLM::EngineCore\n"
         f"  proc 2 4 3522 4806 {EVAL}\n")


def long_window(at):
    """From before the tenant comes until after it has gone."""
    at.ready(node(at, 0, {}))
    meter = at.implementation.Meter.for_node(node(at, 0, {}), joules_per_1k_hint=HINT)
    at.at(1.5)
    with meter.sync():
        at.at(5.0)
    return at.seen(meter.result(tokens=100), 100)


@behaviour("README, Contention")
@differs("Processes are watched about once a second while a card is read, so a tenant that comes and goes within a "
         "window is seen.")
def test_a_tenant_that_comes_and_goes(fresh, ours):
    """A tenant that arrives and leaves within a window is missed: a known gap."""
    energy = fresh(BRIEF).play(long_window)
    assert energy.contended is ours and energy.method == ("estimated" if ours else "sampled")


def remote_window(at, url, apps):
    node = at.implementation.Node(name="lily", idle_w=16.0, gpu_index=1, power_endpoint=url, serving_match="vllm")
    at.ready(node)
    meter = at.implementation.Meter.for_node(node, interval_s=0.05, joules_per_1k_hint=HINT)
    with meter.sync():
        time.sleep(1.5)
    return at.seen(meter.result(tokens=100), 100)


@behaviour("`Meter._check_contention`")
def test_tenants_of_a_remote_node(machine, agent):
    """A remote node's tenants are those that its agent lists."""
    agent.state["compute_apps"] = [{"pid": 1, "used_mib": 20000, "name": "VLLM::EngineCore"},
                                   {"pid": 2, "used_mib": 4806, "name": EVAL}]
    energy = machine(SCENARIO, nvml=False, smi=False).play(remote_window, url=agent.url, apps=2)
    assert energy.method == "estimated" and energy.contended_by == f"{EVAL} (4806 MiB)" and energy.source == "remote"
    agent.state["compute_apps"] = agent.state["compute_apps"][:1]
    energy = machine(SCENARIO, nvml=False, smi=False).play(remote_window, url=agent.url, apps=1)
    assert energy.method == "sampled" and not energy.contended
