"""A table whose lines stay whole where nothing bounds their width."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def print_table(console: Console, table: Table) -> None:
    if not console.is_terminal:
        # A pipe has no width.
        unbounded = console.options.update(width=10_000)
        console.width = max(console.width, console.measure(table, options=unbounded).maximum)
    console.print(table)
