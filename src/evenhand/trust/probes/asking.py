"""A judge through the probes: one ordinary run for each language, then the report."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from evenhand.contract import ErrorBody, Locale
from evenhand.errors import CapReached, InputError
from evenhand.judges import Judge
from evenhand.procedure import Procedure
from evenhand.report.lookup import find_run
from evenhand.report.records import RunRow, rows_of
from evenhand.runs import JudgePlan, Observer, RunOptions, RunSummary, Stop, judge_pairs
from evenhand.store import Store
from evenhand.trust.probes.cases import LANGUAGES, ProbeCase
from evenhand.trust.probes.report import ProbeReport, ProbeRun
from evenhand.trust.probes.ruling import check_threshold, rule
from evenhand.trust.probes.scoring import score, score_cases, score_probes
from evenhand.trust.probes.source import ProbePairs


async def probe_judge(
    judge: Judge,
    cases: Sequence[ProbeCase],
    procedures: Mapping[Locale, Procedure],
    options: RunOptions,
    *,
    store: Store,
    stop: Stop | None = None,
    observer: Observer | None = None,
    min_score: float | None = None,
) -> ProbeReport:
    """Ask what is not asked yet, each language by its own procedure. What stops it is in the
    report, with the scores of what was asked until then."""
    check_threshold(min_score)
    if not cases:
        raise InputError("no probe is chosen; name at least one")
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
            [JudgePlan(judge, _asking_identical(procedures[language]))],
            left,
            store=store,
            stop=stop,
            observer=observer,
        )
    rows = await asyncio.to_thread(_rows, store, list(summaries.values()))
    return _report(judge, cases, rows, summaries, store=store, stop=stop, min_score=min_score)


def _by_language(cases: Sequence[ProbeCase]) -> dict[Locale, tuple[ProbeCase, ...]]:
    found = {
        language: tuple(case for case in cases if case.language == language)
        for language in LANGUAGES
    }
    return {language: its for language, its in found.items() if its}


def _asking_identical(procedure: Procedure) -> Procedure:
    """A tie that is given without asking says nothing about the judge."""
    return replace(procedure, ask_identical=True)


def _left(options: RunOptions, done: Sequence[RunSummary], stop: Stop) -> RunOptions:
    """The caps are this command's, not each run's."""
    calls, cost = options.max_calls, options.max_cost
    if calls is not None:
        calls -= sum(each.calls for each in done)
        if calls <= 0:
            stop.ask("max-calls", CapReached(f"--max-calls {options.max_calls} is reached"))
    if cost is not None:
        cost -= sum(each.cost_usd or 0 for each in done)
        if cost <= 0:
            stop.ask("max-cost", CapReached(f"--max-cost {options.max_cost:g} is reached"))
    return options if stop.by else replace(options, max_calls=calls, max_cost=cost)


def _rows(store: Store, summaries: Sequence[RunSummary]) -> dict[str, RunRow]:
    return {
        row.id: row for summary in summaries for row in rows_of(store, find_run(store, summary.run))
    }


def _report(
    judge: Judge,
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
    ruled = None if min_score is None else rule(overall, probes, min_score=min_score)
    by_language = _by_language(cases)
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
