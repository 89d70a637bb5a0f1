"""The page docs/giul.md: made from the tests' docstrings and marks, and held to them."""

import inspect
import sys
from pathlib import Path

from .lab import ROOT

PAGE = ROOT / "docs/giul.md"
HERE = Path(__file__).resolve().parent

HEAD = """\
# joulebook beside giul 0.2.0

Somebody who uses the Python package [giul](https://pypi.org/project/giul/0.2.0/) changes
`from giul import Meter, Node` to `from joulebook import Meter, Node`, and what is below holds. Each
line is a test that runs against both packages on the same simulated cards
(`crates/joulebook-py/tests/table`); this page is made from those tests
(`pytest crates/joulebook-py/tests/table --write-page`) and held to them by one of them. "Where" is
where giul says it: its README, a docstring, or a file of its own test suite.
"""
AFTER = """\

## {title}

{intro}| {first} | where | joulebook |
| --- | --- | --- |
"""


def check(items):
    """Every test of the table says what it holds, and where giul says that."""
    for item in items:
        if HERE not in item.path.parents or item.path.name == "test_page.py":
            continue
        if not item.function.__doc__ or not (item.get_closest_marker("behaviour") or item.get_closest_marker("fault")):
            raise AssertionError(f"{item.nodeid}: no docstring, or neither of the marks `behaviour` and `fault`")


def is_whole(config, items):
    """Whether all tests of the table were collected."""
    collected = {item.path.name for item in items if item.path.parent == HERE}
    named = any("::" in argument for argument in config.args)
    return (collected == {path.name for path in HERE.glob("test_*.py")} and not named
            and not config.getoption("keyword") and not config.getoption("markexpr"))


def text(items):
    """The page."""
    sections, seen = {}, set()
    for item in sorted(items, key=lambda item: (item.path.name, item.function.__code__.co_firstlineno)):
        if item.path.parent != HERE or item.path.name == "test_page.py" or item.function in seen:
            continue
        seen.add(item.function)
        sections.setdefault(item.module, []).append(row(item))
    return HEAD + "".join(section(module, rows) for module, rows in sections.items())


def row(item):
    statement = " ".join(inspect.getdoc(item.function).split("\n\n")[0].split())
    fault = item.get_closest_marker("fault")
    where = "" if fault else item.get_closest_marker("behaviour").args[0]
    differs = item.get_closest_marker("differs")
    ours = " ".join(differs.args[0].split()) if differs else "the same"
    return f"| {statement} | {where} | {ours} |\n".replace(" |  | ", " | | ")


def section(module, rows):
    title, _, intro = inspect.getdoc(module).partition("\n")
    intro = intro.strip()
    first = "giul says" if "giul_says" not in vars(module) else module.giul_says
    return AFTER.format(title=title.rstrip("."), intro=intro + "\n\n" if intro else "", first=first) + "".join(rows)


if __name__ == "__main__":
    sys.exit("pytest crates/joulebook-py/tests/table --write-page")
