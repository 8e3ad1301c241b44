"""A probe run read again from its store: the same scores that `evenhand probe` told."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.contract import Locale, read_criteria
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.report.records import rows_of
from evenhand.store import RunRecord, Store
from evenhand.trust.probes.cases import LANGUAGES, ProbeCase, probe_cases
from evenhand.trust.probes.catalogue import PROBE_NAMES, ProbeName
from evenhand.trust.probes.report import ProbeScore, Score
from evenhand.trust.probes.scoring import score, score_cases, score_probes
from evenhand.trust.probes.source import ProbePairs

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
        for run in store.run_page(limit=_LOOKED_THROUGH)
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
        raise InputError(f"run {run.name!r} is no run of probes; evenhand probe makes one")
    judge = store.run_judges(run.id)[0].name
    runs = {language: run}
    for each in beside:
        runs.setdefault(probe_language(each) or language, each)
    keys = {each: [item.key for item in store.run_items(own.id)] for each, own in runs.items()}
    cases = {each: _cases(own, each, keys[each], both=len(runs) > 1) for each, own in runs.items()}
    rows = {row.id: row for own in runs.values() for row in rows_of(store, own)}
    asked = [case for each in LANGUAGES for case in cases.get(each, ())]
    if not asked:
        raise InputError(f"run {run.name!r} has no case of this version's probes; ask them again")
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
