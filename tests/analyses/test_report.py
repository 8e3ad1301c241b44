"""What a report says, as blocks: in both languages, and as Markdown for agents."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from evenhand.analyses.registry import REPORT, AnalysisSubject, redacted
from evenhand.analyses.report import Report, blocks, compute, counting_of
from evenhand.analysis_options import GateOptions, ReportOptions
from evenhand.contract.codes import WIN_A, WIN_B
from evenhand.messages import render
from evenhand.present.blocks import markdown
from evenhand.report.lookup import find_run
from evenhand.report.win_rates import RateOptions, side_rate
from evenhand.settings import Settings
from evenhand.store import Store
from stored_runs import Row, follows_place, make_run, mumbles, says

HOSTILE = "](javascript:alert)|<b>`x`\n# title"


def reported(store: Store, rows: list[Row], settings: Settings | None = None) -> Report:
    make_run(store, "r", rows)
    subject = AnalysisSubject(store, (find_run(store, "r"),), settings or Settings())
    return compute(subject, ReportOptions())


def rows(outcomes: str, new: str = "new") -> list[Row]:
    answers = {"A": says("A"), "B": says("B"), "I": follows_place, "X": mumbles, "-": says("A")}
    return [
        Row(
            f"q{n}",
            answers[letter],
            judged=letter != "-",
            model_a="old",
            model_b=new,
            tags=("maths",),
        )
        for n, letter in enumerate(outcomes)
    ]


@pytest.mark.parametrize("outcomes", ["B" * 30 + "A" * 9 + "I" * 9 + "XX--", "----", ""])
def test_every_text_of_a_report_is_there_in_chinese(store: Store, outcomes: str) -> None:
    """Names, identifiers and judges aside, no word of it is English."""
    told = markdown(blocks(reported(store, rows(outcomes))), "zh")
    left = re.sub(r"`[^`]*`|evenhand[ \d.]*|runs show|JSON|scripted|model-1|en-\w+-\d+", "", told)
    words = set(re.findall(r"[A-Za-z]{2,}", left))
    assert words <= {"new", "old", "accuracy", "maths", "CI", "fingerprint"}, told


def test_names_from_data_are_no_markdown(store: Store) -> None:
    told = markdown(blocks(reported(store, rows("B" * 8, new=HOSTILE))))
    assert "<b>" not in told.replace("\\<b", "")
    assert not re.search(r"^# title", told, re.MULTILINE)


def test_limits_of_the_config_file_hold_for_a_report(store: Store) -> None:
    settings = Settings(gate=GateOptions(max_invalid=0.01))
    (claim,) = reported(store, rows("B" * 40 + "XX"), settings).conclusions.conclusions
    assert not claim.claims  # 2 of 42 are more than one in a hundred


def test_clients_are_told_neither_the_store_nor_the_manifest(store: Store) -> None:
    report = reported(store, rows("B" * 8))
    assert report.manifest is not None
    told = redacted(REPORT, report, "this server")
    assert (told.run.store, told.conclusions.store) == ("this server", "this server")
    assert set(told.model_dump()) == {"run", "conclusions"}


def test_how_flips_are_counted_is_said_unless_it_is_unknown() -> None:
    outcomes = np.array([WIN_A, WIN_B] * 8, dtype=np.int8)
    wanted = RateOptions("A", "half", 0.95, planned=True)
    rate = side_rate(outcomes, np.arange(16), wanted)
    assert render(counting_of(rate)) == (
        "ties and flipped pairs count as half; the interval covers every way of counting flips"
    )
    drawn = rate.model_copy(update={"drawn_order": 1})
    assert counting_of(drawn) == "ties and flipped pairs count as half"
    wins = side_rate(outcomes, np.arange(16), replace(wanted, ties="wins"))
    assert counting_of(wins) == "only outright wins count"
