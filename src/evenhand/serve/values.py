"""What clients send and get besides the contract's own types, one set for every edge, and error
messages in clients' terms (fields, not command-line options).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, FailFast, Field, ValidationError
from pydantic.alias_generators import to_camel

from evenhand.contract import ConfidenceSource, Criterion, ErrorBody, Outcome, Winner
from evenhand.contract.codes import OutcomeCounts
from evenhand.contract.model import Model
from evenhand.contract.pair import Reference, Text, refuse
from evenhand.data.orders import BOTH_ORDERS_SHARE, OrderDraw
from evenhand.errors import EvenhandError, InputError, StoreBusy, StoreError, visible
from evenhand.messages import Message, Sentence
from evenhand.options import GeneratingOptions, JudgingOptions, RunningOptions
from evenhand.report.records import RunRow
from evenhand.serve.fields import SIDES, client_rows, taking
from evenhand.serve.logs import log
from evenhand.store.records import LONGEST_COMMENT

_LONGEST_MESSAGE = 2000


def presentable(message: str) -> str:
    """An error's message for a reader: visible characters, one line, bounded length."""
    if isinstance(message, Message):
        shown = message.with_texts(presentable)
        if len(shown) <= _LONGEST_MESSAGE:
            return shown
    line = visible(" ".join(message.split()))
    return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 1] + "…"


def for_clients(error: EvenhandError) -> EvenhandError:
    """Where the store is, and what its engine says, is the operator's affair: that is logged."""
    if not isinstance(error, StoreError):
        return error
    log.error("%s: %s", error.kind, error.message)
    told = type(error)(
        Message("serve.store_busy")
        if isinstance(error, StoreBusy)
        else Message("serve.store_failed")
    )
    told.metadata = error.metadata
    return told


def error_body(error: EvenhandError) -> ErrorBody:
    error = for_clients(error)
    return ErrorBody(
        kind=error.kind,
        message=presentable(error.message),
        retryable=error.retryable,
    )


RunStateView = Literal["reading", "queued", "answering", "judging", "finished", "stopped", "failed"]
# A run in one of these states does not change unless it is resumed.
AT_REST: frozenset[RunStateView] = frozenset({"finished", "stopped", "failed"})

# Beyond what any run asks; what may be added up and stored stays within 64 bits.
MOST_CALLS = 10**12
LONGEST_ID = 200

# What a model is told beside a prompt. They go where texts can be forgotten.
SIDE_TEXTS = tuple(
    f"{row.name}_{side}"
    for row in client_rows(GeneratingOptions)
    if row.kind == "text"
    for side in SIDES
)

_T = TypeVar("_T", bound=Model)


def _listed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


Names = Annotated[tuple[Text, ...], BeforeValidator(_listed)]
Criteria = Annotated[tuple[Criterion, ...], BeforeValidator(_listed)]


# Of a million rows that are none, the first is complained of.
Rows = Annotated[tuple[dict[str, Any], ...], FailFast(), BeforeValidator(_listed)]
Level = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]


def read_value(model: type[_T], given: Mapping[str, Any] | _T) -> _T:
    """A value from plain data in either case, or an InputError that names the field."""
    if isinstance(given, model):
        return given
    if not isinstance(given, Mapping):  # callers may be untyped
        raise InputError(Message("serve.object_needed", name=type(given).__name__))
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        refuse(error, model)


@taking(JudgingOptions, RunningOptions)
class JudgeRun(Model):
    """How a run's pairs are judged; the names are those of `evenhand run`."""

    judge: Text | None = Field(default=None, description="An offered judge; default: the first")
    judges: Names = Field(default=(), max_length=20, description="Several offered judges")
    name: Text | None = Field(default=None, max_length=200, description="The run's name")
    criteria: Criteria = Field(default=(), description="For rows without their own")
    columns: dict[Text, Text] = Field(
        default={}, max_length=100, description="Maps our fields to the data's columns"
    )
    bad_rows: Literal["stop", "skip"] = Field(
        default="stop", description="stop: an invalid row is an error; skip: it is skipped"
    )
    allow_tie: bool | None = Field(
        default=None, description="For every row; default: as each row says"
    )
    swap_positions: bool | None = Field(
        default=None, description="For every row; default: as each row says"
    )
    orders: Literal["both", "random"] = Field(
        default="both", description="random: one random order per pair, half the calls"
    )
    both_orders: float | None = Field(
        default=None,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="With orders random: the share judged in both; default: 0.1",
    )
    until_decided: bool = Field(default=False, description="Stop as soon as the winner is clear")
    alpha: Level | None = Field(default=None, description="With untilDecided; default: 0.05")
    rank_adaptive: bool = Field(
        default=False, description="Judge the pairs most likely to settle the ranking"
    )
    budget: int | None = Field(
        default=None,
        ge=1,
        le=MOST_CALLS,
        description="With rankAdaptive: the maximum number of pairs",
    )
    certainty: Level | None = Field(default=None, description="With rankAdaptive; default: 0.95")
    seed: int | None = Field(default=None, ge=0, le=2**31, description="Seed for the random order")

    @property
    def order_draw(self) -> OrderDraw | None:
        if self.orders == "both":
            if self.both_orders is not None:
                raise InputError(Message("serve.belongs_to_random_orders"))
            return None
        share = BOTH_ORDERS_SHARE if self.both_orders is None else self.both_orders
        return OrderDraw(self.seed or 0, share)

    @property
    def named_judges(self) -> tuple[str | None, ...]:
        """None stands for the default one."""
        if self.judge is not None and self.judges:
            raise InputError(Message("serve.judge_and_judges"))
        return self.judges or (self.judge,)


@taking(GeneratingOptions, sides=True)
class StartRun(JudgeRun):
    """The same, and who answers where rows are prompts; the names are those of `evenhand ab`."""

    model_a: Text | None = Field(
        default=None, description="The offered judge that answers as A, if rows are prompts"
    )
    model_b: Text | None = Field(default=None, description="The same for B")

    @property
    def models(self) -> tuple[str, str] | None:
        """Who answers; None where rows are pairs or outputs."""
        if self.model_a is not None and self.model_b is not None:
            return self.model_a, self.model_b
        for name in ("model_a", "model_b", *SIDE_TEXTS):
            if getattr(self, name) is not None:
                raise InputError(Message("serve.one_model", name=to_camel(name)))
        return None


_Column = Annotated[Text, Field(json_schema_extra={"pattern": "^[^=]+=.*$"})]


class StartRunQuery(StartRun):
    """The same as a query has it."""

    criteria: Names = Field(  # type: ignore[assignment]  # names alone
        default=(), description="For rows without their own"
    )
    columns: tuple[_Column, ...] = Field(  # type: ignore[assignment]  # a query has no objects
        default=(), max_length=100, description="FIELD=COLUMN: our field, the data's column"
    )

    def options(self) -> StartRun:
        columns = {}
        for given in self.columns:
            field, equals, column = given.partition("=")
            if not equals:
                raise InputError(
                    Message("serve.parameter_malformed", name="columns", given=given[:40])
                )
            columns[field.strip()] = column.strip()
        others = self.model_dump(exclude_unset=True, exclude={"columns"})
        return read_value(StartRun, {**others, "columns": columns})


class StartRunWithPairs(JudgeRun):
    """The same with the pairs themselves: the contract's input, or rows with other columns."""

    pairs: Rows = Field(
        min_length=1, description="Pairs as in compare; criteria may be set for the whole run"
    )

    def options(self) -> StartRun:
        return StartRun.model_validate(self.model_dump(exclude={"pairs"}, exclude_unset=True))


class AnswerProgress(Model):
    done: int
    total: int


class RunStatus(OutcomeCounts):
    """A run and how far it is. Four outcomes, never folded: `done` is their sum over all judges,
    and `done + pending` is `pairs` for each judge. `answers`: of models that have not answered all
    prompts yet; there are no pairs before they have."""

    id: str
    name: str
    state: RunStateView
    judges: tuple[str, ...]
    pairs: int
    skipped_rows: int = 0
    answers: AnswerProgress | None = None
    done: int
    pending: int
    calls: int
    cost_usd: float | None
    pairs_per_s: float | None = None
    remaining_s: float | None = None
    trouble: Sentence | None = None  # why nothing is answered, and when it is asked again
    stopped_by: str | None = None
    error: ErrorBody | None = None
    created_at: datetime
    updated_at: datetime
    notes: tuple[Sentence, ...] = ()
    # For the edges, not for clients: it was there before this request.
    found: bool = Field(default=False, exclude=True)

    @property
    def at_rest(self) -> bool:
        return self.state in AT_REST


class RunPage(Model):
    """Newest first; `next` goes into `after`, and is null at the end."""

    runs: tuple[RunStatus, ...]
    next: str | None = None


class VerdictLine(Model):
    """One judge's verdict on one pair, without its texts."""

    id: str
    number: int
    row: int
    source: str
    judge: str
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
    error_kind: str | None
    error_message: str | None


class VerdictPage(Model):
    """By the pairs' order; `next` goes into `cursor`, and is null at the end. With `full`, each
    has its texts, its reasoning and the contract's verdict."""

    verdicts: tuple[VerdictLine, ...] | tuple[RunRow, ...]
    next: str | None = None


class FlagPair(Model):
    """A flag on a pair of the run, in the place of an earlier one."""

    pair: Text = Field(description="The pair's id or number")
    comment: Text | None = Field(default=None, max_length=LONGEST_COMMENT)


class UnflagPair(Model):
    """The pair whose flag is taken away."""

    pair: Text = Field(description="The pair's id or number")


class RankResponses(Model):
    """Several responses to one prompt, to be ranked with as few comparisons as it takes."""

    prompt: Text
    responses: Names = Field(min_length=2, description="In any order; results use their index")
    criteria: Criteria = Field(min_length=1, description="What to judge by, most important first")
    context: Text | None = None
    reference: Reference = None
    allow_tie: bool = True
    judge: Text | None = Field(default=None, description="An offered judge; default: the first")
    check: bool = Field(
        default=False,
        description="Spend up to two more comparisons per response to find contradictions",
    )
    max_comparisons: int | None = Field(
        default=None, ge=1, le=MOST_CALLS, description="Stop early; rank ranges are then wider"
    )


class Readiness(Model):
    """Whether requests can be served now, and if not, why."""

    ready: bool
    problems: tuple[str, ...] = ()
