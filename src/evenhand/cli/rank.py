"""`evenhand rank`: a leaderboard of models, from runs of the store or from a file of battles."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.figures import counted, number
from evenhand.cli.terminal import one_line, print_table, show_hanging
from evenhand.errors import InputError
from evenhand.messages import Message

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from evenhand.report.ranking import RankOptions, RunRanking
    from evenhand.stats.ranking.elo import EloRatings
    from evenhand.stats.ranking.result import RankedModel, Ranking


# The options of `evenhand rank`, each described once.

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


# `evenhand rank`: a leaderboard of models, from runs of the store or from a file of battles.

_ELO_STEP = 16.0


def rank(
    runs: RunNames = None,
    battles: BattlesFile = None,
    judge: OneJudge = None,
    tag: Tag = None,
    ties: TieModel = None,
    inconsistent: Inconsistent = None,
    intervals: IntervalKind = None,
    level: Level = None,
    scale: ScoreScale = None,
    prior: Prior = None,
    replicates: Replicates = None,
    seed: Seed = None,
    elo: Elo = False,
    k: EloStep = None,
    matrix: WinMatrix = False,
    columns: opt.ColumnMap = None,
    bad_rows: BadRows = None,
    plot: PlotFile = None,
    store: opt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Rank models by the verdicts of runs, or by a file of battles, with intervals."""
    of_file = {"--map": columns, "--bad-rows": bad_rows}
    _belong(of_file, battles is not None, "command.belongs_to_battles")
    of_runs = {"--judge": judge, "--store": store, "--inconsistent": inconsistent}
    _belong(of_runs, battles is None, "command.belongs_to_runs")
    fitted: dict[str, Any] = {
        "--ties": ties,
        "--intervals": intervals,
        "--level": level,
        "--scale": scale,
    }
    fitted |= {"--prior": prior, "--plot": plot, "--matrix": matrix or None}
    _belong(fitted, not elo, "command.belongs_to_fit")
    drawn = {"--replicates": replicates, "--seed": seed}
    _belong(drawn, intervals == "bootstrap", "command.belongs_to_bootstrap")
    _belong({"--k": k}, elo, "command.belongs_to_elo")
    options = _options(
        ties=ties,
        inconsistent=inconsistent,
        intervals=intervals,
        level=level,
        scale=scale,
        prior=prior,
        replicates=replicates,
        seed=seed,
        elo_k=(_ELO_STEP if k is None else k) if elo else None,
    )
    if plot is not None:
        _check_kind(plot)
    if battles is not None:
        if runs:
            raise InputError(Message("command.runs_or_battles"))
        ranked = _of_file(battles, options, columns, tag, skip_bad_rows=bad_rows == "skip")
    else:
        ranked = _of_runs(runs, options, store, judge, tag)
    if plot is not None and ranked.ranking is not None:
        _draw(ranked.ranking, plot)
    if as_json:
        session.write_json(ranked.model_dump_json(indent=2))
        return

    show_ranking(session.out(), ranked, matrix=matrix)
    if plot is not None:
        session.write_text(f"\nchart in {one_line(str(plot))}")


def _belong(given: dict[str, Any], fits: bool, code: str) -> None:
    for option, value in given.items():
        if value is not None and not fits:
            raise InputError(Message(code, option=option))


def _options(**given: Any) -> RankOptions:
    from evenhand.report.ranking import RankOptions

    if given["intervals"] == "none":
        return RankOptions(**_there(given, but="intervals"), intervals=None)
    return RankOptions(**_there(given))


def _there(given: dict[str, Any], *, but: str | None = None) -> dict[str, Any]:
    """What was given; for the rest the defaults hold."""
    return {name: value for name, value in given.items() if value is not None and name != but}


def _of_runs(
    names: list[str] | None,
    options: RankOptions,
    address: str | None,
    judge: str | None,
    tag: str | None,
) -> RunRanking:
    from evenhand.cli.session import named_or_latest, opened_store
    from evenhand.report.ranking import rank_runs

    with opened_store(address) as store:
        runs = names or [named_or_latest(store, None)]
        return rank_runs(store, runs, options, judge=judge, tag=tag)


def _of_file(
    given: str,
    options: RankOptions,
    columns: list[str] | None,
    tag: str | None,
    *,
    skip_bad_rows: bool,
) -> RunRanking:
    from evenhand.cli.inputs import data_path, mapped_columns
    from evenhand.data import open_source
    from evenhand.report.ranking import rank_file

    with open_source(data_path(given)) as source:
        return rank_file(
            source,
            options,
            columns=mapped_columns(columns),
            tag=tag,
            skip_bad_rows=skip_bad_rows,
        )


def _check_kind(path: Path) -> None:
    """Before anything is read, since that may take a while."""
    from evenhand.report.charts.drawing import chart_format

    chart_format(path)


def _draw(ranking: Ranking, path: Path) -> None:
    from evenhand.report.charts.drawing import write_ranking_chart

    write_ranking_chart(ranking, path.expanduser())


# A ranking as a person reads it: a leaderboard, what it was made from, and what to mind.


def show_ranking(console: Console, ranked: RunRanking, *, matrix: bool) -> None:
    from rich.text import Text

    console.print(Text(_title(ranked), "bold"))
    for name, said in _made_from(ranked):
        show_hanging(console, Text(f"{name:<9}", "dim"), Text(said))
    console.print()
    ranking = ranked.ranking
    if ranking is not None:
        print_table(console, _leaderboard(ranking))
        if matrix:
            console.print()
            console.print(Text("expected score of the row against the column, in per cent", "bold"))
            print_table(console, _matrix(ranking))
    elif ranked.elo is not None:
        print_table(console, _ratings(ranked.elo))
    notes = [*ranked.notes, *(ranking.notes if ranking else ())]
    if ranking is not None and ranking.reason:
        notes.append(ranking.reason)
    if notes:
        console.print()
    for note in notes:
        show_hanging(console, Text("note ", "yellow"), Text(one_line(note)))


def _title(ranked: RunRanking) -> str:
    ranks = ranked.ranking or ranked.elo
    models = counted(len(ranks.models) if ranks else 0, "model")
    if ranked.file is not None:
        return f"{models} of {one_line(ranked.file)}"
    names = ", ".join(one_line(each.run) for each in ranked.runs)
    return f"{models} of {'run' if len(ranked.runs) == 1 else 'runs'} {names}"


def _made_from(ranked: RunRanking) -> Iterator[tuple[str, str]]:
    if ranked.judges:
        plural = "judge" if len(ranked.judges) == 1 else "judges"
        yield plural, ", ".join(map(one_line, ranked.judges))
    if ranked.tag is not None:
        yield "tag", one_line(ranked.tag)
    yield ("battles" if ranked.file is not None else "verdicts"), _counts(ranked)
    if ranked.ranking is not None:
        yield "scores", _scores(ranked.ranking)
        if ranked.ranking.intervals is not None and not ranked.ranking.reason:
            yield "intervals", _intervals(ranked.ranking)
    elif ranked.elo is not None:
        how = f"Elo with K {ranked.elo.k:g}, from {ranked.elo.start:g}"
        yield "ratings", f"{how}; they depend on the order of the battles, and have no intervals"


def _counts(ranked: RunRanking) -> str:
    counts = ranked.counts
    told = [f"won {number(counts.wins_a + counts.wins_b)}", f"ties {number(counts.ties)}"]
    if ranked.file is not None:
        if ranked.graded:
            told.append(f"graded {number(ranked.graded)}")
        if ranked.bad_rows:
            told.append(f"bad rows {number(ranked.bad_rows)} (left out)")
        return ", ".join(told)
    as_half = ranked.inconsistent == "half"
    counted_as = (" (as half)" if as_half else " (left out)") if counts.inconsistent else ""
    left_out = " (left out)" if counts.invalid else ""
    told.append(f"inconsistent {number(counts.inconsistent)}{counted_as}")
    averaged = ranked.flipped - counts.inconsistent
    if averaged:
        kept = "" if as_half else " (left out)"
        told.append(f"orders differ, averaged {number(averaged)}{kept}")
    told.append(f"invalid {number(counts.invalid)}{left_out}")
    told.append(f"pending {number(ranked.pending)}")
    return ", ".join(told)


def _scores(ranking: Ranking) -> str:
    ties = "ties as half"
    if ranking.ties == "davidson":
        ties = f"ties by Davidson's model (parameter {ranking.tie_parameter:.3g})"
    return f"Bradley–Terry, {ties}; {ranking.anchor}"


def _intervals(ranking: Ranking) -> str:
    over = counted(ranking.cluster_count, "prompt" if ranking.clusters == "prompt" else "battle")
    clustered = f"clustered by prompt ({over})" if ranking.clusters == "prompt" else f"of {over}"
    how = f"standard errors {clustered}"
    if ranking.intervals == "bootstrap":
        drawn = f"{number(ranking.replicates or 0)} bootstrap replicates"
        how = f"{drawn} {clustered}, seed {ranking.seed}"
    return (
        f"{_percent(ranking.level)}, {how}; each score's interval holds by itself, the rank ranges "
        "hold for all models together"
    )


def _percent(level: float) -> str:
    return f"{100 * level:g} %"


def _leaderboard(ranking: Ranking) -> Table:
    from rich.text import Text

    sure = ranking.indistinguishable is not None
    noted = any(row.note for row in ranking.models)
    ranges = [f"rank range\n({_percent(ranking.level)})"] if sure else []
    headings = ["rank", *ranges, "model", "score"]
    headings += ["interval", "games", "not significantly\ndifferent from"] if sure else ["games"]
    table = _table([*headings, *(["note"] if noted else [])], left=("model", "note"))
    alike = _alike(ranking)
    for row in ranking.models:
        cells = [Text(str(row.rank))]
        if sure:
            cells.append(Text(_ranks(row)))
        cells += [Text(one_line(row.model)), Text(_score(row.score, ranking))]
        if sure:
            cells.append(Text(_interval(row, ranking)))
        cells.append(Text(number(row.games)))
        if sure:
            cells.append(Text(", ".join(map(str, alike[row.rank]))))
        if noted:
            cells.append(Text(row.note or ""))
        table.add_row(*cells)
    return table


def _alike(ranking: Ranking) -> dict[int, list[int]]:
    """For each rank the ranks next to it that are not significantly different."""
    pairs = {(each.better, each.worse) for each in ranking.indistinguishable or ()}
    alike: dict[int, list[int]] = {row.rank: [] for row in ranking.models}
    for better, worse in pairwise(ranking.models):
        if (better.model, worse.model) in pairs:
            alike[better.rank].append(worse.rank)
            alike[worse.rank].append(better.rank)
    return alike


def _ranks(row: RankedModel) -> str:
    if row.rank_low == row.rank_high:
        return str(row.rank_low)
    return f"{row.rank_low}–{row.rank_high}"


def _score(score: float, ranking: Ranking) -> str:
    return f"{score:,.0f}" if ranking.scale == "elo" else f"{score:.2f}"


def _interval(row: RankedModel, ranking: Ranking) -> str:
    if row.low is None and row.high is None:
        return "not known"
    low, high = ("…" if limit is None else _score(limit, ranking) for limit in (row.low, row.high))
    return f"{low} to {high}"


def _matrix(ranking: Ranking) -> Table:
    from rich.text import Text

    table = _table(["rank", "model", *(str(row.rank) for row in ranking.models)], left=("model",))
    for row, scores in zip(ranking.models, ranking.win_matrix, strict=True):
        cells = [f"{100 * score:.0f}" for score in scores]
        cells[row.rank - 1] = "·"
        table.add_row(str(row.rank), Text(one_line(row.model)), *cells)
    return table


def _ratings(elo: EloRatings) -> Table:
    from rich.text import Text

    table = _table(["rank", "model", "rating", "games"], left=("model",))
    for row in elo.models:
        name = Text(one_line(row.model))
        table.add_row(str(row.rank), name, f"{row.rating:,.0f}", number(row.games))
    return table


def _table(headings: list[str], *, left: tuple[str, ...]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        text = heading in left
        table.add_column(
            heading,
            justify="left" if text else "right",
            no_wrap=not text,
            overflow="fold",
        )
    return table
