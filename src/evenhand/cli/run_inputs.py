"""What the options of a run say about its data: the files, how rows become pairs, the price."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import InputError

if TYPE_CHECKING:
    from evenhand.data import Reading
    from evenhand.judges.prices import Price
    from evenhand.runs import Sources
    from evenhand.runs.sources import Prompts


def read_reading(
    columns: list[str] | None,
    criteria: list[str] | None,
    *,
    criteria_needed: bool,
    no_tie: bool,
    no_swap: bool,
) -> Reading:
    from evenhand.cli.inputs import read_criterion
    from evenhand.contract import read_criteria
    from evenhand.data import Reading

    return Reading(
        columns=mapped_columns(columns),
        criteria=read_criteria([read_criterion(c) for c in criteria]) if criteria else (),
        criteria_needed=criteria_needed,
        allow_tie=False if no_tie else None,
        swap_positions=False if no_swap else None,
    )


def mapped_columns(given: list[str] | None) -> dict[str, str]:
    return dict(_mapped(entry) for entry in given or ())


def _mapped(entry: str) -> tuple[str, str]:
    field, equals, column = entry.partition("=")
    if not equals or not field.strip():
        raise InputError(f"--map {entry!r} is not FIELD=COLUMN; give e.g. --map prompt=question")
    return field.strip(), column.strip()


def read_price(given: str | None) -> Price | None:
    from evenhand.judges import prices

    return None if given is None else prices.read_price(given, where="--price")


def read_sources(
    pairs: list[str] | None,
    a: str | None,
    b: str | None,
    outputs: list[str] | None,
    baseline: str | None,
    questions: str | None,
    reading: Reading,
    *,
    prompts: Prompts = "all",
) -> Sources:
    """Which of the three ways of giving data was taken; more than one is an error."""
    from evenhand.data import open_source
    from evenhand.runs import ModelOutputs, PairFiles

    if (a is None) != (b is None):
        raise InputError(f"{'--b' if b is None else '--a'} is missing; give both files")
    files = [a, b] if a is not None and b is not None else list(outputs or ())
    ways = [bool(pairs), a is not None, bool(outputs)]
    if sum(ways) > 1:
        raise InputError("give either PAIRS, or --a and --b, or --outputs; not two of them")
    if a is not None and baseline is not None:
        raise InputError("--baseline belongs to --outputs; with --a and --b, A is --a")
    if pairs:
        for option, value in (("--baseline", baseline), ("--questions", questions)):
            if value is not None:
                raise InputError(f"{option} belongs to --a/--b and --outputs, not to PAIRS")
        if prompts != "all":
            raise InputError("--prompts belongs to --a/--b and --outputs, not to PAIRS")
        return PairFiles.of([data_path(each) for each in pairs], reading)
    if not files:
        raise InputError(
            "nothing to judge; give a file of pairs (- for standard input), or --a OLD --b NEW"
        )
    if len(files) < 2:
        raise InputError("--outputs names one file; a comparison needs two or more")
    return ModelOutputs(
        tuple([open_source(data_path(file)) for file in files]),
        reading,
        baseline=baseline,
        questions=open_source(data_path(questions)) if questions else None,
        prompts=prompts,
    )


def data_path(given: str | Path) -> Path | str:
    from evenhand.data.remote import url_in

    if str(given) != "-":
        return url_in(given) or Path(given).expanduser()
    if sys.stdin is None:
        raise InputError("standard input is closed; give a file instead")
    return "-"
