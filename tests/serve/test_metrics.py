from __future__ import annotations

import re
from pathlib import Path

import pytest

from evenhand.errors import JudgeTimeout, ServerBusy
from evenhand.serve.comparisons import Admission
from evenhand.serve.metrics import Metrics

DOCUMENT = Path(__file__).parents[2] / "docs" / "operating.md"


def test_every_metric_is_documented_with_its_labels_and_no_other() -> None:
    """By the samples that each has once it was used."""
    metrics = Metrics(["m"])
    metrics.arrived()
    metrics.answered("GET", "/v1/runs", 200, seconds=0.1)
    metrics.refused("busy")
    metrics.compared("m", JudgeTimeout("x"), seconds=1)
    metrics.run_advanced("m", calls=1, verdicts=1)
    metrics.run_ended("finished")
    text = metrics.exposition({}).decode()
    used: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(evenhand_\w+)(?:\{(.*)\})? \S+$", text, re.MULTILINE):
        if not name.endswith("_created"):
            metric = re.sub(r"_(?:bucket|sum|count)$", "", name)
            used.setdefault(metric, set()).update(set(re.findall(r'(\w+)="', labels)) - {"le"})
    written = DOCUMENT.read_text("utf-8")
    rows = re.findall(r"^\| `(evenhand_\w+)` \| (.*?) \|", written, re.MULTILINE)
    documented = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    assert documented == used


def test_a_judge_that_is_not_offered_gets_no_label_of_its_own() -> None:
    metrics = Metrics(["m"])
    metrics.compared("what a client wrote", JudgeTimeout("x"), seconds=1)
    text = metrics.exposition().decode()
    assert "client wrote" not in text
    assert 'evenhand_comparisons_total{judge="other",outcome="failed"} 1.0' in text


def test_a_comparison_that_was_never_begun_has_no_outcome() -> None:
    metrics = Metrics(["m"])
    metrics.compared("m", ServerBusy("full"), seconds=0)
    text = metrics.exposition().decode()
    assert "outcome=" not in text
    assert 'evenhand_comparison_failures_total{judge="m",kind="busy"} 1.0' in text


async def test_the_queue_is_told_as_it_changes() -> None:
    metrics, admission = Metrics(), Admission(1, 1)
    metrics.follow(admission)
    async with admission.admitted():
        assert "evenhand_comparisons_in_flight 1.0" in metrics.exposition().decode()
    assert "evenhand_comparisons_in_flight 0.0" in metrics.exposition().decode()


def test_two_servers_in_one_process_do_not_mix_their_numbers() -> None:
    one, other = Metrics(), Metrics()
    one.refused("forbidden")
    assert "forbidden" in one.exposition().decode()
    assert "forbidden" not in other.exposition().decode()


@pytest.mark.parametrize("method", ["GET", "BREW"])
def test_an_unknown_method_is_counted_as_one_of_others(method: str) -> None:
    metrics = Metrics()
    metrics.answered(method, "none", 405, seconds=0)
    assert ("BREW" in metrics.exposition().decode()) is False
