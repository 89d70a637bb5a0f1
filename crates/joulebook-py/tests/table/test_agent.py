"""The agent of a node: what existing clients ask it over HTTP.

The program is `giul-agent` there and `joulebook agent` here.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

behaviour, differs = pytest.mark.behaviour, pytest.mark.differs

CARDS = """card 0
  name Bench 16
  uuid GPU-00000000-0000-4000-8000-000000000000
  pci 0000:01:00.0
  mem total_mib=16303 base_mib=12
  util gpu=0
  idle 40
card 1
  name Bench 32
  uuid GPU-00000000-0000-4000-8000-000000000001
  pci 0000:02:00.0
  mem total_mib=32607 base_mib=2
  util gpu=87
  idle 231.4
  proc 0 inf 4242 18000 /opt/run, v2/serve --ids 1,2
  proc 0 inf 77 340 /opt/google/chrome/chrome --type=gpu-process
card 2
  uuid GPU-00000000-0000-4000-8000-000000000002
  pci 0000:03:00.0
  idle 50
  proc 0 inf 9 9000 /opt/serve
  fault 0 inf procs unknown
"""


class Node:
    """A node with its agent."""

    def __init__(self, machine, *arguments, answers=(200,)):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        if machine.implementation == "giul":
            command = [sys.executable, "-m", "giul.agent", "--host", "127.0.0.1", "--port", str(port)]
        else:
            command = [Path(sys.executable).with_name("joulebook"), "agent", "--bind", f"127.0.0.1:{port}"]
        self._said = open(machine.folder / f"agent-{port}", "w")
        self.process = subprocess.Popen([*command, *arguments], env=machine.environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=self._said)
        self.url = f"http://127.0.0.1:{port}"
        end = time.monotonic() + 20
        # Until it answers at all, and has had its first reading.
        while self.get("/healthz")[0] not in answers and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)

    def get(self, path):
        try:
            with urllib.request.urlopen(self.url + path, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as answer:
            return answer.code, json.load(answer)
        except (urllib.error.URLError, OSError):
            return None, None

    def watts(self, gpu):
        """The median of some answers."""
        answers = []
        for _ in range(9):
            answers.append(self.get(f"/power?gpu={gpu}")[1]["watts"])
            time.sleep(0.1)
        return statistics.median(answers)

    def said(self):
        return Path(self._said.name).read_text()

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=20)
        self._said.close()


@pytest.fixture(scope="session")
def nodes(lab):
    """`nodes(implementation, …)`: a node of each kind, shared by the tests."""
    kept = {}

    def node(implementation, *arguments, cards=CARDS, answers=(200,), **options):
        key = (implementation.name, arguments, cards, tuple(options.items()))
        if key not in kept:
            kept[key] = Node(lab.machine(implementation.name, cards, **options), *arguments, answers=answers)
        return kept[key]

    yield node
    for each in kept.values():
        each.close()


@behaviour("test_agent")
def test_power(nodes, implementation):
    """`GET /power?gpu=N` is gpu, name, watts, memory_used_mib, memory_total_mib, memory_free_mib, utilization_pct and
    compute_apps of that card."""
    status, said = nodes(implementation).get("/power?gpu=1")
    assert status == 200
    assert set(said) == {"gpu", "name", "watts", "memory_used_mib", "memory_total_mib", "memory_free_mib",
                         "utilization_pct", "compute_apps"}
    assert (said["gpu"], said["name"]) == (1, "Bench 32")
    # Ours is what the register has counted up to its last publish, whose moment a busy host leaves open.
    assert nodes(implementation).watts(1) == pytest.approx(231.4, rel=0.2)
    assert (said["memory_used_mib"], said["memory_total_mib"], said["memory_free_mib"]) == (18342, 32607, 14265)
    assert said["utilization_pct"] == 87
    kinds = {"gpu": int, "name": str, "watts": float, "memory_used_mib": int, "utilization_pct": int}
    assert all(type(said[key]) is kind for key, kind in kinds.items())


@behaviour("test_agent")
def test_who_else_is_there(nodes, implementation):
    """compute_apps lists pid, used_mib and name of every process on the card."""
    _, said = nodes(implementation).get("/power?gpu=1")
    assert sorted(said["compute_apps"], key=lambda app: app["pid"]) == [
        {"pid": 77, "used_mib": 340, "name": "/opt/google/chrome/chrome --type=gpu-process"},
        {"pid": 4242, "used_mib": 18000, "name": "/opt/run, v2/serve --ids 1,2"}]


@behaviour("test_agent")
def test_a_process_list_that_cannot_be_had(nodes, implementation):
    """Where the processes cannot be listed the list is empty, and the watts are there all the same."""
    status, said = nodes(implementation).get("/power?gpu=2")
    assert (status, said["compute_apps"]) == (200, []) and said["watts"] > 0


GARBAGE = """case "$*" in
*compute-apps*) printf 'this is not csv\\n123, notanumber, x\\n' ;;
*) exec "$LAB_SMI" "$@" ;;
esac"""


@behaviour("test_agent")
def test_a_process_list_that_is_none(nodes, implementation):
    """A process list of nvidia-smi that cannot be read is empty, and the watts are there all the same."""
    status, said = nodes(implementation, "--gpu", "1", nvml=False, wrapper=GARBAGE).get("/power?gpu=1")
    assert (status, said["compute_apps"]) == (200, []) and said["watts"] == pytest.approx(231.4)


@behaviour("test_agent")
def test_the_default_card(nodes, implementation):
    """Without `gpu` it is card 0, or the one that `--gpu` names."""
    assert nodes(implementation).get("/power")[1]["gpu"] == 0
    assert nodes(implementation, "--gpu", "1").get("/power")[1]["gpu"] == 1


@behaviour("test_agent")
def test_no_number(nodes, implementation):
    """A `gpu` that is no integer is a 400."""
    status, said = nodes(implementation).get("/power?gpu=banana")
    assert (status, said) == (400, {"error": "gpu must be an integer"})


@behaviour("test_agent")
def test_another_path(nodes, implementation):
    """Another path is a 404 that names /power and /healthz."""
    status, said = nodes(implementation).get("/shutdown")
    assert status == 404 and "/power" in said["error"] and "/healthz" in said["error"]


@behaviour("test_agent")
def test_a_card_that_is_not_there(nodes, implementation):
    """A card that is not there is a 404 that names it."""
    status, said = nodes(implementation).get("/power?gpu=9")
    assert status == 404 and said["error"] == "no gpu 9" and "detail" in said


@behaviour("test_agent")
def test_health(nodes, implementation):
    """`GET /healthz` is 200 while the card can be read."""
    assert nodes(implementation).get("/healthz")[0] == 200


@behaviour("test_agent")
def test_a_card_that_cannot_be_read(nodes, implementation):
    """A card that cannot be read now is a 503 with one line, never a 500."""
    lost = CARDS + "".join(f"  fault 0 inf {what} lost\n" for what in ("energy", "power", "instant", "fields"))
    status, said = nodes(implementation, cards=lost).get("/power?gpu=2")
    assert status == 503 and said["error"]


@behaviour("test_agent")
@differs("Where there is nothing to serve it says why and ends, so that whoever started it sees it.")
def test_a_node_without_a_driver(nodes, implementation, ours):
    """On a host without nvidia-smi it runs, and every card is a 503."""
    node = nodes(implementation, nvml=False, smi=False, answers=(503,))
    if ours:
        assert node.process.wait(timeout=20) != 0 and "no NVIDIA driver library" in node.said()
    else:
        status, said = node.get("/power?gpu=0")
        assert status == 503 and said["error"]


@behaviour("test_agent")
def test_it_needs_no_other_package(lab, implementation):
    """The agent needs nothing but the package itself: it runs without site-packages of anybody else's."""
    machine = lab.machine(implementation.name, CARDS)
    if implementation.is_ours:
        command = [Path(sys.executable).with_name("joulebook"), "agent", "--help"]
    else:
        command = [sys.executable, "-S", Path(implementation.module.__file__).with_name("agent.py"), "--help"]
    done = subprocess.run(command, env={**machine.environment, "PYTHONPATH": os.devnull}, capture_output=True)
    assert done.returncode == 0 and b"--gpu" in done.stdout
