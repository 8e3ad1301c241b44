"""A run keeps decisions; explaining one later gives what a comparison said, word for word."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand
from evenhand import RunOptions
from evenhand.contract import Order, Outcome, Pair, Verdict
from evenhand.errors import JudgeError
from evenhand.judges.protocol import Completion, JudgeCall
from evenhand.judging.comparison import Failed, judge_pair, settle
from evenhand.judging.config import JudgeConfig
from evenhand.judging.decision import Judged, PassBallot, PassResult
from evenhand.report.conclusions import conclude
from evenhand.report.records import read_run, report_pair
from evenhand.store import Store, open_store
from parts import examples
from scripted import (
    CRITERIA,
    ScriptedJudge,
    answer_json,
    configs,
    letter_completion,
    make_pair,
    moody,
    pairs,
)


def without_times(verdict: Verdict) -> Verdict:
    passes = tuple(p.model_copy(update={"time_ms": 0}) for p in verdict.metadata.passes)
    changed = {"evaluation_time_ms": 0, "passes": passes}
    metadata = verdict.metadata.model_copy(update=changed)
    return verdict.model_copy(update={"metadata": metadata})


@settings(max_examples=examples(150))
@given(pairs, configs, st.integers(0, 10**6))
def test_what_is_decided_is_what_the_verdict_says(
    pair: Pair, config: JudgeConfig, salt: int
) -> None:
    settled = asyncio.run(settle(pair, moody(salt), config))
    judged = asyncio.run(judge_pair(pair, moody(salt), config))
    if isinstance(settled, Failed):
        assert isinstance(judged, Failed)
        assert judged.failure.error == settled.failure.error
        return
    assert isinstance(judged, Judged)
    decision, metadata = judged.decision, settled.metadata
    assert (decision.winner, decision.confidence) == (settled.winner, settled.confidence)
    assert (decision.outcome, decision.confidence_source, decision.decided_by) == (
        metadata.outcome,
        metadata.confidence_source,
        metadata.decided_by,
    )
    assert decision.probabilities == metadata.probabilities
    assert (judged.samples, len(judged.passes)) == (metadata.samples, len(metadata.passes))
    position = settled.position_consistency
    assert (position is None) == (not pair.swap_positions or not judged.passes)
    if position is not None:
        assert decision.first_pass_winner == position.first_pass_winner
        assert decision.second_pass_winner == position.second_pass_winner
    if judged.passes:
        assert [c.winner for c in decision.criteria] == [c.winner for c in settled.comparison]
    assert tuple(c.to_contract() for c in decision.criteria) == metadata.criteria


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(pairs, configs, st.integers(0, 10**6))
def test_the_prose_of_a_stored_verdict_comes_back_word_for_word(
    pair: Pair, config: JudgeConfig, salt: int
) -> None:
    settled = asyncio.run(settle(pair, moody(salt), config))
    with TemporaryDirectory() as folder:
        options = RunOptions(store=Path(folder) / "store.db", name="one")
        evenhand.run_sync([pair], moody(salt), config, options=options)
        with open_store(options.store) as store:
            (row,) = read_run(store, "one")
    if isinstance(settled, Verdict):
        assert isinstance(row.verdict, Verdict)
        assert without_times(row.verdict) == without_times(settled)
    else:
        assert isinstance(row.verdict, evenhand.Failure)
        assert row.verdict.error == settled.failure.error


def test_a_criterion_that_was_averaged_keeps_its_winner_and_counts_in_its_rate() -> None:
    def leaning(call: JudgeCall) -> Completion:
        shown = {"A": 0.9, "B": 0.1} if call.order == "original" else {"A": 0.55, "B": 0.45}
        return letter_completion(shown)

    pair = make_pair(id="x", criteria=CRITERIA)
    with TemporaryDirectory() as folder:
        options = RunOptions(store=Path(folder) / "store.db", name="one")
        config = JudgeConfig(mode="letter")
        evenhand.run_sync([pair], ScriptedJudge(leaning), config, options=options)
        with open_store(options.store) as store:
            (row,) = read_run(store, "one")
            (concluded,) = conclude(store, "one").conclusions
    # In the caller's labels the second order gives A 0.45: (0.9 + 0.45) / 2 = 0.675.
    assert (row.outcome, row.winner, row.confidence) == (Outcome.WIN, "A", 0.675)
    assert (row.first_pass_winner, row.second_pass_winner) == ("A", "B")
    assert [(c.criterion, c.winner, c.outcome) for c in row.criteria] == [
        ("accuracy", "A", Outcome.WIN),
        ("clarity", "A", Outcome.WIN),
    ]
    won = {part.name: (part.rate.counts.wins_a, part.rate.n) for part in concluded.by_criterion}
    assert won == dict.fromkeys(CRITERIA, (1, 1))


class Kept:
    """A keeper that has nothing, and keeps what it is given."""

    def __init__(self) -> None:
        self.made: list[PassResult] = []

    def recall(self, order: Order, sample: int) -> PassResult | None:
        return None

    def keep(self, made: PassResult) -> None:
        self.made.append(made)

    def failed(self, order: Order, sample: int, error: JudgeError) -> None:
        raise AssertionError(error)


def plain_answer(winner: str) -> str:
    return answer_json(winner, criteria=[(name, "B") for name in CRITERIA])


def plain(winner: str) -> ScriptedJudge:
    return ScriptedJudge(lambda call: plain_answer(winner))


def test_a_ballot_is_in_the_callers_labels() -> None:
    pair, kept = make_pair(criteria=CRITERIA), Kept()
    asyncio.run(judge_pair(pair, plain("A"), JudgeConfig(), keeper=kept))
    first, second = [made.reading for made in kept.made]
    assert isinstance(first, PassBallot)
    assert isinstance(second, PassBallot)
    assert (first.order, first.winner, first.confidence, first.criteria) == (
        *("original", "A", 0.8),
        ("B", "B"),
    )
    # The second pass showed them the other way round.
    assert (second.order, second.winner, second.confidence, second.criteria) == (
        *("swapped", "B", 0.8),
        ("A", "A"),
    )


def one_run(folder: str, pair: Pair, judge: ScriptedJudge) -> Store:
    options = RunOptions(store=Path(folder) / "store.db", name="one")
    evenhand.run_sync([pair], judge, JudgeConfig(repairs=0), options=options)
    return open_store(options.store)


def test_a_failure_and_every_stored_pass_show_the_whole_ballot() -> None:
    pair = make_pair(id="x", criteria=CRITERIA)

    def half(call: JudgeCall) -> str:
        return plain_answer("A") if call.order == "original" else "I cannot say."

    with TemporaryDirectory() as folder, one_run(folder, pair, ScriptedJudge(half)) as store:
        (stored, _) = store.verdicts.whole_page(1)[0].passes
        (row,) = read_run(store, "one")
        (judged,) = report_pair(store, "one", "x").judges
    assert isinstance(stored.made, PassResult)
    assert isinstance(stored.made.reading, PassBallot)
    assert stored.made.reading.prose is None  # it is in the text
    assert row.verdict.success is False
    for passes in (row.verdict.metadata.passes, judged.passes):
        ballot = passes[0].ballot
        assert ballot is not None
        assert ballot.reasoning == "Response A and Response B differ."
        assert passes[1].unread is not None
