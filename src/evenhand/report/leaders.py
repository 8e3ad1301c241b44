"""What speaks against saying that a ranking's first model leads, by the rules of a win rate: all
that holds back the claim that it beats the others, or one of them, holds back its lead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from evenhand.messages import Message
from evenhand.report.claims import claim_message, figures, objection
from evenhand.report.conclusions import Absences, Concluder, Conclusion
from evenhand.report.evidence import in_random_order, until_decided
from evenhand.report.labelled import RunLabels
from evenhand.report.ranked_verdicts import JudgedRun, chose_pairs
from evenhand.report.votes import fair_labels
from evenhand.report.win_rates import ConclusionLimits, Matchup, RateOptions, exchange
from evenhand.stats.ranking.result import Ranking
from evenhand.store import OutcomeColumns, RunRecord, Store

Mask = NDArray[np.bool_]


def lead_objection(
    store: Store, judged_runs: Sequence[JudgedRun], ranking: Ranking, *, tag: str | None
) -> Message | None:
    """What is to be said instead, or None. That the first leads is borne out by its win rate
    against all others together, and contradicted by no judge alone and by none that it is placed
    above."""
    first, *rest = ranking.models
    if first.rank_high is None or not rest:
        return None
    verdicts = _Verdicts(store, judged_runs, first.model, tag=tag, level=ranking.level)
    together = verdicts.against([each.model for each in rest])
    if together is None:
        return None
    found = objection(together)
    leads, low, high = first.rank_high == 1, together.claimed.low, together.claimed.high
    shown = low is not None and low > 0.5
    if found is None and ((leads and not shown) or (high is not None and high < 0.5)):
        found = claim_message(together)  # which labels may turn round
    if found is None and leads:
        found = verdicts.denied_by_a_judge([each.model for each in rest])
    if found is not None or len(rest) == 1:
        return found
    for rival in rest:
        if rival.rank_low is None or rival.rank_low == 1:
            continue
        direct = verdicts.against([rival.model])
        if direct is None or not direct.claimed.excludes_half:
            continue  # the ranking has more than this to go by
        if (found := objection(direct)) is not None:
            return found
        if (direct.claimed.high or 0.0) < 0.5:
            names = {"model": first.model, "against": rival.model}
            return Message("ranking.loses", **names, **figures(direct))
    return None


class _Verdicts:
    """Those that a ranking counts, of all its runs and judges, on one model."""

    def __init__(
        self,
        store: Store,
        judged_runs: Sequence[JudgedRun],
        model: str,
        *,
        tag: str | None,
        level: float,
    ) -> None:
        self._model = model
        self._runs = judged_runs
        self._surveys = {judged.run.id: store.runs.survey(judged.run.id) for judged in judged_runs}
        self._tallies = {
            judged.run.id: store.verdicts.count(judged.run.id) for judged in judged_runs
        }
        parts: list[OutcomeColumns] = []
        counted: list[Mask] = []
        by_judge: list[NDArray[np.int64]] = []
        labels: list[NDArray[np.int8]] = []
        waiting: list[Mask] = []
        pairs = [(judged.run, judge) for judged in judged_runs for judge in judged.judges]
        for run, judge in pairs:
            columns = store.columns.outcomes(run.id, judge.id)
            numbers = np.asarray(columns.number, dtype=np.int64)
            kept = np.ones(numbers.size, dtype=np.bool_)
            if chose_pairs(store, run):
                kept = np.isin(numbers, list(store.work.uniform_share(run.id)))
            parts.append(columns)
            counted.append(kept)
            by_judge.append(np.full(numbers.size, judge.id))
            waiting.append(np.full(numbers.size, self._waits(run)))
            if len(pairs) > 1:
                found = fair_labels(store, run.id, numbers, of_data=columns.label)
                labels.append(found.winners)
        columns = parts[0] if len(parts) == 1 else _joined(parts)
        self._counted, self._waiting = np.concatenate(counted), np.concatenate(waiting)
        self._by_judge = np.concatenate(by_judge)
        if tag is not None:
            has_it = np.array([tag in tags for tags in columns.tag_sets], dtype=np.bool_)
            self._counted &= has_it[np.asarray(columns.tags)]
        if labels:
            people = RunLabels(np.concatenate(labels))
        else:
            people = RunLabels.of_run(store, pairs[0][0], columns, are_random=False)
        planned = all(
            until_decided(run) is None
            and run.intake_done
            and (self._tallies[run.id].pending == 0 or chose_pairs(store, run))
            for run, _ in pairs
        )
        self._concluder = Concluder(
            store,
            columns,
            pairs,
            people=people,
            wanted=RateOptions("A", "half", level, planned=planned),
            limits=ConclusionLimits(),
        )

    def denied_by_a_judge(self, rivals: Sequence[str]) -> Message | None:
        """Where judges are counted together, one of them may say the opposite."""
        judges = {judge.id: judge.name for judged in self._runs for judge in judged.judges}
        for judge, name in judges.items() if len(judges) > 1 else ():
            own = self.against(rivals, judge=judge)
            if own is not None and own.claims and (own.claimed.high or 0.0) < 0.5:
                model, against = own.names
                called = {"judge": name, "model": model, "against": against}
                return Message("ranking.judge_denies", **called, **figures(own))
        return None

    def against(self, rivals: Sequence[str], *, judge: int | None = None) -> Conclusion | None:
        """The model's win rate against these, by all judges or by one; None where they did not
        meet."""
        columns = self._concluder.columns
        models = (*columns.models, None)  # the last is that of code -1
        own = np.array([name == self._model for name in models])
        others = np.array([name in rivals for name in models])
        a, b = np.asarray(columns.model_a), np.asarray(columns.model_b)
        met = own[a] & others[b] | others[a] & own[b]
        if judge is not None:
            met &= self._by_judge == judge
        rows = np.flatnonzero(met & self._counted)
        if not rows.size:
            return None
        exchanged = own[b[rows]]
        absent, planned, left_out = self._beside(rivals, judge)
        pending = max(0, planned - int((met & self._waiting).sum()))
        matchup = Matchup(
            models=(self._model, rivals[0] if len(rivals) == 1 else None),
            pairs=int(rows.size) + pending,
            rows=rows,
            prompts=np.asarray(columns.prompt_key)[rows],
            outcomes=exchange(np.asarray(columns.outcome)[rows], exchanged),
            exchanged=exchanged,
        )
        against = rivals[0] if len(rivals) == 1 else Message("ranking.the_others")
        known = self._concluder.circumstances(matchup, absent=absent, pending=pending)
        names = (self._model, against)
        return self._concluder.conclude(matchup, names, known, left_out=left_out)

    def _waits(self, run: RunRecord) -> bool:
        """Whether what it has judged is a first part of its file."""
        return self._tallies[run.id].pending > 0 and not in_random_order(run)

    def _beside(self, rivals: Sequence[str], judge: int | None) -> tuple[int, int, int]:
        """By all judges, or by one: pairs of these models that are absent, that runs hold which
        wait, and prompts that were left out at the caller's word."""
        absent = planned = left_out = 0
        models = [(self._model, other) for other in rivals]
        both = {*models, *((b, a) for a, b in models)}
        for judged in self._runs:
            run = judged.run
            judges = sum(judge in (None, each.id) for each in judged.judges)
            pairs = sum(n for a, b, n in self._surveys[run.id].models if (a, b) in both)
            absences = Absences(run, self._tallies[run.id])
            absent += judges * absences.of(models, pairs)
            left_out += absences.left_out(models)
            planned += judges * pairs * self._waits(run)
        return absent, planned, left_out


def _joined(parts: Sequence[OutcomeColumns]) -> OutcomeColumns:
    """One after the other, with one table of models and of tags."""
    models = tuple(dict.fromkeys(name for part in parts for name in part.models))
    tag_sets = tuple(dict.fromkeys(tags for part in parts for tags in part.tag_sets))
    joined = OutcomeColumns(models, tag_sets)
    for part in parts:
        of_model = np.array([*map(models.index, part.models), -1])
        of_tags = np.array([*map(tag_sets.index, part.tag_sets), -1])
        for each in fields(part)[2:]:
            values = np.asarray(getattr(part, each.name))
            if each.name in ("model_a", "model_b"):
                values = of_model[values].astype(values.dtype)
            elif each.name == "tags":
                values = of_tags[values].astype(values.dtype)
            getattr(joined, each.name).frombytes(values.tobytes())
    return joined
