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
from evenhand.contract import Facts, Order, Pair, Pass, Verdict, Vote, VotePass, Winner
from evenhand.errors import JudgeError
from evenhand.judges import Completion, JudgeCall, Traits
from evenhand.judging.comparison import decide, settle
from evenhand.judging.config import JudgeConfig
from evenhand.judging.passes import Made
from evenhand.judging.reconciliation import Decision
from evenhand.judging.reconciliation import decide as decide_readings
from evenhand.report.records import read_run, report_pair
from evenhand.store import Store, open_store
from parts import examples
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
configs = st.sampled_from(
    [
        JudgeConfig(repairs=0),
        JudgeConfig(repairs=0, locale="zh"),
        JudgeConfig(repairs=0, samples=3),
        JudgeConfig(repairs=0, samples=2, reconcile="average"),
        JudgeConfig(repairs=0, mode="letter"),
        JudgeConfig(repairs=0, ask_identical=False),
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
        said = [(name, rng.choice(["A", "B", "TIE"])) for name in CRITERIA if rng.random() < 0.9]
        winner = rng.choice(["A", "B", "TIE"])
        return answer_json(winner, confidence=rng.choice([0.5, 0.8, None]), criteria=said)

    return ScriptedJudge(answer, Traits(caveat="it is moody"))


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
    decided = asyncio.run(decide(pair, moody(salt), config))
    if isinstance(settled, Verdict):
        assert isinstance(decided, Facts)
        assert replace(decided, evaluation_time_ms=0) == replace(
            Facts.of(settled), evaluation_time_ms=0
        )
    else:
        assert not isinstance(decided, Facts)
        assert decided[0].error == settled[0].error


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
        assert row.verdict.error == settled[0].error


winners: st.SearchStrategy[Winner] = st.sampled_from(["A", "B", "TIE"])


def votes_of(order: Order, sample: int) -> st.SearchStrategy[Vote]:
    return st.builds(
        Vote,
        st.just(order),
        st.just(sample),
        winners,
        st.none() | st.floats(0, 1),
        st.tuples(*[st.tuples(st.just(name), winners) for name in CRITERIA]),
        st.just("raw"),
    )


@given(pairs, st.integers(1, 2), st.data())
def test_votes_decide_what_their_ballots_decide(
    pair: Pair, samples: int, data: st.DataObject
) -> None:
    orders: list[Order] = ["original", "swapped"] if pair.swap_positions else ["original"]
    votes = [data.draw(votes_of(o, s)) for o in orders for s in range(1, samples + 1)]
    by_votes = decide_readings(pair, votes)
    by_ballots = decide_readings(pair, [vote.bare_ballot() for vote in votes])
    if isinstance(by_votes, Decision):
        assert isinstance(by_ballots, Decision)
        assert by_votes.counted() == by_ballots.counted()
        assert replace(by_votes, criteria=()) == replace(by_ballots, criteria=())
    else:
        assert by_votes == by_ballots


class Kept:
    """A keeper that has nothing, and keeps what it is given."""

    def __init__(self) -> None:
        self.made: list[Made] = []

    def recall(self, order: Order, sample: int) -> Pass | None:
        return None

    def keep(self, made: Made) -> None:
        self.made.append(made)

    def failed(self, order: Order, sample: int, error: JudgeError) -> None:
        raise AssertionError(error)


def plain_answer(winner: str) -> str:
    return answer_json(winner, criteria=[(name, "B") for name in CRITERIA])


def plain(winner: str) -> ScriptedJudge:
    return ScriptedJudge(lambda call: plain_answer(winner))


def test_of_a_plain_answer_a_run_reads_the_vote_and_a_comparison_the_ballot() -> None:
    pair, kept, whole = make_pair(criteria=CRITERIA), Kept(), Kept()
    asyncio.run(decide(pair, plain("A"), JudgeConfig(), keeper=kept))
    asyncio.run(settle(pair, plain("A"), JudgeConfig(), keeper=whole))
    first, second = kept.made
    assert isinstance(first, VotePass)
    assert isinstance(second, VotePass)
    # The second pass showed them the other way round.
    assert first.vote[:5] == ("original", 1, "A", 0.8, (("accuracy", "B"), ("clarity", "B")))
    assert second.vote[:5] == ("swapped", 1, "B", 0.8, (("accuracy", "A"), ("clarity", "A")))
    assert all(isinstance(made, Pass) for made in whole.made)


def test_what_is_no_plain_answer_is_read_whole_in_a_run_too() -> None:
    pair = make_pair(criteria=CRITERIA, allow_tie=False)
    for judge in (
        plain("TIE"),  # a tie that may not be
        plain("Response A"),  # not the word that was asked for
        ScriptedJudge(lambda call: Completion(plain_answer("A"), flags=("odd",))),
        ScriptedJudge(lambda call: Completion("", verdict_as_shown="A")),
        ScriptedJudge(lambda call: Completion(plain_answer("A"), finish="refusal")),
    ):
        kept = Kept()
        asyncio.run(decide(pair, judge, JudgeConfig(repairs=0), keeper=kept))
        assert [type(made) for made in kept.made] == [Pass, Pass]


def one_run(folder: str, pair: Pair, judge: ScriptedJudge) -> Store:
    options = RunOptions(store=Path(folder) / "store.db", name="one")
    evenhand.run_sync([pair], judge, JudgeConfig(repairs=0), options=options)
    return open_store(options.store)


def test_a_failure_and_every_stored_pass_show_the_whole_ballot() -> None:
    pair = make_pair(id="x", criteria=CRITERIA)

    def half(call: JudgeCall) -> str:
        return plain_answer("A") if call.order == "original" else "I cannot say."

    with TemporaryDirectory() as folder, one_run(folder, pair, ScriptedJudge(half)) as store:
        (stored, _) = store.whole_verdicts(1)[0].passes
        (row,) = read_run(store, "one")
        (judged,) = report_pair(store, "one", "x").judges
    assert stored.bare
    assert row.verdict.success is False
    for passes in (row.verdict.metadata.passes, judged.passes):
        ballot = passes[0].ballot
        assert ballot is not None
        assert ballot.reasoning == "Response A and Response B differ."
        assert passes[1].unread is not None
