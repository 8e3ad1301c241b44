"""Verdicts that a calibration cannot vouch for, counted apart: coverage, and agreement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from evenhand.contract import Outcome
from evenhand.contract.codes import WINNERS
from evenhand.contract.model import Model
from evenhand.messages import Message, Sentence
from evenhand.messages.numbers import p_value
from evenhand.stats.calibration.guarantee import PromiseCheck, check_promise
from evenhand.stats.estimates import EstimatedShare, share_of_rows
from evenhand.store import JudgeRecord, RunRecord, Store, VerdictRow


class LearnedFrom(Model):
    """The data that a guarantee was learned on, and holds for, and the agreement above its
    threshold there: None where no threshold was granted, and in runs of earlier versions."""

    calibration: str | None = None
    run: str
    data: tuple[str, ...] = ()
    judged_at: date | None = None
    labels: int
    prompts: int
    agreement: EstimatedShare | None = None

    @classmethod
    def of(cls, judge: JudgeRecord, run: RunRecord) -> LearnedFrom | None:
        """None in runs of earlier versions, which did not keep it."""
        learned = run.planned_for(judge, "learned_on")
        return cls.model_validate(learned) if learned else None

    @property
    def sentence(self) -> str:
        seen = self.agreement
        counts = {"run": self.run, "labels": self.labels, "prompts": self.prompts}
        measured = "" if seen is None else Message("report.guarantee_measured", **dict(seen))
        about: list[str] = [*self.data]
        if self.judged_at is not None:
            about.append(Message("report.judged_on", day=self.judged_at.isoformat()))
        if about:
            return Message("report.guarantee_learned_on", about=about, measured=measured, **counts)
        return Message("report.guarantee_learned", measured=measured, **counts)


class Abstentions(Model):
    """Of one judge whose calibration promises an agreement of `min_agreement`.

    `coverage` is the share of all judged pairs whose verdict stands; inconsistent and invalid
    pairs have none. The agreements are with the data's labels, and `check` is whether they
    contradict the promise: None where no verdict that stands has a label. `threshold` is None
    where nothing could be guaranteed: then every verdict abstains.
    """

    judge: str
    min_agreement: float
    threshold: float | None
    judged: int
    kept: int
    abstained: int
    inconsistent: int
    invalid: int
    coverage: EstimatedShare
    agreement_kept: EstimatedShare
    agreement_abstained: EstimatedShare
    level: float
    learned_from: LearnedFrom | None = None
    check: PromiseCheck | None = None
    notes: tuple[Sentence, ...] = ()


@dataclass(frozen=True, slots=True)
class Promise:
    """What a run was told of its judge's calibration."""

    min_agreement: float
    threshold: float | None

    @classmethod
    def of(cls, judge: JudgeRecord, run: RunRecord) -> Promise | None:
        calibration = run.planned_for(judge, "deciding").get("calibration") or {}
        if "min_agreement" not in calibration:
            return None
        return cls(calibration["min_agreement"], calibration.get("threshold"))

    def keeps(self, row: VerdictRow) -> bool:
        """As it was when the verdict was made; only wins and ties can stand."""
        return (
            row.outcome in (Outcome.WIN, Outcome.TIE)
            and row.confidence_source == "calibration"
            and self.threshold is not None
            and row.confidence is not None
            and row.confidence >= self.threshold
        )


def contradiction(check: PromiseCheck | None, judge: str) -> Iterator[str]:
    """The warning where labels contradict a promise."""
    if check is not None and check.contradicted:
        yield Message(
            "report.guarantee_contradicted",
            judge=judge,
            agreeing=check.agreeing,
            n=check.n,
            share=check.agreeing / check.n,
            promised=check.promised,
            p=p_value(check.p_value),
        )


def stands(row: VerdictRow, promise: Promise | None) -> bool:
    """Without a promise every win and every tie does; a tie by rule needs none."""
    if promise is not None and not row.by_rule:
        return promise.keeps(row)
    return row.outcome in (Outcome.WIN, Outcome.TIE)


def unsettled_items(store: Store, run_id: int) -> set[int]:
    """The items that were judged and on which no judge of the run has a verdict that stands."""
    run = next(each for each in store.runs.all() if each.id == run_id)
    promises = {judge.id: Promise.of(judge, run) for judge in store.runs.judges(run_id)}
    judged: set[int] = set()
    settled: set[int] = set()
    for row in store.verdicts.each(run_id):
        judged.add(row.item.number)
        if stands(row, promises.get(row.judge_id)):
            settled.add(row.item.number)
    return judged - settled


def count_abstentions(
    store: Store, run: RunRecord, *, level: float = 0.95
) -> Iterator[Abstentions]:
    """For each judge of the run whose calibration has a promise to keep."""
    for judge in store.runs.judges(run.id):
        promise = Promise.of(judge, run)
        if promise is not None:
            yield _counted(store, run, judge, promise, level=level)


def _counted(
    store: Store, run: RunRecord, judge: JudgeRecord, promise: Promise, *, level: float
) -> Abstentions:
    columns = store.columns.outcomes(run.id, judge.id).asked()
    prompt_of = dict(zip(columns.number, columns.prompt_key, strict=True))
    rows = [
        row
        for row in store.verdicts.each(run.id, judge_id=judge.id)
        # Not ties by rule; and a run that goes on may have got more since.
        if row.item.number in prompt_of
    ]
    kept = np.array([promise.keeps(row) for row in rows], dtype=np.bool_)
    decided = np.array([row.outcome in (Outcome.WIN, Outcome.TIE) for row in rows], dtype=np.bool_)
    labelled = np.array([row.item.label in WINNERS for row in rows], dtype=np.bool_)
    agrees = np.array([row.item.label == row.winner for row in rows], dtype=np.bool_)
    prompts = np.array([prompt_of[row.item.number] for row in rows], dtype=np.int64)

    labelled_kept = kept & labelled
    learned = LearnedFrom.of(judge, run)
    check = None
    if promise.threshold is not None:
        check = check_promise(
            agrees[labelled_kept], target=promise.min_agreement, prompts=prompts[labelled_kept]
        )

    def agreement(chosen: NDArray[np.bool_]) -> EstimatedShare:
        return share_of_rows(agrees[chosen], prompts[chosen], level=level, unit="labelled verdict")

    return Abstentions(
        judge=judge.name,
        min_agreement=promise.min_agreement,
        threshold=promise.threshold,
        judged=len(rows),
        kept=int(kept.sum()),
        abstained=int((decided & ~kept).sum()),
        inconsistent=sum(row.outcome == Outcome.INCONSISTENT for row in rows),
        invalid=sum(row.outcome == Outcome.INVALID for row in rows),
        coverage=share_of_rows(kept, prompts, level=level, unit="judged pair"),
        agreement_kept=agreement(labelled_kept),
        agreement_abstained=agreement(decided & ~kept & labelled),
        level=level,
        learned_from=learned,
        check=check,
        notes=(*([] if learned is None else [learned.sentence]), *contradiction(check, judge.name)),
    )
