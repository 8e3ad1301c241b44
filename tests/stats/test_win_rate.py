"""Win rates: the arithmetic, the mirror, prompts, invalid pairs, and too little data."""

from __future__ import annotations

import array
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.contract.codes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B, OutcomeCounts
from evenhand.errors import InputError
from evenhand.stats.clusters import normal_quantile
from evenhand.stats.intervals import exact_lower, score_interval
from evenhand.stats.proportions import wilson_interval
from evenhand.stats.rates.win_rate import (
    Circumstances,
    WinRate,
    win_rate,
)

MIRRORED = {WIN_A: WIN_B, WIN_B: WIN_A, TIE: TIE, INCONSISTENT: INCONSISTENT, INVALID: INVALID}
MIXED = [WIN_A] * 8 + [WIN_B] * 4 + [TIE] * 3 + [INCONSISTENT] * 5 + [INVALID] * 2
rows = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 7)), max_size=60)


def test_the_five_outcomes_stay_apart() -> None:
    found = win_rate(MIXED)
    assert found.counts == OutcomeCounts(wins_a=8, wins_b=4, ties=3, inconsistent=5, invalid=2)
    assert found.n == 20


def test_a_tie_and_an_inconsistent_pair_count_half() -> None:
    # (8 + (3 + 5) / 2) / 20
    assert win_rate(MIXED).rate == pytest.approx(0.6)


def test_without_ties_only_decisive_pairs_count() -> None:
    found = win_rate([WIN_A] * 80 + [WIN_B] * 40 + [TIE] * 30, ties="excluded")
    assert found.n == 120
    assert found.rate == pytest.approx(80 / 120)
    assert (found.low, found.high) == pytest.approx(wilson_interval(80, 120))


def test_wins_only_counts_what_was_not_decided_against_either_end() -> None:
    outcomes = [WIN_A] * 80 + [WIN_B] * 40 + [TIE] * 30 + [INCONSISTENT] * 50
    found = win_rate(outcomes, ties="wins")
    assert found.rate == pytest.approx(80 / 200)
    (low, _), (_, high) = wilson_interval(80, 200) or (0, 0), wilson_interval(130, 200) or (0, 0)
    assert (found.low, found.high) == pytest.approx((low, high))


def test_both_ways_of_counting_inconsistent_pairs_are_inside() -> None:
    outcomes = [WIN_A] * 90 + [WIN_B] * 110 + [TIE] * 40 + [INCONSISTENT] * 60
    found = win_rate(outcomes)
    assert found.rate == pytest.approx((90 + 50) / 300)
    assert found.rate_without_inconsistent == pytest.approx((90 + 20) / 240)
    critical = normal_quantile(0.95)
    assert found.low is not None
    assert found.high is not None
    for wins, ties, losses in ((90, 100, 110), (90, 40, 110)):
        low, high = score_interval(wins, ties, losses, critical=critical)
        assert found.low <= low
        assert found.high >= high
    # 0.5 - (0.5 - L) / (1 - 2I), with I = 60 / 260 and 0.6745 of its standard error more
    half, _ = score_interval(90, 100, 110, critical=critical)
    share = 60 / 260 + 0.6744897501960817 * math.sqrt(60 * 200 / 260**3)
    assert found.low == pytest.approx(0.5 - (0.5 - half) / (1 - 2 * share))


def test_flips_that_were_averaged_count_as_flips() -> None:
    """All pairs are won by averages, and all of them flip: nothing is shown below one half."""
    outcomes = [WIN_A, WIN_B] * 150
    flips = Circumstances(flipped=np.ones(300, dtype=np.bool_))
    found = win_rate(outcomes, circumstances=flips)
    assert (found.rate, found.low, found.high) == (0.5, 0.0, 1.0)
    assert found.doubts == ("position",)
    assert (found.flips, found.decided, found.counts.inconsistent) == (300, 0, 0)


def test_wins_averaged_from_orders_that_differ_show_no_more_than_halves() -> None:
    """60 of 90 wins are averages of two choices that contradict each other."""
    outcomes = [WIN_A] * 90 + [WIN_B] * 10
    flipped = np.arange(100) < 60
    found = win_rate(outcomes, circumstances=Circumstances(flipped=flipped))
    low, _ = score_interval(30, 60, 10, critical=normal_quantile(0.95))
    assert low > 0.5
    assert found.rate == pytest.approx(0.9)
    assert found.low == low
    assert found.sign_flip is not None
    assert found.sign_flip.decisive == 30 + 10
    # Where only wins count, such a pair is none.
    wins = win_rate(outcomes, ties="wins", circumstances=Circumstances(flipped=flipped))
    assert wins.rate == pytest.approx(30 / 100)


def test_flips_are_most_where_they_are_as_many_as_the_pairs_decided() -> None:
    """Of drawn orders that takes twenty pairs in both."""
    few = [INCONSISTENT] * 4 + [WIN_A] * 4
    assert win_rate(few).mostly_flips
    assert not win_rate([*few, WIN_B]).mostly_flips
    for both, most in ((9, False), (10, True)):
        rows = [INCONSISTENT] * both + [WIN_A] * both + [WIN_B] * 30
        drawn = np.arange(len(rows)) >= 2 * both
        assert win_rate(rows, circumstances=Circumstances(drawn=drawn)).mostly_flips is most


def test_above_one_half_the_half_count_stands() -> None:
    outcomes = [WIN_A] * 200 + [WIN_B] * 40 + [INCONSISTENT] * 60
    low, _ = score_interval(200, 60, 40, critical=normal_quantile(0.95))
    assert win_rate(outcomes).low == low


def test_a_prompt_weighs_the_same_however_many_rows_it_has() -> None:
    outcomes = [WIN_A] * 40 + [WIN_B] * 20
    found = win_rate(outcomes, prompts=[0] * 40 + list(range(1, 21)))
    assert found.rate == pytest.approx(1 / 21)
    assert found.row_rate == pytest.approx(40 / 60)


def test_sixty_prompts_of_one_mind_each_are_wilsons_interval_less_one_degree_of_freedom() -> None:
    outcomes = [WIN_A] * 80 + [WIN_B] * 40
    found = win_rate(outcomes, prompts=[row // 2 for row in range(120)])
    assert (found.prompts, found.method, found.rate) == (60, "clustered score", 40 / 60)
    z, n = normal_quantile(0.95), 60 - 1
    for end, sign in ((found.low, -1), (found.high, 1)):
        spread = z * math.sqrt((2 / 3) * (1 / 3) / n + z * z / (4 * n * n))
        assert end == pytest.approx((2 / 3 + z * z / (2 * n) + sign * spread) / (1 + z * z / n))


def test_fewer_than_fifty_prompts_of_one_mind_each_are_exact() -> None:
    for prompts, method in ((49, "exact"), (50, "score")):
        wins, outcomes = prompts - 15, [WIN_A] * (prompts - 15) + [WIN_B] * 15
        alone = win_rate(outcomes)
        assert alone.method == method
        twice = win_rate(outcomes * 2, prompts=[*range(prompts)] * 2)
        exact = exact_lower(wins, 0, 15, level=0.95)
        assert (alone.low == exact, twice.low == exact) == (prompts < 50, prompts < 50)


@pytest.mark.parametrize(("missing", "doubts"), [(3, ()), (4, ("missing",))])
def test_missing_pairs_count_against_every_claim(missing: int, doubts: tuple[str, ...]) -> None:
    """All lost for the lower end, all won for the upper one; 4 of 301 are more than 1%, and so
    worth a word. As half only at the caller's word."""
    outcomes = [WIN_A] * 200 + [WIN_B] * 97 + [INVALID] * missing
    found = win_rate(outcomes)
    critical = normal_quantile(0.95)
    low, _ = score_interval(200, 0, 97 + missing, critical=critical)
    _, high = score_interval(200 + missing, 0, 97, critical=critical)
    assert found.doubts == doubts
    assert (found.low, found.high) == (low, high)
    halved = win_rate(outcomes, circumstances=Circumstances(missing="half"))
    assert (halved.low, halved.high) == score_interval(200, missing, 97, critical=critical)


def test_the_sign_test_looks_at_decisive_pairs() -> None:
    # 2 (1 + 12 + 66 + 220 + 495) / 2^12
    test = win_rate(MIXED).sign_test
    assert test is not None
    assert (test.wins_a, test.wins_b, test.by) == (8, 4, "pair")
    assert test.p_value == pytest.approx(2 * 794 / 4096)


def test_a_prompt_has_one_sign() -> None:
    outcomes = [WIN_A, WIN_A, WIN_B] * 6 + [WIN_B, TIE] + [WIN_A, WIN_B]
    prompts = [number for number in range(6) for _ in range(3)] + [6, 6, 7, 7]
    test = win_rate(outcomes, prompts=prompts).sign_test
    assert test is not None
    # six prompts lean to A, one to B, and one is even: 2 (1 + 7) / 2^7
    assert (test.wins_a, test.wins_b, test.by) == (6, 1, "prompt")
    assert test.p_value == pytest.approx(16 / 128)


def test_one_pair_in_one_fixed_order_leaves_no_sign_test() -> None:
    """A judge that takes the first response would look certain by it."""
    outcomes = [WIN_A] * 30 + [WIN_B] * 10
    assert win_rate(outcomes).sign_test is not None
    known = np.arange(40) == 0
    found = win_rate(outcomes, circumstances=Circumstances(one_order=known))
    assert (found.sign_test, found.one_order, found.decided) == (None, 1, 39)
    assert found.doubts == ("one_order",)
    assert found.rate == pytest.approx(30 / 40)
    # It counts against either end: 29 or 30 of 40.
    assert found.low == exact_lower(29, 0, 11, level=0.95)
    assert found.high == 1 - exact_lower(10, 0, 30, level=0.95)


def test_invalid_pairs_are_excluded_and_bounded() -> None:
    worst = win_rate(MIXED).worst_case
    assert worst is not None
    # 12 of 22, and 14 of 22
    assert worst.rate_if_lost == pytest.approx(12 / 22)
    assert worst.rate_if_won == pytest.approx(14 / 22)
    assert worst.low == exact_lower(8, 8, 6, level=0.95)
    assert worst.high == 1 - exact_lower(4, 8, 10, level=0.95)


def test_no_invalid_pair_needs_no_worst_case() -> None:
    assert win_rate([WIN_A, WIN_B] * 5).worst_case is None


def test_only_invalid_pairs_say_nothing() -> None:
    found = win_rate([INVALID] * 20)
    assert (found.rate, found.low, found.high) == (None, None, None)
    assert found.reason == "not enough data: 0 valid pairs; at least 6 are needed"
    assert found.worst_case is not None
    assert (found.worst_case.low, found.worst_case.high) == (0.0, 1.0)


@pytest.mark.parametrize("pairs", [0, 1, 5])
def test_too_few_pairs_are_not_a_rate(pairs: int) -> None:
    found = win_rate([WIN_A] * pairs)
    noun = "pair" if pairs == 1 else "pairs"
    assert found.reason == f"not enough data: {pairs} valid {noun}; at least 6 are needed"
    assert (found.rate, found.low, found.high, found.method) == (None, None, None, None)
    assert found.counts.wins_a == pairs


def test_one_prompt_is_not_enough_however_many_rows() -> None:
    found = win_rate([WIN_A, WIN_B] * 500, prompts=["same"] * 1000)
    assert found.reason == "not enough data: 1 prompt; at least 5 are needed"
    assert found.prompts == 1


def test_ties_without_a_decision_have_no_rate_when_excluded() -> None:
    found = win_rate([TIE] * 30, ties="excluded")
    assert found.reason == "not enough data: 0 decisive pairs; at least 6 are needed"
    assert found.sign_test is None


@pytest.mark.parametrize("prompts", [None, list(range(10)) * 3])
@pytest.mark.parametrize("outcome", [WIN_A, WIN_B, TIE])
def test_one_kind_of_outcome_is_never_certainty(outcome: int, prompts: list[int] | None) -> None:
    found = win_rate([outcome] * 30, prompts=prompts)
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low > 0.1


def test_the_interval_of_equal_prompts_is_that_of_one_row_each() -> None:
    # copies of a row add nothing: t in place of z tells them apart
    outcomes = [WIN_A] * 50 + [WIN_B] * 30
    alone = win_rate(outcomes, prompts=list(range(80)))
    copied = win_rate(outcomes * 10, prompts=list(range(80)) * 10)
    assert (alone.clustered, copied.clustered) == (False, True)
    assert alone.low is not None
    assert copied.low is not None
    assert copied.low == pytest.approx(alone.low, abs=0.01)
    assert copied.low < alone.low


def test_prompts_that_come_once_are_independent_rows() -> None:
    found = win_rate(MIXED, prompts=[f"p{row}" for row in range(len(MIXED))])
    assert found.clustered is False
    assert found.prompts == 20
    assert found.model_copy(update={"prompts": None}) == win_rate(MIXED)


def _approximately(found: WinRate, expected: WinRate) -> None:
    for name in ("rate", "low", "high"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-12)
    assert (found.counts, found.sign_test, found.reason) == (
        expected.counts,
        expected.sign_test,
        expected.reason,
    )


@given(rows=rows, clustered=st.booleans(), ties=st.sampled_from(["half", "excluded"]))
def test_swapping_a_and_b_mirrors_everything_exactly(
    rows: list[tuple[int, int]], clustered: bool, ties: Any
) -> None:
    outcomes = [outcome for outcome, _ in rows]
    prompts = [prompt for _, prompt in rows] if clustered else None
    found = win_rate(outcomes, prompts=prompts, ties=ties)
    mirror = win_rate([MIRRORED[outcome] for outcome in outcomes], prompts=prompts, ties=ties)
    assert (mirror.reason, mirror.n, mirror.method) == (found.reason, found.n, found.method)
    if found.rate is not None:
        assert found.low is not None
        assert found.high is not None
        assert (mirror.rate, mirror.low, mirror.high) == (
            1 - found.rate,
            1 - found.high,
            1 - found.low,
        )
    if found.worst_case is not None:
        assert mirror.worst_case is not None
        assert mirror.worst_case.low == 1 - found.worst_case.high
        assert mirror.worst_case.rate_if_won == 1 - found.worst_case.rate_if_lost
    if found.sign_test is not None:
        assert mirror.sign_test is not None
        assert mirror.sign_test.p_value == found.sign_test.p_value


@given(rows=rows, shuffled=st.randoms(use_true_random=False))
def test_the_order_of_rows_and_the_names_of_prompts_do_not_matter(
    rows: list[tuple[int, int]], shuffled: Any
) -> None:
    expected = win_rate([row[0] for row in rows], prompts=[row[1] for row in rows])
    again = list(rows)
    shuffled.shuffle(again)
    named = [f"prompt {prompt * 17 % 8}" for _, prompt in again]
    _approximately(win_rate([row[0] for row in again], prompts=named), expected)


@given(rows=rows)
def test_no_number_is_ever_nan_or_outside_0_and_1(rows: list[tuple[int, int]]) -> None:
    found = win_rate([row[0] for row in rows], prompts=[row[1] for row in rows])
    assert (found.rate is None) == (found.reason is not None)
    if found.rate is not None and found.low is not None and found.high is not None:
        assert 0 <= found.low <= found.rate <= found.high <= 1
        assert found.low < found.high


@pytest.mark.parametrize("kind", [bytes, tuple, np.array, lambda codes: array.array("b", codes)])
def test_codes_come_in_any_plain_column(kind: Any) -> None:
    assert win_rate(kind(MIXED)) == win_rate(MIXED)


def test_json_is_camel_case_and_carries_its_settings() -> None:
    dumped = win_rate(MIXED, level=0.9).model_dump(mode="json", by_alias=True)
    assert dumped["counts"]["winsA"] == 8
    assert dumped["worstCase"].keys() == {"rateIfLost", "rateIfWon", "low", "high"}
    assert (dumped["ties"], dumped["level"], dumped["method"]) == ("half", 0.9, "exact")


def test_a_higher_level_is_wider() -> None:
    wide, narrow = win_rate(MIXED, level=0.99), win_rate(MIXED, level=0.9)
    assert wide.low is not None
    assert narrow.low is not None
    assert wide.low < narrow.low


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"outcomes": [0, 1, 7]}, "outcomes has 7 in row 2; give codes from 0 to 4"),
        ({"outcomes": [0, -1]}, "outcomes has -1 in row 1; give codes from 0 to 4"),
        ({"outcomes": [0.0, float("nan")]}, "outcomes are float64, not whole numbers"),
        ({"outcomes": ["A", "B"]}, "not whole numbers; give codes from 0 to 4"),
        ({"outcomes": [[0], [1]]}, "outcomes has 2 dimensions; give one code per row"),
        ({"outcomes": [[0], [1, 2]]}, "not a single column"),
        ({"outcomes": [0, 1], "prompts": ["x"]}, "prompts has length 1, but there are 2"),
        ({"outcomes": [0], "level": 1.0}, "level is 1.0; give a share between 0 and 1"),
        ({"outcomes": [0], "level": 1 - 1e-16}, "give a share between 0 and 1, e.g. 0.95"),
        ({"outcomes": [0], "level": float("nan")}, "level is nan; give a share"),
        ({"outcomes": [0], "prompts": [["x"]]}, "prompts has labels that are lists"),
        ({"outcomes": [0], "ties": "third"}, "ties is 'third'; give 'half'"),
    ],
)
def test_a_callers_mistake_names_the_fact_and_the_remedy(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as raised:
        win_rate(**arguments)
    assert message in raised.value.message


@given(
    st.lists(st.sampled_from([WIN_A, WIN_B, TIE, INCONSISTENT]), min_size=6, max_size=45),
    st.integers(2, 4),
)
def test_copies_of_rows_add_nothing(outcomes: list[int], copies: int) -> None:
    """Seven of eight prompts won are no proof, and not by asking about each of them twice."""
    codes = np.array(outcomes, dtype=np.int8)
    prompts = np.arange(codes.size)
    once = win_rate(codes, prompts=prompts)
    again = win_rate(np.repeat(codes, copies), prompts=np.repeat(prompts, copies))
    assert once.low is not None
    assert again.low is not None
    assert again.low <= once.low + 1e-12
    assert again.high is not None
    assert once.high is not None
    assert again.high >= once.high - 1e-12
