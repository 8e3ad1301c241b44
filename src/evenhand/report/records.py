"""A run row by row, what one judge made of one pair (`docs/data.md` explains each field); and
one pair whole, with its texts and every pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from evenhand.contract import (
    Ballot,
    ConfidenceSource,
    ErrorBody,
    Failure,
    Locale,
    Mode,
    Order,
    Outcome,
    Pair,
    Unread,
    Usage,
    Verdict,
    Winner,
)
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.judges.families import Families, OwnFamilies, shared_message
from evenhand.messages import Message, Sentence, render
from evenhand.report.lookup import find_item, find_run
from evenhand.store import (
    FailedPass,
    ItemWhole,
    JudgedItem,
    JudgeRecord,
    PassStatus,
    RunRecord,
    Store,
    StoredPass,
    WholeVerdict,
)
from evenhand.store.explanation import explained, pass_in_contract
from evenhand.store.faults import of_run, rows_read

# A page is in memory whole, and a response may have 50 million characters.
_FIRST_PAGE = 1
_LARGEST_PAGE = 64
_PAGE_CHARACTERS = 8_000_000
_LARGEST_WHOLE = 2**63 - 1


class CriterionResult(Model):
    """`winner` is null where the criterion was not judged, or where the pair is invalid."""

    criterion: str
    winner: Winner | None
    outcome: Outcome


class RunRow(Model):
    """One pair as one judge judged it. Tables leave out what stands in `ONLY_IN_FULL`."""

    run: str
    id: str
    row: int
    source: str
    judge: str
    prompt: str
    response_a: str
    response_b: str
    label: Winner | None
    model_a: str | None
    model_b: str | None
    tags: tuple[str, ...]
    outcome: Outcome
    winner: Winner | None
    confidence: float | None
    confidence_source: ConfidenceSource
    abstained: bool
    first_pass_winner: Winner | None
    second_pass_winner: Winner | None
    consistent: bool | None
    criteria: tuple[CriterionResult, ...]
    reasoning: str
    error_kind: str | None
    error_message: Sentence | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    time_ms: float
    flagged: bool
    comment: str | None
    context: str | None
    reference: str | None
    verdict: Verdict | Failure


ONLY_IN_FULL = frozenset({"context", "reference", "verdict"})
COLUMNS: Mapping[str, str] = {
    name: str(field.serialization_alias)
    for name, field in RunRow.model_fields.items()
    if name not in ONLY_IN_FULL
}


def read_run(store: Store, name: str) -> Iterator[RunRow]:
    """A run's rows in the order of its pairs, page by page; pending pairs have none yet."""
    return rows_of(store, find_run(store, name))


def rows_of(store: Store, run: RunRecord) -> Iterator[RunRow]:
    judges = {judge.id: judge for judge in store.runs.judges(run.id)}
    after, limit = 0, _FIRST_PAGE
    while page := store.verdicts.whole_page(run.id, after=after, limit=limit):
        for whole in page:
            yield row_of(whole, run=run, judge=judges[whole.row.judge_id])
        after = page[-1].row.item.number
        limit = _next_page(page)


def _next_page(page: Sequence[WholeVerdict]) -> int:
    """As many rows as will fit, if the next ones are as long as these."""
    characters = sum(
        len(whole.pair.prompt) + len(whole.pair.response_a) + len(whole.pair.response_b)
        for whole in page
    )
    return max(
        1, min(_LARGEST_PAGE, 2 * len(page), _PAGE_CHARACTERS * len(page) // (characters + 1))
    )


def row_of(whole: WholeVerdict, *, run: RunRecord, judge: JudgeRecord) -> RunRow:
    columns, item = whole.row, whole.row.item
    settled = explained(whole.settled, whole.pair, whole.passes, judge=judge, run=run)
    verdict = settled if isinstance(settled, Verdict) else None
    position = verdict.position_consistency if verdict else None
    usage = settled.metadata.usage
    return RunRow.of_parts(
        item,
        settled.metadata,
        columns,
        whole.pair,
        run=run.name,
        id=item.key,
        judge=judge.name,
        outcome=columns.outcome,
        consistent=position.consistent if position else None,
        criteria=tuple(_criteria(settled)),
        reasoning=verdict.overall_reasoning if verdict else "",
        input_tokens=_whole(usage.input_tokens),
        output_tokens=_whole(usage.output_tokens),
        cost_usd=usage.cost_usd,
        time_ms=round(sum(stored.made.time_ms for stored in whole.passes), 3),
        flagged=whole.flag is not None,
        comment=whole.flag.comment if whole.flag else None,
        verdict=settled,
    )


def _whole(value: int | None) -> int | None:
    """A server may claim any number of tokens; one that no table can hold is not known."""
    return value if value is None or abs(value) <= _LARGEST_WHOLE else None


def _criteria(settled: Verdict | Failure) -> Iterator[CriterionResult]:
    winners: dict[str, Winner | None] = {}
    if isinstance(settled, Verdict):
        winners = {entry.criterion: entry.winner for entry in settled.comparison}
    for entry in settled.metadata.criteria:
        yield CriterionResult(
            criterion=entry.criterion,
            winner=winners.pop(entry.criterion, None),
            outcome=entry.outcome,
        )
    # Older stores keep no criteria for identical responses that nobody was asked about.
    for criterion, winner in winners.items():
        outcome = Outcome.TIE if winner == "TIE" else Outcome.INVALID
        yield CriterionResult(criterion=criterion, winner=winner, outcome=outcome)


# One pair of a run whole: the texts, and of each judge the verdict and every pass.


class StoredAnswer(Model):
    """One pass as it is kept: a ballot, an unread answer, or what failed."""

    order: Order
    sample: int
    status: PassStatus
    ballot: Ballot | None = None
    unread: Unread | None = None
    error: ErrorBody | None = None
    repaired: tuple[Unread, ...] = ()
    usage: Usage
    time_ms: float
    model: str | None = None
    request_ids: tuple[str, ...] = ()
    created_at: datetime
    reused: bool  # another run made it

    @classmethod
    def of(cls, stored: StoredPass, pair: Pair, run: RunRecord) -> StoredAnswer:
        made = stored.made
        known: dict[str, Any] = {}
        if isinstance(made, FailedPass):
            known["error"] = made.error
        else:
            whole = pass_in_contract(pair, made)
            known = {
                name: getattr(whole, name)
                for name in ("ballot", "unread", "repaired", "model", "request_ids")
            }
        return cls(
            order=made.order,
            sample=made.sample,
            status=stored.status,
            usage=made.usage,
            time_ms=made.time_ms,
            created_at=stored.created_at,
            reused=stored.run_id != run.id,
            **known,
        )

    @property
    def raw(self) -> str:
        reading = self.ballot or self.unread
        return reading.raw if reading else ""


class JudgedPair(Model):
    """`verdict` is the contract's verdict or failure; null while the pair is pending."""

    judge: str
    prompt_version: str | None
    locale: Locale | None
    mode: Mode | None
    settings: dict[str, Any]
    pending: bool
    verdict: Verdict | Failure | None
    passes: tuple[StoredAnswer, ...]
    replaced: tuple[StoredAnswer, ...]  # earlier tries, set aside by a retry

    @classmethod
    def of(
        cls,
        judged: JudgedItem,
        pair: Pair,
        run: RunRecord,
        *,
        models: tuple[str | None, str | None],
        families: Families,
    ) -> JudgedPair:
        judge, verdict = judged.judge, None
        if judged.settled is not None:
            verdict = explained(judged.settled, pair, judged.passes, judge=judge, run=run)
            served = (getattr(each.made, "model", None) for each in judged.passes)
            kin = families.of_judge(judge.name, filter(None, served))
            shared = shared_message(kin, models, families)
            if shared is not None and isinstance(verdict, Verdict):
                note = render(shared, verdict.metadata.locale or "en")
                verdict = verdict.model_copy(update={"notes": (*verdict.notes, note)})
        return cls.of_parts(
            judge,
            judge=judge.name,
            settings=dict(judge.settings),
            pending=judged.settled is None,
            verdict=verdict,
            passes=tuple(StoredAnswer.of(each, pair, run) for each in judged.passes),
            replaced=tuple(StoredAnswer.of(each, pair, run) for each in judged.replaced),
        )


class PairReport(Model):
    run: str
    id: str
    number: int  # its place in the run, from 1
    source: str
    row: int
    label: Winner | None
    model_a: str | None
    model_b: str | None
    tags: tuple[str, ...]
    pair: Pair
    judges: tuple[JudgedPair, ...]
    flagged: bool = False
    comment: str | None = None


@of_run
def report_pair(
    store: Store, run_name: str, name: str, *, families: OwnFamilies = ()
) -> PairReport:
    """`name` is the pair's id, or its number; `families` are the caller's own entries."""
    run = find_run(store, run_name)
    return whole_pair(run, find_item(store, run, name), families=families)


class FlaggedPair(Model):
    """A pair of a run, and whether it is flagged now."""

    run: str
    id: str
    number: int
    flagged: bool
    comment: str | None


@of_run
def flag_pair(
    store: Store, run_name: str, name: str, *, comment: str | None = None, remove: bool = False
) -> FlaggedPair:
    """`name` is the pair's id, or its number. A later flag takes the place of an earlier one."""
    if remove and comment is not None:
        raise InputError(Message("report.flag_removed_with_comment"))
    run = find_run(store, run_name)
    item = find_item(store, run, name).item
    flag = None
    if remove:
        store.flags.remove(run.id, item.number)
    else:
        flag = store.flags.set(run.id, item.number, comment=comment)
    return FlaggedPair(
        run=run.name,
        id=item.key,
        number=item.number,
        flagged=flag is not None,
        comment=flag.comment if flag else None,
    )


def whole_pair(run: RunRecord, whole: ItemWhole, *, families: OwnFamilies = ()) -> PairReport:
    item, known = whole.item, Families(families)
    with rows_read(f"of run {run.name!r}, pair {item.number},"):
        return PairReport.of_parts(
            item,
            whole,
            run=run.name,
            id=item.key,
            flagged=whole.flag is not None,
            comment=whole.flag.comment if whole.flag else None,
            judges=tuple(
                JudgedPair.of(
                    judged,
                    whole.pair,
                    run,
                    models=(item.model_a, item.model_b),
                    families=known,
                )
                for judged in whole.judged
            ),
        )
