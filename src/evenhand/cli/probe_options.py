"""The options of `evenhand probe` that no other command has."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

ProbeNames = Annotated[
    list[str] | None,
    typer.Option(
        "--probe", metavar="NAME", help="Only this probe (--list shows them). Repeatable."
    ),
]
ProbeLanguages = Annotated[
    Literal["en", "zh", "both"],
    typer.Option(
        "--locale",
        help="The language of the texts, and of the prompt that goes with them.",
    ),
]
MinScore = Annotated[
    float | None,
    typer.Option(
        "--min-score",
        help="Fail (exit code 1) if the score of all probes, or of any one of them, is shown to "
        "be below this; 6 if it cannot be told. From 0 to 1.",
    ),
]
ListProbes = Annotated[
    bool, typer.Option("--list", help="Show the probes and what they expect; ask nobody.")
]
ProbeRunName = Annotated[
    str | None,
    typer.Option(
        "--name",
        help="The run's name; with both languages NAME-en and NAME-zh. Default: by what was asked.",
    ),
]
