"""A side's rate, the limits of a conclusion, and what labels and probes say of a judge."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.contract.codes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.errors import InputError
from evenhand.report.win_rates import (
    ConclusionLimits,
    LabelRecord,
    PaddingRecord,
    RateOptions,
    Side,
    exchange,
    side_rate,
)
from evenhand.stats.stopping.sequential import SequentialDecision, SequentialPlan


def options(side: Side = "A", **more: object) -> RateOptions:
    given: dict[str, object] = {"ties": "half", "level": 0.95, "planned": True, **more}
    return RateOptions(side, **given)  # type: ignore[arg-type]


def test_matchups_share_the_error_of_one() -> None:
    assert options().level_of_each == 0.95
    assert options(matchups=2).level_of_each == pytest.approx(1 - 0.05 / 2)
    assert options(matchups=5).level_of_each == pytest.approx(1 - 0.05 / 5)


def test_only_wins_change_sides() -> None:
    every = [WIN_A, WIN_B, TIE, INCONSISTENT, INVALID]
    assert exchange(np.array(every), where=True).tolist() == [WIN_B, WIN_A, *every[2:]]
    assert exchange(np.array(every), where=False).tolist() == every
    some = np.array([True, False, True, True, True])
    assert exchange(np.array(every), some).tolist() == [WIN_B, WIN_B, *every[2:]]


def test_counts_and_sign_test_keep_their_labels_whichever_side_it_is() -> None:
    outcomes = np.array([WIN_A] * 12 + [WIN_B] * 4, dtype=np.int8)
    prompts = np.arange(16)
    rates = {}
    sides: tuple[Side, Side] = ("A", "B")
    for side in sides:
        rate = rates[side] = side_rate(outcomes, prompts, options(side))
        assert (rate.counts.wins_a, rate.counts.wins_b) == (12, 4)
        assert rate.sign_test is not None
        assert (rate.sign_test.wins_a, rate.sign_test.wins_b) == (12, 4)
    assert (rates["A"].rate, rates["B"].rate) == (12 / 16, 4 / 16)


def decision_of(**more: object) -> SequentialDecision:
    given = {
        "decided": "A",
        "final": False,
        "prompts": 14,
        "scored": 13,
        "mean": 0.75,
        "low": 0.55,
        "high": 0.9,
        "level": 0.95,
        "method": "betting",
        "p_value": 0.01,
        "log10_e_value": 2.0,
        "plan": SequentialPlan(planned=20),
    }
    return SequentialDecision.model_validate({**given, **more})


def test_a_run_until_it_is_decided_has_the_interval_of_its_test() -> None:
    outcomes = np.array([WIN_A] * 12 + [WIN_B] * 4, dtype=np.int8)
    open_ended = options(planned=False)
    by_test = side_rate(outcomes, np.arange(16), open_ended, decision=decision_of())
    assert (by_test.rate, by_test.low, by_test.high) == (0.75, 0.55, 0.9)
    assert (by_test.prompts, by_test.always_valid, by_test.sign_test) == (13, True, None)
    other = side_rate(outcomes, np.arange(16), options("B", planned=False), decision=decision_of())
    assert (other.rate, other.low, other.high) == pytest.approx((0.25, 0.1, 0.45))
    # One that came to no interval leaves that of the verdicts, as does a planned end.
    plain = side_rate(outcomes, np.arange(16), open_ended)
    for missing in ({"low": None}, {"high": None}, {"mean": None}, {"method": None}):
        found = side_rate(outcomes, np.arange(16), open_ended, decision=decision_of(**missing))
        assert (found.rate, found.low, found.high) == (plain.rate, plain.low, plain.high)
    planned = side_rate(outcomes, np.arange(16), options(), decision=decision_of())
    assert planned == side_rate(outcomes, np.arange(16), options())


@pytest.mark.parametrize("name", ["max_invalid", "max_skipped"])
def test_a_limit_is_a_share(name: str) -> None:
    for share in (0.0, 0.3, 1.0):
        limits = ConclusionLimits.model_validate({name: share})
        assert limits.checked() is limits
    for share in (-0.01, 1.01):
        with pytest.raises(InputError, match="give a share from 0 to 1"):
            ConclusionLimits.model_validate({name: share}).checked()


def test_a_smallest_effect_lies_between_nothing_and_one_half() -> None:
    for effect in (0.001, 0.499):
        limits = ConclusionLimits(smallest_effect=effect)
        assert limits.checked() is limits
    for effect in (0.0, 0.5):
        with pytest.raises(InputError, match=r"between 0 and 0\.5"):
            ConclusionLimits(smallest_effect=effect).checked()


def labelled(right: int, wrong: int, high: float = 0.9, low: float = 0.1) -> LabelRecord:
    return LabelRecord(right=right, wrong=wrong, low=low, high=high)


def test_labels_show_that_a_judge_tells_apart_by_the_sign_test() -> None:
    # 2 P(15 or more of 20) = 2 · 21,700 / 2²⁰ = 0.0414, and of 14 it is 0.1153
    assert labelled(15, 5).tells_apart
    assert not labelled(14, 6).tells_apart
    assert not labelled(5, 15).tells_apart


@pytest.mark.parametrize(
    ("right", "wrong", "high", "no_better"),
    [
        (10, 10, 0.59, True),
        (10, 10, 0.60, False),
        (10, 9, 0.59, False),  # fewer than 20 show nothing
        (15, 5, 0.549, True),  # better than a coin, but by less than matters
        (15, 5, 0.55, False),
    ],
)
def test_labels_rule_out_that_a_judge_is_much_better_than_a_coin(
    right: int, wrong: int, high: float, no_better: bool
) -> None:
    record = labelled(right, wrong, high)
    assert record.is_no_better is no_better


def test_labels_are_open_where_there_are_enough_and_they_show_neither() -> None:
    assert labelled(10, 10).is_open
    assert not labelled(10, 9).is_open
    assert not labelled(15, 5).is_open
    assert not labelled(10, 10, high=0.59).is_open


@pytest.mark.parametrize(
    ("record", "meaning"),
    [
        (labelled(5, 15, high=0.49), "far worse than a coin flip"),
        (labelled(8, 12, high=0.5), "no evidence that it beats a coin flip"),
        (labelled(15, 5, high=0.52), "hardly better than a coin flip"),
    ],
)
def test_what_labels_mean_is_said_by_their_interval(record: LabelRecord, meaning: str) -> None:
    assert str(record.values["meaning"]) == meaning


def test_a_record_states_its_share_its_interval_and_whose_labels_they_are() -> None:
    own = labelled(15, 5, low=0.53, high=0.89)
    assert str(own.values["record"]) == (
        "the judge is right on 75% (95% CI 53–89) of 20 decided pairs with labels"
    )
    names = ("r1", "r2", "r3", "r4")
    told = str(own.model_copy(update={"other_runs": names}).values["record"])
    assert told.endswith("with labels from run r1, r2 and r3")


def test_a_judge_resists_padding_by_twelve_probes_of_twelve() -> None:
    assert PaddingRecord(run="p", resisted=12, cases=12).passed
    assert not PaddingRecord(run="p", resisted=11, cases=11).passed
    assert not PaddingRecord(run="p", resisted=12, cases=13).passed
