"""What a stored run says of its sides. Expected numbers are written out beside the assertions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import evenhand
from evenhand import RunOptions
from evenhand.analyses.gate import gate_run
from evenhand.contract import Winner
from evenhand.errors import InputError
from evenhand.judges.protocol import Completion, JudgeCall
from evenhand.messages import Message
from evenhand.report.conclusions import Conclusion, conclude
from evenhand.report.win_rates import LabelRecord
from evenhand.runs.options import UntilDecided
from evenhand.stats.always_valid import always_valid_interval
from evenhand.stats.proportions import wilson_interval
from evenhand.stats.stopping.sequential import SequentialPlan, follow
from evenhand.store import Store, open_store
from judged_runs import judged_run
from parts import examples
from run_data import adds_up_here, sums
from scripted import ScriptedJudge, answer_json
from stored_runs import (
    SKIPPED,
    USAGE,
    Row,
    completed,
    follows_place,
    judge_run,
    make_run,
    mumbles,
    says,
)

OLD_NEW = {"model_a": "old", "model_b": "new"}
NEW_OLD = {"model_a": "new", "model_b": "old"}
ANSWERS = {
    "A": says("A"),
    "B": says("B"),
    "T": says("TIE"),
    "I": follows_place,
    "X": mumbles,
}


def rows_of(
    outcomes: str, models: dict[str, str] | None = None, *, name: str = "q", **more: object
) -> list[Row]:
    """A row for each letter: A or B wins, T a tie, I inconsistent, X invalid, - not judged."""
    named = {} if models is None else models
    return [
        replace(
            Row(
                f"{name}{number}",
                ANSWERS.get(letter, says("A")),
                judged=letter != "-",
                model_a=named.get("model_a"),
                model_b=named.get("model_b"),
            ),
            **more,  # type: ignore[arg-type]
        )
        for number, letter in enumerate(outcomes)
    ]


def only(
    store: Store,
    rows: Sequence[Row],
    *,
    side: Literal["A", "B"] = "B",
    ties: Literal["half", "excluded", "wins"] = "half",
    level: float = 0.95,
) -> Conclusion:
    name = f"run-{len(store.runs.all())}"
    make_run(store, name, rows)
    (conclusion,) = conclude(store, name, side=side, ties=ties, level=level).conclusions
    return conclusion


def test_forty_to_twenty_is_wilsons_interval_and_the_exact_sign_test(store: Store) -> None:
    found = only(store, rows_of("B" * 40 + "A" * 20, OLD_NEW))
    rate = found.win_rate
    assert (found.model, found.against, found.side) == ("new", "old", "B")
    assert (rate.counts.wins_a, rate.counts.wins_b, rate.n, rate.prompts) == (20, 40, 60, 60)
    # z² = 3.841459; centre (2/3 + z²/120) / (1 + z²/60) = 0.656638,
    # half z·sqrt((2/9)/60 + z²/14400) / (1 + z²/60) = 0.116069
    assert rate.rate == pytest.approx(2 / 3)
    assert (rate.low, rate.high) == pytest.approx((0.540569, 0.772707), abs=1e-6)
    assert (rate.method, rate.always_valid, rate.clustered) == ("score", False, False)
    assert rate.sign_test is not None
    assert (rate.sign_test.wins_a, rate.sign_test.wins_b) == (20, 40)
    tail = sum(math.comb(60, wins) for wins in range(21)) / 2**60
    assert rate.sign_test.p_value == pytest.approx(2 * tail)
    assert rate.worst_case is None


@pytest.mark.parametrize(
    ("ties", "rate", "n"),
    [
        ("half", (10 + (4 + 2) / 2) / 22, 22),
        ("excluded", 10 / 16, 16),
        ("wins", 10 / 22, 22),
    ],
)
def test_four_outcomes_stay_apart_and_ties_count_as_told(
    store: Store, ties: Literal["half", "excluded", "wins"], rate: float, n: int
) -> None:
    found = only(store, rows_of("B" * 10 + "A" * 6 + "T" * 4 + "I" * 2 + "X" * 3), ties=ties)
    counts = found.win_rate.counts
    assert (counts.wins_b, counts.wins_a, counts.ties) == (10, 6, 4)
    assert (counts.inconsistent, counts.invalid) == (2, 3)
    assert found.win_rate.rate == pytest.approx(rate)
    assert found.win_rate.n == n
    assert found.win_rate.worst_case is not None


def test_invalid_pairs_are_excluded_and_bound_the_worst_case(store: Store) -> None:
    rate = only(store, rows_of("B" * 12 + "A" * 6 + "X" * 2)).win_rate
    assert rate.rate == pytest.approx(12 / 18)
    assert rate.worst_case is not None
    assert rate.worst_case.rate_if_lost == pytest.approx(12 / 20)
    assert rate.worst_case.rate_if_won == pytest.approx(14 / 20)


def test_models_of_mixed_orientation_are_one_matchup(store: Store) -> None:
    """New wins 8 of 10 as B and 6 of 10 as A: 14 of 20."""
    rows = rows_of("B" * 8 + "A" * 2, OLD_NEW) + rows_of("A" * 6 + "B" * 4, NEW_OLD, name="r")
    found = only(store, rows)
    assert (found.model, found.against, found.pairs) == ("new", "old", 20)
    assert (found.win_rate.counts.wins_b, found.win_rate.counts.wins_a) == (14, 6)
    (accuracy,) = found.by_criterion
    assert (accuracy.rate.counts.wins_b, accuracy.rate.counts.wins_a) == (14, 6)


def test_sides_are_those_of_the_data_also_where_its_first_row_waits(store: Store) -> None:
    rows = rows_of("-", OLD_NEW) + rows_of("A" * 8, NEW_OLD, name="r")
    found = only(store, rows)
    assert (found.model, found.against, found.win_rate.counts.wins_b) == ("new", "old", 8)
    assert (found.pairs, found.pending) == (9, 1)


def test_longer_wins_whichever_side_stands_where(store: Store) -> None:
    """New is the longer one and wins, once as B and once as A."""
    long, short = "word " * 20, "word"
    first = {"response_a": short, "response_b": long}
    second = {"response_a": long, "response_b": short}
    rows = rows_of("B" * 5, OLD_NEW, pair=first) + rows_of("A" * 5, NEW_OLD, name="r", pair=second)
    longer = only(store, rows).length.longer_wins
    assert (longer.part, longer.of) == (10, 10)


def test_length_that_goes_with_the_side_is_told_of_that_side(store: Store) -> None:
    rows = rows_of("AB" * 15, OLD_NEW, pair={"response_a": "word", "response_b": "word " * 20})
    rows[0] = replace(rows[0], pair={"response_a": "word", "response_b": "word"})
    for side, word in (("B", "longer"), ("A", "shorter")):
        (found,) = only(store, rows, side=side).length.controlled  # type: ignore[arg-type]
        assert found.reason == (
            f"length and model cannot be separated: {side} is {word} in all but 1 of 30 pairs; "
            "at least 5 others are needed"
        )


def test_length_is_controlled_with_the_prompts_difficulty_where_several_models_met(
    store: Store,
) -> None:
    """Three models on thirty prompts; on every third the two others beat old."""
    rows: list[Row] = []
    for number in range(30):
        hard = number % 3 == 0
        for place, (one, other) in enumerate((("old", "new"), ("old", "tiny"), ("new", "tiny"))):
            wins = "B" if (hard and one == "old") or (number + place) % 4 == 0 else "A"
            texts = {
                "prompt": f"Question {number}?",
                "response_a": "word " * (1 + number * (place + 3) % 7),
                "response_b": "word " * (1 + number * (place + 5) % 11),
            }
            key = f"{one}-{other}-{number}"
            rows.append(Row(key, ANSWERS[wins], model_a=one, model_b=other, pair=texts))
    make_run(store, "league", rows)
    b = conclude(store, "league", side="B").conclusions
    a = conclude(store, "league", side="A").conclusions
    assert len(b) == 3
    for one_side, other_side in zip(b, a, strict=True):
        (found,), (mirror,) = one_side.length.controlled, other_side.length.controlled
        assert found.difficulty
        assert found.rate is not None
        assert found.low is not None
        assert mirror.rate == pytest.approx(1 - found.rate, abs=1e-7)
        assert mirror.high == pytest.approx(1 - found.low, abs=1e-7)
    alone = [row for row in rows if (row.model_a, row.model_b) == ("old", "new")]
    (by_itself,) = only(store, alone).length.controlled
    assert not by_itself.difficulty


@pytest.mark.parametrize("ties", ["half", "excluded"])
@pytest.mark.parametrize("pending", ["", "--"])
def test_sides_are_exact_mirrors(
    store: Store, ties: Literal["half", "excluded"], pending: str
) -> None:
    outcomes = "B" * 17 + "A" * 9 + "T" * 3 + "I" * 2 + "X" * 2 + pending
    rows = rows_of(outcomes, OLD_NEW, tags=("all",))
    b, a = only(store, rows, ties=ties), only(store, rows, side="A", ties=ties)
    assert (a.model, a.against) == (b.against, b.model)
    pairs = [(a.win_rate, b.win_rate)]
    for ours, theirs in ((a.by_criterion, b.by_criterion), (a.by_tag, b.by_tag)):
        pairs += [(one.rate, other.rate) for one, other in zip(ours, theirs, strict=True)]
    assert len(pairs) == 3
    for one, other in pairs:
        assert one.counts == other.counts
        assert one.sign_test == other.sign_test
        assert one.rate is not None
        assert one.low is not None
        assert one.high is not None
        assert other.rate == pytest.approx(1 - one.rate, abs=1e-15)
        assert (other.low, other.high) == pytest.approx((1 - one.high, 1 - one.low), abs=1e-15)
        assert one.worst_case is not None
        assert other.worst_case is not None
        assert other.worst_case.low == pytest.approx(1 - one.worst_case.high, abs=1e-15)
        assert other.worst_case.rate_if_won == pytest.approx(1 - one.worst_case.rate_if_lost)
    assert a.length.longer_wins == b.length.longer_wins
    assert a.position == b.position


def test_rows_of_one_prompt_are_clustered(store: Store) -> None:
    rows = [
        replace(row, pair={"prompt": f"p{number // 3}?", "response_a": f"answer {number}"})
        for number, row in enumerate(rows_of("BBA" * 10))
    ]
    rate = only(store, rows).win_rate
    assert (rate.clustered, rate.method, rate.prompts, rate.n) == (True, "clustered score", 10, 30)
    assert rate.sign_test is not None
    # every prompt has two wins to one
    assert (rate.sign_test.by, rate.sign_test.wins_b, rate.sign_test.wins_a) == ("prompt", 10, 0)


def labelled(said: str, labels: str) -> list[Row]:
    rows = rows_of(said, OLD_NEW)
    named = {"A": "A", "B": "B"}
    return [
        replace(row, label=named.get(label))  # type: ignore[arg-type]
        for row, label in zip(rows, labels, strict=True)
    ]


def test_a_judge_that_labels_show_to_be_a_coin_concludes_nothing(store: Store) -> None:
    # 119 of 150 for B, and by the labels 74 of the 150 are right: Wilson's interval for 74 of 150
    # with z = 1.96 is (74 + 1.92) / 153.84 ± 1.96 sqrt(74 · 76 / 150 + 0.96) / 153.84.
    centre, half = 75.92 / 153.84, 1.96 * math.sqrt(74 * 76 / 150 + 0.96) / 153.84
    said = "B" * 119 + "A" * 31
    flipped = {"A": "B", "B": "A"}
    labels = said[:74] + "".join(flipped[each] for each in said[74:])
    # One pair without a label: where all have one, they are the answer.
    make_run(store, "run", labelled(said + "A", labels + "."))
    (found,) = conclude(store, "run").conclusions
    assert found.labels is not None
    assert (found.labels.right, found.labels.wrong) == (74, 76)
    assert (found.labels.low, found.labels.high) == pytest.approx(
        (centre - half, centre + half), abs=1e-3
    )
    assert found.sentence.startswith(
        "No conclusion on new vs old: the judge is right on 49% (95% CI 41–57) of 150 "
        "decided pairs with labels; no evidence that it beats a coin flip. Both orders agreed"
    )
    (check,) = gate_run(store, "run").checks
    assert check.ruling == "undecided"
    assert "is above 0.5; but the judge is right on 49% (95% CI 41–57) of 150" in check.line


def test_labels_that_do_not_speak_for_a_judge_are_told_and_rule_nothing_out(store: Store) -> None:
    # 14 of 20 by the sign test: p = 0.115, so that it is better than a coin is not shown; up to
    # 85% (Wilson) is open.
    said = "B" * 20
    make_run(store, "run", labelled(said, "B" * 14 + "A" * 6))
    (found,) = conclude(store, "run").conclusions
    assert found.sentence.startswith("new beats old: 100% win rate")
    assert found.sentence.endswith(
        "Note: the judge is right on 70% (95% CI 48–85) of 20 decided pairs with labels; "
        "no evidence that it beats a coin flip."
    )
    (check,) = gate_run(store, "run").checks
    assert check.ruling == "pass"
    # 15 of 20 shows it (p = 0.041), and 13 of 19 labels are too few to speak of.
    for name, labels in (("shown", "B" * 15 + "A" * 5), ("few", "B" * 13 + "A" * 6 + ".")):
        make_run(store, name, labelled(said, labels), judges=(name,))
        (found,) = conclude(store, name).conclusions
        assert "By labels" not in found.sentence


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        (5_800, 4_200, ""),  # better than a coin (57.0 to 59.0), by people who differ themselves
        (5_200, 4_800, "no better"),  # and here too, but by nothing that decides (51.0 to 53.0)
        (74, 76, "no better"),  # 41.5 to 57.3, and 60% is ruled out
        (25, 25, "open"),  # 36.6 to 63.4
        (12, 7, ""),  # too few to speak of
    ],
)
def test_how_far_labels_speak_for_a_judge(right: int, wrong: int, says: str) -> None:
    ends = wilson_interval(right, right + wrong)
    assert ends is not None
    record = LabelRecord(right=right, wrong=wrong, low=ends[0], high=ends[1])
    assert (record.is_no_better, record.is_open) == (says == "no better", says == "open")


# The most that hold a judge back, by Wilson's upper end: 7 of 20 reach 0.567 and 8 0.613, 50 of
# 100 0.596 and 51 0.606, 163 of 300 0.599 and 164 0.602. Then the share of cases, in per cent, at
# most: of a judge that is right on 65%, on 60%, and of a coin (the binomial's table: 0.1316 ...).
@pytest.mark.parametrize(
    ("labels", "most", "at_most"),
    [
        (20, 7, (0.61, 2.2, 13.16)),
        (100, 50, (0.15, 2.8, 53.98)),
        (300, 163, (0.01, 2.7, 94.06)),
    ],
)
def test_how_often_labels_hold_a_judge_back(
    labels: int, most: int, at_most: tuple[float, float, float]
) -> None:
    """By the binomial distribution, of every count that may come."""
    held = []
    for right in range(labels + 1):
        ends = wilson_interval(right, labels)
        assert ends is not None
        record = LabelRecord(right=right, wrong=labels - right, low=ends[0], high=ends[1])
        held.append(record.is_no_better)
    assert held == [right <= most for right in range(labels + 1)]
    chances = [
        100 * binom.pmf(np.arange(labels + 1), labels, p)[held].sum() for p in (0.65, 0.6, 0.5)
    ]
    assert chances[0] <= at_most[0]
    assert chances[1] <= at_most[1]
    assert chances[2] == pytest.approx(at_most[2], abs=0.005)


def test_tags_that_stand_out_at_a_lower_level_alone_are_not_called_significant(
    store: Store,
) -> None:
    """14 of 20 is 2 P(14 or more) = 0.115: above one half at 80%, and not at 95%."""
    tagged = [
        row
        for tag in ("x", "y")
        for row in rows_of("B" * 14 + "A" * 6, OLD_NEW, name=tag, tags=(tag,))
    ]
    make_run(store, "tags", tagged)
    found = conclude(store, "tags", level=0.8)
    (conclusion,) = found.conclusions
    assert [part.rate.excludes_half for part in conclusion.by_tag] == [True, True]
    assert not any("significant at 5%" in note for note in found.notes)


def test_tags_that_are_significant_alone_may_not_be_after_adjusting(store: Store) -> None:
    """15 of 20 is 2 P(15 or more) = 0.0414, and 0.0828 for the smaller of two by Holm."""
    tagged = [
        row
        for tag in ("x", "y")
        for row in rows_of("B" * 15 + "A" * 5, OLD_NEW, name=tag, tags=(tag,))
    ]
    make_run(store, "tags", tagged)
    found = conclude(store, "tags")
    (note,) = [note for note in found.notes if "by tag" in note]
    assert note == (
        "of 2 rates by tag, 2 would be significant at 5% alone; after adjusting for all of them "
        "(Holm), none is"
    )


def test_no_tag_is_significant_by_a_judge_that_labels_speak_against(store: Store) -> None:
    def rows(of_even: Winner) -> list[Row]:
        return [
            Row(f"q{n}", says("B"), label="B" if n % 2 else of_even, tags=(f"t{n % 2}",))
            for n in range(200)
        ]

    given: dict[str, tuple[Winner, bool]] = {"right": ("B", True), "coin": ("A", False)}
    for name, (of_even, noted) in given.items():
        make_run(store, name, rows(of_even), judges=(name,))
        codes = [note.code for note in conclude(store, name).notes if isinstance(note, Message)]
        assert ("report.tags_significant" in codes) is noted


def test_a_few_ties_among_winners_are_not_what_is_in_doubt(store: Store) -> None:
    make_run(store, "one tie", rows_of("B" * 10 + "A" * 9 + "T"))
    (found,) = conclude(store, "one tie").conclusions
    assert found.win_rate.doubts == ()
    assert found.sentence.startswith(
        "B and A are not significantly different: B at 52% win rate (95% CI "
    )
    make_run(store, "ties", rows_of("T" * 10 + "B" * 9))
    (found,) = conclude(store, "ties").conclusions
    assert found.win_rate.doubts == ("ties",)


def test_winners_of_the_whole_run_speak_for_its_ties(store: Store) -> None:
    old_third = {"model_a": "old", "model_b": "third"}
    rows = [*rows_of("B" * 12 + "A" * 8, OLD_NEW, name="a"), *rows_of("T" * 10, old_third)]
    make_run(store, "run", rows)
    _, tied = conclude(store, "run").conclusions
    assert (tied.model, tied.win_rate.doubts, tied.win_rate.rate) == ("third", (), 0.5)


def test_tags_are_adjusted_for_all_that_were_looked_at_whoever_met(store: Store) -> None:
    old_third = {"model_a": "old", "model_b": "third"}
    make_run(
        store,
        "run",
        [
            *rows_of("B" * 6, OLD_NEW, tags=("x",), name="a"),
            *rows_of("AAABBB", OLD_NEW, tags=("y",), name="b"),
            *rows_of("B" * 6, old_third, tags=("x",), name="c"),
            *rows_of("B" * 12, old_third, tags=("y",), name="d"),
        ],
    )
    found = conclude(store, "run")
    # Two-sided: 6 of 6 is 2 / 2^6, 12 of 12 is 2 / 2^12, 3 of 6 is 1. Holm takes the smallest four
    # times, the next three times: 0.09375 for both tags that alone would be significant.
    adjusted = {
        (each.model, part.name): part.adjusted_p
        for each in found.conclusions
        for part in each.by_tag
    }
    assert adjusted == {
        ("new", "x"): pytest.approx(3 * 2 / 2**6),
        ("new", "y"): 1.0,
        ("third", "x"): pytest.approx(3 * 2 / 2**6),
        ("third", "y"): pytest.approx(4 * 2 / 2**12),
    }
    (said,) = [note for note in found.notes if "by tag" in note]
    assert said == (
        # Two matchups share the 5%: 2 / 2^6 = 0.031 is above the 0.025 of each interval.
        "of 4 rates by tag, 1 would be significant at 5% alone; after adjusting for all of them "
        "(Holm), 1 is: y (third – old)"
    )


def test_many_parts_of_many_models_are_one_note(store: Store) -> None:
    models = [f"m{number}" for number in range(11)]
    rows = [
        row
        for number in range(1, 11)
        for tag in ("x", "y")
        for row in rows_of(
            "B" * (20 if tag == "x" else 6),
            {"model_a": "m0", "model_b": models[number]},
            tags=(tag,),
            name=f"{number}{tag}",
        )
    ]
    make_run(store, "run", rows)
    # 20 of 20 is 2 / 2^20, which stays below 0.05 twenty times over; 6 of 6 does not, nor is it
    # below the tenth of 0.05 that each of ten matchups has.
    (said,) = [note for note in conclude(store, "run").notes if "by tag" in note]
    assert said.startswith("of 20 rates by tag, 10 would be significant at 5% alone; ")
    assert "10 are: x (m1 – m0), " in said
    assert said.count("x (") == 8
    assert said.endswith(", …")


def test_tags_overlap_and_each_has_its_own_rate(store: Store) -> None:
    rows = [
        *rows_of("B" * 6 + "A" * 2, tags=("math", "hard"), name="m"),
        *rows_of("A" * 7, tags=("hard", "prose", "hard"), name="p"),
        *rows_of("T", name="n"),
    ]
    found = {part.name: part.rate for part in only(store, rows).by_tag}
    assert list(found) == ["hard", "math", "prose"]
    told = {name: (rate.counts.wins_b, rate.counts.wins_a) for name, rate in found.items()}
    assert told == {"hard": (6, 9), "math": (6, 2), "prose": (0, 7)}
    assert found["hard"].rate == pytest.approx(6 / 15)


def test_criteria_have_their_own_outcomes(store: Store) -> None:
    """B wins every pair; A is always the clearer one."""
    turned = {"A": "B", "B": "A"}

    def answer(call: JudgeCall) -> Completion:
        b, a = ("B", "A") if call.order == "original" else ("A", "B")
        assert turned[a] == b
        return completed(answer_json(b, criteria=[("accuracy", b), ("clarity", a)]), USAGE)

    pair = {"criteria": ["accuracy", "clarity"]}
    rows = [Row(f"q{n}", answer, pair=pair) for n in range(8)]
    found = only(store, rows)
    told = [(part.name, part.rate.rate) for part in found.by_criterion]
    assert told == [("accuracy", 1.0), ("clarity", 0.0)]


def test_every_judge_and_every_two_models_have_a_conclusion(store: Store) -> None:
    rows = [
        *rows_of("-" * 7, OLD_NEW),
        *rows_of("-" * 8, {"model_a": "old", "model_b": "third"}, name="t"),
    ]
    run_id = make_run(store, "both", rows, judges=("strict", "kind"))
    strict, kind = store.runs.judges(run_id)
    judge_run(store, run_id, strict.id, {row.key: replace(row, judged=True) for row in rows})
    kinder = {row.key: replace(row, judged=True, answer=says("B")) for row in rows}
    judge_run(store, run_id, kind.id, kinder)
    found = conclude(store, "both")
    told = [(each.judge, each.model, each.win_rate.rate) for each in found.conclusions]
    assert told == [
        ("strict", "new", 0.0),
        ("strict", "third", 0.0),
        ("kind", "new", 1.0),
        ("kind", "third", 1.0),
    ]
    assert found.judges == ("strict", "kind")
    assert "3 models took part; evenhand rank both ranks them" in found.notes


def test_matchup_without_a_verdict_has_not_enough_data(store: Store) -> None:
    rows = rows_of("B" * 7, OLD_NEW) + rows_of("--", {"model_a": "old", "model_b": "x"}, name="t")
    make_run(store, "part", rows)
    first, second = conclude(store, "part").conclusions
    assert (first.pending, second.pairs, second.pending) == (0, 2, 2)
    assert (second.win_rate.rate, second.win_rate.low) == (None, None)
    assert second.win_rate.reason == "not enough data: 0 valid pairs; at least 6 are needed"


def test_unfinished_run_has_always_valid_intervals_and_no_sign_test(store: Store) -> None:
    plain = only(store, rows_of("B" * 30 + "A" * 10 + "T" * 4)).win_rate
    rate = only(store, rows_of("B" * 30 + "A" * 10 + "T" * 4 + "-")).win_rate
    expected = always_valid_interval(30, 4, 10)
    # The pending pair is of the file's order, and so counts against either claim.
    lost, won = always_valid_interval(30, 4, 11), always_valid_interval(31, 4, 10)
    assert expected is not None
    assert lost is not None
    assert won is not None
    assert (rate.rate, rate.low, rate.high) == (expected.mean, lost.low, won.high)
    assert (rate.always_valid, rate.method, rate.sign_test) == (True, "betting", None)
    assert plain.low is not None
    assert plain.high is not None
    assert expected.low < plain.low < plain.high < expected.high


def test_run_that_ranked_adaptively_is_not_called_unfinished(store: Store) -> None:
    rows = rows_of("B" * 30 + "A" * 10 + "-", OLD_NEW)
    make_run(store, "chosen", rows, plan={"rank_adaptive": {"certainty": 0.95, "seed": 0}})
    found = conclude(store, "chosen")
    assert found.conclusions[0].win_rate.always_valid
    assert found.notes[0].startswith(
        "this run chose pairs by earlier verdicts: the win rates' intervals"
    )


def test_worst_case_of_an_unfinished_run_is_always_valid_too(store: Store) -> None:
    rate = only(store, rows_of("B" * 30 + "A" * 10 + "X" * 3 + "-")).win_rate
    # three invalid and one pending
    lost, won = always_valid_interval(30, 0, 14), always_valid_interval(34, 0, 10)
    assert lost is not None
    assert won is not None
    worst = rate.worst_case
    assert worst is not None
    assert (worst.rate_if_lost, worst.rate_if_won) == pytest.approx((30 / 44, 34 / 44))
    assert (worst.low, worst.high) == (lost.low, won.high)


def test_run_that_is_still_being_read_is_not_whole(store: Store) -> None:
    run_id = make_run(store, "reading", rows_of("B" * 10))
    store.runs.update(run_id, intake_done=False, state="reading")
    found = conclude(store, "reading")
    assert (found.whole, found.pending) == (False, 0)
    assert found.conclusions[0].win_rate.always_valid
    assert found.notes[0].startswith("run reading has not finished")


@pytest.mark.parametrize("outcomes", ["", "X", "XXXXXXXX", "BBBBB", "BX-", "TTT"])
def test_too_little_data_has_a_reason_and_no_rate(store: Store, outcomes: str) -> None:
    make_run(store, "few", rows_of(outcomes))
    for found in conclude(store, "few").conclusions:
        rate = found.win_rate
        assert (rate.rate, rate.low, rate.high, rate.method) == (None, None, None, None)
        assert rate.reason is not None
        assert rate.reason.startswith("not enough data: ")
        assert found.length.longer_wins.value is None
        assert found.position.favours is None


def test_run_without_pairs_or_judges_concludes_nothing(store: Store) -> None:
    make_run(store, "empty", ())
    make_run(store, "bare", (), judges=())
    make_run(store, "undecided", (), plan={"until_decided": {"alpha": 0.05, "seed": 0}})
    for name in ("empty", "bare", "undecided"):
        found = conclude(store, name)
        assert (found.conclusions, found.pairs, found.prompts) == ((), 0, 0)


def test_notes_tell_what_is_in_no_figure_and_where_a_judge_leans(store: Store) -> None:
    make_run(store, "odd", rows_of("B" * 6 + "I" * 9 + "X"), skipped=SKIPPED)
    assert conclude(store, "odd").notes == (
        "2 invalid rows were skipped; the interval allows for them; evenhand runs show says why",
        "1 pair has no verdict; the interval allows for it, and the worst case shows what it "
        "could change",
        "scripted has position bias; the interval covers every way of counting flipped pairs",
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"level": 0.0}, "level is 0.0; give a share between 0 and 1"),
        ({"level": 1.0}, "level is 1.0; give a share between 0 and 1"),
        ({"level": math.nan}, "level is nan; give a share between 0 and 1"),
        ({"side": "C"}, 'side is \'C\'; give "A" or "B"'),
        ({"ties": "none"}, 'ties is \'none\'; give "half", "excluded" or "wins"'),
    ],
)
def test_setting_that_cannot_be_is_an_error_also_without_data(
    store: Store, given: dict[str, object], said: str
) -> None:
    make_run(store, "empty", ())
    with pytest.raises(InputError) as raised:
        conclude(store, "empty", **given)  # type: ignore[arg-type]
    assert raised.value.message.startswith(said)


def test_unknown_run_is_an_error(store: Store) -> None:
    with pytest.raises(InputError, match="no run 'nothing'"):
        conclude(store, "nothing")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(tmp_path_factory.mktemp("shared") / "evenhand.db") as opened:
        yield opened


_NUMBERS = itertools.count()
_LETTERS = st.text("ABTIX-", max_size=14)


@pytest.mark.slow
@given(
    matchups=st.lists(
        st.tuples(st.sampled_from(["x", "y", None]), st.sampled_from(["x", "z", None]), _LETTERS),
        max_size=4,
    ),
    side=st.sampled_from(["A", "B"]),
)
@settings(max_examples=examples(40))
def test_counts_equal_the_stores_tally(
    shared: Store, matchups: list[tuple[str | None, str | None, str]], side: Literal["A", "B"]
) -> None:
    rows = [
        replace(row, model_a=model_a, model_b=model_b)
        for number, (model_a, model_b, outcomes) in enumerate(matchups)
        for row in rows_of(outcomes, name=f"m{number}-")
    ]
    name = f"run-{next(_NUMBERS)}"
    run_id = make_run(shared, name, rows)
    tally = shared.verdicts.tally(run_id)
    found = conclude(shared, name, side=side)
    counts = [each.win_rate.counts for each in found.conclusions]
    # A row may name its models the other way round: wins are kept, not their labels.
    wins = sum(each.wins_a + each.wins_b for each in counts)
    assert wins == tally.wins_a + tally.wins_b
    assert sum(each.ties for each in counts) == tally.ties
    assert sum(each.inconsistent for each in counts) == tally.inconsistent
    assert sum(each.invalid for each in counts) == tally.invalid
    assert sum(each.pending for each in found.conclusions) == tally.pending == found.pending
    assert sum(each.pairs for each in found.conclusions) == tally.pairs
    if len({frozenset((a, b)) for a, b, _ in matchups}) == len({(a, b) for a, b, _ in matchups}):
        assert sum(each.wins_a for each in counts) == tally.wins_a
    for each in found.conclusions:
        rate = each.win_rate
        assert (rate.rate is None) == (rate.reason is not None)
        if rate.rate is not None:
            assert rate.low is not None
            assert rate.high is not None
            assert 0 <= rate.low <= rate.rate <= rate.high <= 1
            assert rate.low < rate.high


async def decided_run(path: Path, count: int, *, alpha: float = 0.05, **options: int) -> str:
    """A is right in two thirds of the pairs."""
    summary = await evenhand.run(
        sums(count),
        ScriptedJudge(adds_up_here),
        criteria=["accuracy"],
        options=RunOptions(
            store=path,
            until_decided=UntilDecided(alpha, seed=7),
            concurrency=4,
            **options,  # type: ignore[arg-type]
        ),
    )
    return summary.run


def scores_of(store: Store, name: str) -> list[float]:
    run = store.runs.find(name)
    assert run is not None
    (judge,) = store.runs.judges(run.id)
    return [{0: 1.0, 1: 0.0}[code] for code in store.work.settled_prefix(run.id, judge.id).outcome]


async def test_decided_run_has_the_interval_of_its_test(tmp_path: Path) -> None:
    name = await decided_run(tmp_path / "evenhand.db", 400)
    with open_store(tmp_path / "evenhand.db") as store:
        found = conclude(store, name, side="A")
        mirrored = conclude(store, name).conclusions[0].win_rate
        expected = follow(SequentialPlan(planned=400, seed=7), scores_of(store, name)).decision
        run = store.runs.find(name)
        assert run is not None
        asked = store.verdicts.count(run.id).judged
    assert expected is not None
    (conclusion,) = found.conclusions
    rate = conclusion.win_rate
    assert conclusion.decision == expected
    assert (rate.rate, rate.low, rate.high) == (expected.mean, expected.low, expected.high)
    assert (rate.prompts, rate.always_valid, rate.sign_test) == (expected.scored, True, None)
    assert conclusion.account is not None
    assert conclusion.account.startswith(f"Stopped after {expected.prompts} of 400 prompts")
    # What was in flight when it was decided has gone out too.
    more = asked - expected.prompts
    assert (f" ({more} more were in progress)" in conclusion.account) == (more > 0)
    assert f"That saved {400 - asked} prompts" in conclusion.account
    assert (found.stopped_by, found.whole) == ("decided", False)
    assert rate.low is not None
    assert rate.high is not None
    assert (mirrored.low, mirrored.high) == (1 - rate.high, 1 - rate.low)
    # its parts were stopped with it
    assert all(part.rate.always_valid for part in conclusion.by_criterion)


async def test_other_level_changes_the_interval_and_not_the_decision(tmp_path: Path) -> None:
    name = await decided_run(tmp_path / "evenhand.db", 400)
    with open_store(tmp_path / "evenhand.db") as store:
        usual = conclude(store, name, side="A").conclusions[0]
        surer = conclude(store, name, side="A", level=0.999).conclusions[0]
        scores = scores_of(store, name)
    assert (surer.decision, surer.account) == (usual.decision, usual.account)
    expected = follow(SequentialPlan(planned=400, alpha=0.001, seed=7), scores).look()
    assert (surer.win_rate.low, surer.win_rate.high) == (expected.low, expected.high)
    assert surer.win_rate.level == 0.999
    assert surer.win_rate.low is not None
    assert usual.win_rate.low is not None
    assert surer.win_rate.low < usual.win_rate.low


async def test_level_next_to_certainty_has_an_interval_too(tmp_path: Path) -> None:
    name = await decided_run(tmp_path / "evenhand.db", 60)
    with open_store(tmp_path / "evenhand.db") as store:
        rate = conclude(store, name, side="A", level=1 - 1e-13).conclusions[0].win_rate
    assert rate.rate is not None
    assert rate.low is not None
    assert rate.low < 0.5 < rate.rate


async def test_run_that_came_to_its_end_undecided_has_the_final_tests_interval(
    tmp_path: Path,
) -> None:
    name = await decided_run(tmp_path / "evenhand.db", 12)
    with open_store(tmp_path / "evenhand.db") as store:
        found = conclude(store, name, side="A")
        excluded = conclude(store, name, side="A", ties="excluded").conclusions[0].win_rate
        expected = follow(SequentialPlan(planned=12, seed=7), scores_of(store, name)).final()
    (conclusion,) = found.conclusions
    assert conclusion.decision == expected
    assert expected.final
    assert (conclusion.win_rate.low, conclusion.win_rate.high) == (expected.low, expected.high)
    assert (found.whole, conclusion.win_rate.sign_test) == (True, None)
    # the test is of half ties; what is counted otherwise was looked at on the way as well
    bounds = always_valid_interval(8, 0, 4)
    assert bounds is not None
    assert (excluded.low, excluded.high, excluded.always_valid) == (bounds.low, bounds.high, True)


async def test_broken_off_run_tells_what_its_settled_beginning_says(tmp_path: Path) -> None:
    name = await decided_run(tmp_path / "evenhand.db", 400, max_calls=40)
    with open_store(tmp_path / "evenhand.db") as store:
        found = conclude(store, name, side="A")
        expected = follow(SequentialPlan(planned=400, seed=7), scores_of(store, name)).look()
    (conclusion,) = found.conclusions
    assert (conclusion.decision, found.stopped_by) == (expected, "max-calls")
    assert conclusion.account is not None
    assert conclusion.account.startswith("Undecided after ")
    assert (conclusion.win_rate.low, conclusion.win_rate.high) == (expected.low, expected.high)


def test_run_until_decided_that_never_began_has_not_enough_data(store: Store) -> None:
    plan = {"until_decided": {"alpha": 0.05, "seed": 0}}
    make_run(store, "new", rows_of("-" * 8), plan=plan)
    (found,) = conclude(store, "new").conclusions
    assert (found.win_rate.rate, found.win_rate.low) == (None, None)
    assert found.decision is not None
    assert found.decision.decided is None


def test_labels_on_pairs_that_the_judge_left_unread_are_no_damage(store: Store) -> None:
    """People's rate is known there, and the judge's on the same pairs is not."""
    rows = [
        *(replace(row, label="B") for row in rows_of("X" * 12, OLD_NEW, name="unread")),
        *rows_of("B" * 12, OLD_NEW),
    ]
    make_run(store, "unread", rows)
    found = conclude(store, "unread")
    (own,) = found.conclusions
    assert own.labelled is not None
    assert (own.labelled.people.rate, own.labelled.judge) == (1.0, None)
    assert not any(note.code == "report.labels_compared" for note in messages_of(found.notes))


def test_note_on_how_prompts_weigh_names_sides_without_models(store: Store) -> None:
    """Prompt 0 has five rows that A won, the others one each that B won: rows would be at 8/13."""
    texts = [{"prompt": f"prompt {max(0, place - 4)}"} for place in range(13)]
    rows = [
        replace(row, pair={"response_a": f"one {place}", **texts[place]})
        for place, row in enumerate(rows_of("AAAAA" + "B" * 8))
    ]
    make_run(store, "uneven", rows)
    notes = messages_of(conclude(store, "uneven").notes)
    (note,) = [each for each in notes if each.code == "report.prompts_weigh_the_same"]
    assert note.startswith("B vs A: prompts have equal weight; ")
    assert note.values["rate"] == pytest.approx(8 / 13)


def messages_of(notes: Sequence[str]) -> list[Message]:
    return [each for each in notes if isinstance(each, Message)]


def test_a_judge_without_a_verdict_is_not_called_wrong(store: Store) -> None:
    judged_run(store, "r", {"judge": "X" * 12}, labels="AB" * 6)
    (only,) = conclude(store, "r").conclusions
    assert only.sentence.startswith("No conclusion on B vs A: 0 valid pairs")
