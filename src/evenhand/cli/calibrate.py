"""`evenhand calibrate`: from a run's labels, what its judge's confidence is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from evenhand.cli import options as opt
from evenhand.cli import run_options as ropt
from evenhand.cli import session
from evenhand.errors import EvenhandError, InputError


def calibrate(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run whose pairs have labels, or votes.")
    ],
    save: Annotated[
        str | None,
        typer.Option(
            "--save",
            metavar="NAME",
            help="Keep it under this name, for --calibration; or in a file.json. Without it the "
            "figures are shown and nothing is kept.",
        ),
    ] = None,
    judge: Annotated[
        str | None, typer.Option("--judge", "-j", help="Whose verdicts, where the run has several.")
    ] = None,
    method: Annotated[
        Literal["auto", "isotonic", "platt", "logistic"],
        typer.Option(
            "--method",
            help="isotonic and platt go by the best single signal, logistic by all; auto takes "
            "the simplest that is not worse beyond noise.",
        ),
    ] = "auto",
    min_agreement: Annotated[
        float | None,
        typer.Option(
            "--min-agreement",
            help="Find the probability above which verdicts agree with labels at least this "
            "often, on half of the prompts; with the calibration the others abstain.",
        ),
    ] = None,
    error_level: Annotated[
        float | None,
        typer.Option(
            "--error-level",
            help="With --min-agreement: the chance that the promise is wrong. Default: 0.05.",
        ),
    ] = None,
    level: Annotated[
        float, typer.Option("--level", help="How sure the intervals are, between 0 and 1.")
    ] = 0.95,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Of the folds, and of the half that is kept apart.")
    ] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="FILE", help="Draw it too, to a file.svg, file.png or file.csv."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a calibration of that name.")
    ] = False,
    store: ropt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Learn the probability that a verdict is right, from the labelled verdicts of a run.

    Exit codes: 0 it was learned (it says where too little is known for more than the share that is
    right, or for a guarantee), 2 bad input or the store failed.
    """
    from evenhand.cli.stores import opened_store
    from evenhand.trust.calibrating import ERROR_LEVEL, calibrate_run
    from evenhand.trust.calibrations import calibration_path, save_calibration

    try:
        if error_level is not None and min_agreement is None:
            raise InputError("--error-level belongs to --min-agreement; give both, or neither")
        if save is not None and calibration_path(save).exists() and not force:
            raise InputError(
                f"the calibration {save!r} is there already; give --force to replace it"
            )
        with opened_store(store) as opened:
            found = calibrate_run(
                opened,
                run,
                judge=judge,
                method=method,
                min_agreement=min_agreement,
                error_level=ERROR_LEVEL if error_level is None else error_level,
                level=level,
                seed=seed,
            )
        if save is not None:
            path = save_calibration(found.calibration, save, overwrite=force)
            found = found.model_copy(update={"saved": str(path)})
        if plot is not None:
            from evenhand.report.charts import write_reliability_chart

            write_reliability_chart(found.change, found.learned_on.judge, plot)
    except EvenhandError as error:
        session.fail(error, as_json=as_json, of_pair=False)
    if as_json:
        session.write_json(found.model_dump_json(indent=2))
        return
    from evenhand.cli.show_calibration import show_calibration

    show_calibration(session.out(), found, name=save, plot=plot)
