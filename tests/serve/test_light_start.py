"""What a server loads before anybody has asked for it, seen from processes of their own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from benchmarks.loopback import loopback_environment

from evenhand.cli.main import main
from evenhand.installation import install_command
from mcp_clients import HELLO, READY

# What takes long to load, by who needs it: figures, MCP, pages, old stores, judges' calls, HTTP.
WATCHED = (
    *("numpy", "scipy", "mcp", "mcp_types", "jinja2", "alembic", "aiohttp", "fastapi"),
    *("evenhand.serve.pages.routes", "evenhand.serve.reports"),
)
PROGRAM = (
    "import atexit, json, sys\n"
    f"watched = {WATCHED!r}\n"
    "def tell():\n"
    "    found = [name for name in watched if name in sys.modules]\n"
    "    sys.stderr.write('\\n' + json.dumps(found) + '\\n')\n"
    "atexit.register(tell)\n"
    "import evenhand.__main__"
)
ACCEPTED = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LISTING = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


@dataclass
class Ended:
    """What can be said of a process once it is over."""

    code: int | None = None
    loaded: set[str] = field(default_factory=set)

    def read(self, code: int, log: str) -> None:
        self.code, self.loaded = code, set(json.loads(log.splitlines()[-1]))


def words(command: str, directory: Path) -> list[str]:
    store = str(directory / "runs.db")
    return [sys.executable, "-c", PROGRAM, command, "-j", "baseline:longer", "--store", store]


@contextmanager
def serving(directory: Path) -> Iterator[tuple[httpx.Client, Ended]]:
    ended = Ended()
    log = directory / "log.txt"
    with (
        log.open("w", encoding="utf-8") as told,
        subprocess.Popen(
            [*words("serve", directory), "--port", "0"],
            cwd=directory,
            env=loopback_environment(),
            stdout=subprocess.PIPE,
            stderr=told,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert url, log.read_text("utf-8")
            with httpx.Client(base_url=url, trust_env=False, timeout=120) as client:
                yield client, ended
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(120)
    ended.read(code, log.read_text("utf-8"))


@pytest.mark.slow
def test_a_server_that_is_not_asked_loads_little_and_ends_in_good_order(tmp_path: Path) -> None:
    with serving(tmp_path) as (_, ended):
        pass
    assert ended.code == 0
    assert ended.loaded == {"fastapi"}


@pytest.mark.slow
def test_a_server_that_compares_for_programs_loads_no_pages_and_no_statistics(
    tmp_path: Path,
) -> None:
    pair = {"prompt": "p", "responseA": "a", "responseB": "bb", "criteria": ["length"]}
    with serving(tmp_path) as (client, ended):
        assert client.get("/readyz").json()["ready"] is True
        assert client.post("/v1/compare", json=pair).json()["winner"] == "B"
        assert client.get("/v1/runs").json()["runs"] == []
        assert client.get("/metrics").status_code == 200
    assert ended.code == 0
    assert ended.loaded == {"fastapi"}


@pytest.mark.slow
def test_what_is_loaded_late_serves_all_who_come_at_once(tmp_path: Path) -> None:
    """Pages, MCP, figures and the document, each by several, before any of them is there."""
    with serving(tmp_path) as (client, ended):
        answers: dict[int, tuple[str, int, str]] = {}
        asked: list[tuple[str, str, Any]] = [
            ("POST", "/mcp", HELLO),
            ("GET", "/", None),
            ("GET", "/v1/rank?runs=none", None),
            ("GET", "/openapi.json", None),
            ("GET", "/v1/audits?run=none", None),
            ("GET", "/rank", None),
        ] * 3
        together = threading.Barrier(len(asked))

        def ask(number: int, method: str, path: str, body: Any) -> None:
            together.wait(60)
            answer = client.request(method, path, json=body, headers=ACCEPTED if body else None)
            answers[number] = path, answer.status_code, answer.text

        threads = [
            threading.Thread(target=ask, args=(number, *each)) for number, each in enumerate(asked)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert ended.code == 0
    assert len(answers) == len(asked)
    for path, status, text in answers.values():
        assert status == (404 if path.startswith("/v1/") else 200), (path, text)
        assert path != "/mcp" or '"serverInfo"' in text
    assert {"mcp", "evenhand.serve.pages.routes", "evenhand.serve.reports"} <= ended.loaded


@pytest.mark.slow
def test_mcp_lists_its_tools_without_statistics_and_web_pages(tmp_path: Path) -> None:
    said = [HELLO, READY, LISTING]
    done = subprocess.run(
        words("mcp", tmp_path),
        cwd=tmp_path,
        env=loopback_environment(),
        input="".join(json.dumps(each) + "\n" for each in said),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    ended = Ended()
    ended.read(done.returncode, done.stderr)
    answered = [json.loads(line)["id"] for line in done.stdout.splitlines()]
    assert answered == [HELLO["id"], LISTING["id"]]
    assert ended.loaded == {"mcp", "mcp_types"}


@pytest.mark.parametrize(
    ("command", "missing"),
    [("serve", "uvicorn"), ("serve", "mcp"), ("serve", "mcp_types"), ("mcp", "mcp")],
)
def test_what_is_not_installed_is_said_at_the_start(
    command: str,
    missing: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    store = str(tmp_path / "runs.db")
    given = ["evenhand", command, "-j", "baseline:longer", "--store", store]
    monkeypatch.setattr(sys, "argv", given)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    told = capsys.readouterr()
    name = missing.removesuffix("_types")
    assert f"{name} is not installed (extra serve); run: {install_command('serve')}" in told.err
    assert told.out == ""
    assert not Path(store).exists()
