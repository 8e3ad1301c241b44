"""The formats of data files, each declared once: its name, its endings and the module that reads
it. Recognition, the upload form, help, errors and docs/data.md derive from these rows.

To add a format, add a row here and its module.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """`module` is loaded when a file is opened, and has two functions. `fits(start, named=…)` tells
    whether a file with these first bytes is one; `named`: its ending is this format's, another's
    (False) or nobody's (None). `open_table(source, wanted=…, after=…)` reads it. `row` and `number`
    say in the docs what a row is, and what its number counts.
    """

    label: str
    endings: tuple[str, ...]
    module: str
    row: str
    number: str = "row, from 1"


_RECORD = "a record under a header; comma, tab or semicolon"
# A later one goes before an earlier one where a file fits both.
FORMATS: list[Format] = [
    Format(
        "JSON Lines",
        (".jsonl", ".ndjson", ".jsonlines"),
        "evenhand.data.json_lines",
        "an object on a line",
        "line",
    ),
    Format(
        "JSON",
        (".json",),
        "evenhand.data.json_table",
        "an element of a list, or of a list under `data`, `examples`, `pairs` or `rows`",
        "element, from 1",
    ),
    Format("CSV", (".csv",), "evenhand.data.csv_table", _RECORD, "line"),
    Format("TSV", (".tsv",), "evenhand.data.csv_table", _RECORD, "line"),
    Format("Parquet", (".parquet",), "evenhand.data.parquet", "a row (extra `parquet`)"),
]


def labels() -> list[str]:
    return [each.label for each in FORMATS]


def listed() -> str:
    """In one English phrase, for help."""
    *others, last = labels()
    return f"{', '.join(others)} or {last}"


def endings() -> tuple[str, ...]:
    return tuple(ending for each in FORMATS for ending in each.endings)
