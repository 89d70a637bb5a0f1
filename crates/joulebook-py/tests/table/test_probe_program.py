"""The program that says what a host's cards can be measured with.

It is `giul-probe` there and `joulebook probe` here.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

behaviour, differs = pytest.mark.behaviour, pytest.mark.differs

CARDS = """driver 555.42.06
card 0
  name Bench 9000
  idle 300
  counter period_ms=20
card 1
  name Bench 10
  uuid GPU-00000000-0000-4000-8000-000000000001
  pci 0000:02:00.0
  idle 40
  counter supported=0
"""


@pytest.fixture
def probe(lab, implementation):
    """Runs the program; what it says, and its exit code."""
    def run(**tools):
        machine = lab.machine(implementation.name, CARDS, **tools)
        if implementation.is_ours:
            command = [Path(sys.executable).with_name("joulebook"), "probe", "--seconds", "6", "--no-store"]
        else:
            command = [sys.executable, "-m", "giul.probe", "--seconds", "0.5", "--interval", "0.02"]
        done = subprocess.run(command, env=machine.environment, capture_output=True, text=True, timeout=120)
        return done.stdout, done.returncode

    return run


@behaviour("README, Tools")
def test_what_it_says(probe):
    """It names every card and the driver, says whether the power gauge and the energy counter answer, and what the
    counter comes to against the power over the same time."""
    said, code = probe()
    assert code == 0
    for word in ("Bench 9000", "Bench 10", "555.42.06"):
        assert word in said
    first, second = said[said.index("Bench 9000"):said.index("Bench 10")], said[said.index("Bench 10"):]
    ratio = re.search(r"counter(?: ÷ power|/sampled:)\s+(\d\.\d+)", first)
    assert 0.9 < float(ratio.group(1)) < 1.1
    assert re.search(r"no energy counter|no such reading", second) and not re.search(r"counter(?: ÷ power|/sampled:)", second)


@behaviour("`probe.main`")
def test_a_host_with_nothing(probe):
    """On a host without anything it says so, and exits with 0."""
    said, code = probe(nvml=False, smi=False)
    assert code == 0 and "Bench" not in said and said.strip()
