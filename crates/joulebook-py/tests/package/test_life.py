"""Forks, ends and signals: each in a process of its own."""

import os
import signal
import subprocess
import sys
import time

import pytest

FORK = """
import os, sys, time, warnings
warnings.simplefilter("ignore")
import joulebook
from joulebook import Books, Meter, Node

node = Node("bench", idle_w=0.0, is_local=True)
def measured(seconds=0.3):
    with Meter.for_node(node) as meter:
        time.sleep(seconds)
    return meter.settle()

books = Books(node)
assert measured().method == "sampled"
outside = Meter.for_node(node)
outside.start()
ticket = books.open(model="m")
child = os.fork()
if child == 0:
    # A window of the parent's is nobody's here, and says so.
    outside.stop()
    assert (outside.result().method, outside.result().error) == ("unknown", "not_ready"), outside.result()
    for _ in range(2):
        energy = measured()
        assert energy.method == "sampled" and energy.settled, energy
    with books.open(model="child") as own:
        own.tokens(3)
        time.sleep(0.3)
    receipt = own.settle()
    assert receipt.method == "sampled" and receipt.model == "child", receipt
    with ticket:
        ticket.tokens(1)
    books.close()
    sys.exit(0)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert code == 0, code
time.sleep(0.2)
outside.stop()
energy = outside.settle()
assert energy.method == "sampled" and energy.settled and energy.seconds > 1, energy
with ticket:
    ticket.tokens(1)
assert ticket.settle().method == "sampled", ticket.settle()
assert measured().settled
print("both")
"""


def test_a_fork_reads_for_itself_and_its_parent_goes_on(node, script):
    ran = script(FORK)
    assert (ran.returncode, ran.stdout) == (0, "both\n"), ran.stderr


WORKERS = """
import multiprocessing, time
from joulebook import Meter, Node

node = Node("bench", idle_w=0.0, is_local=True)
def work(number):
    with Meter.for_node(node) as meter:
        time.sleep(0.2)
    return meter.settle()

if __name__ == "__main__":
    assert work(0).method == "sampled"
    with multiprocessing.get_context("fork").Pool(2) as pool:
        energies = pool.map(work, range(4))
    assert all(energy.method == "sampled" and energy.settled for energy in energies), energies
    print(len(energies))
"""


def test_workers_send_their_energies_home(node, script):
    ran = script(WORKERS)
    assert (ran.returncode, ran.stdout) == (0, "4\n"), ran.stderr


FORKS = """
import os, threading, time, warnings
warnings.simplefilter("ignore")
from joulebook import Meter, Node, reset_probe_cache

node = Node("bench", idle_w=0.0, is_local=True)
over = False
def stir():
    while not over:
        reset_probe_cache()
        with Meter.for_node(node) as meter:
            pass
        meter.settle(0.01)

stirrer = threading.Thread(target=stir)
stirrer.start()
codes = []
for _ in range(20):
    child = os.fork()
    if child == 0:
        with Meter.for_node(node) as meter:
            time.sleep(0.05)
        meter.result()
        os._exit(7)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
over = True
stirrer.join()
print(set(codes))
"""


def test_forks_while_another_thread_meters(node, script):
    ran = script(FORKS)
    assert (ran.returncode, ran.stdout) == (0, "{7}\n"), ran.stderr


ENDS = {
    "a window is open": "meter.start()",
    "one settles": """
import asyncio
async def main():
    async with meter: pass
    asyncio.get_running_loop().create_task(meter.asettle())
    await asyncio.sleep(0)
asyncio.run(main())""",
    "a thread settles": """
import threading
meter.start(); meter.stop()
threading.Thread(target=meter.settle, daemon=True).start()""",
    "a backend of Python's is read": """
class Slow:
    name, kind = "slow", "sampler"
    def read_watts(self):
        time.sleep(0.05)
        return 1.0
Meter(Slow(), interval_s=0.001).start()""",
    "books are open": "books = joulebook.Books(node); ticket = books.open(); ticket.tokens(1)",
    "the meter goes last": "import builtins; builtins.meter = meter; meter.start()",
    "at exit": "import atexit; atexit.register(lambda: (meter.start(), meter.stop(), meter.settle(0.1)))",
}


@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_the_interpreter(node, script, end):
    ran = script(f"""
import time, joulebook
from joulebook import Meter, Node
node = Node(idle_w=0.0, is_local=True)
meter = Meter.for_node(node)
{ENDS[end]}
print("said")
""")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "said\n", "")


def program(*arguments):
    return [os.path.join(os.path.dirname(sys.executable), "joulebook"), *arguments]


@pytest.mark.parametrize("command", [program(), [sys.executable, "-m", "joulebook"]])
def test_the_program(node, command):
    def run(*arguments):
        return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60)

    import joulebook

    assert run("--version").stdout == f"joulebook {joulebook.__version__}\n"
    ran = run("run", "--json", "--idle", "50", "--", "sh", "-c", "sleep 0.3; exit 7")
    assert ran.returncode == 7 and '"backend":"nvml_counter"' in ran.stderr, ran.stderr
    assert run("run", "--", "/nowhere/at/all").returncode == 127
    assert run("no such thing").returncode == 2


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_what_the_program_runs(node, signum, code):
    process = subprocess.Popen(program("run", "--", "sh", "-c", "echo ready; exec sleep 30"), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signum)
    _, said = process.communicate(timeout=30)
    assert process.returncode == code and " J" in said, (process.returncode, said)


def test_ctrl_c_ends_the_program(node):
    process = subprocess.Popen(program("idle", "--seconds", "60"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode in (-signal.SIGINT, 130)


def test_it_imports_next_to_nothing(script):
    ran = script("""
import sys
before = set(sys.modules)
import joulebook
print(sorted(name for name in set(sys.modules) - before if not name.startswith("joulebook")))
""")
    heavy = {"asyncio", "collections", "dataclasses", "enum", "inspect", "json", "logging", "re", "threading", "typing"}
    assert ran.returncode == 0 and not heavy & set(eval(ran.stdout)), ran.stdout + ran.stderr
