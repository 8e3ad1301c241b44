"""Calibrations learned from a real run, saved, and put to use on further ones."""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import evenhand
from analysed import analysis_of
from evenhand import RunOptions, RunSummary
from evenhand.analyses.calibrate import CalibrationReport, _error, sum_up_calibration
from evenhand.analyses.registry import CALIBRATE
from evenhand.contract import JudgedBy, Outcome
from evenhand.errors import InputError
from evenhand.judges.protocol import JudgeCall
from evenhand.judging.comparison import compare
from evenhand.judging.config import JudgeConfig
from evenhand.judging.decision import Judged
from evenhand.report.abstentions import count_abstentions
from evenhand.report.lookup import find_run
from evenhand.stats.calibration.curves import Constant, Logistic, LogisticSignal
from evenhand.stats.calibration.fit import Calibration, fit_calibration
from evenhand.stats.calibration.reliability import calibration_error
from evenhand.store import NewVote, Store, open_store
from evenhand.trust.calibration import (
    AppliedCalibration,
    SavedCalibration,
    open_calibration,
    save_calibration,
)
from evenhand.trust.labelled_verdicts import labelled_verdicts
from explained import mirrored, plain
from parts import examples
from run_data import (
    asked_number,
    is_right,
    labelled_sums,
    right_place,
    stated,
    sums,
    unsure,
    unsure_answer,
)
from scripted import ScriptedJudge, answer_json, letter_completion, make_pair, seeded_by

PAIRS = 400


async def judged(
    rows: list[dict[str, Any]], judge: ScriptedJudge, at: Path, **config: Any
) -> RunSummary:
    return await evenhand.run(
        rows,
        judge,
        JudgeConfig(**config),
        criteria=["accuracy"],
        options=RunOptions(store=at),
    )


@pytest.fixture
async def learned(tmp_path: Path) -> tuple[Path, str]:
    """A run of 400 labelled sums: the store, and the run's name."""
    at = tmp_path / "store.db"
    summary = await judged(labelled_sums(PAIRS), ScriptedJudge(unsure), at)
    return at, summary.run


def calibrated(learned: tuple[Path, str], **how: Any) -> CalibrationReport:
    at, run = learned
    with open_store(at) as store:
        report: CalibrationReport = analysis_of(CALIBRATE, store, run, **how)
        return report


def test_what_is_right_is_counted_by_the_labels(learned: tuple[Path, str]) -> None:
    found = calibrated(learned)
    right = sum(is_right(number) for number in range(1, PAIRS + 1))
    own = found.calibration.calibration
    assert (own.n, own.right, own.prompts) == (PAIRS, right, PAIRS)
    assert (found.verdicts, found.by_data, found.by_people) == (PAIRS, PAIRS, 0)
    assert (found.inconsistent, found.invalid, found.unlabelled) == (0, 0, 0)
    assert found.signals == ("stated", "orders", "criteria", "length")
    assert found.tested == "cross-fitted"
    # The judge states 0.75 on average, and is right in 37 of 50: but by level it is far off.
    assert found.change.before is not None
    assert found.change.before.n == found.change.after_all.n == PAIRS
    assert found.change.after_all.brier.value is not None
    assert found.change.before.brier.value is not None
    assert found.change.after_all.brier.value <= found.change.before.brier.value + 0.005
    skill = found.change.after_all.brier_skill
    assert skill.low is not None
    assert found.better_than_base_rate is (skill.low > 0)


async def test_a_calibrated_confidence_is_the_statistics_own_prediction(
    learned: tuple[Path, str],
) -> None:
    found = calibrated(learned)
    # The second way: the signals by hand, and the fit from them.
    numbers = range(1, PAIRS + 1)
    lengths = {n: len(f"It is {2 * n}, by counting.") for n in numbers}
    worse = {n: len(f"It is {2 * n + 1}, by counting.") for n in numbers}
    signals = {
        "stated": [stated(n) for n in numbers],
        "orders": [1.0] * PAIRS,
        "criteria": [1.0] * PAIRS,
        "length": [
            math.log1p(lengths[n] if is_right(n) else worse[n])
            - math.log1p(worse[n] if is_right(n) else lengths[n])
            for n in numbers
        ],
    }
    at, run = learned
    with open_store(at) as store:
        keys = store.columns.outcomes(find_run(store, run).id, 1).prompt_key
    right = [is_right(n) for n in numbers]
    fitted = fit_calibration(right, signals, prompts=np.asarray(keys))
    assert fitted == found.calibration.calibration
    expected = fitted.predict(signals)
    calibration = AppliedCalibration(found.calibration)
    again = await judged(labelled_sums(PAIRS), ScriptedJudge(unsure), at, calibration=calibration)
    with open_store(at) as store:
        rows = list(store.verdicts.each(find_run(store, again.run).id))
    assert [row.confidence for row in rows] == pytest.approx(expected.tolist(), abs=1e-12)
    assert {row.confidence_source for row in rows} == {"calibration"}


@pytest.mark.slow
async def test_a_calibrated_run_is_another_run_that_asks_nothing_anew(
    learned: tuple[Path, str],
) -> None:
    at, run = learned
    calibration = AppliedCalibration(calibrated(learned).calibration)
    judge = ScriptedJudge(unsure)
    first = await judged(labelled_sums(PAIRS), judge, at, calibration=calibration)
    assert judge.calls == []
    assert first.run != run
    assert (first.calls, first.reused_passes) == (0, 2 * PAIRS)
    again = await judged(labelled_sums(PAIRS), judge, at, calibration=calibration)
    assert again.run == first.run
    other = AppliedCalibration(calibrated(learned, most=200).calibration)
    assert (await judged(labelled_sums(PAIRS), judge, at, calibration=other)).run != first.run
    # A calibration of the calibrated run goes by the passes, and is the same.
    with open_store(at) as store:
        relearned = analysis_of(CALIBRATE, store, first.run)
    assert relearned.calibration.calibration == calibration.saved.calibration


async def test_compare_and_run_give_the_same_confidence(learned: tuple[Path, str]) -> None:
    at, _ = learned
    calibration = AppliedCalibration(calibrated(learned).calibration)
    run = await judged(sums(30), ScriptedJudge(unsure), at, calibration=calibration)
    with open_store(at) as store:
        rows = list(store.verdicts.each(find_run(store, run.run).id))
    for row, fields in zip(rows, sums(30), strict=True):
        pair = make_pair(**fields)
        verdict = await compare(pair, ScriptedJudge(unsure), JudgeConfig(calibration=calibration))
        assert verdict.confidence == row.confidence
        assert verdict.metadata.confidence_source == "calibration"


def made(
    curve: Any = None, *, threshold: float | None = None, guaranteed: bool = False
) -> AppliedCalibration:
    """A calibration by hand, of the scripted judge."""
    from evenhand.prompts import built_in_template
    from evenhand.stats.calibration.guarantee import Guarantee

    stated = LogisticSignal(
        signal="stated", centre=0.5, scale=0.25, low=0.0, high=1.0, slope=1.0, missing=0.0
    )
    steep = Logistic(intercept=0.0, signals=(stated,), penalty=1.0, otherwise=0.5)
    calibration = Calibration(
        curve=curve or steep,
        method="logistic",
        signals=("stated",),
        unused=(),
        n=98,
        right=49,
        prompts=98,
        base_rate=0.5,
        floor=0.01,
        log_bayes_factor=None,
        candidates=(),
        reason=None,
    )
    guarantee = Guarantee(
        target=0.9,
        error_level=0.05,
        threshold=threshold,
        n=0,
        prompts=0,
        without_confidence=0,
        agreement=None,
        thresholds=0,
        coverage=None,
        tested=(),
        level=0.95,
        seed=0,
        reason=None,
    )
    return AppliedCalibration(
        SavedCalibration(
            run="by hand",
            learned_on=JudgedBy(
                judge="scripted",
                prompt_version=built_in_template("en", "reasoned").version,
                locale="en",
                mode="reasoned",
                reconcile="agreement",
                samples=1,
            ),
            calibration=calibration,
            guarantee=guarantee if guaranteed or threshold is not None else None,
        )
    )


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


async def said(answer: Any, calibration: AppliedCalibration, **pair: Any) -> Any:
    judge = ScriptedJudge(answer)
    asked = make_pair(**pair)
    return await compare(asked, judge, JudgeConfig(calibration=calibration, repairs=0))


def wins_a(confidence: float | None) -> Any:
    def answer(call: JudgeCall) -> str:
        return answer_json("A" if call.order == "original" else "B", confidence=confidence)

    return answer


async def test_what_the_curve_says_is_arithmetic() -> None:
    verdict = await said(wins_a(0.75), made())
    assert verdict.confidence == pytest.approx(logistic(1.0))
    assert verdict.metadata.confidence_source == "calibration"
    assert verdict.metadata.abstained is False
    assert "abstained" not in verdict.model_dump()["metadata"]


async def test_a_verdict_without_the_signals_keeps_what_it_has() -> None:
    verdict = await said(wins_a(None), made())
    assert (verdict.confidence, verdict.metadata.confidence_source) == (None, "none")


async def test_a_constant_needs_no_signals() -> None:
    verdict = await said(wins_a(None), made(Constant(probability=0.7)))
    assert (verdict.confidence, verdict.metadata.confidence_source) == (0.7, "calibration")


async def test_an_inconsistent_verdict_keeps_one_half_by_rule() -> None:
    verdict = await said(lambda call: answer_json("A", confidence=0.9), made(threshold=0.99))
    assert verdict.outcome is Outcome.INCONSISTENT
    assert (verdict.confidence, verdict.metadata.confidence_source) == (0.5, "rule")
    assert verdict.metadata.abstained is False


async def test_an_invalid_pair_stays_invalid() -> None:
    with pytest.raises(evenhand.NoVerdict):
        await said(lambda call: "I cannot say.", made(threshold=0.5))


@pytest.mark.parametrize(
    ("confidence", "threshold", "abstains"),
    [
        (0.75, logistic(1.0) - 0.001, False),
        (0.75, logistic(1.0) + 0.001, True),
        (None, 0.5, True),  # nothing vouches for it
    ],
)
async def test_below_the_threshold_a_verdict_abstains(
    confidence: float | None, threshold: float, abstains: bool
) -> None:
    verdict = await said(wins_a(confidence), made(threshold=threshold))
    assert verdict.metadata.abstained is abstains
    assert verdict.model_dump()["metadata"].get("abstained", False) is abstains
    assert verdict.winner == "A"


async def test_without_a_guaranteed_threshold_every_verdict_abstains() -> None:
    verdict = await said(wins_a(0.99), made(guaranteed=True))
    assert verdict.metadata.abstained


@pytest.mark.parametrize(
    "other",
    [
        {"judge": "scripted-2"},
        {"prompt_version": "another"},
        {"locale": "zh"},
        {"mode": "letter"},
        {"reconcile": "average"},
        {"samples": 3},
    ],
)
def test_a_calibration_refuses_another_judge_unless_forced(other: dict[str, Any]) -> None:
    applied = made()
    own = applied.saved.learned_on
    applied.check(own)
    asked = own.model_copy(update=other)
    with pytest.raises(InputError, match=r"learned on another judge.*force_calibration"):
        applied.check(asked)
    replace(applied, forced=True).check(asked)


async def test_a_run_by_another_judge_is_refused_before_the_first_call(tmp_path: Path) -> None:
    judge = ScriptedJudge(unsure)
    at = tmp_path / "store.db"
    with pytest.raises(InputError, match="the language was en and is now zh; "):
        await judged(sums(3), judge, at, calibration=made(), locale="zh")
    assert judge.calls == []
    with open_store(at) as store:
        assert store.runs.all() == []


def test_what_is_no_calibration_is_refused() -> None:
    wrong: Any = "gpt4"
    with pytest.raises(InputError, match="open_calibration"):
        JudgeConfig(calibration=wrong)


def test_a_calibration_is_the_same_after_its_file(
    learned: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_CALIBRATIONS", str(tmp_path / "kept"))
    saved = calibrated(learned, min_agreement=0.8).calibration
    for name in ("sums", str(tmp_path / "elsewhere.json")):
        path = save_calibration(saved, name)
        assert path.is_file()
        opened = open_calibration(name).saved
        assert opened == saved
        assert opened.digest == saved.digest
        signals = {"stated": [0.5, 0.7, None], "length": [0.1, -0.2, None]}
        assert (
            opened.calibration.predict(signals).tolist()
            == saved.calibration.predict(signals).tolist()
        )
    assert (tmp_path / "kept" / "sums.json").is_file()
    with pytest.raises(
        InputError, match=r"/sums\.json already exists; name another file, or give force$"
    ):
        save_calibration(saved, "sums")
    save_calibration(saved, "sums", overwrite=True)


@pytest.mark.parametrize("name", ["", "../up", "a b", "/x"])
def test_a_strange_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="not a valid name for a calibration"):
        open_calibration(name)


def test_what_is_not_there_or_no_calibration_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^no calibration '.*none\.json' \(.* does not exist\)"):
        open_calibration(str(tmp_path / "none.json"))
    (tmp_path / "other.json").write_text('{"format": "something"}')
    with pytest.raises(InputError, match=r"is not a calibration \("):
        open_calibration(str(tmp_path / "other.json"))


@pytest.mark.parametrize(
    "curve",
    [
        '{"kind": "constant", "probability": NaN}',
        '{"kind": "constant", "probability": 1.5}',
        '{"kind": "platt", "signal": "stated", "centre": 0, "scale": 1, "low": 0, "high": 1, '
        '"intercept": 0, "slope": 1, "missing": 0.5}',
        '{"kind": "logistic", "intercept": 0, "penalty": 1, "otherwise": 0.5, "signals": '
        '[{"signal": "stated", "centre": 0, "scale": 0, "low": 0, "high": 1, "slope": 1, '
        '"missing": null}]}',
    ],
)
def test_a_curve_that_is_none_is_refused(
    learned: tuple[Path, str], tmp_path: Path, curve: str
) -> None:
    told = json.loads(calibrated(learned).calibration.model_dump_json())
    told["calibration"]["curve"] = "CURVE"
    (tmp_path / "it.json").write_text(json.dumps(told).replace('"CURVE"', curve), "utf-8")
    with pytest.raises(InputError, match=r"is not a calibration \("):
        open_calibration(str(tmp_path / "it.json"))


def test_a_calibration_of_an_earlier_version_is_refused_with_what_to_do(
    learned: tuple[Path, str], tmp_path: Path
) -> None:
    told = json.loads(calibrated(learned).calibration.model_dump_json())
    told["format"] = "evenhand calibration 1"
    (tmp_path / "it.json").write_text(json.dumps(told), "utf-8")
    with pytest.raises(InputError, match=r"'evenhand calibration 2'.*make one with evenhand calib"):
        open_calibration(str(tmp_path / "it.json"))


def test_what_cannot_be_saved_leaves_the_earlier_one_whole(
    learned: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_CALIBRATIONS", str(tmp_path / "kept"))
    saved = calibrated(learned).calibration
    path = save_calibration(saved, "sums")
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # As on a full disk, nothing beyond the first hundred bytes can be written.
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(
            InputError, match=r"^cannot write .*: file too large; nothing was left behind"
        ):
            save_calibration(saved, "sums", overwrite=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["sums.json"]
    # A folder that cannot be made is told on one line too.
    monkeypatch.setenv("EVENHAND_CALIBRATIONS", str(path / "below"))
    with pytest.raises(
        InputError, match=r"^cannot write .*: not a directory; nothing was left behind; "
    ):
        save_calibration(saved, "sums")


def test_the_guarantee_uses_prompts_that_taught_nothing(learned: tuple[Path, str]) -> None:
    found = calibrated(learned, min_agreement=0.8)
    guarantee = found.calibration.guarantee
    assert guarantee is not None
    assert found.tested == "held out"
    assert found.calibration.calibration.prompts + guarantee.prompts == PAIRS
    assert guarantee.n == found.change.after_all.n
    assert guarantee.threshold is not None


def test_where_nothing_can_be_guaranteed_it_says_so(learned: tuple[Path, str]) -> None:
    found = calibrated(learned, min_agreement=0.999)
    guarantee = found.calibration.guarantee
    assert guarantee is not None
    assert guarantee.threshold is None
    assert any("no threshold can be guaranteed" in note for note in found.notes)


async def test_the_promise_is_not_made_of_verdicts_that_show_none_of_the_signals(
    tmp_path: Path,
) -> None:
    at = tmp_path / "store.db"

    def often_silent(call: JudgeCall) -> str:
        """Every fourth answer states no confidence, and all of those are right."""
        prompt = "\n".join(message.text for message in call.messages)
        number = asked_number(prompt)
        if number % 4:
            return unsure_answer(prompt)
        right = right_place(prompt)
        return answer_json(right, confidence=None, criteria=[("accuracy", right)])

    summary = await judged(labelled_sums(PAIRS), ScriptedJudge(often_silent), at)
    with open_store(at) as store:
        found = analysis_of(CALIBRATE, store, summary.run, min_agreement=0.8)
    guarantee = found.calibration.guarantee
    assert guarantee is not None
    assert found.calibration.calibration.goes_by == ("stated",)
    # The calibration abstains on them whatever it thinks of them, so they may not speak for others.
    assert 0 < guarantee.without_confidence < PAIRS / 4
    assert guarantee.coverage is not None
    assert guarantee.coverage.part <= guarantee.n - guarantee.without_confidence


async def test_nothing_is_learned_from_identical_responses_that_nobody_was_asked_about(
    tmp_path: Path,
) -> None:
    at = tmp_path / "store.db"
    rows = labelled_sums(40)
    for row in rows[::4]:
        row |= {"response_b": row["response_a"], "label": "TIE"}
    summary = await judged(rows, ScriptedJudge(unsure), at)
    with open_store(at) as store:
        found = analysis_of(CALIBRATE, store, summary.run)
    assert (found.verdicts, found.calibration.calibration.n) == (30, 30)
    assert any(note.startswith("10 labelled pairs are ties of identical") for note in found.notes)


async def test_abstentions_are_counted_apart(learned: tuple[Path, str]) -> None:
    at, _ = learned
    applied = AppliedCalibration(calibrated(learned, min_agreement=0.8).calibration)
    guarantee = applied.saved.guarantee
    assert guarantee is not None
    assert guarantee.threshold is not None
    summary = await judged(labelled_sums(PAIRS), ScriptedJudge(unsure), at, calibration=applied)
    with open_store(at) as store:
        run = find_run(store, summary.run)
        (found,) = count_abstentions(store, run)
        rows = list(store.verdicts.each_whole(run.id))
    stands = [
        row.row.confidence is not None and row.row.confidence >= guarantee.threshold for row in rows
    ]
    assert [isinstance(row.settled, Judged) and row.settled.decision.abstained for row in rows] == [
        not s for s in stands
    ]
    right = [is_right(number) for number in range(1, PAIRS + 1)]
    assert (found.judged, found.kept, found.abstained) == (
        PAIRS,
        sum(stands),
        PAIRS - sum(stands),
    )
    assert (found.coverage.part, found.coverage.of) == (sum(stands), PAIRS)
    both = [s and r for s, r in zip(stands, right, strict=True)]
    assert (found.agreement_kept.part, found.agreement_kept.of) == (sum(both), sum(stands))
    assert found.agreement_abstained.part == sum(right) - sum(both)


def test_a_run_without_a_promise_has_no_abstentions(learned: tuple[Path, str]) -> None:
    at, name = learned
    with open_store(at) as store:
        assert list(count_abstentions(store, find_run(store, name))) == []


async def test_few_labels_give_the_share_that_is_right(tmp_path: Path) -> None:
    at = tmp_path / "store.db"
    summary = await judged(labelled_sums(20), ScriptedJudge(unsure), at)
    with open_store(at) as store:
        found = analysis_of(CALIBRATE, store, summary.run)
    right = sum(is_right(number) for number in range(1, 21))
    assert found.calibration.calibration.curve == Constant(probability=(right + 1) / 22)
    assert found.better_than_base_rate is None
    assert any("not enough data" in note for note in found.notes)
    # What the page opens with: an error that is shown, or that there are too few labels to say.
    believed, taught = sum_up_calibration(found)
    before = found.change.before
    assert before is not None
    assert before.n == 20
    assert believed.code == f"trust.calibration_{'off' if before.distinguishable else 'few'}"
    unshown = before.model_copy(update={"distinguishable": False})
    change = found.change.model_copy(update={"before": unshown})
    believed, _ = sum_up_calibration(found.model_copy(update={"change": change}))
    assert believed == (
        "Too few labels to check its confidence: 20 labelled prompts; at least 30 are needed."
    )
    assert taught == (
        "Nothing in its answers separates right from wrong: every verdict gets the same "
        f"confidence, {(right + 1) / 22:.2f}."
    )


async def test_a_judge_that_states_no_confidence_is_said_to_state_none(tmp_path: Path) -> None:
    def silent(call: JudgeCall) -> str:
        prompt = "\n".join(message.text for message in call.messages)
        return answer_json(right_place(prompt), confidence=None)

    at = tmp_path / "store.db"
    summary = await judged(labelled_sums(20), ScriptedJudge(silent), at)
    with open_store(at) as store:
        believed, _ = sum_up_calibration(analysis_of(CALIBRATE, store, summary.run))
    assert believed == "No confidence given; 20 of 20 labelled verdicts are right."


def vote_on(store: Store, run: str, number: int, verdict: Any, **how: Any) -> None:
    items = {item.number: item for item in store.items.all(find_run(store, run).id)}
    for person in ("ann", "bob"):
        store.votes.add([NewVote(items[number].pair_id, person, verdict, **how)])


async def test_peoples_votes_are_labels_where_the_data_have_none(tmp_path: Path) -> None:
    at = tmp_path / "store.db"
    summary = await judged(sums(40), ScriptedJudge(unsure), at)
    with open_store(at) as store:
        with pytest.raises(InputError, match="has a label"):
            analysis_of(CALIBRATE, store, summary.run)
        for number in range(1, 31):
            vote_on(store, summary.run, number, "B" if number % 3 == 0 else "A")
        vote_on(store, summary.run, 31, "A", origin="escalation")
        vote_on(store, summary.run, 32, "A", draw="chosen")
        vote_on(store, summary.run, 33, "B", draw="weighted", chance=0.5)
        found = analysis_of(CALIBRATE, store, summary.run)
        even = analysis_of(CALIBRATE, store, summary.run, min_agreement=0.9)
    # Those that were escalated or chosen are no draw from all pairs.
    assert (found.by_data, found.by_people, found.unlabelled) == (0, 31, 9)
    assert found.calibration.calibration.right == sum(
        is_right(number) for number in (*range(1, 31), 33)
    )
    assert even.by_people == 30
    assert any(note.startswith("1 label comes from a draw that favours") for note in found.notes)
    assert not any("prefers doubtful" in note for note in even.notes)


def random_answer(call: JudgeCall) -> str:
    rng = seeded_by(call)
    winner = rng.choice(["A", "B", "TIE"])
    return answer_json(
        winner, confidence=rng.random(), criteria=[("accuracy", rng.choice(["A", "B", "TIE"]))]
    )


def one_winner(call: JudgeCall) -> str:
    """The longer response, as sure as the two lengths say: consistent, so calibrated."""
    a, b = len(call.pair.response_a), len(call.pair.response_b)
    better = "A" if a > b else "B" if b > a else "TIE"
    seen = better
    if call.order == "swapped":
        seen = {"A": "B", "B": "A", "TIE": "TIE"}[better]
    sure = 0.5 + abs(a - b) / (2 * (a + b + 1))
    return answer_json(seen, confidence=sure, criteria=[("accuracy", seen)])


@settings(max_examples=examples(60))
@given(st.text(max_size=30), st.text(max_size=30), st.booleans())
async def test_calibrated_verdicts_are_mirror_images(a: str, b: str, consistent: bool) -> None:
    assume(a != b)  # of two that are the same neither is the first
    answer = one_winner if consistent else random_answer
    applied = made(threshold=0.7)
    one = await said(answer, applied, response_a=a, response_b=b)
    other = await said(answer, applied, response_a=b, response_b=a)
    assert mirrored(one.model_dump(mode="json")) == plain(other.model_dump(mode="json"))


async def test_letter_mode_is_calibrated_by_its_margin(tmp_path: Path) -> None:
    at = tmp_path / "store.db"

    def letters(call: JudgeCall) -> Any:
        rng = seeded_by(call)
        share = rng.uniform(0.05, 0.9)
        return letter_completion({"A": share, "B": 0.95 - share, "C": 0.05})

    summary = await judged(labelled_sums(60), ScriptedJudge(letters), at, mode="letter")
    with open_store(at) as store:
        found = analysis_of(CALIBRATE, store, summary.run)
    assert "margin" in found.signals
    assert "stated" not in found.signals
    assert found.learned_on.mode == "letter"
    assert found.learned_on.reconcile == "average"


def test_a_comparison_without_a_calibration_loads_no_numpy() -> None:
    program = (
        "import sys, evenhand\n"
        "pair = dict(prompt='p', response_a='a', response_b='bb', criteria=['accuracy'])\n"
        "verdict = evenhand.compare_sync(pair, 'baseline:longer')\n"
        "assert verdict.winner == 'B'\n"
        "print('numpy' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["False"]


def test_of_many_labels_some_prompts_are_drawn_and_that_is_said(learned: tuple[Path, str]) -> None:
    found = calibrated(learned, most=30)
    assert (found.verdicts, found.prompts, found.drawn_from) == (30, 30, PAIRS)
    assert found.notes[0].startswith("based on 30 of 400 labelled verdicts, sampled by prompt; ")
    everything = calibrated(learned, most=PAIRS)
    assert everything == calibrated(learned)
    assert everything.drawn_from is None


def test_a_drawn_verdict_is_read_as_it_is_among_all(learned: tuple[Path, str]) -> None:
    at, run = learned
    with open_store(at) as store:
        everything = labelled_verdicts(store, run)
        drawn = labelled_verdicts(store, run, most=30, seed=3)
    rows = np.isin(everything.prompts, drawn.prompts)
    assert rows.sum() == 30
    assert (everything.right[rows] == drawn.right).all()
    assert np.array_equal(everything.before[rows], drawn.before, equal_nan=True)
    for name, column in drawn.signals.items():
        assert np.array_equal(everything.signals[name][rows], column, equal_nan=True)


def test_an_error_that_noise_explains_is_not_shown_as_none() -> None:
    half = calibration_error([0.5] * 40, [0, 1] * 20)
    assert half.error == 0
    assert _error(half) == "not distinguishable from 0"
    # 0.4 squared, less the variance of the mean, 0.25 / 39.
    assert _error(calibration_error([0.9] * 40, [0, 1] * 20)) == "0.392"
