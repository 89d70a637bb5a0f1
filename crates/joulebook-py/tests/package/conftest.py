"""The package on the lab's cards, in this process: card 0 and 1 draw what a test says, from when it
says so. What needs a process of its own (forks, signals, ends) runs `script`.
"""

import os
import subprocess
import sys
import tempfile
import time

import pytest

from table.lab import Lab, Live, Missing

IDLE_W = 50.0

SCENARIO = """card 0
  dynamic
  counter period_ms=20
card 1
  uuid GPU-00000000-0000-4000-8000-000000000001
  pci 0000:19:00.0
  dynamic
  counter period_ms=20
"""


class Cards:
    """The lab's cards, and what is in the environment for them."""

    def __init__(self, folder):
        self.lab = Lab(folder)
        self.live = Live.create(os.path.join(folder, "live"), cards=2, capacity=100_000)
        scenario = os.path.join(folder, "scenario")
        with open(scenario, "w", encoding="utf-8") as file:
            file.write(SCENARIO)
        self.environment = {
            "JOULEBOOK_NVML": str(self.lab.driver / "libnvidia-ml.so.1"),
            "FAKEGPU_SCENARIO": scenario,
            "FAKEGPU_CONTROL": os.path.join(folder, "live"),
            "FAKEGPU_EPOCH_NS": str(time.monotonic_ns()),
            "XDG_STATE_HOME": os.path.join(folder, "state"),
            "XDG_CONFIG_HOME": os.path.join(folder, "config"),
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        }
        for card in (0, 1):
            self.live.set(card, IDLE_W)


@pytest.fixture(scope="session")
def cards():
    with tempfile.TemporaryDirectory(prefix="joulebook-package-") as folder:
        try:
            cards = Cards(folder)
        except Missing as missing:
            pytest.fail(str(missing), pytrace=False)
        os.environ.update(cards.environment)
        for name in ("CUDA_VISIBLE_DEVICES", "JOULEBOOK_SMI"):
            os.environ.pop(name, None)
        yield cards


@pytest.fixture
def draw(cards):
    """`draw(watts, card=0)`: what a card draws from now on; at rest again after the test."""
    yield lambda watts, card=0: cards.live.set(card, watts)
    for card in (0, 1):
        cards.live.set(card, IDLE_W)


@pytest.fixture
def node(cards):
    """Card 0, whose recorder is already at work."""
    import joulebook

    node = joulebook.Node("bench", idle_w=IDLE_W, is_local=True)
    meter = joulebook.Meter.for_node(node)
    assert meter.backend_name == "nvml_counter", meter.warnings
    return node


@pytest.fixture
def script(cards):
    """`script(text, …)`: runs a Python text in a process of its own; what it printed and its code."""

    def run(text, *arguments, **options):
        options = {"timeout": 60, "capture_output": True, "text": True, **options}
        return subprocess.run([sys.executable, "-c", text, *arguments], **options)

    return run


def near(cost, watts):
    """A cost of so many watts above idle all along, within its own bound."""
    expected = watts * cost.seconds
    return cost.method == "sampled" and abs(cost.joules - expected) <= cost.bound_joules + 0.02 * expected
