"""Counts that a database has grouped already, as the tally that a fit takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.stats.battles import encode_models, refuse_self
from evenhand.stats.encoding import encode, length, numbers
from evenhand.stats.tally import Entries, Tally, tally_of_outcomes


def tally_counts(
    models: Sequence[str],
    model_a: Any,
    model_b: Any,
    *,
    wins_a: Any,
    wins_b: Any,
    halves: Any = None,
    prompt: Any = None,
) -> Tally:
    columns = {
        "model_a": model_a,
        "model_b": model_b,
        "wins_a": wins_a,
        "wins_b": wins_b,
        "halves": halves,
        "prompt": prompt,
    }
    lengths = {name: length(column, name) for name, column in columns.items() if column is not None}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {rows:,}" for name, rows in lengths.items())
        raise InputError(f"the columns differ in length ({told}); give one cell a row in each")
    rows = lengths["model_a"]
    if not rows:
        raise InputError("there are no battles; give at least one row")
    names, (a, b) = encode_models(model_a, model_b, models=models)
    won, lost = _counts(wins_a, "wins_a"), _counts(wins_b, "wins_b")
    tied = np.zeros(rows, np.int64) if halves is None else _counts(halves, "halves")
    first, second = a.astype(np.intp), b.astype(np.intp)
    size = len(names)
    pair = first * size + second
    outcomes = np.stack([_summed(pair, count, size * size) for count in (lost, tied, won)]).reshape(
        3, size, size
    )
    if not outcomes.any():
        raise InputError("every count is 0; give at least one battle")
    refuse_self(outcomes.sum(axis=0), names, a, b)
    entries = None
    if prompt is not None:
        prompts = encode(prompt, "prompt")
        entries = _entries(first, second, (won, tied, lost), np.asarray(prompts.codes))
    return tally_of_outcomes(names, outcomes, entries=entries)


def _counts(column: Any, name: str) -> NDArray[np.int64]:
    given = numbers(column, name)
    if given is None:
        raise InputError(f"{name} holds no numbers; give one count of at least 0 a row")
    with np.errstate(invalid="ignore"):
        counts = given.astype(np.int64)
    fine = (counts == given) & (counts >= 0)
    if not fine.all():
        row = int(np.argmin(fine))
        raise InputError(
            f"{name} is {given[row]:g} in row {row + 1}; it takes a whole number of at least 0"
        )
    return counts


def _summed(pair: NDArray[np.intp], count: NDArray[np.int64], cells: int) -> NDArray[np.int64]:
    sums = np.bincount(pair, weights=count.astype(np.float64), minlength=cells)
    return sums.round().astype(np.int64)


def _entries(
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    counts: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    prompt: NDArray[Any],
) -> Entries:
    """One entry for each outcome of each row that happened."""
    held = [np.flatnonzero(count) for count in counts]
    rows = np.concatenate(held)
    weight = np.concatenate([count[at] for count, at in zip(counts, held, strict=True)])
    score = np.repeat([1.0, 0.5, 0.0], [len(at) for at in held])
    _, cluster = np.unique(prompt[rows], return_inverse=True)
    return Entries(
        first[rows],
        second[rows],
        score,
        weight.astype(np.float64),
        cluster,
        int(cluster.max()) + 1,
    )
