"""Agreement with labels: shares, kappa, F1 and the confusion behind them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.contract.codes import NO_WINNER, SAYS_A, SAYS_B, SAYS_TIE
from evenhand.errors import InputError
from evenhand.stats.agreement.labels import agreement
from evenhand.stats.proportions import wilson_interval
from parts import examples

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
A, B, TIE, NO_WINNER = SAYS_A, SAYS_B, SAYS_TIE, NO_WINNER
# label, verdict, how often
CELLS = [(A, A, 20), (A, B, 5), (B, A, 10), (B, B, 15)]


def _columns(cells: list[tuple[int, int, int]]) -> tuple[list[int], list[int]]:
    verdicts = [said for _, said, times in cells for _ in range(times)]
    labels = [truth for truth, _, times in cells for _ in range(times)]
    return verdicts, labels


def test_kappa_is_agreement_less_chance() -> None:
    found = agreement(*_columns(CELLS))
    # observed (20 + 15) / 50 = 0.7; by chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5
    assert found.agreement.value == pytest.approx(0.7)
    assert found.kappa.value == pytest.approx((0.7 - 0.5) / (1 - 0.5))
    assert (found.agreement.low, found.agreement.high) == pytest.approx(wilson_interval(35, 50))
    assert found.kappa.low is not None
    assert found.kappa.high is not None
    assert found.kappa.low < 0.4 < found.kappa.high


def test_the_interval_of_kappa_is_near_the_large_sample_formula() -> None:
    cells = [(truth, said, 100 * times) for truth, said, times in CELLS]
    found = agreement(*_columns(cells))
    # Fleiss, Cohen and Everitt (1969): var = [sum p_ii (1 - (p_i. + p_.i)(1 - k))^2
    #   + (1 - k)^2 sum_{i != j} p_ij (p_.i + p_j.)^2 - (k - p_e (1 - k))^2] / (n (1 - p_e)^2)
    # with labels 0.5, 0.5, verdicts 0.6, 0.4, k = 0.4, p_e = 0.5
    first = 0.4 * (1 - 1.1 * 0.6) ** 2 + 0.3 * (1 - 0.9 * 0.6) ** 2
    second = 0.36 * (0.1 * (0.6 + 0.5) ** 2 + 0.2 * (0.4 + 0.5) ** 2)
    # cell (label A, verdict B): verdict share of A 0.6 plus label share of B 0.5
    variance = (first + second - (0.4 - 0.5 * 0.6) ** 2) / (5000 * 0.25)
    half = 1.96 * variance**0.5
    assert found.kappa.low == pytest.approx(0.4 - half, abs=0.001)
    assert found.kappa.high == pytest.approx(0.4 + half, abs=0.001)


def test_an_unread_verdict_is_wrong_for_accuracy_and_left_out_of_agreement() -> None:
    found = agreement([A] * 6 + [NO_WINNER] * 4, [A] * 10)
    assert (found.accuracy.part, found.accuracy.of) == (6, 10)
    assert (found.agreement.part, found.agreement.of) == (6, 6)
    assert (found.unread.part, found.read, found.n) == (4, 6, 10)


def test_a_row_without_a_label_is_counted_and_left_out() -> None:
    found = agreement([A] * 10, [A] * 7 + [NO_WINNER] * 3)
    assert (found.n, found.unlabelled, found.accuracy.of) == (7, 3, 7)


def test_without_ties_only_what_both_decided_counts() -> None:
    cells = [*CELLS, (TIE, A, 4), (B, TIE, 6), (TIE, TIE, 3)]
    found = agreement(*_columns(cells))
    assert (found.agreement_without_ties.part, found.agreement_without_ties.of) == (35, 50)
    assert found.kappa_without_ties.value == pytest.approx(0.4)
    assert (found.agreement.part, found.agreement.of) == (38, 63)


def test_the_confusion_names_labels_and_verdicts() -> None:
    found = agreement(*_columns([*CELLS, (TIE, A, 4), (B, NO_WINNER, 2)])).confusion
    assert (found.a.says_a, found.a.says_b, found.a.none) == (20, 5, 0)
    assert (found.b.says_a, found.b.says_b, found.b.none) == (10, 15, 2)
    assert (found.tie.says_a, found.tie.label) == (4, "TIE")


def test_macro_f1_is_the_mean_over_the_classes_that_occur() -> None:
    found = agreement(*_columns(CELLS))
    # A: 2 * 20 / (25 + 30); B: 2 * 15 / (25 + 20); no tie anywhere
    assert found.macro_f1.value == pytest.approx((40 / 55 + 30 / 45) / 2)


def test_kappa_of_a_single_class_is_not_defined_and_says_so() -> None:
    found = agreement([A] * 20, [A] * 20)
    assert (found.kappa.value, found.kappa.low) == (None, None)
    assert found.kappa.reason == ("kappa is undefined: both give the same verdict on every pair")


def test_a_judge_that_always_agrees_still_has_an_interval() -> None:
    found = agreement([A, B] * 10, [A, B] * 10)
    assert (found.kappa.value, found.kappa.high) == (1, 1)
    assert found.kappa.low is not None
    assert 0.5 < found.kappa.low < 0.9


def test_a_judge_that_says_only_one_thing_has_kappa_zero_with_an_interval() -> None:
    found = agreement([A] * 40, [A, B] * 20)
    assert found.kappa.value == pytest.approx(0)
    assert found.kappa.low is not None
    assert found.kappa.low < 0


def test_too_little_data_is_a_reason() -> None:
    found = agreement([A, B], [A, B])
    assert found.kappa.value is None
    assert found.kappa.reason == "not enough data: 2 pairs; at least 6 are needed"
    assert agreement([], []).accuracy.value is None
    assert agreement([A, B] * 20, [A, B] * 20, prompts=[1, 2] * 20).kappa.reason == (
        "not enough data: 2 prompts; at least 5 are needed"
    )


def test_rows_copied_within_their_prompt_tell_nothing_new() -> None:
    verdicts, labels = (np.array(column) for column in _columns(CELLS))
    alone = agreement(verdicts, labels)
    copied = agreement(
        np.repeat(verdicts, 4), np.repeat(labels, 4), prompts=np.repeat(np.arange(50), 4)
    )
    assert copied.clustered
    assert copied.kappa.value == pytest.approx(alone.kappa.value)
    assert copied.kappa.low == pytest.approx(alone.kappa.low, abs=0.02)
    assert copied.macro_f1.high == pytest.approx(alone.macro_f1.high, abs=0.02)


def test_a_verdict_that_is_no_winner_is_an_error() -> None:
    with pytest.raises(InputError, match="verdicts has 3 in row 1; give codes from -1 to 2"):
        agreement([0, 3], [0, 1])
    with pytest.raises(InputError, match="labels has length 1"):
        agreement([0, 1], [0])


rows = st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 2), st.integers(0, 12)), max_size=60)


@given(rows)
@settings(max_examples=examples(60))
def test_exchanging_judge_and_labels_changes_no_agreement_and_no_kappa(
    table: list[tuple[int, int, int]],
) -> None:
    both = [row for row in table if row[0] >= 0 and row[1] >= 0]
    said, truth, prompts = ([row[place] for row in both] for place in range(3))
    one = agreement(said, truth, prompts=prompts)
    other = agreement(truth, said, prompts=prompts)
    assert one.agreement == other.agreement
    for mine, theirs in ((one.kappa, other.kappa), (one.macro_f1, other.macro_f1)):
        assert mine.value == pytest.approx(theirs.value)
        assert mine.low == pytest.approx(theirs.low)


@given(rows)
@settings(max_examples=examples(60))
def test_every_figure_lies_in_its_interval(table: list[tuple[int, int, int]]) -> None:
    said, truth, prompts = ([row[place] for row in table] for place in range(3))
    found = agreement(said, truth, prompts=prompts)
    for figure in (found.kappa, found.kappa_without_ties, found.macro_f1, found.accuracy):
        if figure.low is None or figure.high is None or figure.value is None:
            assert figure.reason
        else:
            assert -1 <= figure.low <= figure.value + 1e-12
            assert figure.value <= figure.high + 1e-12 <= 1 + 2e-12


def test_the_published_figures_of_pandalm_are_met() -> None:
    judgments = DATA / "judgments" / "pandalm__gpt-3.5-turbo.jsonl.gz"
    if not judgments.is_file():
        pytest.skip("the recorded judgments of PandaLM are not here")
    codes = {"A": A, "B": B, "TIE": TIE, None: TIE}  # by the authors' rule unread is a tie
    pairs = (DATA / "pairs" / "pandalm.jsonl").read_text().split("\n")
    labels = {row["id"]: codes[row["label"]] for row in map(json.loads, filter(None, pairs))}
    lines = gzip.decompress(judgments.read_bytes()).decode().split("\n")
    rows = [json.loads(line) for line in lines if line]
    found = agreement(
        [codes[row["verdict_as_shown"]] for row in rows], [labels[row["id"]] for row in rows]
    )
    assert found.accuracy.value is not None
    assert found.macro_f1.value is not None
    assert round(100 * found.accuracy.value, 2) == 71.07
    assert round(100 * found.macro_f1.value, 2) == 57.55


@pytest.mark.parametrize(("prompts", "rows"), [(40, 1), (25, 4)])
def test_the_interval_of_kappa_holds_what_it_promises(prompts: int, rows: int) -> None:
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(200):
        labels = rng.integers(0, 2, prompts * rows)
        # a prompt is easy (right in 19 of 20) or hard (13 of 20): 0.8 in all, so kappa is 0.6
        chance = np.repeat(rng.choice([0.95, 0.65], prompts), rows)
        verdicts = np.where(rng.random(prompts * rows) < chance, labels, 1 - labels)
        found = agreement(verdicts, labels, prompts=np.repeat(np.arange(prompts), rows)).kappa
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.6 <= found.high
    # 95% less three standard errors of 200 draws
    assert held >= 200 * (0.95 - 3 * (0.05 * 0.95 / 200) ** 0.5)
