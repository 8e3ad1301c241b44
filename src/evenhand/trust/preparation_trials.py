"""Whether a judge should prepare: the same labelled pairs judged with each choice and without any,
and what each gains, harms and costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.report.lookup import chosen_judge, find_run
from evenhand.stats.estimates import EstimatedShare, share_of_rows
from evenhand.stats.rates.paired_difference import PairedDifference, difference_in_halves
from evenhand.store import JudgeRecord, Store
from evenhand.trust.audit import audit_labels
from evenhand.trust.baselines import AuditRows

Kinds = tuple[str, ...]
CHOICES: tuple[Kinds, ...] = (
    ("metrics",),
    ("reference",),
    ("metrics", "reference"),
    ("analysis",),
)
# A gain below this is not worth a second call: one pair in twenty.
USEFUL_GAIN = 0.05


class TriedChoice(Model):
    """One choice on the labelled pairs. `gain` is over judging without preparation on the same
    pairs, where an inconsistent pair counts as a coin would; `mended` and `harmed` are the pairs on
    which it is right more, or less. Calls and cost are of judging with this choice alone, whatever
    was shared with the others here."""

    prepare: Kinds
    judge: str
    run: str
    accuracy: EstimatedShare
    gain: PairedDifference | None  # none where nothing is prepared, like the next two
    mended: EstimatedShare | None
    harmed: EstimatedShare | None
    calls_a_pair: float
    cost_a_pair_usd: float | None


class PreparationTrial(Model):
    """`level` is of all gains together: with several choices one looks good by luck. `recommended`
    is null where no choice is shown to help."""

    pairs: int
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
    rows = [_rows(store, each.run, judge) for each, judge in zip(runs, records, strict=True)]
    shared = _judged_by_all(rows)
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
                mended=_share(gained > 0, base, level) if compared else None,
                harmed=_share(gained < 0, base, level) if compared else None,
                **_taken(store, each, judge),
            )
        )
    recommended = _recommended(tried[1:])
    return PreparationTrial(
        pairs=int(shared.size),
        level=level,
        tried=tuple(tried),
        recommended=None if recommended is None else recommended.prepare,
        sentence=_sentence(tried, recommended),
    )


def _chosen(store: Store, tried: TriedRun) -> JudgeRecord:
    run = find_run(store, tried.run)
    return chosen_judge(store.run_judges(run.id), run.name, None)


def _rows(store: Store, name: str, judge: JudgeRecord) -> AuditRows:
    run = find_run(store, name)
    columns = store.outcome_columns(run.id, judge.id)
    rows = AuditRows.of(columns, audit_labels(store, run, columns).winners)
    return rows.only(rows.labelled)


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


def _taken(store: Store, tried: TriedRun, judge: JudgeRecord) -> dict[str, float | None]:
    """A replayed answer is a call too, though no request was made for it."""
    run = find_run(store, tried.run)
    used = store.tally(run.id, judge.id).used
    calls, cost = max(used.requests, used.passes), None
    if not used.unpriced_passes:
        cost = used.cost_usd or 0.0
    if judge.settings.get("prepare"):
        written = store.artefacts_behind(run.id, judge)
        calls += sum(max(1, each.requests) for each in written)
        costs = [each.cost_usd for each in written]
        known = [amount for amount in costs if amount is not None]
        cost = None if cost is None or len(known) < len(costs) else cost + sum(known)
    pairs = max(1, store.tally(run.id, judge.id).judged)
    return {
        "calls_a_pair": calls / pairs,
        "cost_a_pair_usd": None if cost is None else cost / pairs,
    }


def _recommended(tried: Sequence[TriedChoice]) -> TriedChoice | None:
    """Of those shown to help, the one that helps most for certain; of equals the cheaper."""
    helping = [each for each in tried if each.gain is not None and (each.gain.low or 0.0) > 0]
    if not helping:
        return None
    return max(helping, key=lambda each: (each.gain.low if each.gain else 0, -each.calls_a_pair))


def _sentence(tried: Sequence[TriedChoice], recommended: TriedChoice | None) -> Message:
    if recommended is not None and recommended.gain is not None:
        return Message(
            "trust.prepare_this",
            kinds=",".join(recommended.prepare),
            times=recommended.calls_a_pair / (tried[0].calls_a_pair or 1.0),
            **recommended.gain.percents(),
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
