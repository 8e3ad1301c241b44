"""What goes into a store, for tests: by hand, and by Hypothesis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hypothesis import strategies as st

from evenhand.contract import (
    ConfidenceSource,
    Criterion,
    CriterionOutcome,
    ErrorBody,
    Failure,
    MeanProbabilities,
    Metadata,
    Order,
    Outcome,
    Pair,
    Probabilities,
    Scores,
    Unread,
    Usage,
    Winner,
    criterion_key,
)
from evenhand.contract.pair import DrawnOrderPair
from evenhand.data.records import Record
from evenhand.judging.decision import CriterionDecision, Decision, Judged, PassBallot, PassResult
from evenhand.judging.explanation import pass_in_contract
from evenhand.store import (
    FailedPass,
    NewJudge,
    NewPass,
    NewRun,
    NewVerdict,
    Settled,
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
        return self.store.work.pending(self.run_id, self.judge_id, after=0, limit=1000)

    def judge_all(self, winner: Winner = "A", **usage: Any) -> None:
        for item in self.work():
            self.settle(item, winner, **usage)

    def settle(self, item: WorkItem, winner: Winner = "A", **usage: Any) -> None:
        made = [read_pass(order, winner, **usage) for order in ("original", "swapped")]
        self.write(item, made, win(winner, made))

    def write(
        self, item: WorkItem, made: list[PassResult] | list[FailedPass], settled: Settled
    ) -> None:
        self.store.work.write(
            [NewPass(item.pair_id, self.judge_id, self.run_id, each) for each in made],
            [NewVerdict(self.run_id, item.number, self.judge_id, settled)],
        )


def begin(store: Store, *items: Record, name: str = "run", judge: str = "judge-key") -> Begun:
    run = store.runs.create(NewRun(name, "fingerprint", {"samples": 1}, ("pairs.jsonl",)))
    judge_id = store.runs.add_judge(NewJudge(judge, f"name of {judge}"))
    store.runs.set_judges(run.id, [judge_id])
    if items:
        store.items.add(run.id, items)
    return Begun(store, run.id, judge_id, name)


def item(key: str, *, row: int = 1, source: str = "pairs.jsonl", **values: Any) -> Record:
    """An item whose texts depend on its key, unless they are given."""
    of_item = {name: values.pop(name) for name in ITEM_FIELDS if name in values}
    pair = make_pair(**({"prompt": f"prompt of {key}", "id": key} | values))
    return Record(key, pair, source, row, **of_item)


def drawn_item(key: str, order: Order) -> Record:
    """The same item, asked in one order that was drawn at random."""
    usual = item(key)
    fields = dict(usual.pair) | {"swap_positions": False, "drawn_order": order}
    return replace(usual, pair=DrawnOrderPair.model_construct(**fields))


ITEM_FIELDS = ("label", "model_a", "model_b", "tags")


def read_pass(order: Order, winner: Winner = "A", *, sample: int = 1, **usage: Any) -> PassResult:
    stated = PassBallot(
        order, sample, winner, 0.75, raw=f"say {winner}", confidence_source="stated"
    )
    return PassResult(stated, usage=Usage(**({"requests": 1} | usage)), time_ms=2)


def unread_pass(order: Order, *, sample: int = 1, **usage: Any) -> PassResult:
    unread = Unread(
        order=order, sample=sample, kind="no_verdict", reason="no winner is named", raw="well…"
    )
    return PassResult(unread, usage=Usage(**({"requests": 1} | usage)), time_ms=2)


def failed_pass(order: Order) -> FailedPass:
    error = ErrorBody(kind="judge_timeout", message="no answer in 60 s", retryable=True)
    return FailedPass(order, 1, error, Usage(requests=4), 60_000)


def win(winner: Winner, made: list[PassResult], outcome: Outcome | None = None) -> Judged:
    outcome = outcome or (Outcome.TIE if winner == "TIE" else Outcome.WIN)
    return Judged(Decision(outcome, winner, 0.75, "stated", winner, winner), tuple(made))


def decided(
    outcome: Outcome,
    winner: Winner,
    confidence: float | None = None,
    confidence_source: ConfidenceSource = "none",
    first: Winner | None = None,
    second: Winner | None = None,
    *,
    samples: int = 1,
    passes: int = 0,
    time_ms: float = 0,
    **known: Any,
) -> Judged:
    """A decision that rests on so many passes."""
    decision = Decision(outcome, winner, confidence, confidence_source, first, second, **known)
    return Judged(decision, (read_pass("original"),) * passes, samples, time_ms)


def failure(made: list[PassResult], kind: str = "invalid") -> Failure:
    return Failure(
        error=ErrorBody(kind=kind, message="no valid verdict: unread", retryable=False),
        metadata=Metadata(
            outcome=Outcome.INVALID,
            passes=tuple(pass_in_contract(make_pair(), each) for each in made),
        ),
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
# What a column holds: no count that cannot be.
_counts = st.none() | st.integers(0, 2**40)
_winners: st.SearchStrategy[Winner] = st.sampled_from(["A", "B", "TIE"])
_some_texts = st.lists(texts, max_size=3).map(tuple)

usages = _made(
    Usage,
    input_tokens=_counts,
    output_tokens=_counts,
    cached_input_tokens=_counts,
    cost_usd=st.none() | _numbers,
    requests=st.integers(0, 2**40),
)
_probabilities = st.none() | _made(Probabilities, a=_shares, b=_shares, tie=_shares)


def _ballots(order: Order, sample: int) -> st.SearchStrategy[PassBallot]:
    return _made(
        PassBallot,
        order=st.just(order),
        sample=st.just(sample),
        winner=_winners,
        confidence=st.none() | _shares,
        criteria=st.lists(st.none() | _winners, max_size=3).map(tuple),
        raw=texts,
        confidence_source=st.sampled_from(["stated", "logprobs", "none"]),
        probabilities=_probabilities,
        criterion_probabilities=st.lists(_probabilities, max_size=3).map(tuple),
        scores=st.none() | _made(Scores, a=_numbers, b=_numbers),
        strength=st.none() | st.integers(0, 2),
        protocol=st.sampled_from(["evenhand", "mt-bench", "letter", "recorded"]),
        flags=_some_texts,
        read_as=st.sampled_from([None, "mt-bench", "scores"]),
    ) | _made(PassBallot, order=st.just(order), sample=st.just(sample), winner=_winners, raw=texts)


def _unreads(order: Order, sample: int) -> st.SearchStrategy[Unread]:
    kinds = st.sampled_from(["empty", "refusal", "truncated", "malformed"])
    return _made(
        Unread, order=st.just(order), sample=st.just(sample), kind=kinds, reason=texts, raw=texts
    )


def passes_of(order: Order, sample: int) -> st.SearchStrategy[PassResult]:
    return _made(
        PassResult,
        reading=_ballots(order, sample) | _unreads(order, sample),
        usage=usages,
        time_ms=_numbers,
        repaired=st.lists(_unreads(order, sample), max_size=2).map(tuple),
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


_some_winner = st.none() | _winners
_decisions = _made(
    Decision,
    outcome=st.sampled_from([Outcome.WIN, Outcome.TIE, Outcome.INCONSISTENT]),
    winner=_winners,
    confidence=st.none() | _shares,
    confidence_source=st.sampled_from(["stated", "logprobs", "votes", "rule", "none"]),
    first_pass_winner=_some_winner,
    second_pass_winner=_some_winner,
    criteria=st.lists(
        _made(
            CriterionDecision,
            name=texts,
            outcome=st.sampled_from(Outcome),
            winner=_some_winner,
            first_pass_winner=_some_winner,
            second_pass_winner=_some_winner,
        ),
        max_size=2,
    ).map(tuple),
    decided_by=st.sampled_from([None, "confidence", "criteria"]),
    probabilities=st.none() | _made(MeanProbabilities, a=_numbers, b=_numbers, tie=_numbers),
    abstained=st.booleans(),
)


def settled_on(passes: tuple[PassResult, ...], *, samples: int) -> st.SearchStrategy[Settled]:
    judged = _made(
        Judged,
        decision=_decisions,
        passes=st.just(passes),
        samples=st.just(samples),
        time_ms=_numbers,
    )
    metadata = _made(
        Metadata,
        id=st.none() | texts,
        evaluation_time_ms=_numbers,
        outcome=st.sampled_from([None, Outcome.INVALID]),
        judge=st.none() | texts,
        judge_caveat=st.none() | texts,
        model=st.none() | texts,
        locale=st.sampled_from([None, "en", "zh"]),
        mode=st.sampled_from([None, "reasoned", "letter"]),
        prompt_version=st.none() | texts,
        reconcile=st.sampled_from([None, "agreement", "average"]),
        samples=st.just(samples),
        criteria=st.lists(
            _made(CriterionOutcome, criterion=texts, outcome=st.sampled_from(Outcome)),
            max_size=2,
        ).map(tuple),
        usage=usages,
    )
    return judged | _made(Failure, error=errors, metadata=metadata)


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
