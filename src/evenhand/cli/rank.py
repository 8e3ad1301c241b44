"""`evenhand rank`: a leaderboard of models, from runs of the store or from a file of battles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evenhand import formats
from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.figures import counted, number
from evenhand.cli.options import grouped
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.present.terminal import (
    one_line,
    print_table,
    show_facts,
    show_notes,
    table_of,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from evenhand.report.ranking import RankOptions, RunRanking
    from evenhand.stats.ranking.elo import EloRatings
    from evenhand.stats.ranking.result import RankedModel, Ranking


RunNames = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[RUN]...",
        help="Runs to combine. Default: the latest.",
        show_default=False,
    ),
]
BattlesFile = Annotated[
    str | None,
    typer.Option(
        "--battles",
        metavar="FILE",
        help="A file of battles instead of runs: model_a, model_b and winner (or preference), "
        f"optionally prompt, weight and tags; {formats.listed()}; - for standard input.",
    ),
]
OneJudge = Annotated[
    str | None,
    typer.Option("--judge", "-j", help="Only this judge's verdicts. Default: every judge's."),
]
Tag = Annotated[str | None, typer.Option("--tag", help="Only rows with this tag.")]
TieModel = Annotated[
    Literal["half", "davidson"] | None,
    typer.Option(
        "--ties", help="half: a tie is half a win; davidson: Davidson's model. Default: half."
    ),
]
Inconsistent = Annotated[
    Literal["half", "excluded"] | None,
    typer.Option(
        "--inconsistent",
        help="half: a flipped verdict is half a win; excluded: it is left out, even if "
        "averaging gave it a winner. Default: half.",
    ),
]
IntervalKind = Annotated[
    Literal["sandwich", "bootstrap", "none"] | None,
    typer.Option(
        "--intervals",
        help=(
            "sandwich or bootstrap, both clustered by prompt; none is fastest. Default: sandwich."
        ),
    ),
]
Level = Annotated[
    float | None,
    typer.Option("--level", help=("The confidence level of the intervals. Default: 0.95.")),
]
ScoreScale = Annotated[
    Literal["elo", "log-odds"] | None,
    typer.Option(
        "--scale",
        help="elo: centred on 1000, 400 points are odds of 10 to 1; log-odds: centred on 0. "
        "Default: elo.",
    ),
]
Prior = Annotated[
    float | None,
    typer.Option(
        "--prior",
        help="Virtual ties of each model with an average one. Default: none, or 1 if the "
        "battles alone give no finite scores.",
    ),
]
Replicates = Annotated[
    int | None,
    typer.Option(
        "--replicates",
        help=("With --intervals bootstrap: the number of replicates. Default: 1000."),
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, help="With --intervals bootstrap: the seed. Default: 0."),
]
Elo = Annotated[
    bool,
    typer.Option("--elo", help="Sequential Elo ratings instead of a fit; no intervals."),
]
EloStep = Annotated[
    float | None,
    typer.Option("--k", help="With --elo: the maximum change per battle. Default: 16."),
]
WinMatrix = Annotated[
    bool, typer.Option("--matrix", help="Show each model's expected score against every other.")
]
BadRows = Annotated[
    Literal["stop", "skip"] | None,
    typer.Option(
        "--bad-rows",
        help="With --battles. stop: an invalid row is an error; skip: it is skipped and "
        "counted. Default: stop.",
    ),
]
Details = Annotated[
    bool,
    typer.Option("--details", help="Show all models, and how scores and intervals were computed."),
]
PlotFile = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Save the leaderboard and win matrix as FILE.svg, or their data as FILE.csv.",
    ),
]


@dataclass(frozen=True, slots=True)
class ScoreChoices:
    """How scores are fitted, or Elo ratings made instead."""

    ties: TieModel = None
    inconsistent: Inconsistent = None
    intervals: IntervalKind = None
    level: Level = None
    scale: ScoreScale = None
    prior: Prior = None
    replicates: Replicates = None
    seed: Seed = None
    elo: Elo = False
    k: EloStep = None

    def options(self) -> RankOptions:
        """What was given; for the rest the defaults hold."""
        from evenhand.report.ranking import RankOptions

        given = {name: value for name, value in asdict(self).items() if value is not None}
        elo, k = given.pop("elo"), given.pop("k", _ELO_STEP)
        if elo:
            given["elo_k"] = k
        if self.intervals == "none":
            given["intervals"] = None
        return RankOptions(**given)


_ELO_STEP = 16.0


@grouped
def rank(
    *,
    runs: RunNames = None,
    battles: BattlesFile = None,
    judge: OneJudge = None,
    tag: Tag = None,
    scores: ScoreChoices,
    matrix: WinMatrix = False,
    columns: opt.ColumnMap = None,
    bad_rows: BadRows = None,
    plot: PlotFile = None,
    store: opt.StoreAddress = None,
    details: Details = False,
    as_json: opt.AsJson = False,
) -> None:
    """Rank models from runs or from a file of battles."""
    from evenhand.cli.inputs import data_path, mapped_columns
    from evenhand.data import open_source
    from evenhand.report.ranking import rank_file, rank_runs
    from evenhand.settings import load_settings

    of_file = {"--map": columns, "--bad-rows": bad_rows}
    _belong(of_file, battles is not None, "command.belongs_to_battles")
    of_runs = {"--judge": judge, "--store": store, "--inconsistent": scores.inconsistent}
    _belong(of_runs, battles is None, "command.belongs_to_runs")
    fitted: dict[str, object] = {"--ties": scores.ties, "--intervals": scores.intervals}
    fitted |= {"--level": scores.level, "--scale": scores.scale, "--prior": scores.prior}
    fitted |= {"--plot": plot, "--matrix": matrix or None}
    _belong(fitted, not scores.elo, "command.belongs_to_fit")
    drawn = {"--replicates": scores.replicates, "--seed": scores.seed}
    _belong(drawn, scores.intervals == "bootstrap", "command.belongs_to_bootstrap")
    _belong({"--k": scores.k}, scores.elo, "command.belongs_to_elo")
    options = scores.options()
    if plot is not None:
        from evenhand.present.charts import chart_format

        chart_format(plot)  # before anything is read, since that may take a while
    if battles is not None:
        if runs:
            raise InputError(Message("command.runs_or_battles"))
        with open_source(data_path(battles)) as source:
            ranked = rank_file(
                source,
                options,
                columns=mapped_columns(columns),
                tag=tag,
                skip_bad_rows=bad_rows == "skip",
            )
    else:
        with session.opened_store(store) as opened:
            names = runs or [session.named_or_latest(opened, None)]
            families = load_settings().families
            ranked = rank_runs(opened, names, options, judge=judge, tag=tag, families=families)
    if plot is not None and ranked.ranking is not None:
        from evenhand.present.charts import write_ranking_chart

        write_ranking_chart(ranked.ranking, plot.expanduser())
    session.present(ranked, partial(show_ranking, matrix=matrix, details=details), as_json=as_json)
    if plot is not None and not as_json:
        session.write_text(f"\nchart saved to {one_line(str(plot))}")


def _belong(given: Mapping[str, object], fits: bool, code: str) -> None:
    for option, value in given.items():
        if value is not None and not fits:
            raise InputError(Message(code, option=option))


# A ranking as a person reads it: a leaderboard, what it was made from, and what to mind.


_SHOWN_AT_MOST = 15


def show_ranking(
    console: Console, ranked: RunRanking, *, matrix: bool, details: bool = False
) -> None:
    from rich.text import Text

    from evenhand.messages import render
    from evenhand.report.ranking import sum_up_ranking

    ranking = ranked.ranking
    if ranking is not None:
        console.print(Text(one_line(render(sum_up_ranking(ranked))), "bold"))
    console.print(Text(_title(ranked), "" if ranking else "bold"))
    show_facts(console, _made_from(ranked, details=details))
    console.print()
    if ranking is not None:
        shown = len(ranking.models) if details else _SHOWN_AT_MOST
        print_table(console, _leaderboard(ranking, at_most=shown))
        if len(ranking.models) > shown:
            more = counted(len(ranking.models) - shown, "model")
            console.print(Text(f"and {more} more; see --details", "dim"))
        if matrix:
            console.print()
            console.print(Text("expected score of the row against the column, in percent", "bold"))
            print_table(console, _matrix(ranking))
    elif ranked.elo is not None:
        print_table(console, _ratings(ranked.elo))
    notes = [*ranked.notes, *(ranking.notes if ranking else ())]
    if ranking is not None and ranking.reason:
        notes.append(ranking.reason)
    show_notes(console, notes, apart=True)


def _title(ranked: RunRanking) -> str:
    ranks = ranked.ranking or ranked.elo
    models = counted(len(ranks.models) if ranks else 0, "model")
    if ranked.file is not None:
        return f"{models} from {one_line(ranked.file)}"
    names = ", ".join(one_line(each.run) for each in ranked.runs)
    return f"{models} from {'run' if len(ranked.runs) == 1 else 'runs'} {names}"


def _made_from(ranked: RunRanking, *, details: bool) -> Iterator[tuple[str, str]]:
    if ranked.judges:
        plural = "judge" if len(ranked.judges) == 1 else "judges"
        yield plural, ", ".join(map(one_line, ranked.judges))
    if ranked.tag is not None:
        yield "tag", one_line(ranked.tag)
    yield ("battles" if ranked.file is not None else "verdicts"), _counts(ranked)
    if ranked.ranking is not None and details:
        yield "scores", _scores(ranked.ranking)
        if ranked.ranking.intervals is not None and not ranked.ranking.reason:
            yield "intervals", _intervals(ranked.ranking)
    elif ranked.elo is not None:
        how = f"Elo with K {ranked.elo.k:g}, from {ranked.elo.start:g}"
        yield "ratings", f"{how}; they depend on the order of the battles and have no intervals"


def _counts(ranked: RunRanking) -> str:
    counts = ranked.counts
    parts = [f"won {number(counts.wins_a + counts.wins_b)}", f"ties {number(counts.ties)}"]
    if ranked.file is not None:
        if ranked.graded:
            parts.append(f"graded {number(ranked.graded)}")
        if ranked.bad_rows:
            parts.append(f"bad rows {number(ranked.bad_rows)} (left out)")
        return ", ".join(parts)
    as_half = ranked.inconsistent == "half"
    counted_as = (" (as half)" if as_half else " (left out)") if counts.inconsistent else ""
    left_out = " (left out)" if counts.invalid else ""
    parts.append(f"inconsistent {number(counts.inconsistent)}{counted_as}")
    averaged = ranked.flipped - counts.inconsistent
    if averaged:
        fate = "" if as_half else " (left out)"
        parts.append(f"flipped but averaged {number(averaged)}{fate}")
    parts.append(f"invalid {number(counts.invalid)}{left_out}")
    parts.append(f"pending {number(ranked.pending)}")
    return ", ".join(parts)


def _scores(ranking: Ranking) -> str:
    ties = "ties as half"
    if ranking.ties == "davidson":
        ties = f"ties with Davidson's model (parameter {ranking.tie_parameter:.3g})"
    return f"Bradley–Terry, {ties}; {ranking.anchor}"


def _intervals(ranking: Ranking) -> str:
    over = counted(ranking.cluster_count, "prompt" if ranking.clusters == "prompt" else "battle")
    clustered = f"clustered by prompt ({over})" if ranking.clusters == "prompt" else f"of {over}"
    how = f"standard errors {clustered}"
    if ranking.intervals == "bootstrap":
        drawn = f"{number(ranking.replicates or 0)} bootstrap replicates"
        how = f"{drawn} {clustered}, seed {ranking.seed}"
    return (
        f"{_percent(ranking.level)}, {how}; each score interval is valid on its own, rank ranges "
        "for all models together"
    )


def _percent(level: float) -> str:
    return f"{100 * level:g}%"


def _leaderboard(ranking: Ranking, *, at_most: int) -> Table:
    from rich.text import Text

    sure = ranking.indistinguishable is not None
    noted = any(row.note for row in ranking.models)
    ranges = [f"rank range\n({_percent(ranking.level)})"] if sure else []
    headings = ["rank", *ranges, "model", "score"]
    unlike = ["interval", "games", "neighbours not\nsignificantly different"]
    headings += unlike if sure else ["games"]
    table = table_of(*[*headings, *(["note"] if noted else [])], left=("model", "note"))
    alike = _alike(ranking)
    for row in ranking.models[:at_most]:
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
        return "unknown"
    low, high = ("…" if limit is None else _score(limit, ranking) for limit in (row.low, row.high))
    return f"{low} to {high}"


def _matrix(ranking: Ranking) -> Table:
    from rich.text import Text

    ranks = [str(row.rank) for row in ranking.models]
    table = table_of("rank", "model", *ranks, left=("model",))
    for row, scores in zip(ranking.models, ranking.win_matrix, strict=True):
        cells = [f"{100 * score:.0f}" for score in scores]
        cells[row.rank - 1] = "·"
        table.add_row(str(row.rank), Text(one_line(row.model)), *cells)
    return table


def _ratings(elo: EloRatings) -> Table:
    from rich.text import Text

    table = table_of("rank", "model", "rating", "games", left=("model",))
    for row in elo.models:
        name = Text(one_line(row.model))
        table.add_row(str(row.rank), name, f"{row.rating:,.0f}", number(row.games))
    return table
