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
PACKAGES = ("keyword_judge", "tie_analysis")


@pytest.fixture
def site(tmp_path: Path) -> dict[str, str]:
    """The environment of an interpreter with the packages installed: their modules, and the
    metadata that an installer writes from a pyproject.toml."""
    for name in PACKAGES:
        text = (EXTENSIONS / name / "pyproject.toml").read_text("utf-8")
        project = tomllib.loads(text)["project"]
        metadata = tmp_path / f"{name}-{project['version']}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n",
            "utf-8",
        )
        lines = [
            f"[{group}]\n" + "".join(f"{point} = {target}\n" for point, target in points.items())
            for group, points in project["entry-points"].items()
        ]
        (metadata / "entry_points.txt").write_text("".join(lines), "utf-8")
    folders = [str(EXTENSIONS / name) for name in PACKAGES]
    path = [str(tmp_path), *folders, os.environ.get("PYTHONPATH", "")]
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


def test_analysis_of_another_package_is_on_every_face(site: dict[str, str], tmp_path: Path) -> None:
    """One module beside its registration: a command with help and options, an endpoint in the
    OpenAPI document, a page."""

    def evenhand(*arguments: str, code: int = 0) -> str:
        command = [sys.executable, "-m", "evenhand", *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=site, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
        return done.stdout

    rows = [
        {"prompt": f"p{n}", "responseA": "aa", "responseB": "b" * (n % 3), "criteria": ["c"]}
        for n in range(12)
    ]  # of lengths 2 and 0, 1, 2: four of twelve are ties
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    store = ("--store", "evenhand.db")
    evenhand("run", "pairs.jsonl", "--judge", "baseline:longer", "--name", "r", *store)
    assert "Count a run's ties." in evenhand("--help")
    assert "--most" in evenhand("ties", "--help")
    assert evenhand("ties", "r", *store) == "4 of 12 pairs are ties.\n"
    told = json.loads(evenhand("ties", "r", "--most", "0.3", "--json", *store, code=1))
    assert (told["ties"], told["valid"], told["most"]) == (4, 12, 0.3)
    assert evenhand("ties", "r", "--most", "2", *store, code=2) == ""
    evenhand("report", "r", "--html", "r.html", *store)
    assert "4 of 12 pairs are ties." in (tmp_path / "r.html").read_text("utf-8")
    asked = """
import json
from evenhand.serve.config import ServerConfig
from http_service import HttpService

service = HttpService(ServerConfig(store="evenhand.db", port=0))
service.start()
try:
    get = service.client.get
    document = get("/openapi.json").json()["paths"]["/v1/runs/{id}/ties"]["get"]
    told = get("/v1/runs/r/ties", params={"most": 0.5}).json()
    refused = get("/v1/runs/r/ties", params={"most": 2}).status_code
    page = get("/runs/1/ties", params={"lang": "en"}).text
finally:
    service.stop()
names = [each["name"] for each in document["parameters"]]
print(json.dumps([names, told["ties"], refused, "4 of 12 pairs are ties." in page]))
"""
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", asked],
        cwd=tmp_path,
        env={**site, "PYTHONPATH": os.pathsep.join([site["PYTHONPATH"], here])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [["id", "most"], 4, 422, True]


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
    """An analysis also uses what registers one."""
    for path in EXTENSIONS.rglob("*judge*.py"):
        text = path.read_text("utf-8")
        assert "evenhand." not in text.replace("evenhand.judge", "").replace(
            "evenhand.compare_sync", ""
        ), path.name
        assert "from evenhand." not in text
