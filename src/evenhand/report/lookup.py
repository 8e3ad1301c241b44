"""Runs and pairs by what people call them; where there is none, the nearest names are told."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.store import ItemWhole, JudgeRecord, RunRecord, Store

_NAMED_AT_MOST = 3


def find_run(store: Store, name: str) -> RunRecord:
    run = store.runs.find(name)
    if run is not None:
        return run
    names = [run.name for run in store.runs.all()]
    if not names:
        raise InputError(Message("report.no_run_at_all", name=name, address=store.address))
    near = nearest(name, names)
    if near:
        raise InputError(Message("report.run_unknown_near", name=name, near=" or ".join(near)))
    raise InputError(Message("report.run_unknown", name=name, n=len(names)))


def latest_run(store: Store) -> RunRecord:
    """The run that was last worked on."""
    runs = store.runs.all()
    if not runs:
        raise InputError(Message("report.store_without_runs", address=store.address))
    return max(runs, key=lambda run: (run.updated_at, run.id))


def nearest(name: str, names: Sequence[str]) -> list[str]:
    folded = {each.casefold(): each for each in reversed(names)}
    wanted = name.casefold()
    begun = [each for fold, each in folded.items() if wanted and fold.startswith(wanted)]
    alike = [folded[fold] for fold in get_close_matches(wanted, folded, n=_NAMED_AT_MOST)]
    return list(dict.fromkeys([*alike, *begun]))[:_NAMED_AT_MOST]


def chosen_judge(judges: Sequence[JudgeRecord], run: str, wanted: str | None) -> JudgeRecord:
    named = [each for each in judges if wanted in (None, each.name)]
    if len(named) == 1:
        return named[0]
    names = ", ".join(each.name for each in judges)
    if not named:
        raise InputError(Message("trust.judge_unknown", run=run, wanted=wanted, names=names))
    raise InputError(Message("trust.several_judges", run=run, names=names))


def find_item(store: Store, run: RunRecord, name: str) -> ItemWhole:
    """A pair by its id; by `#ROW`, as rows without an id are called; or by its place in the run."""
    number = name.removeprefix("#")
    for key in (name, f"#{number}"):
        item = store.verdicts.item(run.id, key)
        if item is not None:
            return item
    if number.isdecimal() and len(number) <= 18:
        placed = _key_at(store, run, int(number))
        item = None if placed is None else store.verdicts.item(run.id, placed)
        if item is not None:
            return item
    count = store.items.count(run.id)
    pairs = "1 pair" if count == 1 else f"{count} pairs"
    raise InputError(
        Message("report.pair_unknown", name=run.name, name2=name, pairs=pairs, count=count)
    )


def _key_at(store: Store, run: RunRecord, number: int) -> str | None:
    """The store knows items by their keys; an item is either judged or pending."""
    for judged in store.verdicts.page(run.id, after=number - 1, limit=1):
        if judged.item.number == number:
            return judged.item.key
    for judge in store.runs.judges(run.id):
        for waiting in store.work.pending(run.id, judge.id, after=number - 1, limit=1):
            if waiting.number == number:
                return waiting.key
    return None
