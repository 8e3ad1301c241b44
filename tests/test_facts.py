"""A run keeps the facts of a verdict; they are the verdict's own, and its prose comes back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand
from evenhand import RunOptions
from evenhand.comparer import decide, settle
from evenhand.contract import Facts, Pair, Verdict
from evenhand.judges import Completion, JudgeCall, Traits
from evenhand.procedure import Procedure
from evenhand.report import read_run
from evenhand.store import open_store
from scripted import ScriptedJudge, answer_json, letter_completion, make_pair, seeded_by

CRITERIA = ["accuracy", "clarity"]

pairs = st.builds(
    make_pair,
    id=st.just("x"),
    prompt=st.text(max_size=20),
    response_a=st.text(max_size=20),
    response_b=st.text(max_size=20),
    criteria=st.just(CRITERIA),
    allow_tie=st.booleans(),
    swap_positions=st.booleans(),
)
procedures = st.sampled_from(
    [
        Procedure(repairs=0),
        Procedure(repairs=0, locale="zh"),
        Procedure(repairs=0, samples=3),
        Procedure(repairs=0, samples=2, reconcile="average"),
        Procedure(repairs=0, mode="letter"),
        Procedure(repairs=0, ask_identical=False),
    ]
)


def moody(salt: int) -> ScriptedJudge:
    """Says anything at all, but the same to the same question."""

    def answer(call: JudgeCall) -> str | Completion:
        rng = seeded_by(call, str(salt))
        if call.letters:
            weights = [rng.random() + 0.01 for _ in call.letters]
            shares = {c: w / sum(weights) for c, w in zip(call.letters, weights, strict=True)}
            return letter_completion(shares)
        if rng.random() < 0.1:
            return "I cannot say."
        said = [(name, rng.choice("AB")) for name in CRITERIA if rng.random() < 0.9]
        winner = rng.choice(["A", "B", "TIE"])
        return answer_json(winner, confidence=rng.choice([0.5, 0.8, None]), criteria=said)

    return ScriptedJudge(answer, Traits(caveat="it is moody"))


def without_times(verdict: Verdict) -> Verdict:
    passes = tuple(p.model_copy(update={"time_ms": 0}) for p in verdict.metadata.passes)
    changed = {"evaluation_time_ms": 0, "passes": passes}
    metadata = verdict.metadata.model_copy(update=changed)
    return verdict.model_copy(update={"metadata": metadata})


@settings(deadline=None, max_examples=150)
@given(pairs, procedures, st.integers(0, 10**6))
def test_what_is_decided_is_what_the_verdict_says(
    pair: Pair, procedure: Procedure, salt: int
) -> None:
    settled = asyncio.run(settle(pair, moody(salt), procedure))
    decided = asyncio.run(decide(pair, moody(salt), procedure))
    if isinstance(settled, Verdict):
        assert isinstance(decided, Facts)
        assert replace(decided, evaluation_time_ms=0) == replace(
            Facts.of(settled), evaluation_time_ms=0
        )
    else:
        assert not isinstance(decided, Facts)
        assert decided[0].error == settled[0].error


@settings(deadline=None, max_examples=40)
@given(pairs, procedures, st.integers(0, 10**6))
def test_the_prose_of_a_stored_verdict_comes_back_word_for_word(
    pair: Pair, procedure: Procedure, salt: int
) -> None:
    settled = asyncio.run(settle(pair, moody(salt), procedure))
    with TemporaryDirectory() as folder:
        options = RunOptions(store=Path(folder) / "store.db", name="one")
        evenhand.run_sync([pair], moody(salt), procedure, options=options)
        with open_store(options.store) as store:
            (row,) = read_run(store, "one")
    if isinstance(settled, Verdict):
        assert isinstance(row.verdict, Verdict)
        assert without_times(row.verdict) == without_times(settled)
    else:
        assert isinstance(row.verdict, evenhand.Failure)
        assert row.verdict.error == settled[0].error
