"""A child process on a simulated machine: the lab's driver library, its nvidia-smi, or neither.

A scene is a function beside its test, called in the child as `scene(at, **arguments)`; what it
returns comes back through JSON. `at` has the implementation, and the card's live load (`at.live`),
whose energy between any two instants is known. Energies come back as `Seen`.

Both packages find the card as they would a real one: the library by its name in LD_LIBRARY_PATH,
the program by its name in PATH. A machine without them hides a real card's too.
"""

import ctypes.util
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
LIBRARY, PROGRAM = "libnvidia-ml.so.1", "nvidia-smi"

sys.path.insert(0, str(ROOT / "crates/joulebook-lab/python"))
from joulebook_live import Live  # noqa: E402


class Missing(Exception):
    """The lab was not built."""


def program():
    """The program joulebook-lab, beside which its nvidia-smi lies."""
    named = os.environ.get("JOULEBOOK_LAB")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    places = [Path(named)] if named else [target / kind / "joulebook-lab" for kind in ("debug", "release")]
    built = [place for place in places if place.is_file() and place.with_name(PROGRAM).is_file()]
    if not built:
        raise Missing(f"{' and '.join(map(str, places))}: no joulebook-lab with its {PROGRAM} there; "
                      "build them with `cargo build -p joulebook-lab`, or name one in JOULEBOOK_LAB")
    return max(built, key=lambda place: place.stat().st_mtime)


class Lab:
    """The folder with the lab's driver library, and the machines made of it."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.program = program()
        self.driver = self.folder / "driver"
        subprocess.run([self.program, "driver", "--dir", self.driver], check=True, capture_output=True)
        self._kept = {}

    def machine(self, implementation, scenario, **options):
        """A machine that tests share: the same one for the same scenario and options."""
        key = (implementation, scenario, json.dumps(options, sort_keys=True))
        if key not in self._kept:
            self._kept[key] = Machine(self, implementation, scenario, **options)
        return self._kept[key]

    def close(self):
        for machine in self._kept.values():
            machine.close()


class Machine:
    """A simulated machine and a process of one of the two packages on it. The scenario begins with
    the first scene; for programs that are started with its environment, when it is made."""

    def __init__(self, lab, implementation, scenario, *, nvml=True, smi=True, wrapper=None, env=None):
        self.implementation = implementation
        self.folder = Path(tempfile.mkdtemp(dir=lab.folder))
        self.live = Live.create(self.folder / "live", cards=16, capacity=10_000)
        (self.folder / "scenario").write_text(scenario)
        tools = self.folder / "bin"
        tools.mkdir()
        libraries = lab.driver if nvml else self.folder / "none"
        if not nvml:
            libraries.mkdir()
            if ctypes.util.find_library("nvidia-ml"):
                # In the way of a real card's library, which would be found further on.
                (libraries / LIBRARY).write_bytes(b"")
        if wrapper is not None:
            tool = tools / PROGRAM
            tool.write_text(f"#!/bin/sh\n{wrapper}\n")
            tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        elif smi:
            (tools / PROGRAM).symlink_to(lab.program.with_name(PROGRAM).resolve())
        others = os.environ.get("PATH", os.defpath).split(os.pathsep)
        path = [str(tools), *(place for place in others if not os.access(os.path.join(place, PROGRAM), os.X_OK))]
        self.environment = {
            **{name: value for name, value in os.environ.items()
               if not name.startswith(("JOULEBOOK_", "FAKEGPU_", "CUDA_", "XDG_"))},
            "PATH": os.pathsep.join(path),
            "LD_LIBRARY_PATH": str(libraries),
            "FAKEGPU_SCENARIO": str(self.folder / "scenario"),
            "FAKEGPU_CONTROL": str(self.folder / "live"),
            "LAB_SMI": str(lab.program.with_name(PROGRAM)),
            "LAB_FOLDER": str(self.folder),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "PYTHONPATH": str(HERE.parent),
            **(env or {}),
        }
        self.environment["FAKEGPU_EPOCH_NS"] = str(time.monotonic_ns())
        self._process = None

    def start(self):
        if self._process is None:
            self._said = open(self.folder / "said", "w+")
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.child", self.implementation], env=self.environment,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True)
        return self

    def play(self, scene, **arguments):
        """Plays a scene in the child; what it returns."""
        ask = {"module": scene.__module__, "scene": scene.__qualname__, "arguments": arguments}
        self.start()
        self._process.stdin.write(json.dumps(ask) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the child ended ({self._process.wait()}): {self.said()}")
        answer = json.loads(line, object_hook=Seen.revive)
        if "raised" in answer:
            raise RuntimeError(f"in the child: {answer['raised']}\n{self.said()}")
        return answer["returned"]

    def once(self, scene, **arguments):
        """The same, played once for all tests that ask."""
        key = (scene.__qualname__, json.dumps(arguments, sort_keys=True))
        kept = self.__dict__.setdefault("_played", {})
        if key not in kept:
            kept[key] = self.play(scene, **arguments)
        return kept[key]

    def said(self):
        return (self.folder / "said").read_text()

    def close(self):
        if self._process is None:
            return
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._said.close()
        self._process = None


class Seen:
    """An Energy that came back from a child: its attributes, and what it says as a dict."""

    def __init__(self, fields):
        self.__dict__.update(fields)

    @staticmethod
    def of(energy, tokens=0):
        """What a child sends of an energy."""
        names = ("joules", "method", "seconds", "samples", "mean_watts", "idle_watts", "source", "backend",
                 "contended", "contended_by")
        fields = {name: getattr(energy, name) for name in names}
        fields["stages"] = {name: Seen.of(stage) for name, stage in energy.stages.items()}
        fields["shape"] = energy.as_dict(tokens)
        try:
            fields["extended"] = energy.as_dict(tokens, extended=True)
        except TypeError:
            fields["extended"] = None  # giul's has no such thing
        return {"seen": fields}

    @staticmethod
    def revive(fields):
        return Seen(fields["seen"]) if set(fields) == {"seen"} else fields

    def __repr__(self):
        return f"Seen({self.__dict__})"


def clear(folder):
    shutil.rmtree(folder, ignore_errors=True)
