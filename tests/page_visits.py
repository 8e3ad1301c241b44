"""Visits to the real server's pages, as a browser without JavaScript makes them.

visitor = Visitor(service)
run = visitor.start([...])          # by the form on the first page
page = visitor.see(f"{run}/pairs")  # parsed, and nothing in it can do harm
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from evenhand.serve.config import ServerConfig
from html_reading import Html, harm_in
from http_service import HttpService, judge_offer
from servers import JudgeServer, Script, forget_proxies

_WAIT_S = 60.0


class Visitor:
    def __init__(self, service: HttpService) -> None:
        self.service = service
        self.client = service.client

    @property
    def _own(self) -> dict[str, str]:
        return {"Origin": self.service.url.rstrip("/")}

    def ask(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(path, headers=headers)

    def see(self, path: str, *, status: int = 200, language: str = "en") -> Html:
        return seen(self.ask(path, **{"Accept-Language": language}), status)

    def send(self, path: str, fields: Mapping[str, Any] | None = None) -> httpx.Response:
        """A form of the server's own page."""
        return self.client.post(path, data=dict(fields or {}), headers=self._own)

    def upload(
        self,
        content: bytes,
        fields: Mapping[str, Any] | None = None,
        *,
        name: str = "pairs.jsonl",
    ) -> httpx.Response:
        return self.client.post(
            "/runs", files={"file": (name, content)}, data=dict(fields or {}), headers=self._own
        )

    def begin(self, rows: Sequence[Mapping[str, Any]], **fields: Any) -> str:
        """The address of the run's page."""
        lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
        answer = self.upload(lines, {"criteria": "accuracy"} | fields)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    def start(self, rows: Sequence[Mapping[str, Any]], **fields: Any) -> str:
        """The same, and the run has come to its end, with its figures."""
        run = self.begin(rows, **fields)
        self.wait(run, lambda page: "finished" in page.by_id("progress").text)
        return run

    def wait(self, path: str, fact: Any) -> Html:
        """Until nothing on the page is live any more, and the fact holds."""
        deadline = time.monotonic() + _WAIT_S
        while True:
            page = self.see(path)
            live = [each for each in page.elements if "data-live" in each.attributes]
            if not live and fact(page):
                return page
            assert time.monotonic() < deadline, page.text
            time.sleep(0.05)


def seen(answer: httpx.Response, status: int = 200) -> Html:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    page = Html(answer.text)
    assert harm_in(page) == []
    return page


def rows_of(page: Html) -> list[int]:
    """The numbers of the pairs that the table shows, in its order."""
    return [
        int(cell.text)
        for cell in page.all("a")
        if cell.within[-1].tag == "td" and cell.attributes.get("aria-label", "").startswith("Pair ")
    ]


def count_of(page: Html) -> str:
    return page.one("strong").text.split()[0]


@contextmanager
def serving(
    directory: Path, script: Script, *, judges: Sequence[str] = ("good",)
) -> Iterator[Visitor]:
    """A server for a whole module of tests."""
    with pytest.MonkeyPatch.context() as patch:
        forget_proxies(patch)
        with JudgeServer(script) as judge:
            offers = tuple(
                judge_offer(name, f"openai:{name}", base_url=judge.url, repairs=0)
                for name in judges
            )
            config = ServerConfig(judges=offers, store=str(directory / "pages.db"), port=0)
            service = HttpService(config, judge)
            service.start()
            try:
                yield Visitor(service)
            finally:
                service.close()
