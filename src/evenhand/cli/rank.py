"""`evenhand rank`: a leaderboard of models, from runs of the store or from a file of battles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.cli import options as opt
from evenhand.cli import rank_options as kopt
from evenhand.cli import run_options as ropt
from evenhand.cli import session
from evenhand.cli.terminal import one_line
from evenhand.errors import EvenhandError, InputError

if TYPE_CHECKING:
    from evenhand.report.ranking import RankOptions, RunRanking
    from evenhand.stats import Ranking

_ELO_STEP = 16.0


def rank(
    runs: kopt.RunNames = None,
    battles: kopt.BattlesFile = None,
    judge: kopt.OneJudge = None,
    tag: kopt.Tag = None,
    ties: kopt.TieModel = None,
    inconsistent: kopt.Inconsistent = None,
    intervals: kopt.IntervalKind = None,
    level: kopt.Level = None,
    scale: kopt.ScoreScale = None,
    prior: kopt.Prior = None,
    replicates: kopt.Replicates = None,
    seed: kopt.Seed = None,
    elo: kopt.Elo = False,
    k: kopt.EloStep = None,
    matrix: kopt.WinMatrix = False,
    columns: ropt.ColumnMap = None,
    bad_rows: kopt.BadRows = None,
    plot: kopt.PlotFile = None,
    store: ropt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Rank models by the verdicts of runs, or by a file of battles, with intervals."""
    try:
        of_file = {"--map": columns, "--bad-rows": bad_rows}
        _belong(of_file, battles is not None, "--battles")
        of_runs = {"--judge": judge, "--store": store, "--inconsistent": inconsistent}
        _belong(of_runs, battles is None, "runs, and not to --battles")
        fitted: dict[str, Any] = {
            "--ties": ties,
            "--intervals": intervals,
            "--level": level,
            "--scale": scale,
        }
        fitted |= {"--prior": prior, "--plot": plot, "--matrix": matrix or None}
        _belong(fitted, not elo, "a fitted ranking, and not to --elo")
        drawn = {"--replicates": replicates, "--seed": seed}
        _belong(drawn, intervals == "bootstrap", "--intervals bootstrap")
        _belong({"--k": k}, elo, "--elo")
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
                raise InputError("give either runs or --battles, not both")
            ranked = _of_file(battles, options, columns, tag, skip_bad_rows=bad_rows == "skip")
        else:
            ranked = _of_runs(runs, options, store, judge, tag)
        if plot is not None and ranked.ranking is not None:
            _draw(ranked.ranking, plot)
    except EvenhandError as error:
        session.fail(error, as_json=as_json, of_pair=False)
    if as_json:
        session.write_json(ranked.model_dump_json(indent=2))
        return
    from evenhand.cli.show_rank import show_ranking

    show_ranking(session.out(), ranked, matrix=matrix)
    if plot is not None:
        session.write_text(f"\nchart in {one_line(str(plot))}")


def _belong(given: dict[str, Any], fits: bool, to: str) -> None:
    for option, value in given.items():
        if value is not None and not fits:
            raise InputError(f"{option} belongs to {to}; leave it out")


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
    from evenhand.cli.report import named_or_latest
    from evenhand.cli.stores import opened_store
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
    from evenhand.cli.run_inputs import data_path, mapped_columns
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
    from evenhand.report.charts import chart_format

    chart_format(path)


def _draw(ranking: Ranking, path: Path) -> None:
    from evenhand.report.charts import write_ranking_chart

    write_ranking_chart(ranking, path.expanduser())
