"""The walk through the code names files that are there, and misses no package."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from command_line import SUM, Command, command, fair, judged_by
from servers import StartServer

__all__ = ["command"]

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "evenhand"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def test_every_file_that_the_walk_names_is_there() -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", PAGE))
    assert len(named) > 40
    assert sorted(name for name in named if not (SOURCE / name).is_file()) == []


def test_every_package_is_in_the_table_and_no_other() -> None:
    table = PAGE.partition("## The packages")[2]
    named = set(re.findall(r"`(\w+)/`", table))
    kept_apart = {"demo", "skill"}  # content, not code
    there = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert named == there - kept_apart


WALK = PAGE.partition("## One pair")[2].partition("## One run")[0]


def test_one_comparison_passes_the_files_that_the_walk_names(
    command: Command, start_server: StartServer
) -> None:
    arguments = ("compare", *SUM, *judged_by(start_server(fair)))
    assert command(*arguments).code == 0  # what is loaded once, such as a class, is no step
    passed = set()

    def note(frame: FrameType, event: str, value: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(SOURCE):
            passed.add(path.relative_to(SOURCE).as_posix())

    sys.setprofile(note)
    try:
        assert command(*arguments).code == 0
    finally:
        sys.setprofile(None)
    assert "judging/comparison.py" in passed
    assert passed - set(re.findall(r"`([\w/]+\.py)`", WALK)) == set()


def test_one_comparison_takes_about_twenty_steps() -> None:
    steps = re.findall(r"^\| (\d+) \|", WALK, re.MULTILINE)
    assert steps == [str(n) for n in range(1, len(steps) + 1)]
    assert len(steps) <= 20


def test_every_file_that_contributors_are_sent_to_is_there() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = set(
        re.findall(r"`((?:src|tests|scripts|docs|examples)?/?[\w/.]+\.(?:py|sh|md))`", page)
    )
    places = (ROOT, SOURCE)
    assert {name for name in named if not any((at / name).is_file() for at in places)} == set()
    folders = set(re.findall(r"`(src/[\w/]+)/`", page))
    assert {name for name in folders if not (ROOT / name).is_dir()} == set()


MODULES = {
    "evenhand." + ".".join(path.relative_to(SOURCE).with_suffix("").parts): path
    for path in SOURCE.rglob("*.py")
}
MODULES = {name.removesuffix(".__init__"): path for name, path in MODULES.items()}


@cache  # for the tests that want it: every process that shares the tests reads this file
def _trees() -> dict[str, ast.Module]:
    return {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}


def test_a_public_class_name_stands_in_one_module() -> None:
    homes: dict[str, list[str]] = {}
    for module, tree in _trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module)
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}


def _imported(tree: ast.Module) -> Iterator[str]:
    """Modules of ours that are imported with this one; what only types need is not."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                name = f"{node.module}.{each.name}"
                yield name if name in MODULES else str(node.module)


def test_the_longest_import_chain_has_at_most_twenty_modules() -> None:
    @cache
    def chain(module: str) -> tuple[str, ...]:
        below = (chain(each) for each in _imported(_trees()[module]) if each in MODULES)
        return (module, *max(below, key=len, default=()))

    longest = max(map(chain, MODULES), key=len)
    assert len(longest) <= 20, longest
