"""Which format a file has, by its content first and its ending where that leaves it open."""

from __future__ import annotations

from pathlib import Path

from evenhand.data.csv_table import open_csv
from evenhand.data.json_lines import open_json_lines
from evenhand.data.rows import Table, Wanted
from evenhand.data.source import Source


def open_table(source: Source, *, wanted: Wanted) -> Table:
    ending = Path(source.name.removesuffix(".gz")).suffix.lower()
    if ending in (".csv", ".tsv"):
        return open_csv(source)
    return open_json_lines(source)
