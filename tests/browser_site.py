"""The real server as a process of its own, with judges behind it and a store that is filled."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from browser_data import (
    CRITERIA,
    JUDGES,
    KnowingJudge,
    answers_by_model,
    hostile_rows,
    simple_rows,
)
from door_server import shell, started_server
from evenhand.store import NewVote, open_store
from servers import JudgeServer, Reply, SeenRequest, error_reply

_WAIT_S = 60.0
# A run's name is shown too.
HOSTILE_NAME = "hostile <script>window.harmed=true</script>"


@dataclass(frozen=True)
class Site:
    """Where it is, and the ids of its runs by what they are for."""

    url: str
    store: Path
    directory: Path
    runs: Mapping[str, str]

    def run(self, which: str = "rich") -> str:
        return f"{self.url}/runs/{self.runs[which]}"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("site")
    with JudgeServer(_judge()) as judge, served(directory, judge.url) as url:
        yield Site(url, directory / "site.db", directory, filled(url, directory / "site.db"))


@contextmanager
def served(
    directory: Path, judge_url: str, *, log: str = "serve.log", **more: str
) -> Iterator[str]:
    """`evenhand serve` over the store in this folder; what is in `more` is its environment's."""
    config = directory / "serve.toml"
    offers = [
        f'[[judges]]\nname = "{name}"\njudge = "openai:{name}"\nbase_url = "{judge_url}"\n'
        'retries = 0\nrepairs = 0\nprice = "2/8"\n'
        for name in (*JUDGES, "broken")
    ]
    config.write_text(f'store = "{directory / "site.db"}"\n' + "".join(offers), "utf-8")
    surroundings = shell(directory, OPENAI_API_KEY="sk-loopback", **more)
    command = ["evenhand", "serve", "--config", str(config)]
    with started_server(command, directory, surroundings, log=log) as address:
        yield address


def _judge() -> Any:
    knowing = KnowingJudge([*answers_by_model(), *hostile_rows()])

    def answer(request: SeenRequest) -> Reply:
        if request.json["model"] == "broken":
            return error_reply(401, "no such key")
        return knowing(request)

    return answer


def filled(url: str, store: Path) -> dict[str, str]:
    rich = [case.row for case in answers_by_model()]
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        runs = {
            "rich": _start(client, rich, name="answers by model", judges=list(JUDGES)),
            "plain": _start(client, list(simple_rows()), name="plain", judge="careful"),
            "failed": _start(client, list(simple_rows()), name="a key is missing", judge="broken"),
            "hostile": _start(
                client,
                [case.row for case in hostile_rows()],
                name=HOSTILE_NAME,
                judge="careful",
            ),
        }
        for each in runs.values():
            _wait(client, each)
    _vote(store, runs["rich"])
    return runs


def _start(client: httpx.Client, rows: list[Any], **options: Any) -> str:
    body = {"pairs": rows, "criteria": list(CRITERIA), **options}
    answer = client.post("/v1/runs", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def _wait(client: httpx.Client, run: str) -> None:
    deadline = time.monotonic() + _WAIT_S
    while client.get(f"/v1/runs/{run}").json()["state"] not in ("finished", "failed", "stopped"):
        assert time.monotonic() < deadline, "a run of the pages' data did not end"
        time.sleep(0.05)


def _vote(path: Path, run: str) -> None:
    """Two people have voted on some pairs, and agree on most."""
    with open_store(path) as store:
        pairs = [own.pair_id for own in store.run_items(int(run))][:12]
        for who, letters in (("ann", "AABBAATABABA"), ("bo", "AABBAAAABBBA")):
            winners = {"A": "A", "B": "B", "T": "TIE"}
            store.add_votes(
                [
                    NewVote(pair, who, winners[letter])  # type: ignore[arg-type]
                    for pair, letter in zip(pairs, letters, strict=True)
                ]
            )
