"""Runs of probes: ask a judge, one ordinary run a language, and report; or read the scores of a
stored run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from evenhand.contract import ErrorBody, Locale, read_criteria
from evenhand.contract.model import Model
from evenhand.errors import CapReached, InputError
from evenhand.messages import Message
from evenhand.report.lookup import find_run
from evenhand.report.records import RunRow, rows_of
from evenhand.runs import JudgePlan, Observer, RunOptions, RunSummary, Stop, judge_pairs
from evenhand.store import RunRecord, Store
from evenhand.trust.probes.cases import (
    LANGUAGES,
    PROBE_NAMES,
    ProbeCase,
    ProbeName,
    ProbePairs,
    probe_cases,
)
from evenhand.trust.probes.scores import (
    ProbeReport,
    ProbeRun,
    ProbeScore,
    Score,
    apply_threshold,
    check_threshold,
    score,
    score_cases,
    score_probes,
)

# Runs that are looked through for the other language, the newest first.
_LOOKED_THROUGH = 1000
_BETWEEN_LANGUAGES: ProbeName = "languages"


class ProbeRunRef(Model):
    id: str
    name: str
    language: Locale
    pairs: int


class StoredProbes(Model):
    """`changed` languages were asked by another version of the probes: what is no case of this
    version is in no score."""

    judge: str
    runs: tuple[ProbeRunRef, ...]
    overall: Score
    probes: tuple[ProbeScore, ...]
    changed: tuple[Locale, ...] = ()


def probe_language(run: RunRecord) -> Locale | None:
    """None where it is no run of probes."""
    if "probes" not in run.plan.get("data", {}):
        return None
    return next((each for each in LANGUAGES if run.sources == (f"probes-{each}",)), None)


def probe_runs_of(store: Store, judge: str) -> list[RunRecord]:
    """Of a judge by its name, the newest first."""
    return [
        run
        for run in store.runs.page(limit=_LOOKED_THROUGH)
        if probe_language(run) is not None and run.plan.get("judge_names") == [judge]
    ]


def probe_runs_beside(store: Store, run: RunRecord) -> list[RunRecord]:
    """The run that asked the same judge in the other language, at about the same time."""
    if probe_language(run) is None or not run.plan.get("judge_names"):
        return []
    others = [
        each
        for each in probe_runs_of(store, run.plan["judge_names"][0])
        if probe_language(each) != probe_language(run)
    ]
    return [min(others, key=lambda each: abs(each.created_at - run.created_at))] if others else []


def read_probes(store: Store, run: RunRecord, *, beside: Sequence[RunRecord] = ()) -> StoredProbes:
    """The languages of all these runs together."""
    language = probe_language(run)
    if language is None:
        raise InputError(Message("trust.run_without_probes", name=run.name))
    judge = store.runs.judges(run.id)[0].name
    runs = {language: run}
    for each in beside:
        runs.setdefault(probe_language(each) or language, each)
    keys = {each: [item.key for item in store.items.all(own.id)] for each, own in runs.items()}
    cases = {each: _cases(own, each, keys[each], both=len(runs) > 1) for each, own in runs.items()}
    rows = {row.id: row for own in runs.values() for row in rows_of(store, own)}
    asked = [case for each in LANGUAGES for case in cases.get(each, ())]
    if not asked:
        raise InputError(Message("trust.run_of_other_probes", name=run.name))
    scored = score_cases(asked, rows)
    return StoredProbes(
        judge=judge,
        runs=tuple(
            ProbeRunRef(id=str(runs[each].id), name=runs[each].name, language=each, pairs=len(own))
            for each, own in keys.items()
        ),
        overall=score(scored),
        probes=score_probes(scored),
        changed=tuple(each for each, own in runs.items() if _has_changed(own, each, keys[each])),
    )


def _cases(
    run: RunRecord, language: Locale, keys: Sequence[str], *, both: bool
) -> tuple[ProbeCase, ...]:
    """What was asked; a verdict that is to be the same in two languages needs both."""
    there = frozenset(keys)
    return tuple(
        case
        for case in _all_cases(run, language, keys)
        if case.id in there and (both or case.probe != _BETWEEN_LANGUAGES)
    )


def _all_cases(run: RunRecord, language: Locale, keys: Sequence[str]) -> tuple[ProbeCase, ...]:
    names = [
        name for name in PROBE_NAMES if any(key.startswith(f"{language}-{name}-") for key in keys)
    ]
    if not names:
        return ()
    criteria = read_criteria(run.plan["data"].get("criteria", ()))
    made = probe_cases(names, LANGUAGES, criteria=criteria)
    return tuple(case for case in made if case.language == language)


def _has_changed(run: RunRecord, language: Locale, keys: Sequence[str]) -> bool:
    made = ProbePairs(language, _all_cases(run, language, keys))
    return bool(made.describe()["probes"] != run.plan["data"]["probes"])


# A judge through the probes: one ordinary run for each language, then the report.


async def probe_judge(
    plans: Mapping[Locale, JudgePlan],
    cases: Sequence[ProbeCase],
    options: RunOptions,
    *,
    store: Store,
    stop: Stop | None = None,
    observer: Observer | None = None,
    min_score: float | None = None,
) -> ProbeReport:
    """Ask what is not asked yet, each language by its own plan, all of one judge. What
    stops it is in the report, with the scores of what was asked until then."""
    check_threshold(min_score)
    if not cases:
        raise InputError(Message("trust.no_probe_chosen"))
    stop = stop or Stop()
    summaries: dict[Locale, RunSummary] = {}
    by_language = _by_language(cases)
    for language, its in by_language.items():
        left = _left(options, list(summaries.values()), stop)
        if options.name is not None and len(by_language) > 1:  # a run each
            left = replace(left, name=f"{options.name}-{language}")
        if stop.by is not None:
            break
        summaries[language] = await judge_pairs(
            ProbePairs(language, its),
            # A tie that is given without asking says nothing about the judge.
            [plans[language].choosing({"ask_identical": True})],
            left,
            store=store,
            stop=stop,
            observer=observer,
        )
    rows = await asyncio.to_thread(_rows, store, list(summaries.values()))
    return _report(plans, cases, rows, summaries, store=store, stop=stop, min_score=min_score)


def _by_language(cases: Sequence[ProbeCase]) -> dict[Locale, tuple[ProbeCase, ...]]:
    by_language = {
        language: tuple(case for case in cases if case.language == language)
        for language in LANGUAGES
    }
    return {language: its for language, its in by_language.items() if its}


def _left(options: RunOptions, done: Sequence[RunSummary], stop: Stop) -> RunOptions:
    """The caps are this command's, not each run's."""
    calls, cost = options.max_calls, options.max_cost
    if calls is not None:
        calls -= sum(each.calls for each in done)
        if calls <= 0:
            stop.ask(
                "max-calls",
                CapReached(Message("runs.reached_max_calls", max_calls=options.max_calls)),
            )
    if cost is not None:
        cost -= sum(each.cost_usd or 0 for each in done)
        if cost <= 0:
            stop.ask(
                "max-cost", CapReached(Message("runs.reached_max_cost", max_cost=options.max_cost))
            )
    return options if stop.by else replace(options, max_calls=calls, max_cost=cost)


def _rows(store: Store, summaries: Sequence[RunSummary]) -> dict[str, RunRow]:
    return {
        row.id: row for summary in summaries for row in rows_of(store, find_run(store, summary.run))
    }


def _report(
    plans: Mapping[Locale, JudgePlan],
    cases: Sequence[ProbeCase],
    rows: Mapping[str, RunRow],
    summaries: Mapping[Locale, RunSummary],
    *,
    store: Store,
    stop: Stop,
    min_score: float | None,
) -> ProbeReport:
    scored = score_cases(cases, rows)
    overall, probes = score(scored), score_probes(scored)
    ruled = None if min_score is None else apply_threshold(overall, probes, min_score=min_score)
    by_language = _by_language(cases)
    judge = next(iter(plans.values())).judge
    return ProbeReport(
        judge=judge.name,
        judge_caveat=judge.traits.caveat,
        store=store.address,
        runs=tuple(
            _run(language, len(its), summaries.get(language))
            for language, its in by_language.items()
        ),
        criteria={language: its[0].pair.criteria for language, its in by_language.items()},
        overall=overall,
        probes=probes,
        min_score=min_score,
        ruling=ruled[0] if ruled else None,
        ruling_reason=ruled[1] if ruled else None,
        stopped_by=stop.by,
        error=_error(summaries),
        notes=tuple(
            dict.fromkeys(note for summary in summaries.values() for note in summary.notes)
        ),
    )


def _run(language: Locale, pairs: int, summary: RunSummary | None) -> ProbeRun:
    if summary is None:
        return ProbeRun(
            language=language,
            run=None,
            prompt_version=None,
            pairs=pairs,
            calls=0,
            reused_passes=0,
            cost_usd=0,
        )
    return ProbeRun(
        language=language,
        run=summary.run,
        prompt_version=summary.judges[0].prompt_version if summary.judges else None,
        pairs=pairs,
        calls=summary.calls,
        reused_passes=summary.reused_passes,
        cost_usd=summary.cost_usd,
    )


def _error(summaries: Mapping[Locale, RunSummary]) -> ErrorBody | None:
    return next((each.error for each in summaries.values() if each.error), None)
