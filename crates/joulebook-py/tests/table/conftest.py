"""Runs the table against giul and joulebook, and holds docs/giul.md to it."""

import shutil
import tempfile

import pytest

from . import page
from .agent import Agent
from .implementation import NAMES, Implementation
from .lab import Lab, Machine, Missing


def pytest_addoption(parser):
    parser.addoption("--implementation", action="append", choices=NAMES, help="only against this one")
    parser.addoption("--write-page", action="store_true", help="write docs/giul.md instead of holding it")


def pytest_configure(config):
    config.addinivalue_line("markers", "behaviour(where): what giul says there (the docstring's first line)")
    config.addinivalue_line("markers", "differs(why): joulebook differs on purpose, for this reason")
    config.addinivalue_line("markers", "fault(name): something that goes wrong, and what each makes of it")


def pytest_generate_tests(metafunc):
    if "implementation" in metafunc.fixturenames:
        names = metafunc.config.getoption("--implementation") or NAMES
        metafunc.parametrize("implementation", names, indirect=True)


def pytest_collection_modifyitems(config, items):
    page.check(items)
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            # These play a scene once for all of them.
            if "case" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(item.callspec.params["implementation"]))


@pytest.fixture(scope="session")
def implementation(request):
    return Implementation(request.param)


@pytest.fixture(scope="session")
def ours(implementation):
    return implementation.is_ours


@pytest.fixture(scope="session")
def lab():
    folder = tempfile.mkdtemp(prefix="joulebook-table-")
    try:
        lab = Lab(folder)
    except Missing as missing:
        pytest.fail(str(missing), pytrace=False)
    yield lab
    lab.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def machine(lab, implementation):
    """`machine(scenario, nvml=, smi=)`: a machine that tests share."""
    return lambda scenario, **options: lab.machine(implementation.name, scenario, **options)


@pytest.fixture
def fresh(lab, implementation):
    """`fresh(scenario, …)`: a machine of this test's own, whose scenario begins now."""
    machines = []

    def make(scenario, **options):
        machines.append(Machine(lab, implementation.name, scenario, **options))
        return machines[-1]

    yield make
    for machine in machines:
        machine.close()


@pytest.fixture
def agent():
    """A node's agent that says what it is told to."""
    agent = Agent()
    yield agent
    agent.close()
