"""Whether a judge should prepare: the same labelled pairs judged with each choice and without any,
and what each gains, harms and costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contract import ArtefactKind
from evenhand.contract.codes import NO_WINNER
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.report.baselines import AuditRows
from evenhand.report.lookup import chosen_judge, find_run
from evenhand.stats.estimates import EstimatedShare, share_of_rows
from evenhand.stats.rates.paired_difference import (
    PairedDifference,
    difference_in_halves,
    paired_difference,
)
from evenhand.store import JudgeRecord, Store
from evenhand.trust.audit import audit_labels
from evenhand.trust.pass_counts import RunPasses

Kinds = tuple[ArtefactKind, ...]
CHOICES: tuple[Kinds, ...] = (
    ("metrics",),
    ("reference",),
    ("metrics", "reference"),
    ("analysis",),
)
# A gain below this is not worth a second call: one pair in twenty.
USEFUL_GAIN = 0.05
# Where more of the texts came to nothing, the choice was not tried.
_MOST_UNUSED = 0.2


class TriedChoice(Model):
    """One choice on the labelled pairs. `gain` is over judging without preparation on the same
    pairs, where an inconsistent pair counts as a coin would; `right_gain` is that of `accuracy`,
    where it is not right. `mended` and `harmed` are the pairs on which the first rises, or falls.
    `unused` texts of all that were written came to nothing. Calls and cost are of judging with this
    choice alone, whatever was shared with the others here."""

    prepare: Kinds
    judge: str
    run: str
    accuracy: EstimatedShare
    gain: PairedDifference | None  # none where nothing is prepared, like the next three
    right_gain: PairedDifference | None
    mended: EstimatedShare | None
    harmed: EstimatedShare | None
    calls_a_pair: float
    cost_a_pair_usd: float | None
    written: int = 0
    unused: int = 0


class PreparationTrial(Model):
    """`level` is of all gains together: with several choices one looks good by luck. `recommended`
    is null where no choice is shown to help. `left_out` labelled pairs lack a recorded pass of some
    choice, and are in no figure."""

    pairs: int
    left_out: int
    level: float
    tried: tuple[TriedChoice, ...]
    recommended: Kinds | None
    sentence: Sentence


@dataclass(frozen=True, slots=True)
class TriedRun:
    """The run of one choice, as it was judged."""

    prepare: Kinds
    run: str


def compare_choices(store: Store, runs: Sequence[TriedRun], *, level: float) -> PreparationTrial:
    """The first is without preparation. All are over the same labelled pairs."""
    records = [_chosen(store, each) for each in runs]
    found = [_rows(store, each.run, judge) for each, judge in zip(runs, records, strict=True)]
    rows = [each for each, _ in found]
    shared = _judged_by_all(rows)
    every = np.unique(np.concatenate([labelled for _, labelled in found]))
    base = rows[0].only(np.isin(rows[0].numbers, shared))
    # Bonferroni: every interval holds at once, and so does that of the one which looks best.
    each_level = 1 - (1 - level) / max(1, len(runs) - 1)
    tried = []
    for each, judge, own in zip(runs, records, rows, strict=True):
        with_it = own.only(np.isin(own.numbers, shared))
        gained = with_it.half_credit - base.half_credit
        compared = each is not runs[0]
        tried.append(
            TriedChoice(
                prepare=each.prepare,
                judge=judge.name,
                run=each.run,
                accuracy=share_of_rows(
                    with_it.verdicts == with_it.labels,
                    with_it.prompts,
                    level=level,
                    unit="labelled pair",
                ),
                gain=difference_in_halves(gained, base.prompts, level=each_level)
                if compared
                else None,
                right_gain=paired_difference(
                    with_it.verdicts == with_it.labels,
                    base.verdicts == base.labels,
                    base.prompts,
                    level=each_level,
                )
                if compared
                else None,
                mended=_share(gained > 0, base, level) if compared else None,
                harmed=_share(gained < 0, base, level) if compared else None,
                **_taken(store, each, judge),
            )
        )
    recommended = _recommended(
        [each for each in tried[1:] if each.unused <= _MOST_UNUSED * each.written]
    )
    return PreparationTrial(
        pairs=int(shared.size),
        left_out=int(every.size - shared.size),
        level=level,
        tried=tuple(tried),
        recommended=None if recommended is None else recommended.prepare,
        sentence=_sentence(tried, recommended),
    )


def _chosen(store: Store, tried: TriedRun) -> JudgeRecord:
    run = find_run(store, tried.run)
    return chosen_judge(store.runs.judges(run.id), run.name, None)


def _rows(store: Store, name: str, judge: JudgeRecord) -> tuple[AuditRows, NDArray[np.int64]]:
    """The labelled pairs that were judged, and the numbers of all labelled ones: what a recording
    lacks says nothing of what was prepared."""
    run = find_run(store, name)
    columns = store.columns.outcomes(run.id, judge.id).asked()
    labels = audit_labels(store, run, columns).winners
    labelled = AuditRows.of(columns, labels).labelled
    passes = RunPasses(columns, store.columns.passes(run.id, judge.id))
    labels[passes.missing(labelled)[0]] = NO_WINNER
    rows = AuditRows.of(columns, labels)
    return rows.only(rows.labelled), rows.numbers[labelled]


def _judged_by_all(rows: Sequence[AuditRows]) -> NDArray[np.int64]:
    """The numbers of the labelled pairs that every choice has a verdict or a failure on."""
    shared = rows[0].numbers
    for each in rows[1:]:
        shared = np.intersect1d(shared, each.numbers)
    first = rows[0].only(np.isin(rows[0].numbers, shared))
    for each in rows[1:]:
        own = each.only(np.isin(each.numbers, shared))
        if not np.array_equal(own.prompts, first.prompts):
            raise InputError(Message("trust.trial_other_pairs"))
    if not shared.size:
        raise InputError(Message("trust.trial_other_pairs"))
    return shared


def _share(part: NDArray[np.bool_], rows: AuditRows, level: float) -> EstimatedShare:
    return share_of_rows(part, rows.prompts, level=level, unit="labelled pair")


def _taken(store: Store, tried: TriedRun, judge: JudgeRecord) -> dict[str, Any]:
    """A replayed answer is a call too, though no request was made for it."""
    run = find_run(store, tried.run)
    used = store.verdicts.tally(run.id, judge.id).used
    calls, cost, texts = max(used.requests, used.passes), None, list[str]()
    if not used.unpriced_passes:
        cost = used.cost_usd or 0.0
    if judge.settings.get("prepare"):
        written = store.verdicts.artefacts_behind(run.id, judge)
        texts = [each.outcome for each in written]
        calls += sum(max(1, each.requests) for each in written)
        costs = [each.cost_usd for each in written]
        known = [amount for amount in costs if amount is not None]
        cost = None if cost is None or len(known) < len(costs) else cost + sum(known)
    pairs = max(1, store.verdicts.tally(run.id, judge.id).judged)
    return {
        "calls_a_pair": calls / pairs,
        "cost_a_pair_usd": None if cost is None else cost / pairs,
        "written": len(texts),
        "unused": len(texts) - texts.count("answered"),
    }


def _recommended(tried: Sequence[TriedChoice]) -> TriedChoice | None:
    """Of those shown to help, the one that helps most for certain; of equals the cheaper. One that
    is right in both orders less often has traded wrong verdicts for none, and is not among them."""
    helping = [
        each
        for each in tried
        if each.gain is not None
        and (each.gain.low or 0.0) > 0
        and each.right_gain is not None
        and (each.right_gain.value or 0.0) >= 0
    ]
    if not helping:
        return None
    return max(helping, key=lambda each: (each.gain.low if each.gain else 0, -each.calls_a_pair))


def _sentence(tried: Sequence[TriedChoice], recommended: TriedChoice | None) -> Message:
    idle = [each for each in tried[1:] if each.unused > _MOST_UNUSED * each.written]
    if idle:
        worst = max(idle, key=lambda each: each.unused / each.written)
        kinds = ",".join(worst.prepare)
        return Message(
            "trust.prepare_unwritten", kinds=kinds, unused=worst.unused, written=worst.written
        )
    if recommended is not None and recommended.gain and recommended.right_gain:
        right = recommended.right_gain.percents()
        return Message(
            "trust.prepare_this",
            kinds=",".join(recommended.prepare),
            times=recommended.calls_a_pair / (tried[0].calls_a_pair or 1.0),
            **recommended.gain.percents(),
            **{f"right_{name}": value for name, value in right.items()},
        )
    gains = [each.gain for each in tried[1:] if each.gain is not None]
    known = [gain for gain in gains if gain.high is not None]
    if not known:
        return Message("trust.prepare_unknown", reason=gains[0].reason if gains else "")
    if all(gain.high <= 0 for gain in known if gain.high is not None):
        return Message("trust.prepare_harms")
    if all(gain.high < USEFUL_GAIN for gain in known if gain.high is not None):
        return Message("trust.prepare_useless", useful=100 * USEFUL_GAIN)
    settled = [gain.pairs_to_settle(USEFUL_GAIN) for gain in known]
    needed = max((each for each in settled if each is not None), default=None)
    if needed is None:
        return Message("trust.prepare_open")
    return Message("trust.prepare_open_until", n=needed)
