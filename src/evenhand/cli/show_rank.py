"""A ranking as a person reads it: a leaderboard, what it was made from, and what to mind."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from evenhand.cli.amounts import counted, number
from evenhand.cli.show import show_hanging
from evenhand.cli.terminal import one_line
from evenhand.report.ranking import RunRanking
from evenhand.stats.elo import EloRatings
from evenhand.stats.ranking_result import RankedModel, Ranking

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def show_ranking(console: Console, ranked: RunRanking, *, matrix: bool) -> None:
    from rich.text import Text

    console.print(Text(_title(ranked), "bold"))
    for name, said in _made_from(ranked):
        show_hanging(console, Text(f"{name:<9}", "dim"), Text(said))
    console.print()
    ranking = ranked.ranking
    if ranking is not None:
        _print(console, _leaderboard(ranking))
        if matrix:
            console.print()
            console.print(Text("expected score of the row against the column, in per cent", "bold"))
            _print(console, _matrix(ranking))
    elif ranked.elo is not None:
        _print(console, _ratings(ranked.elo))
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


def _print(console: Console, table: Table) -> None:
    if not console.is_terminal:  # a pipe has no width, and lines stay whole
        needed = console.measure(table, options=console.options.update(width=10_000)).maximum
        console.width = max(console.width, needed)
    console.print(table)
