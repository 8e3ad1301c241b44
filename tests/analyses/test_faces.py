"""Every registered analysis of one run is the same on every face: what it computes is what the
command and the server give as JSON, and what it refuses they refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from command_line import Command
from evenhand.analyses.registry import OURS, AnalysisEntry, AnalysisSubject, redacted
from evenhand.errors import InputError
from evenhand.messages import FOR_CLIENTS, render
from evenhand.present.blocks import markdown
from evenhand.report.lookup import find_run
from evenhand.serve.config import ServerConfig
from evenhand.settings import Settings
from evenhand.store import Store
from http_service import HttpService
from stored_runs import Row, make_run, says

OF_A_RUN = [each for each in OURS.values() if each.takes == "run" and each.addressed]


@pytest.fixture
def run(store: Store) -> AnalysisSubject:
    rows = [
        Row(f"q{n}", says("B" if n % 3 else "A"), model_a="old", model_b="new", label="B")
        for n in range(60)
    ]
    number = make_run(store, "r", rows)
    store.runs.update(number, state="finished")
    return AnalysisSubject(store, (find_run(store, "r"),), Settings())


@pytest.fixture
def server(run: AnalysisSubject, command: Command) -> Iterator[HttpService]:
    service = HttpService(ServerConfig(store="evenhand.db", port=0))
    service.start()
    yield service
    service.stop()
    service.client.close()


@pytest.mark.parametrize("analysis", OF_A_RUN, ids=lambda each: each.name)
def test_faces_give_what_the_analysis_computes(
    analysis: AnalysisEntry, run: AnalysisSubject, command: Command, server: HttpService
) -> None:
    told = command(analysis.name, "r", "--store", "evenhand.db", "--json")
    answer = server.client.get(analysis.address.format(id="r"))
    try:
        computed = analysis.implementation.compute(run, analysis.options())
    except InputError:
        assert (told.code, answer.status_code) == (2, 422)
        return
    assert json.loads(told.out) == json.loads(computed.model_dump_json())
    public = redacted(analysis, computed, "this server")
    assert answer.json() == json.loads(public.model_dump_json(context=FOR_CLIENTS))
    if not analysis.has_own_page:
        page = server.client.get(analysis.page.format(id="1"), params={"lang": "en"})
        assert page.status_code == 200
    for language in ("en", "zh"):
        assert markdown(analysis.implementation.blocks(computed), language)
    assert render(analysis.summary).endswith(".")
