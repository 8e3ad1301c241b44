"""Phrases that reasons have oftener where A won than where B did: found, merged and counted."""

from __future__ import annotations

import math
import random
import tracemalloc
from itertools import islice, product
from pathlib import Path

import numpy as np
import pytest

from evenhand.judges import Completion, JudgeCall
from evenhand.report import themes
from evenhand.report.themes import find_themes, phrases_of
from evenhand.serve import reports
from evenhand.serve.verdicts import VerdictFilters, read_page
from evenhand.stats.rates.phrases import log_odds_scores
from evenhand.store import Store
from evenhand.store.jobs import NewJob
from scripted import Answer, answer_json
from stored_runs import USAGE, Row, completed, make_run, opened, says

TWO_CRITERIA = {"criteria": ["accuracy", "clarity"]}
WHY_A = "Response A cites its sources, Response B does not."
WHY_B = "Response B has a worked example; Response A is vague."


def run_of(store: Store, *, each: int = 20) -> int:
    """A wins for its sources, B for its example; both are polite, in every pair."""
    rows = [
        Row(
            f"q{n}",
            says("A" if n % 2 else "B", reasoning=f"Polite. {WHY_A if n % 2 else WHY_B}"),
        )
        for n in range(2 * each)
    ]
    return make_run(store, "run", rows)


def test_a_score_is_the_log_odds_with_the_prior_of_both_groups() -> None:
    # 12 of 20 against 2 of 30: the prior is ten texts at 14 of 50, or 2.8 with and 7.2 without.
    (score,) = log_odds_scores(np.array([12.0]), np.array([2.0]), (20, 30))
    odds = math.log((12 + 2.8) / (8 + 7.2)) - math.log((2 + 2.8) / (28 + 7.2))
    spread = math.sqrt(1 / 14.8 + 1 / 15.2 + 1 / 4.8 + 1 / 35.2)
    assert score == pytest.approx(odds / spread)
    (mirrored,) = log_odds_scores(np.array([2.0]), np.array([12.0]), (30, 20))
    assert mirrored == pytest.approx(-score)
    # What all texts have tells nothing.
    assert log_odds_scores(np.array([20.0]), np.array([30.0]), (20, 30)).tolist() == [0.0]


def test_phrases_are_whole_words_without_labels_and_stop_words() -> None:
    found = phrases_of(["Response A cites its sources, and Response B's tone is off."])
    assert {"cites", "sources", "cites its sources", "tone"} <= found
    assert not {"response", "a", "its", "and", "sources and", "b", "off"} & found
    assert {"准确", "引用来源"} <= phrases_of(["响应 A 更准确，引用来源。"])


def test_themes_tell_why_each_side_won_and_name_their_pairs(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        run_of(store)
        (found,) = find_themes(store, "run")
    assert (found.won, found.read, found.won_by_a, found.won_by_b) == (40, 40, 20, 20)
    assert "cites its sources" in [theme.phrase for theme in found.a]
    assert any("worked example" in theme.phrase for theme in found.b)
    phrases = [theme.phrase for theme in (*found.a, *found.b)]
    assert "polite" not in phrases
    # Of phrases that say the same of the same pairs one is left.
    assert sum("sources" in phrase for phrase in phrases) == 1
    assert max(len(found.a), len(found.b)) <= 8
    for theme in (*found.a, *found.b):
        assert (theme.count, theme.other) == (len(theme.numbers), 0)
    # Numbers begin at 1, and the odd places are A's.
    assert found.a[0].numbers == tuple(range(2, 41, 2))
    assert found.note.startswith("exploratory")


def by_criteria(winner: str, clarity: str) -> Answer:
    """`winner` wins the pair and its accuracy in both orders, `clarity` the clarity."""
    shown = {"A": "B", "B": "A", "TIE": "TIE"}

    def answer(call: JudgeCall) -> Completion:
        own, clear = (
            each if call.order == "original" else shown[each] for each in (winner, clarity)
        )
        criteria = [("accuracy", own), ("clarity", clear)]
        return completed(answer_json(own, criteria=criteria, reasoning="Clear."), USAGE)

    return answer


def test_criteria_that_the_winner_won_come_first_and_open_just_their_pairs(store: Store) -> None:
    # A wins 12 pairs and its accuracy in each, clarity in the first 9 of them; B wins 8 pairs, with
    # accuracy in each, and clarity is A's in all of those.
    rows = [
        Row(f"q{n}", by_criteria("A", "A" if n < 9 else "TIE"), pair=TWO_CRITERIA)
        for n in range(12)
    ]
    rows += [Row(f"r{n}", by_criteria("B", "A"), pair=TWO_CRITERIA) for n in range(8)]
    run = store.run_at(make_run(store, "run", rows))
    assert run is not None
    (found,) = find_themes(store, "run")
    counted = [
        [(each.criterion, each.share.part, each.share.of) for each in side]
        for side in (found.criteria_a, found.criteria_b)
    ]
    assert counted == [[("accuracy", 12, 12), ("clarity", 9, 12)], [("accuracy", 8, 8)]]
    share = found.criteria_a[1].share
    # 9 of 12 are 75 %, and by Wilson's formula the middle lies between.
    assert share.value == 0.75
    assert share.low is not None
    assert share.high is not None
    assert 0 < share.low < 0.75 < share.high < 1
    for each in (*found.criteria_a, *found.criteria_b):
        wanted = VerdictFilters.model_validate(each.filters)
        page = read_page(store, run, wanted, cursor=None, limit=100, full=False)
        assert len(page.verdicts) == each.share.part
    assert (found.a, found.b) == ((), ())


def test_where_reasons_say_the_same_there_is_no_theme(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        rows = [Row(f"q{n}", says("A" if n % 2 else "B", reasoning="Clear.")) for n in range(30)]
        make_run(store, "run", rows)
        (found,) = find_themes(store, "run")
    assert (found.a, found.b) == ((), ())


def test_more_pairs_than_the_cap_are_drawn_the_same_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(themes, "MOST_READ", 10)
    with opened(tmp_path) as store:
        run_of(store)
        (found,) = find_themes(store, "run")
        assert (found.won, found.read) == (40, 10)
        assert find_themes(store, "run") == (found,)
        assert "10 of 40 pairs" in found.note


def test_the_filter_of_a_theme_opens_exactly_the_pairs_that_it_counts(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        run_id = run_of(store)
        run = store.run_at(run_id)
        assert run is not None
        (found,) = reports.themes(str(run_id)).now(store).judges
        assert found.a
        assert found.b
        for theme in (*found.a, *found.b):
            assert theme.numbers
            wanted = VerdictFilters(theme=theme.phrase)
            page = read_page(store, run, wanted, cursor=None, limit=100, full=False)
            shown = [row.number for row in page.verdicts if hasattr(row, "number")]
            assert tuple(shown) == theme.numbers
        none = VerdictFilters(theme="nobody said this")
        page = read_page(store, run, none, cursor=None, limit=100, full=False)
        assert page.verdicts == ()


@pytest.mark.parametrize("judge", ["offered", "scripted"])
def test_the_judge_of_a_theme_is_known_by_either_of_its_names(tmp_path: Path, judge: str) -> None:
    with opened(tmp_path) as store:
        run_id = run_of(store)
        store.jobs.add(run_id, NewJob(("offered",), {}))
        run = store.run_at(run_id)
        assert run is not None
        (found,) = reports.themes(str(run_id)).now(store).judges
        assert found.judge == "offered"
        wanted = VerdictFilters(theme=found.a[0].phrase, judge=judge)
        page = read_page(store, run, wanted, cursor=None, limit=100, full=False)
        shown = tuple(row.number for row in page.verdicts if hasattr(row, "number"))
        assert shown == found.a[0].numbers != ()


def test_hostile_reasons_take_little_memory(tmp_path: Path) -> None:
    # 200 verdicts of 360 random words: with a set of pairs for each phrase they took 113 MB.
    drawn = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    with opened(tmp_path) as store:
        rows = []
        for n in range(200):
            noise = " ".join("".join(drawn.choices(letters, k=7)) for _ in range(360))
            why = f"{WHY_A if n % 2 else WHY_B} {noise}."
            rows.append(Row(f"q{n}", says("A" if n % 2 else "B", reasoning=why)))
        make_run(store, "run", rows)
        tracemalloc.start()
        try:
            (found,) = find_themes(store, "run")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 40_000_000
    assert "cites its sources" in [theme.phrase for theme in found.a]


def test_a_verdict_has_a_limited_number_of_phrases_of_limited_length() -> None:
    words = map("".join, islice(product("abcdefgh", repeat=4), 2_200))
    assert len(phrases_of([" ".join(words)])) == 2_000
    assert phrases_of(["x" * 19_000 + " short"]) == {"short"}
