"""The stubs: as strict as mypy is, and true of what they stand for."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
STUBS = ["joulebook._native", "joulebook.backends", "joulebook.meter", "joulebook.types"]

pytest.importorskip("mypy")


def mypy(*arguments, module="mypy", cache):
    ran = subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True, cwd=cache)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_users_program_and_the_package_are_typed(tmp_path):
    mypy("--strict", "--python-version", "3.11", HERE / "typed.py", cache=tmp_path)
    mypy("--strict", "--python-version", "3.11", "-p", "joulebook", cache=tmp_path)


def test_the_stubs_are_true(tmp_path):
    mypy(*STUBS, module="mypy.stubtest", cache=tmp_path)
