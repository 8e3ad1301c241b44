"""What a run came to: one value that the terminal, JSON and Python callers all get."""

from __future__ import annotations

from evenhand.contract import ErrorBody
from evenhand.contract.model import Model
from evenhand.messages import Sentence
from evenhand.runs.stop import StoppedBy
from evenhand.runs.stop_rules import RankProgress
from evenhand.stats.stopping.sequential import SequentialDecision


class JudgeSummary(Model):
    """One judge's verdicts over all pairs of the run: four outcomes, and what is still pending."""

    judge: str
    prompt_version: str | None
    wins_a: int
    wins_b: int
    ties: int
    inconsistent: int
    invalid: int
    pending: int
    unread_passes: int


class Spent(Model):
    """What the whole run has taken so far, as far as it is stored; null where it is not known."""

    calls: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    seconds: float


class RunSummary(Model):
    """The outcomes are the run's, over all its judges; what was spent is this command's alone."""

    run: str
    store: str
    pairs: int
    wins_a: int
    wins_b: int
    ties: int
    inconsistent: int
    invalid: int
    pending: int
    skipped_rows: int
    calls: int
    reused_passes: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    seconds: float
    stopped_by: StoppedBy | None
    judges: tuple[JudgeSummary, ...]
    total: Spent
    error: ErrorBody | None = None  # where the judge or the store stopped it
    notes: tuple[Sentence, ...] = ()
    decision: SequentialDecision | None = None  # of a run until it is decided
    ranking: RankProgress | None = None  # of a run that ranks adaptively

    @property
    def finished(self) -> bool:
        """Or ended as it should: it found what it was after, or asked all that it might."""
        if self.stopped_by is None:
            return self.pending == 0
        return self.stopped_by in ("decided", "certain", "budget")
