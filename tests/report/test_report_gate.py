"""Pass above the threshold, fail below it, undecided otherwise; and the same as JUnit XML."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand
from evenhand import RunOptions
from evenhand.analyses.gate import (
    GateReport,
    gate_run,
    judge_gate,
    junit_xml,
    write_junit,
)
from evenhand.analysis_options import GateOptions
from evenhand.contract.codes import OutcomeCounts
from evenhand.errors import InputError
from evenhand.report.claims import ClaimedRate
from evenhand.report.conclusions import Conclusion, Conclusions, SideRate, conclude
from evenhand.runs.options import UntilDecided
from evenhand.stats.rates.length_bias import length_effect
from evenhand.stats.rates.position_bias import position_bias
from evenhand.stats.rates.win_rate import WorstCase
from evenhand.store import Store, open_store
from run_data import adds_up_here, sums
from scripted import ScriptedJudge
from stored_runs import Row, judge_run, make_run, mumbles, says


def concluded(
    low: float | None,
    high: float | None,
    *,
    judge: str = "judge",
    model: str | None = "new",
    against: str | None = "old",
    **more: Any,
) -> Conclusion:
    rate = None if low is None or high is None else (low + high) / 2
    win_rate = SideRate(
        side="B",
        counts=OutcomeCounts.of_codes((20, 40, 0, 0, more.pop("invalid", 0))),
        n=60,
        prompts=60,
        rate=rate,
        low=low,
        high=high,
        level=0.95,
        method="score",
        always_valid=False,
        clustered=False,
        ties="half",
        sign_test=None,
        worst_case=more.pop("worst_case", None),
        reason="not enough data: 1 valid pair" if rate is None else None,
    )
    return Conclusion(
        judge=judge,
        side="B",
        model=model,
        against=against,
        pairs=60,
        pending=0,
        win_rate=win_rate,
        claimed=ClaimedRate.of(win_rate),
        decision=None,
        account=None,
        by_criterion=(),
        by_tag=(),
        length=length_effect([], length_a=[], length_b=[]),
        position=position_bias([], []),
    )


def conclusions_of(found: Sequence[Conclusion], *, run: str = "run") -> Conclusions:
    return Conclusions(
        run=run,
        store="evenhand.db",
        state="finished",
        stopped_by=None,
        whole=True,
        judges=tuple(dict.fromkeys(each.judge for each in found)),
        pairs=60,
        prompts=60,
        pending=0,
        skipped_rows=0,
        side="B",
        ties="half",
        level=0.95,
        conclusions=tuple(found),
        notes=(),
    )


def ruled(*found: Conclusion, threshold: float = 0.5) -> GateReport:
    return judge_gate(conclusions_of(found), GateOptions(min_win_rate=threshold))


@pytest.mark.parametrize(
    ("low", "high", "threshold", "ruling"),
    [
        (0.51, 0.7, 0.5, "pass"),
        (0.3, 0.49, 0.5, "fail"),
        (0.4, 0.6, 0.5, "undecided"),
        (0.5, 0.7, 0.5, "undecided"),  # on the threshold is not above it
        (0.3, 0.5, 0.5, "undecided"),
        (0.62, 0.7, 0.6, "pass"),
        (0.55, 0.7, 0.6, "undecided"),
        (0.55, 0.59, 0.6, "fail"),
        (0.0, 0.2, 0.0, "undecided"),
        (0.1, 0.2, 0.0, "pass"),
        (0.9, 1.0, 1.0, "undecided"),
        (0.8, 0.99, 1.0, "fail"),
        (None, None, 0.5, "undecided"),
    ],
)
def test_interval_decides_and_its_end_on_the_threshold_does_not(
    low: float | None, high: float | None, threshold: float, ruling: str
) -> None:
    assert ruled(concluded(low, high), threshold=threshold).ruling == ruling


@pytest.mark.parametrize(
    ("low", "high", "line"),
    [
        (0.55, 0.69, "new vs old: win rate 0.62 (0.55 to 0.69, 95%) is above 0.5"),
        (0.31, 0.45, "new vs old: win rate 0.38 (0.31 to 0.45, 95%) is below 0.5"),
        (
            0.45,
            0.59,
            "new vs old: win rate 0.52 (0.45 to 0.59, 95%) is not significantly different from 0.5",
        ),
        # two digits would show a bound on the threshold that is not there
        (0.5004, 0.6, "new vs old: win rate 0.55 (0.5004 to 0.60, 95%) is above 0.5"),
        (None, None, "new vs old: not enough data: 1 valid pair"),
    ],
)
def test_line_says_why(low: float | None, high: float | None, line: str) -> None:
    (check,) = ruled(concluded(low, high)).checks
    assert check.line == f"{line}; 40 won, 20 lost, 0 tied, 0 inconsistent, 0 invalid"


def test_sides_without_models_go_by_their_labels() -> None:
    (check,) = ruled(concluded(0.6, 0.7, model=None, against=None)).checks
    assert check.line.startswith("B vs A: ")


@pytest.mark.parametrize(
    ("intervals", "whole"),
    [
        ([(0.6, 0.7), (0.6, 0.8)], "pass"),
        ([(0.6, 0.7), (0.4, 0.8)], "undecided"),
        ([(0.6, 0.7), (0.4, 0.8), (0.1, 0.2)], "fail"),
        ([], "undecided"),
    ],
)
def test_whole_is_as_good_as_its_worst_part(
    intervals: list[tuple[float, float]], whole: str
) -> None:
    found = [concluded(*each, judge=f"judge {n}") for n, each in enumerate(intervals)]
    gate = ruled(*found)
    assert gate.ruling == whole
    assert len(gate.checks) == len(intervals)
    if len(found) > 1:
        assert gate.checks[1].line.startswith("new vs old, judged by judge 1: ")
    assert (gate.reason is None) == bool(intervals)


def test_the_worst_case_of_what_has_no_verdict_is_named() -> None:
    worst = WorstCase(rate_if_lost=0.55, rate_if_won=0.7, low=0.45, high=0.8)
    (check,) = ruled(concluded(0.55, 0.75, invalid=3, worst_case=worst)).checks
    assert check.line.endswith("0 inconsistent, 3 invalid; worst case 0.45 to 0.80")
    assert check.worst_case == worst


@pytest.mark.parametrize("threshold", [-0.1, 1.1, math.nan, math.inf])
def test_threshold_outside_0_to_1_is_an_error(threshold: float) -> None:
    with pytest.raises(
        InputError,
        match=(
            r"the minimum win rate is .*; give a number from 0 to "
            r"1"
        ),
    ):
        ruled(threshold=threshold)


@pytest.mark.parametrize("alpha", [0, 1, -0.05, 1e-12, math.nan])
def test_alpha_outside_0_to_1_is_an_error(store: Store, alpha: float) -> None:
    make_run(store, "run", ())
    with pytest.raises(InputError, match=r"alpha is .*; give a number between 0 and 1"):
        gate_run(store, "run", GateOptions(alpha=alpha))


def rows(wins: int, losses: int, *, invalid: int = 0, pending: int = 0) -> list[Row]:
    answers = [says("B")] * wins + [says("A")] * (losses + pending) + [mumbles] * invalid
    made = [Row(f"q{n}", answer, model_a="old", model_b="new") for n, answer in enumerate(answers)]
    waiting = range(wins + losses, wins + losses + pending)
    return [replace(row, judged=n not in waiting) for n, row in enumerate(made)]


@pytest.mark.parametrize(
    ("wins", "losses", "threshold", "alpha", "ruling"),
    [
        # Wilson at 95% for 40 of 60: 0.5406 to 0.7727
        (40, 20, 0.5, 0.05, "pass"),
        (40, 20, 0.54, 0.05, "pass"),
        (40, 20, 0.55, 0.05, "undecided"),
        # a rate below 0.78 is not shown by a judge that may be a coin: it has no labels
        (40, 20, 0.78, 0.05, "undecided"),
        (20, 40, 0.5, 0.05, "fail"),
        # at 99.9%, z = 3.2905: centre (2/3 + z²/120) / (1 + z²/60) = 0.641189,
        # half z·sqrt((2/9)/60 + z²/14400) / (1 + z²/60) = 0.186067: 0.4551 to 0.8273
        (40, 20, 0.5, 0.001, "undecided"),
        (5, 0, 0.5, 0.05, "undecided"),  # too few
    ],
)
def test_stored_run_is_gated_at_its_own_level(
    store: Store, wins: int, losses: int, threshold: float, alpha: float, ruling: str
) -> None:
    make_run(store, "run", rows(wins, losses))
    gate = gate_run(store, "run", GateOptions(min_win_rate=threshold, alpha=alpha))
    assert gate.ruling == ruling
    assert (gate.min_win_rate, gate.alpha, gate.level) == (threshold, alpha, 1 - alpha)
    assert (gate.side, gate.ties, gate.run, gate.whole) == ("B", "half", "run", True)


def test_other_side_has_the_opposite_ruling(store: Store) -> None:
    make_run(store, "run", rows(40, 20))
    assert gate_run(store, "run").ruling == "pass"
    old = gate_run(store, "run", GateOptions(side="A"))
    assert (old.ruling, old.checks[0].sides) == ("fail", "old vs new")


def test_unfinished_run_may_pass_by_its_always_valid_interval(store: Store) -> None:
    make_run(store, "clear", rows(50, 10, pending=2))
    gate = gate_run(store, "clear")
    (check,) = gate.checks
    assert (gate.ruling, gate.whole, check.always_valid, check.pending) == ("pass", False, True, 2)
    # Were both of the rest lost, 50 of 62 would still be shown to lie above one half.
    assert ", 95% always valid) is above 0.5; pairs are judged in file order, " in check.line
    assert "the run has not finished (2 of 62 pairs pending); holds for any judge" in check.line
    # 40 of 60 pass by the plain interval alone
    make_run(store, "near", rows(40, 20, pending=2))
    assert gate_run(store, "near").ruling == "undecided"


def test_run_without_verdicts_is_undecided_with_the_reason(store: Store) -> None:
    make_run(store, "empty", ())
    make_run(store, "bare", (), judges=())
    make_run(store, "waiting", rows(0, 0, pending=7))
    make_run(store, "invalid", rows(0, 0, invalid=7))
    assert gate_run(store, "empty").reason == "not enough data: run empty has no pairs"
    assert gate_run(store, "bare").reason == "not enough data: run bare has no judges"
    for name in ("empty", "bare", "waiting", "invalid"):
        assert gate_run(store, name).ruling == "undecided"
    (check,) = gate_run(store, "waiting").checks
    assert check.line == (
        "new vs old: not enough data: 0 valid pairs; at least 6 are needed; 0 won, 0 "
        "lost, 0 tied, 0 inconsistent, 0 invalid; worst case 0.00 to 1.00; the run has not "
        "finished (7 of 7 pairs pending)"
    )


def test_every_judge_is_gated(store: Store) -> None:
    run_id = make_run(store, "both", rows(0, 0, pending=20), judges=("strict", "kind"))
    strict, kind = store.runs.judges(run_id)
    waiting = {row.key: replace(row, judged=True) for row in rows(0, 0, pending=20)}
    judge_run(store, run_id, strict.id, waiting)  # A wins all
    judge_run(store, run_id, kind.id, {k: replace(v, answer=says("B")) for k, v in waiting.items()})
    gate = gate_run(store, "both")
    assert [(check.judge, check.ruling) for check in gate.checks] == [
        ("strict", "fail"),
        ("kind", "pass"),
    ]
    assert gate.ruling == "fail"


@pytest.mark.slow
async def test_decided_run_is_gated_by_its_test_at_the_gates_alpha(tmp_path: Path) -> None:
    """A is right in two thirds of the pairs; a stricter gate does not believe the early stop."""
    summary = await evenhand.run(
        sums(400),
        ScriptedJudge(adds_up_here),
        criteria=["accuracy"],
        options=RunOptions(
            store=tmp_path / "evenhand.db", until_decided=UntilDecided(0.05), concurrency=4
        ),
    )
    assert summary.decision is not None
    with open_store(tmp_path / "evenhand.db") as store:
        usual = gate_run(store, summary.run, GateOptions(side="A"))
        strict = gate_run(store, summary.run, GateOptions(side="A", alpha=0.0001))
        at_level = conclude(store, summary.run, side="A", level=0.9999).conclusions[0].win_rate
    assert (usual.checks[0].low, usual.checks[0].high) == (
        summary.decision.low,
        summary.decision.high,
    )
    assert usual.ruling == "pass"
    assert "is above 0.5; " in usual.checks[0].line
    assert (
        "; the run stopped as soon as it was decided; holds for any judge " in usual.checks[0].line
    )
    assert (strict.ruling, strict.alpha) == ("undecided", 0.0001)
    assert (strict.checks[0].low, strict.checks[0].high) == (at_level.low, at_level.high)


@pytest.mark.parametrize(
    ("threshold", "ruling", "favoured"), [(0.35, "pass", "new"), (0.65, "fail", "old")]
)
def test_a_claim_beyond_one_half_needs_a_judge_that_is_right_often_enough(
    store: Store, threshold: float, ruling: str, favoured: str
) -> None:
    """Wilson's interval of 50 of 100 begins 0.09617 below one half. Errors that favour neither side
    leave 2a - 1 of that, which has to be within 0.15: a is (1 + 0.09617 / 0.15) / 2 = 0.8206.
    Errors that all favour the claim may have taken what is left to the threshold, 0.05383: a is
    1 - 0.05383 = 0.9462."""
    make_run(store, "run", rows(50, 50))
    gate = gate_run(store, "run", GateOptions(min_win_rate=threshold))
    (check,) = gate.checks
    assert check.break_even is not None
    assert check.break_even.balanced == pytest.approx(0.8206, abs=0.0001)
    assert check.break_even.one_sided == pytest.approx(0.9462, abs=0.0001)
    assert (
        "needs a judge that is right on 83% of the pairs it decides "
        f"(95% if every error favoured {favoured})"
    ) in check.line
    # Nobody knows how often it is right.
    assert (gate.ruling, [hold.code for hold in check.holds]) == ("undecided", ["accuracy"])
    for assumed, ruled_as in ((0.82, "undecided"), (0.821, ruling), (1.0, ruling)):
        by_word = gate_run(
            store, "run", GateOptions(min_win_rate=threshold, assume_accuracy=assumed)
        )
        assert by_word.ruling == ruled_as
        assert ([hold.code for hold in by_word.checks[0].holds] == []) == (ruled_as == ruling)


def test_a_claim_at_one_half_needs_no_more_than_a_coin(store: Store) -> None:
    make_run(store, "run", rows(40, 20))
    (check,) = gate_run(store, "run").checks
    assert "holds for any judge better than a coin flip" in check.line
    assert "needs a judge" not in check.line


@pytest.mark.parametrize("accuracy", [0.5, 1.01])
def test_an_assumed_accuracy_is_above_a_coins(store: Store, accuracy: float) -> None:
    make_run(store, "run", rows(40, 20))
    with pytest.raises(InputError, match="accuracy"):
        gate_run(store, "run", GateOptions(assume_accuracy=accuracy))


@pytest.mark.parametrize(("limit", "fine"), [(-0.01, False), (0, True), (1, True), (1.01, False)])
def test_a_limit_on_flips_is_a_share(store: Store, limit: float, fine: bool) -> None:
    make_run(store, "run", rows(40, 20))
    if fine:
        assert gate_run(store, "run", GateOptions(max_inconsistent=limit)).ruling == "pass"
        return
    with pytest.raises(InputError, match="the inconsistency limit is"):
        gate_run(store, "run", GateOptions(max_inconsistent=limit))


def test_at_least_includes_the_threshold() -> None:
    at_least = GateOptions(require=("overall>=0.6",))
    above = GateOptions(require=("overall>0.6",))
    on_it = conclusions_of([concluded(0.6, 0.7)])
    assert (judge_gate(on_it, at_least).ruling, judge_gate(on_it, above).ruling) == (
        "pass",
        "undecided",
    )
    below = conclusions_of([concluded(0.5, 0.6)])
    assert judge_gate(below, at_least).ruling == "undecided"


def test_a_matchup_without_the_required_tag_is_undecided(store: Store) -> None:
    tagged = [replace(row, tags=("x",)) for row in rows(40, 10)]
    other = [replace(row, key=f"other {row.key}", model_b="newer") for row in rows(40, 10)]
    make_run(store, "run", [*tagged, *other])
    gate = gate_run(store, "run", GateOptions(require=("tag:x>0.5",)))
    assert [(check.model, check.ruling, check.rate) for check in gate.checks] == [
        ("new", "pass", 0.8),
        ("newer", "undecided", None),
    ]
    assert gate.ruling == "undecided"


def test_a_check_from_before_they_were_counted_has_none_of_these(store: Store) -> None:
    make_run(store, "run", rows(40, 20))
    written = gate_run(store, "run").model_dump(mode="json", by_alias=True)
    for name in ("leftOut", "corrected", "holds"):
        del written["checks"][0][name]
    (check,) = GateReport.model_validate(written).checks
    assert (check.left_out, check.corrected, check.holds) == (0, False, ())


def parsed(gate: GateReport) -> ET.Element:
    return ET.fromstring(junit_xml(gate))  # noqa: S314 - our own


def test_junit_has_a_test_for_each_judge_and_model_pair() -> None:
    gate = ruled(
        concluded(0.6, 0.7, judge="one"),
        concluded(0.1, 0.2, judge="two"),
        concluded(0.4, 0.6, judge="three"),
    )
    root = parsed(gate)
    (suite,) = root
    assert (root.tag, suite.tag, suite.get("name")) == (
        "testsuites",
        "testsuite",
        "evenhand gate run",
    )
    counts = {"tests": "3", "failures": "1", "errors": "1", "skipped": "0"}
    for element in (root, suite):
        assert {name: element.get(name) for name in counts} == counts
    settings = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert settings == {
        "minWinRate": "0.5",
        "require": "overall>0.5",
        "alpha": "0.05",
        "side": "B",
        "ties": "half",
    }
    told = [
        (case.get("name"), [(each.tag, each.get("type")) for each in case])
        for case in suite.iter("testcase")
    ]
    assert told == [
        ("new vs old, by one", [("system-out", None)]),
        ("new vs old, by two", [("failure", "fail")]),
        ("new vs old, by three", [("error", "undecided")]),
    ]
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == failure.text == gate.checks[1].line


def test_junit_of_a_run_without_pairs_is_one_error() -> None:
    root = parsed(ruled())
    assert (root.get("tests"), root.get("errors"), root.get("failures")) == ("1", "1", "0")
    error = root.find("testsuite/testcase/error")
    assert error is not None
    assert error.get("message") == "not enough data: run run has no judges"


def allowed_in_xml(char: str) -> bool:
    """The production Char of XML 1.0."""
    code = ord(char)
    return (
        char in "\t\n\r"
        or 0x20 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or 0x10000 <= code <= 0x10FFFF
    )


_ANY_TEXT = st.text(st.characters(exclude_categories=()))


@given(_ANY_TEXT, _ANY_TEXT, _ANY_TEXT)
def test_junit_is_xml_whatever_the_names_are(model: str, judge: str, run: str) -> None:
    made = concluded(0.1, 0.2, model=model, judge=judge)
    written = junit_xml(judge_gate(conclusions_of([made], run=run)))
    assert all(map(allowed_in_xml, written.decode("utf-8")))
    root = ET.fromstring(written)  # noqa: S314 - our own
    case = root.find("testsuite/testcase")
    assert case is not None
    named = case.get("name") or ""
    assert "vs old, by" in named
    seen = {unicodedata.category(char) for char in named if char not in "\u200c\u200d"}
    assert not seen & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_marks_that_turn_the_direction_of_writing_are_left_out() -> None:
    name = "\u202ebad\u2066 model\u200b 模型"
    (case,) = parsed(ruled(concluded(0.1, 0.2, model=name))).iter("testcase")
    assert case.get("name") == "bad model 模型 vs old, by judge"
    (failure,) = case
    assert (failure.get("message") or "").startswith("bad model 模型 vs old")


def test_markup_in_a_name_stays_text() -> None:
    name = "</testcase><failure/>&lt;\"'\x1b[31m\x00]]><!--"
    (case,) = parsed(ruled(concluded(0.6, 0.7, model=name))).iter("testcase")
    assert [each.tag for each in case] == ["system-out"]
    assert (case.get("name") or "").startswith("</testcase><failure/>&lt;\"'[31m]]><!-- vs")


def test_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    gate = ruled(concluded(0.6, 0.7))
    for path in (tmp_path, tmp_path / "nowhere" / "x.xml", Path("/dev/full"), Path("a\0b")):
        with pytest.raises(InputError) as raised:
            write_junit(gate, path)
        assert re.search(
            r"^cannot write .+: .+; check the disk, the path and its permissions$"
            r"| is a directory; ",
            raised.value.message,
        )
        assert "\n" not in raised.value.message


def test_file_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "gate.xml"
    path.write_text("x" * 10_000)
    gate = ruled(concluded(0.6, 0.7))
    write_junit(gate, path)
    assert path.read_bytes() == junit_xml(gate)


def test_gate_goes_through_json() -> None:
    gate = ruled(concluded(0.6, 0.7))
    assert GateReport.model_validate_json(gate.model_dump_json()) == gate
