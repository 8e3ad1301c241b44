"""The values that go into a store and come out: rows (runs, judges, items, passes, verdicts,
votes), and columns of numbers for statistics. Loads no database.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import compress
from typing import Any, Literal, NamedTuple, get_args

from evenhand.contract import (
    ErrorBody,
    Failure,
    Locale,
    Mode,
    Order,
    Outcome,
    Pair,
    Usage,
    Winner,
)
from evenhand.contract.codes import OutcomeCounts
from evenhand.errors import JudgeError
from evenhand.judging.decision import Judged, PassResult

# Verdicts as columns of numbers; `numpy.asarray` takes each without copying. Outcomes are 0 A won,
# 1 B won, 2 tie, 3 inconsistent, 4 invalid. Winners are 0 A, 1 B, 2 TIE, -1 none; `first_winner`
# and `second_winner` are also -2, for an order that was read but whose samples split evenly. Models
# are indexes into a table of names, -1 if the row names none.

Names = tuple[str, ...]


def whole_numbers() -> array[int]:
    return array("q")


def codes() -> array[int]:
    return array("i")


def small_codes() -> array[int]:
    return array("b")


def fractions() -> array[float]:
    return array("d")


class BattleCount(NamedTuple):
    """How often two models' pairs came out one way. `flipped` changed with the order, and
    `one_order` were asked in a fixed one, so that position may have decided."""

    model_a: str | None
    model_b: str | None
    outcome: Outcome
    winner: Winner | None
    verdicts: int
    flipped: int = 0
    one_order: int = 0


@dataclass(frozen=True, slots=True)
class BattleColumns:
    """What a ranking needs of each verdict; by run, item and judge."""

    models: Names
    judges: tuple[int, ...]  # their ids
    prompt_key: array[int] = field(default_factory=whole_numbers)
    model_a: array[int] = field(default_factory=codes)
    model_b: array[int] = field(default_factory=codes)
    outcome: array[int] = field(default_factory=small_codes)
    judge: array[int] = field(default_factory=codes)  # a place in `judges`
    flipped: array[int] = field(default_factory=small_codes)  # 1: changed with the order
    one_order: array[int] = field(default_factory=small_codes)  # 1: asked in one, and not drawn


@dataclass(frozen=True, slots=True)
class ItemColumns:
    """A run's items by number, without texts."""

    models: Names
    number: array[int] = field(default_factory=whole_numbers)
    pair_id: array[int] = field(default_factory=whole_numbers)
    prompt_key: array[int] = field(default_factory=whole_numbers)
    length_a: array[int] = field(default_factory=codes)  # in characters
    length_b: array[int] = field(default_factory=codes)
    model_a: array[int] = field(default_factory=codes)
    model_b: array[int] = field(default_factory=codes)


@dataclass(frozen=True, slots=True)
class OutcomeColumns:
    models: Names
    tag_sets: tuple[tuple[str, ...], ...]
    number: array[int] = field(default_factory=whole_numbers)
    prompt_key: array[int] = field(default_factory=whole_numbers)
    outcome: array[int] = field(default_factory=small_codes)
    first_winner: array[int] = field(default_factory=small_codes)  # -2 where its samples split
    second_winner: array[int] = field(default_factory=small_codes)
    # 1 if the pair is shown in both orders, 0 if in one.
    both_orders: array[int] = field(default_factory=small_codes)
    drawn_order: array[int] = field(default_factory=small_codes)  # 1 where that was drawn at random
    confidence: array[float] = field(default_factory=fractions)  # NaN where there is none
    length_a: array[int] = field(default_factory=codes)  # in characters
    length_b: array[int] = field(default_factory=codes)
    model_a: array[int] = field(default_factory=codes)
    model_b: array[int] = field(default_factory=codes)
    tags: array[int] = field(default_factory=codes)  # a place in `tag_sets`
    label: array[int] = field(default_factory=small_codes)  # a person's winner
    by_rule: array[int] = field(default_factory=small_codes)  # 1 for identical responses, not asked

    def asked(self) -> OutcomeColumns:
        """Without ties by rule, which say nothing about the judge."""
        if 1 not in self.by_rule:
            return self
        keep = [not each for each in self.by_rule]
        arrays: dict[str, Any] = {
            each.name: array(column.typecode, compress(column, keep))
            for each in fields(self)
            if isinstance(column := getattr(self, each.name), array)
        }
        return replace(self, **arrays)


@dataclass(frozen=True, slots=True)
class CriterionColumns:
    """One criterion in one judge's verdicts: a row for each pair that has it, by item number."""

    criterion: str
    number: array[int] = field(default_factory=whole_numbers)
    prompt_key: array[int] = field(default_factory=whole_numbers)
    outcome: array[int] = field(default_factory=small_codes)


@dataclass(frozen=True, slots=True)
class PrefixColumns:
    """The verdicts on consecutively settled prompts, in the queue's order."""

    is_whole: bool  # nothing is pending after them
    place: array[int] = field(default_factory=whole_numbers)  # the same for all rows of a prompt
    number: array[int] = field(default_factory=whole_numbers)
    prompt_key: array[int] = field(default_factory=whole_numbers)
    outcome: array[int] = field(default_factory=small_codes)


@dataclass(frozen=True, slots=True)
class PassColumns:
    """One judge's passes on a run's pairs; winners are in the caller's labels."""

    number: array[int] = field(default_factory=whole_numbers)
    prompt_key: array[int] = field(default_factory=whole_numbers)
    order: array[int] = field(default_factory=small_codes)  # 0 original, 1 swapped
    sample: array[int] = field(default_factory=codes)
    winner: array[int] = field(default_factory=small_codes)
    not_recorded: array[int] = field(default_factory=small_codes)  # 1 where a replay lacks it


RunState = Literal["reading", "judging", "stopped", "finished"]
PassStatus = Literal["ballot", "unread", "failed"]
PassKey = tuple[Order, int]  # order and sample
# What a run keeps of a pair: its decision, or why there is none.
Settled = Judged | Failure


@dataclass(frozen=True, slots=True)
class NewRun:
    """`fingerprint` identifies what was asked for, so that the same command finds its run."""

    name: str
    fingerprint: str
    plan: Mapping[str, Any]  # plain JSON
    sources: tuple[str, ...] = ()


WITHOUT_PARTNER = "withoutPartner"
UNPAIRED_ROWS = "unpairedRows"
ENVIRONMENTS = "environments"  # the versions of each command that judged, once each
TAG_COLUMNS = "tagColumns"  # a column of the data, and the tags that it gave
SERVED_MODELS = "servedModels"  # by a judge's key: what its answers say of themselves


@dataclass(frozen=True, slots=True)
class WithoutPartner:
    """For two models: the prompts that only A answered, and those that only B did."""

    model_a: str
    model_b: str
    only_a: int
    only_b: int

    @property
    def prompts(self) -> int:
        return self.only_a + self.only_b


@dataclass(frozen=True, slots=True)
class RunRecord:
    id: int
    name: str
    fingerprint: str
    plan: Mapping[str, Any]
    sources: tuple[str, ...]
    state: RunState
    intake_done: bool  # every row of the sources is an item, or was skipped
    stopped_by: str | None
    seconds: float  # spent judging, over all resumptions
    calls: int
    reused_passes: int
    summary: Mapping[str, Any]  # plain JSON, the caller's own
    created_at: datetime
    updated_at: datetime

    @property
    def without_partner(self) -> tuple[WithoutPartner, ...]:
        """Prompts that only one of two models answered, in joined outputs. Each is also a skipped
        row, unless the run is on common prompts."""
        return tuple([WithoutPartner(**each) for each in self.summary.get(WITHOUT_PARTNER, ())])

    @property
    def tag_columns(self) -> dict[str, frozenset[str]]:
        """The tags of each column; unknown for runs before 0.2."""
        known = self.summary.get(TAG_COLUMNS, {})
        return {column: frozenset(tags) for column, tags in known.items()}

    @property
    def unpaired_rows(self) -> int:
        """How many skipped rows are such prompts; with three models one may be of two."""
        return int(self.summary.get(UNPAIRED_ROWS, 0))

    def planned_for(
        self, judge: JudgeRecord, part: Literal["deciding", "learned_on"]
    ) -> Mapping[str, Any]:
        """How the run made this judge's verdicts from its passes, or what its calibration was
        learned on."""
        keys, planned = self.plan.get("judges"), self.plan.get(part)
        if not isinstance(keys, list) or not isinstance(planned, list) or judge.key not in keys:
            return {}
        own = planned[keys.index(judge.key)]
        return own if isinstance(own, Mapping) else {}

    @property
    def texts_forgotten(self) -> bool:
        return bool(self.summary.get("forgotten_at"))

    @property
    def drawn_orders(self) -> Mapping[str, Any] | None:
        """How the single order of each pair was drawn, if it was."""
        drawn = self.plan.get("data", {}).get("orders", {}).get("random")
        return drawn if isinstance(drawn, Mapping) else None

    @property
    def on_common_prompts(self) -> bool:
        """Only prompts that both models answered count, so none are missing."""
        return bool(self.plan.get("data", {}).get("prompts") == "common")


@dataclass(frozen=True, slots=True)
class NewJudge:
    """`key` identifies everything an answer depends on; judges with the same key share passes."""

    key: str
    name: str
    prompt_version: str | None = None
    locale: Locale | None = None
    mode: Mode | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)  # plain JSON
    template: str | None = None  # the text of a template that is not ours


@dataclass(frozen=True, slots=True)
class JudgeRecord(NewJudge):
    id: int = field(kw_only=True)
    created_at: datetime = field(kw_only=True)

    @property
    def prompt_is_ours(self) -> bool:
        """Built-in prompts are named by language and mode, files by their own name."""
        name = (self.prompt_version or "").partition("@")[0].partition("+prepared.")[0]
        return name == f"{self.locale}/{self.mode}"


@dataclass(frozen=True, slots=True)
class ItemRecord:
    number: int  # from 1, in order of arrival
    key: str
    pair_id: int
    source: str
    row: int
    label: Winner | None
    model_a: str | None
    model_b: str | None
    tags: tuple[str, ...]
    swap_positions: bool
    drawn_order: Order | None = None  # the one order, where it was drawn at random


@dataclass(frozen=True, slots=True)
class FailedPass:
    """A pass that the judge did not answer."""

    order: Order
    sample: int
    error: ErrorBody
    usage: Usage = field(default_factory=Usage)  # what was spent in vain
    time_ms: float = 0

    @classmethod
    def of(cls, order: Order, sample: int, error: JudgeError) -> FailedPass:
        body = ErrorBody(kind=error.kind, message=error.message, retryable=error.retryable)
        return cls(order, sample, body, Usage(requests=error.requests))


class NewPass(NamedTuple):
    pair_id: int
    judge_id: int
    run_id: int
    made: PassResult | FailedPass


@dataclass(frozen=True, slots=True)
class StoredPass:
    made: PassResult | FailedPass
    status: PassStatus
    run_id: int | None  # the run that made it; None where that run was deleted
    created_at: datetime


class NewVerdict(NamedTuple):
    run_id: int
    number: int  # of the item
    judge_id: int
    settled: Settled


@dataclass(frozen=True, slots=True)
class WorkItem:
    """An item without a verdict, and its stored passes."""

    number: int
    key: str
    pair_id: int
    pair: Pair
    passes: Mapping[PassKey, StoredPass]

    def recall(self, order: Order, sample: int) -> PassResult | None:
        """The stored pass, which need not be asked again."""
        stored = self.passes.get((order, sample))
        return None if stored is None or isinstance(stored.made, FailedPass) else stored.made

    def lacks_passes(self, samples: int) -> bool:
        """Whether any of so many passes in each order is missing."""
        wanted = [(order, n) for order in self.pair.orders for n in range(1, samples + 1)]
        return any(self.recall(order, n) is None for order, n in wanted)


class QueuePlace(NamedTuple):
    """An item's place in its run's queue. The rows of a prompt share `place`."""

    place: int
    number: int


QUEUE_START = QueuePlace(0, 0)


@dataclass(frozen=True, slots=True)
class Queued:
    at: QueuePlace
    models: tuple[str | None, str | None]
    work: WorkItem


@dataclass(frozen=True, slots=True)
class Contest:
    """Two models of a run, in either role, and one judge's verdicts on them."""

    contest: int
    models: tuple[str, str]
    pending: int
    wins: tuple[int, int]  # in the order of `models`
    ties: int
    inconsistent: int
    invalid: int


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """A verdict without its prose, for statistics and tables."""

    item: ItemRecord
    judge_id: int
    outcome: Outcome
    winner: Winner | None
    confidence: float | None
    confidence_source: str
    first_pass_winner: Winner | None
    second_pass_winner: Winner | None
    error_kind: str | None
    error_message: str | None
    abstained: bool = False  # less sure than its calibration promises

    @property
    def by_rule(self) -> bool:
        """A tie of identical responses, without asking a judge."""
        return self.outcome is Outcome.TIE and self.confidence_source == "rule"


class PairFlag(NamedTuple):
    """A flag on a pair of a run, and its comment."""

    flagged_at: datetime
    comment: str | None


@dataclass(frozen=True, slots=True)
class WholeVerdict:
    """A verdict with its pair and every pass."""

    row: VerdictRow
    pair: Pair
    settled: Settled
    passes: tuple[StoredPass, ...]  # all that are stored, also those that failed
    flag: PairFlag | None = None  # of the pair


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """What one judge has on one item so far."""

    judge: JudgeRecord
    settled: Settled | None  # None: pending
    passes: tuple[StoredPass, ...]
    replaced: tuple[StoredPass, ...]  # earlier tries that were set aside by a retry


@dataclass(frozen=True, slots=True)
class ItemWhole:
    item: ItemRecord
    pair: Pair
    judged: tuple[JudgedItem, ...]  # one for each judge of the run
    flag: PairFlag | None = None


@dataclass(frozen=True, slots=True)
class Spending:
    """What passes took. A sum covers the known parts; None if there are none."""

    passes: int = 0
    requests: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    cost_usd: float | None = None
    uncounted_passes: int = 0  # whose tokens are not known
    unpriced_passes: int = 0  # whose cost is not known
    time_ms: float = 0


class Tally(OutcomeCounts):
    """A run in numbers: of one judge, or of all of them added up.

    `pairs` counts items once; with several judges, `pending` counts an item for each.
    """

    pairs: int = 0
    pending: int = 0
    skipped_rows: int = 0
    unread_passes: int = 0
    failed_passes: int = 0
    reused_passes: int = 0  # made by another run
    used: Spending = Spending()  # all passes behind this run
    made: Spending = Spending()  # those it made itself, replaced ones too

    @property
    def judged(self) -> int:
        return self.valid + self.invalid


# Where a vote came from. Escalated pairs were shown because the judge was unsure.
Origin = Literal["import", "terminal", "page", "escalation"]
# How the pair was chosen: uniformly from a run's pairs, with known unequal chances, or for what was
# known about it. Votes on chosen pairs say nothing about the others.
Draw = Literal["random", "weighted", "chosen"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
DRAWS: tuple[Draw, ...] = get_args(Draw)
LONGEST_COMMENT = 4_000  # in characters
LONGEST_NAME = 200
UNKNOWN_DRAW = -1


def is_picked(origin: Origin, draw: Draw | None) -> bool:
    """Whether the pair was shown for what was known about it: chosen by hand, or because a judge
    was unsure. Such a vote says nothing about other pairs, so it is not a label."""
    return origin == "escalation" or draw == "chosen"


@dataclass(frozen=True, slots=True)
class NewVote:
    """`verdict` is None if the person skipped the pair. `both_bad` is a tie of two bad responses;
    it counts as a tie and is kept.

    Other None values are unknown, and keep those of an existing vote.
    """

    pair_id: int
    who: str
    verdict: Winner | None
    origin: Origin | None = None
    draw: Draw | None = None
    chance: float | None = None
    shown_order: Order | None = None
    at: datetime | None = None
    comment: str | None = None
    both_bad: bool = False


@dataclass(frozen=True, slots=True)
class StoredVote(NewVote):
    origin: Origin
    at: datetime = field(kw_only=True)


class ItemVote(NamedTuple):
    """A vote, and an item of a run with its pair."""

    number: int
    key: str
    vote: StoredVote


class PairStanding(NamedTuple):
    """How far a pair is voted on, as one person may know: `labels` are verdicts of people who met
    the pair in a fair draw, `others` those not the person's own."""

    pair_id: int
    votes: int
    labels: int
    others: int
    own: bool
    skipped: bool  # by the person
    page_at: float | None  # when the person voted on it on a page


class AddedVotes(NamedTuple):
    """`unchanged` votes repeated existing ones."""

    new: int
    replaced: int
    unchanged: int


class RunItem(NamedTuple):
    """What can be known of an item without reading its texts."""

    number: int
    key: str
    pair_id: int
    label: Winner | None
    model_a: str | None
    model_b: str | None
    prompt_key: int
    lengths: tuple[int, int]  # of A and B, in characters


@dataclass(frozen=True, slots=True)
class VoteColumns:
    """The votes on a run's items, by item number and person.

    A vote counts for every item with its pair. `verdict` is 0 A, 1 B, 2 TIE, -1 skipped; `draw` and
    `origin` index DRAWS and ORIGINS, -1 unknown.
    """

    people: tuple[str, ...]
    number: array[int] = field(default_factory=whole_numbers)
    pair_id: array[int] = field(default_factory=whole_numbers)
    prompt_key: array[int] = field(default_factory=whole_numbers)
    who: array[int] = field(default_factory=codes)  # a place in `people`
    verdict: array[int] = field(default_factory=small_codes)
    origin: array[int] = field(default_factory=small_codes)
    draw: array[int] = field(default_factory=small_codes)
    chance: array[float] = field(default_factory=fractions)  # NaN where it is not known
    label: array[int] = field(default_factory=small_codes)  # the data file's own
