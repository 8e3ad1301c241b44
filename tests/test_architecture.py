"""The walk through the code names files that are there, and misses no package."""

from __future__ import annotations

import re
from pathlib import Path

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


def test_one_comparison_passes_about_twenty_steps() -> None:
    walk = PAGE.partition("## One pair")[2].partition("## One run")[0]
    steps = re.findall(r"^\| (\d+) \|", walk, re.MULTILINE)
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
