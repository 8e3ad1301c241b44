"""`evenhand calibrate`: from a run's labels, how reliable its judge's confidence is."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.figures import counted, counted_share, interval, number, percent
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.messages.numbers import p_value, rate
from evenhand.present.terminal import (
    one_line,
    print_table,
    show_facts,
    show_notes,
    table_of,
)

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.stats.calibration.curves import Curve
    from evenhand.stats.calibration.fit import Calibration
    from evenhand.stats.calibration.guarantee import Guarantee
    from evenhand.stats.calibration.reliability import CalibrationError
    from evenhand.trust.calibration import CalibrationReport


def calibrate(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run whose pairs have labels or votes.")
    ],
    save: Annotated[
        str | None,
        typer.Option(
            "--save",
            metavar="NAME",
            help="Save it under this name, for --calibration, or to a file.json. Without it "
            "nothing is saved.",
        ),
    ] = None,
    judge: Annotated[
        str | None, typer.Option("--judge", "-j", help="The judge, if the run has several.")
    ] = None,
    method: Annotated[
        Literal["auto", "logistic"],
        typer.Option(
            "--method",
            help="auto: a logistic curve of the signals if the labels support one, otherwise "
            "overall accuracy; logistic: always a curve.",
        ),
    ] = "auto",
    min_agreement: Annotated[
        float | None,
        typer.Option(
            "--min-agreement",
            help="Find the threshold above which verdicts agree with labels at least this "
            "often (on half of the prompts); verdicts below it abstain.",
        ),
    ] = None,
    error_level: Annotated[
        float | None,
        typer.Option(
            "--error-level",
            help="With --min-agreement: the chance of a false guarantee. Default: 0.05.",
        ),
    ] = None,
    level: opt.Level = 0.95,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Seed for the folds and the held-out half.")
    ] = 0,
    plot: opt.Plot = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing calibration.")
    ] = False,
    store: opt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Learn from labels how likely a verdict is to be right.

    Exit codes: 0 learned (it says so if the data supports no more than overall accuracy, or no
    guarantee), 2 bad input or a store error.
    """
    from evenhand.cli.session import opened_store
    from evenhand.trust.calibration import (
        CALIBRATION_FILES,
        ERROR_LEVEL,
        calibrate_run,
        save_calibration,
    )

    if error_level is not None and min_agreement is None:
        raise InputError(
            Message("command.both_or_neither", option="--error-level", other="--min-agreement")
        )
    if save is not None and CALIBRATION_FILES.path(save).exists() and not force:
        raise InputError(Message("command.calibration_there", save=save))
    with opened_store(store) as opened:
        learned = calibrate_run(
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
        path = save_calibration(learned.calibration, save, overwrite=force)
        learned = learned.model_copy(update={"saved": str(path)})
    if plot is not None:
        from evenhand.present.charts import write_reliability_chart

        write_reliability_chart(learned.change, learned.learned_on.judge, plot)
    session.present(learned, partial(show_calibration, name=save, plot=plot), as_json=as_json)


# A calibration as a person reads it: what it changes, the reliability diagram, the guarantee.

_WIDTH_OF_NAMES = 11


def show_calibration(
    console: Console, report: CalibrationReport, *, name: str | None, plot: Path | None
) -> None:
    from rich.text import Text

    console.print(Text(f"calibration of {one_line(report.learned_on.judge)}", "bold"))
    learned = report.calibration.calibration
    tested = (
        "with calibrations that had not seen the prompt"
        if report.tested == "cross-fitted"
        else "with this one on the held-out prompts"
    )
    facts = (
        ("labels", _labels(report)),
        ("signals", ", ".join(report.signals)),
        (
            "learned",
            f"{_curve(learned.curve)}{_supported_by(learned)}, from "
            f"{counted(learned.n, 'verdict')} on {counted(learned.prompts, 'prompt')}, "
            f"{_tenths(learned.base_rate)} right",
        ),
        ("tested", f"on {counted(report.change.after_all.n, 'verdict')}, {tested}"),
    )
    show_facts(console, facts, width=_WIDTH_OF_NAMES)
    console.print()
    _show_errors(console, report)
    console.print()
    _show_bins(console, report)
    if report.calibration.guarantee is not None:
        console.print()
        named = ", ".join(one_line(each) for each in report.calibration.data)
        data = f"run {one_line(report.run)}{f' ({named})' if named else ''}"
        promised = [("guarantee", _guarantee(report.calibration.guarantee))]
        if report.calibration.guarantee.threshold is not None:
            promised += [
                ("", _promise(report.calibration.guarantee)),
                ("", f"it applies only to data like {data}"),
            ]
        show_facts(console, promised, width=_WIDTH_OF_NAMES)
    show_notes(console, report.notes, apart=True)
    console.print()
    if report.saved is None:
        console.print(Text("not saved; save it with --save NAME", "dim"))
    else:
        console.print(
            Text(f"saved to {one_line(report.saved)}; use it with --calibration {name}"),
            soft_wrap=True,
        )
    if plot is not None:
        console.print(Text(f"chart saved to {one_line(str(plot))}"), soft_wrap=True)


def _labels(report: CalibrationReport) -> str:
    parts = [f"{counted(report.verdicts, 'verdict')} of {counted(report.prompts, 'prompt')}"]
    if report.by_people:
        parts.append(f"{number(report.by_people)} by votes")
    left_out = [
        f"{number(count)} {what}"
        for count, what in (
            (report.inconsistent, "inconsistent"),
            (report.invalid, "invalid"),
            (report.unlabelled, "without a label"),
        )
        if count
    ]
    if left_out:
        parts.append(f"left out {', '.join(left_out)}")
    return "; ".join(parts)


def _curve(curve: Curve) -> str:
    if curve.kind == "constant":
        return "overall accuracy"
    return f"logistic in {', '.join(part.signal for part in curve.signals)}"


def _supported_by(learned: Calibration) -> str:
    factor = learned.log_bayes_factor
    if factor is None:
        return ""
    much = math.log(1000)
    shown = "above 1,000" if factor > much else f"{math.exp(factor):.2g}"
    return f" (Bayes factor of a curve {shown})"


def _show_errors(console: Console, report: CalibrationReport) -> None:
    from rich.text import Text

    change = report.change
    base = change.after_all
    table = table_of("", "before", "after", "overall accuracy", left=("",))
    before, after = change.before, change.after_all
    table.add_row("calibration error", _error(before), _error(after), Text(""))
    table.add_row("  differs from zero", _nonzero(before), _nonzero(after), Text(""))
    table.add_row("Brier score", _brier(before), _brier(after), _digits(base.base_brier))
    table.add_row("log loss", _log_loss(before), _log_loss(after), _digits(base.base_log_loss))
    print_table(console, table)
    console.print(Text(_beside_base_rate(report)))
    if change.brier_change is not None and change.brier_change.value is not None:
        drop = change.brier_change
        limits = (
            f" ({drop.low:+.3f} to {drop.high:+.3f})"
            if drop.low is not None and drop.high is not None
            else ""
        )
        console.print(Text(f"change in Brier score: {drop.value:+.3f}{limits}", "dim"))
    if change.without:
        console.print(Text(f"{counted(change.without, 'verdict')} had no confidence", "dim"))


def _beside_base_rate(report: CalibrationReport) -> str:
    better, skill = report.better_than_base_rate, report.change.after_all.brier_skill
    if not report.calibration.calibration.goes_by:
        return "no better than overall accuracy: nothing more was learned"
    if better is None or skill.value is None or skill.low is None or skill.high is None:
        return "not known to beat overall accuracy: too little data to test"
    saved = f"lowers the Brier score by {_tenths(skill.value)}"
    saved += f" ({100 * skill.low:.1f} to {100 * skill.high:.1f}%)"
    if better:
        return f"beats overall accuracy: {saved}"
    return f"no evidence that it beats overall accuracy: {saved}"


def _error(errors: CalibrationError | None) -> str:
    if errors is None:
        return "none"
    shown = _digits(errors.error)
    # Less the noise, and cut at 0: no error was measured, which is not that there is none.
    cut = shown == "0.000" and not errors.distinguishable
    return "not distinguishable from 0" if cut else shown


def _nonzero(errors: CalibrationError | None) -> str:
    if errors is None or errors.p_value is None:
        return ""
    return f"{'yes' if errors.distinguishable else 'no'}, {p_value(errors.p_value)}"


def _brier(errors: CalibrationError | None) -> str:
    return "none" if errors is None else _digits(errors.brier.value)


def _log_loss(errors: CalibrationError | None) -> str:
    return "none" if errors is None else _digits(errors.log_loss.value)


def _digits(value: float | None) -> str:
    return "not known" if value is None else f"{value:.3f}"


def _show_bins(console: Console, report: CalibrationReport) -> None:
    """The reliability diagram: `|` is the confidence, `o` the accuracy."""
    from rich.text import Text

    scale = "0 | stated, o right 1"
    table = table_of("confidence", "verdicts", "stated", "right", "interval", scale, left=(scale,))
    for name, errors in (("before", report.change.before), ("after", report.change.after_all)):
        if errors is None:
            continue
        table.add_row(Text(name, "bold"))
        for each in errors.bins:
            share = each.share_right
            known = share.value is not None and share.low is not None and share.high is not None
            table.add_row(
                f"{each.low:.2f} to {each.high:.2f}",
                number(each.n),
                rate(each.mean_probability),
                "" if share.value is None else rate(share.value),
                interval(share.low, share.high)
                if known and share.low is not None and share.high is not None
                else "",
                _drawn(each.mean_probability, share.value),
            )
    print_table(console, table)


_WIDTH = 21


def _drawn(confidence: float, happened: float | None) -> str:
    line = ["·"] * _WIDTH
    line[round(confidence * (_WIDTH - 1))] = "|"
    if happened is not None:
        line[round(happened * (_WIDTH - 1))] = "o"
    return "".join(line)


def _guarantee(given: Guarantee) -> str:
    promise = f"at least {percent(given.target)} agreement"
    if given.threshold is None or given.coverage is None or given.agreement is None:
        return f"none for {promise}"
    covered = (
        "" if given.coverage.value is None else f", {_tenths(given.coverage.value)} of verdicts"
    )
    return (
        f"from {given.threshold:.3f} up{covered}: {promise}; observed "
        f"{counted_share(given.agreement)}, one verdict per prompt; the others abstain"
    )


def _promise(given: Guarantee) -> str:
    return (
        f"this guarantee fails in at most {percent(given.error_level)} of calibrations, but "
        "perhaps in more of those that find a threshold: rely on the interval"
    )


def _tenths(share: float) -> str:
    return f"{100 * share:.1f}%"
