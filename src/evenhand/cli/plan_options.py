"""The options of `evenhand plan`, each described once."""

from __future__ import annotations

from typing import Annotated

import typer

PlannedFiles = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PAIRS]...",
        help="Files of pairs to estimate the cost from, with --judge and -c as in evenhand run.",
        show_default=False,
    ),
]
WinRates = Annotated[
    list[float] | None,
    typer.Option(
        "--win-rate",
        help="The true win rate to be found, where the judge's two orders agree, e.g. 0.55. "
        "Repeatable. Default: a table of several.",
    ),
]
MinWinRate = Annotated[
    float,
    typer.Option(
        "--min-win-rate",
        help="For a gate at this win rate, e.g. 0.45 to show that a side is not much worse.",
    ),
]
PairCount = Annotated[
    int | None,
    typer.Option(
        "--pairs", min=1, help="The other way round: what difference so many pairs can show."
    ),
]
Power = Annotated[
    float,
    typer.Option("--power", help="How sure it is to find the difference, where there is one."),
]
Alpha = Annotated[
    float, typer.Option("--alpha", help="The chance of naming a winner where there is none.")
]
TieShare = Annotated[
    float | None,
    typer.Option(
        "--tie-share",
        help="The share of all pairs that are ties. Default: 0, or as in --like.",
    ),
]
InconsistentShare = Annotated[
    float | None,
    typer.Option(
        "--inconsistent-share",
        help="The share of all pairs whose two orders differ. Default: 0, or as in --like.",
    ),
]
RowsPerPrompt = Annotated[
    int, typer.Option("--rows-per-prompt", min=1, help="How many pairs each prompt has.")
]
Correlation = Annotated[
    float,
    typer.Option("--correlation", help="Of two pairs of one prompt: 0 none, 1 the same again."),
]
Judges = Annotated[
    int | None,
    typer.Option(
        "--judges", min=1, help="How many judges each pair has. Default: those named, or 1."
    ),
]
UntilDecided = Annotated[
    bool, typer.Option("--until-decided", help="For a run that ends once it is decided.")
]
Like = Annotated[
    str | None,
    typer.Option(
        "--like",
        metavar="RUN",
        help="Take cost, tokens, the shares of ties and of inconsistent pairs, orders, samples "
        "and judges from a stored run.",
    ),
]
Tokens = Annotated[
    str | None,
    typer.Option(
        "--tokens", metavar="INPUT/OUTPUT", help="The tokens of a call, for --price: e.g. 900/400."
    ),
]
