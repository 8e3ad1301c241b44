"""The examples of extensions: typed, and at work as another package would be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

EXTENSIONS = Path(__file__).parents[1] / "examples" / "extensions"
KEYWORD = EXTENSIONS / "keyword_judge"


@pytest.fixture
def site(tmp_path: Path) -> dict[str, str]:
    """The environment of an interpreter with the package installed: its module, and the metadata
    that an installer writes from its pyproject.toml."""
    project = tomllib.loads((KEYWORD / "pyproject.toml").read_text("utf-8"))["project"]
    metadata = tmp_path / f"keyword_judge-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", "utf-8"
    )
    points = project["entry-points"]["evenhand.judges"]
    lines = [f"{name} = {target}\n" for name, target in points.items()]
    (metadata / "entry_points.txt").write_text("[evenhand.judges]\n" + "".join(lines), "utf-8")
    path = [str(tmp_path), str(KEYWORD), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}


def test_judge_of_another_package_is_a_judge_of_the_command_line(
    site: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "evenhand", "compare", "--judge", "keyword:Canberra"]
    texts = ["-p", "The capital?", "--a", "Sydney.", "--b", "Canberra.", "-c", "accuracy", "--json"]
    done = subprocess.run(
        [*command, *texts], cwd=tmp_path, env=site, capture_output=True, text=True, check=True
    )
    verdict = json.loads(done.stdout)
    assert (verdict["winner"], verdict["metadata"]["outcome"]) == ("B", "win")
    assert verdict["metadata"]["judge"] == "keyword:Canberra"
    refused = subprocess.run(
        [*command[:-1], "keyword:?!", *texts],
        cwd=tmp_path,
        env=site,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert "names no word" in json.loads(refused.stdout)["error"]["message"]


def test_example_of_a_function_judge_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXTENSIONS / "function_judge.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "B win\n"


def test_examples_are_among_what_is_type_checked() -> None:
    """`make lint` and CI run mypy, strict, over these folders."""
    settings = tomllib.loads((EXTENSIONS.parents[1] / "pyproject.toml").read_text("utf-8"))
    assert settings["tool"]["mypy"]["strict"] is True
    assert "examples" in settings["tool"]["mypy"]["files"]


def test_examples_of_extensions_use_public_names_alone() -> None:
    for path in EXTENSIONS.rglob("*.py"):
        text = path.read_text("utf-8")
        assert "evenhand." not in text.replace("evenhand.judge", "").replace(
            "evenhand.compare_sync", ""
        ), path.name
        assert "from evenhand." not in text
