"""What probes found, as plain values: the scores, and every case that did not pass."""

from __future__ import annotations

from typing import Literal

from evenhand.contract import Criterion, ErrorBody, Locale, Order, Winner
from evenhand.contract.model import Model
from evenhand.runs import StoppedBy
from evenhand.stats.estimated_share import EstimatedShare
from evenhand.trust.probes.catalogue import ProbeName

# `wrong`: another verdict than expected. `inconsistent`: the winner changed with the order.
# `invalid`: no verdict could be had. `pending`: not asked yet.
CaseState = Literal["passed", "wrong", "inconsistent", "invalid", "pending"]
Ruling = Literal["pass", "fail", "undecided"]


class Said(Model):
    """What the judge said in one order: in its own words, or why that was not read."""

    id: str
    language: Locale
    order: Order
    winner: Winner | None
    text: str


class FailingCase(Model):
    """`fault` says in words what went wrong. A case of two languages has the ids of both."""

    ids: tuple[str, ...]
    languages: tuple[Locale, ...]
    state: CaseState
    expected: str
    winners: tuple[Winner | None, ...]  # the verdict on each id
    fault: str
    said: tuple[Said, ...]


class Score(Model):
    """`share` is of those with a verdict: passed, wrong or inconsistent, at the 95 % level."""

    n: int
    passed: int
    wrong: int
    inconsistent: int
    invalid: int
    pending: int
    share: EstimatedShare


class LanguageScore(Score):
    language: Locale


class ProbeScore(Score):
    probe: ProbeName
    shows: str
    expected: str
    by_language: tuple[LanguageScore, ...]
    failing: tuple[FailingCase, ...]


class ProbeRun(Model):
    """The run that holds one language's pairs: `evenhand show RUN ID` tells one of them whole."""

    language: Locale
    run: str | None  # None: a cap was reached before it began
    prompt_version: str | None
    pairs: int
    calls: int
    reused_passes: int
    cost_usd: float | None


class ProbeReport(Model):
    """`ruling` is there where a least score was asked for, and `ruling_reason` says why."""

    judge: str
    judge_caveat: str | None
    store: str
    runs: tuple[ProbeRun, ...]
    criteria: dict[Locale, tuple[Criterion, ...]]
    overall: Score
    probes: tuple[ProbeScore, ...]
    min_score: float | None
    ruling: Ruling | None
    ruling_reason: str | None
    stopped_by: StoppedBy | None
    error: ErrorBody | None
    notes: tuple[str, ...] = ()
