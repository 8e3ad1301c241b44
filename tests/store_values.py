"""What goes into a store, for tests: by hand, and by Hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import strategies as st

from evenhand.contract import (
    Analysis,
    Ballot,
    Criterion,
    CriterionBallot,
    CriterionOutcome,
    CriterionVerdict,
    Differentiators,
    ErrorBody,
    Failure,
    MeanProbabilities,
    Metadata,
    Order,
    Outcome,
    Pair,
    Pass,
    PositionConsistency,
    Probabilities,
    ResponseAnalysis,
    Unread,
    Usage,
    Verdict,
    Vote,
    VotePass,
    Winner,
    criterion_key,
)
from evenhand.store import (
    FailedPass,
    NewItem,
    NewJudge,
    NewPass,
    NewRun,
    NewVerdict,
    Store,
    WorkItem,
)
from scripted import make_pair


@dataclass(frozen=True)
class Begun:
    """A run with its judge, and items that wait."""

    store: Store
    run_id: int
    judge_id: int
    name: str

    def work(self) -> list[WorkItem]:
        return self.store.pending(self.run_id, self.judge_id, after=0, limit=1000)

    def judge_all(self, winner: Winner = "A", **usage: Any) -> None:
        for item in self.work():
            self.settle(item, winner, **usage)

    def settle(self, item: WorkItem, winner: Winner = "A", **usage: Any) -> None:
        made = [read_pass(order, winner, **usage) for order in ("original", "swapped")]
        self.write(item, made, win(winner, made))

    def write(
        self, item: WorkItem, made: list[Pass] | list[FailedPass], settled: Verdict | Failure
    ) -> None:
        self.store.write(
            [NewPass(item.pair_id, self.judge_id, self.run_id, each) for each in made],
            [NewVerdict(self.run_id, item.number, self.judge_id, settled)],
        )


def begin(store: Store, *items: NewItem, name: str = "run", judge: str = "judge-key") -> Begun:
    run = store.create_run(NewRun(name, "fingerprint", {"samples": 1}, ("pairs.jsonl",)))
    judge_id = store.add_judge(NewJudge(judge, f"name of {judge}"))
    store.set_run_judges(run.id, [judge_id])
    if items:
        store.add_items(run.id, items)
    return Begun(store, run.id, judge_id, name)


def item(key: str, *, row: int = 1, source: str = "pairs.jsonl", **values: Any) -> NewItem:
    """An item whose texts depend on its key, unless they are given."""
    of_item = {name: values.pop(name) for name in ITEM_FIELDS if name in values}
    pair = make_pair(**({"prompt": f"prompt of {key}", "id": key} | values))
    return NewItem(key, pair, source, row, **of_item)


ITEM_FIELDS = ("label", "model_a", "model_b", "tags", "salt")


def read_pass(order: Order, winner: Winner = "A", *, sample: int = 1, **usage: Any) -> Pass:
    ballot = Ballot(order=order, sample=sample, winner=winner, confidence=0.75, raw=f"say {winner}")
    counted = Usage(**({"requests": 1} | usage))
    return Pass(order=order, sample=sample, ballot=ballot, usage=counted, time_ms=2)


def unread_pass(order: Order, **usage: Any) -> Pass:
    unread = Unread(order=order, kind="no_verdict", reason="no winner is named", raw="well…")
    return Pass(order=order, unread=unread, usage=Usage(**({"requests": 1} | usage)), time_ms=2)


def failed_pass(order: Order) -> FailedPass:
    error = ErrorBody(kind="judge_timeout", message="no answer in 60 s", retryable=True)
    return FailedPass(order, 1, error, Usage(requests=4), 60_000)


def win(winner: Winner, made: list[Pass], outcome: Outcome | None = None) -> Verdict:
    outcome = outcome or (Outcome.TIE if winner == "TIE" else Outcome.WIN)
    return Verdict(
        winner=winner,
        confidence=0.75,
        comparison=(),
        overall_reasoning="because",
        differentiators=Differentiators(),
        analysis=Analysis(),
        position_consistency=PositionConsistency(
            first_pass_winner=winner, second_pass_winner=winner, consistent=True
        ),
        metadata=Metadata(outcome=outcome, confidence_source="stated", passes=tuple(made)),
    )


def failure(made: list[Pass], kind: str = "invalid") -> Failure:
    return Failure(
        error=ErrorBody(kind=kind, message="no valid verdict: unread", retryable=False),
        metadata=Metadata(outcome=Outcome.INVALID, passes=tuple(made)),
    )


# Everything that the contract can hold.

texts = st.text(max_size=30) | st.sampled_from(
    [
        "",
        "\x00",
        "\x1a",
        "\x1a0\x00\x1a1",
        "a\x00b",
        "\ufeff",
        "𝄞 \u2028 é",
        "响应 A",
        "'; --",
        "%s ?",
    ]
)
_M = TypeVar("_M")


def _made(kind: type[_M], /, **parts: st.SearchStrategy[Any]) -> st.SearchStrategy[_M]:
    """What `st.builds` does, without its guesses at fields that are not given."""
    return st.fixed_dictionaries(parts).map(lambda values: kind(**values))


_shares = st.floats(0, 1, allow_subnormal=True)
_numbers = st.floats(allow_nan=False, allow_infinity=False)
_counts = st.none() | st.integers(0, 2**70)
_winners: st.SearchStrategy[Winner] = st.sampled_from(["A", "B", "TIE"])
_some_texts = st.lists(texts, max_size=3).map(tuple)

usages = _made(
    Usage,
    input_tokens=_counts,
    output_tokens=_counts,
    cached_input_tokens=_counts,
    cost_usd=st.none() | _numbers,
    requests=st.integers(0, 2**70),
)
_probabilities = st.none() | _made(Probabilities, a=_shares, b=_shares, tie=_shares)
_analyses = _made(ResponseAnalysis, strengths=_some_texts, weaknesses=_some_texts)
_whole_analyses = _made(Analysis, response_a=_analyses, response_b=_analyses)
_criterion_ballots = _made(
    CriterionBallot,
    criterion=texts,
    winner=st.none() | _winners,
    reasoning=texts,
    a_assessment=texts,
    b_assessment=texts,
    probabilities=_probabilities,
)


def _ballots(order: Order, sample: int) -> st.SearchStrategy[Ballot]:
    return _made(
        Ballot,
        order=st.just(order),
        sample=st.just(sample),
        winner=_winners,
        confidence=st.none() | _shares,
        confidence_source=st.sampled_from(["stated", "logprobs", "none"]),
        probabilities=_probabilities,
        criteria=st.lists(_criterion_ballots, max_size=2).map(tuple),
        reasoning=texts,
        differentiators=_some_texts,
        analysis=_whole_analyses,
        protocol=texts,
        flags=_some_texts,
        raw=texts,
    ) | _made(Ballot, order=st.just(order), sample=st.just(sample), winner=_winners, raw=texts)


def _unreads(order: Order, sample: int) -> st.SearchStrategy[Unread]:
    kinds = st.sampled_from(["empty", "refusal", "truncated", "malformed"])
    return _made(
        Unread, order=st.just(order), sample=st.just(sample), kind=kinds, reason=texts, raw=texts
    )


def passes_of(order: Order, sample: int) -> st.SearchStrategy[Pass]:
    def whole(reading: dict[str, Any]) -> st.SearchStrategy[Pass]:
        return _made(
            Pass,
            order=st.just(order),
            sample=st.just(sample),
            **{name: st.just(value) for name, value in reading.items()},
            usage=usages,
            time_ms=_numbers,
            repaired=st.lists(_unreads(order, sample), max_size=2).map(tuple),
            model=st.none() | texts,
            request_ids=_some_texts,
        )

    ballots = _ballots(order, sample).map(lambda ballot: {"ballot": ballot})
    unreads = _unreads(order, sample).map(lambda unread: {"unread": unread})
    return (ballots | unreads).flatmap(whole)


_real_counts = st.none() | st.integers(0, 2**40)


def vote_passes_of(order: Order, sample: int) -> st.SearchStrategy[VotePass]:
    """Their usage is kept in columns, which hold no count that cannot be."""
    votes = _made(
        Vote,
        order=st.just(order),
        sample=st.just(sample),
        winner=_winners,
        confidence=st.none() | _shares,
        criteria=st.lists(st.tuples(texts, _winners), max_size=3).map(tuple),
        raw=texts,
    )
    usage = _made(
        Usage,
        input_tokens=_real_counts,
        output_tokens=_real_counts,
        cached_input_tokens=_real_counts,
        cost_usd=st.none() | _numbers,
        requests=st.integers(0, 2**40),
    )
    return _made(
        VotePass,
        vote=votes,
        usage=usage,
        time_ms=_numbers,
        model=st.none() | texts,
        request_ids=_some_texts,
    )


errors = _made(ErrorBody, kind=texts, message=texts, retryable=st.booleans())


def failed_passes_of(order: Order, sample: int) -> st.SearchStrategy[FailedPass]:
    return _made(
        FailedPass,
        order=st.just(order),
        sample=st.just(sample),
        error=errors,
        usage=usages,
        time_ms=_numbers,
    )


_consistencies = st.none() | _made(
    PositionConsistency,
    first_pass_winner=st.none() | _winners,
    second_pass_winner=st.none() | _winners,
    consistent=st.booleans(),
)


def _metadata(passes: tuple[Pass, ...], outcome: Any) -> st.SearchStrategy[Metadata]:
    return _made(
        Metadata,
        id=st.none() | texts,
        evaluation_time_ms=_numbers,
        outcome=outcome,
        judge=st.none() | texts,
        judge_caveat=st.none() | texts,
        model=st.none() | texts,
        locale=st.sampled_from([None, "en", "zh"]),
        mode=st.sampled_from([None, "reasoned", "letter"]),
        prompt_version=st.none() | texts,
        confidence_source=st.sampled_from(["stated", "logprobs", "votes", "rule", "none"]),
        reconcile=st.sampled_from([None, "agreement", "average"]),
        samples=st.just(max((made.sample for made in passes), default=1)),
        decided_by=st.sampled_from([None, "confidence", "criteria"]),
        probabilities=st.none() | _made(MeanProbabilities, a=_numbers, b=_numbers, tie=_numbers),
        criteria=st.lists(
            _made(CriterionOutcome, criterion=texts, outcome=st.sampled_from(Outcome)),
            max_size=2,
        ).map(tuple),
        usage=usages,
        passes=st.just(passes),
    )


def verdicts_of(passes: tuple[Pass, ...]) -> st.SearchStrategy[Verdict | Failure]:
    criterion = _made(
        CriterionVerdict,
        criterion=texts,
        winner=st.none() | _winners,
        reasoning=texts,
        a_strength=texts,
        b_strength=texts,
    )
    decided = [Outcome.WIN, Outcome.TIE, Outcome.INCONSISTENT]
    verdict = _made(
        Verdict,
        winner=_winners,
        confidence=st.none() | _shares,
        comparison=st.lists(criterion, max_size=2).map(tuple),
        overall_reasoning=texts,
        differentiators=_made(Differentiators, a_advantages=_some_texts, b_advantages=_some_texts),
        analysis=_whole_analyses,
        position_consistency=_consistencies,
        notes=_some_texts,
        metadata=_metadata(passes, st.sampled_from(decided)),
    )
    failed = _made(
        Failure,
        error=errors,
        metadata=_metadata(passes, st.sampled_from([None, Outcome.INVALID])),
    )
    return verdict | failed


_criteria = st.lists(
    _made(
        Criterion,
        name=texts.filter(lambda name: bool(name.strip())),
        description=st.none() | texts,
        weight=st.none() | st.floats(0, exclude_min=True, allow_infinity=False),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda criterion: criterion_key(criterion.name),
).map(tuple)

pairs = _made(
    Pair,
    prompt=texts,
    response_a=texts,
    response_b=texts,
    criteria=_criteria,
    id=st.none() | texts,
    context=st.none() | texts,
    reference=st.none() | texts,
    allow_tie=st.booleans(),
    swap_positions=st.booleans(),
)
