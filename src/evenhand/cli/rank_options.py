"""The options of `evenhand rank`, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

RunNames = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[RUN]...",
        help="Runs of the store, put together. Default: the latest.",
        show_default=False,
    ),
]
BattlesFile = Annotated[
    str | None,
    typer.Option(
        "--battles",
        metavar="FILE",
        help="A file of battles instead of runs: model_a, model_b and winner (or preference), "
        "optionally prompt, weight and tags; CSV, JSON lines, JSON or Parquet; - for standard "
        "input.",
    ),
]
OneJudge = Annotated[
    str | None,
    typer.Option("--judge", "-j", help="Only this judge's verdicts. Default: every judge's."),
]
Tag = Annotated[str | None, typer.Option("--tag", help="Only rows that have this tag.")]
TieModel = Annotated[
    Literal["half", "davidson"] | None,
    typer.Option(
        "--ties", help="half: a tie is half a win; davidson: by Davidson's model. Default: half."
    ),
]
Inconsistent = Annotated[
    Literal["half", "excluded"] | None,
    typer.Option(
        "--inconsistent",
        help="half: a verdict that changed with the order of the responses is half a win; "
        "excluded: it is left out, also where averaging gave it a winner. Default: half.",
    ),
]
IntervalKind = Annotated[
    Literal["sandwich", "bootstrap", "none"] | None,
    typer.Option(
        "--intervals",
        help="sandwich, or bootstrap: both over prompts; none is fastest. Default: sandwich.",
    ),
]
Level = Annotated[
    float | None, typer.Option("--level", help="How sure the intervals are. Default: 0.95.")
]
ScoreScale = Annotated[
    Literal["elo", "log-odds"] | None,
    typer.Option(
        "--scale",
        help="elo: around 1000, 400 points are odds of ten to one; log-odds: around 0. "
        "Default: elo.",
    ),
]
Prior = Annotated[
    float | None,
    typer.Option(
        "--prior",
        help="How many virtual ties each model has with an average one. Default: none, or 1 where "
        "the battles alone give no finite scores.",
    ),
]
Replicates = Annotated[
    int | None,
    typer.Option("--replicates", help="With --intervals bootstrap: how many. Default: 1000."),
]
Seed = Annotated[
    int | None, typer.Option("--seed", min=0, help="With --intervals bootstrap. Default: 0.")
]
Elo = Annotated[
    bool,
    typer.Option("--elo", help="Elo ratings, battle after battle, instead of a fit; no intervals."),
]
EloStep = Annotated[
    float | None,
    typer.Option("--k", help="With --elo: what a rating moves at most in a battle. Default: 16."),
]
WinMatrix = Annotated[
    bool, typer.Option("--matrix", help="Show what each model is expected to score against each.")
]
BadRows = Annotated[
    Literal["stop", "skip"] | None,
    typer.Option(
        "--bad-rows",
        help="With --battles. stop: a row that is no battle is an error; skip: it is counted. "
        "Default: stop.",
    ),
]
PlotFile = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Draw the leaderboard and the win matrix: FILE.svg, FILE.png, FILE.csv for the "
        "figures, or FILE.json for the chart's Vega-Lite specification.",
    ),
]
