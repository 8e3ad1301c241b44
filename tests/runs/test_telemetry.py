"""Spans where OpenTelemetry is set up, and nothing where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import evenhand
from evenhand import RunOptions
from evenhand.contract import Usage
from evenhand.judges.protocol import Completion, JudgeCall
from evenhand.runs.telemetry import Telemetry
from run_data import adds_up_here, sums
from scripted import ScriptedJudge


def counted(call: JudgeCall) -> Completion:
    usage = Usage(input_tokens=70, output_tokens=30, requests=1)
    return Completion(adds_up_here(call), usage=usage, model="m-1")


async def test_a_run_its_pairs_and_its_calls_have_spans_without_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    found = Telemetry(provider.get_tracer("test"))
    monkeypatch.setattr(Telemetry, "available", classmethod(lambda cls: found))
    await evenhand.run(
        sums(3),
        ScriptedJudge(counted),
        criteria=["accuracy"],
        options=RunOptions(store=tmp_path / "store.db"),
    )
    spans = kept.get_finished_spans()
    names = [span.name for span in spans]
    assert (names.count("evenhand.run"), names.count("evenhand.pair")) == (1, 3)
    assert names.count("evenhand.judge_call") == 6
    calls = [dict(s.attributes or {}) for s in spans if s.name == "evenhand.judge_call"]
    assert {call["gen_ai.usage.input_tokens"] for call in calls} == {70}
    assert (
        sorted(str(call["evenhand.order"]) for call in calls) == ["original"] * 3 + ["swapped"] * 3
    )
    pairs = [dict(s.attributes or {}) for s in spans if s.name == "evenhand.pair"]
    assert {pair["evenhand.outcome"] for pair in pairs} == {"win"}
    told = str([dict(span.attributes or {}) for span in spans])
    assert "by counting" not in told  # no text of the data
    by_id = {span.context.span_id: span.name for span in spans if span.context}
    parents = {by_id[s.parent.span_id] for s in spans if s.parent and s.name.endswith("call")}
    assert parents == {"evenhand.pair"}


def test_where_nobody_set_it_up_there_are_no_spans() -> None:
    silent = Telemetry.available()
    with silent.pair("x") as span:
        span.set(anything=1)
        assert trace.get_current_span() is trace.INVALID_SPAN
    assert silent.pair("x") is silent.run("y") is Telemetry(None).pair("z")  # and nothing is made
