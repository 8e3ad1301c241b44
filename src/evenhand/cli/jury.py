"""`evenhand jury`: several judges vote on each pair; the jury's verdicts, its accuracy and its
judges.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.figures import counted, number, percent, share, value
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.present.terminal import (
    one_line,
    print_table,
    show_notes,
    table_of,
)

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.stats.estimates import EstimatedValue
    from evenhand.stats.juries.accuracy import RuleAccuracy
    from evenhand.trust.jury import JuryRate, JuryReport


def jury(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="The run whose judges vote; more runs over the same pairs add their judges.",
        ),
    ],
    weights: Annotated[
        Literal["auto", "plurality", "majority", "learned"] | None,
        typer.Option(
            "--weights",
            help="plurality: one vote per judge, half for each order if they differ; "
            "majority: consistent verdicts only, with a quorum; learned: weights "
            "learned from labels. Default: auto, the best of these and the best single "
            "judge according to the labels; plurality without labels.",
        ),
    ] = None,
    quorum: Annotated[
        int | None,
        typer.Option(
            "--quorum",
            min=1,
            help="How many votes a verdict needs; implies --weights majority unless given. "
            "Default: half the judges for majority, 1 for learned weights, none for "
            "plurality.",
        ),
    ] = None,
    save: Annotated[
        str | None,
        typer.Option(
            "--save", metavar="NAME", help="Save the jury under a name or to a file.json."
        ),
    ] = None,
    use: Annotated[
        str | None,
        typer.Option("--use", metavar="NAME", help="A saved jury: a name or a file.json."),
    ] = None,
    recuse_family: Annotated[
        bool,
        typer.Option(
            "--recuse-family",
            help="Judges do not vote on pairs with a model from their own family.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write every pair's votes and verdict as JSON Lines.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Overwrite files; with --use, also allow judges it was not made for.",
        ),
    ] = False,
    side: opt.SideOption = "B",
    ties: opt.TiesOption = "half",
    level: opt.Level = 0.95,
    store: opt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Combine several judges' votes and compare their accuracy.

    Exit codes: 0 success, 2 bad input (runs without common pairs, a single judge, a jury of
    other judges) or a store error.
    """
    from evenhand.cli.session import opened_store
    from evenhand.settings import load_settings
    from evenhand.trust.jury import evaluate_jury, write_jury_rows
    from evenhand.trust.panels import open_jury, save_jury

    if use is not None and weights is not None:
        raise InputError(Message("command.use_has_weights"))
    saved = None if use is None else open_jury(use)
    with opened_store(store) as opened:
        sitting = evaluate_jury(
            opened,
            names,
            weights=weights or "auto",
            quorum=quorum,
            use=saved,
            forced=force,
            recuse_family=recuse_family,
            families=load_settings().families,
            side=side,
            ties=ties,
            level=level,
        )
    if use is None and len(sitting.report.judges) == 1:
        raise InputError(Message("command.one_judge_no_jury", name=names[0]))
    saved_at = None if save is None else save_jury(sitting.poll.saved, save, overwrite=force)
    rows = None
    if output is not None:
        rows = write_jury_rows(sitting, output, overwrite=force)
    if as_json:
        session.write_json(sitting.report)
        return

    show_jury(session.out(), sitting.report)
    if saved_at is not None:
        session.write_text(f"\njury saved to {one_line(str(saved_at))}")
    if rows is not None:
        session.write_text(f"\n{rows:,} pairs in {one_line(str(output))}")


# A jury as a person reads it: its verdicts, then how right it is, then its judges.

# More pairs of judges than these are a matter for --json.
_PAIRS_AT_MOST = 15


def show_jury(console: Console, report: JuryReport) -> None:
    from rich.text import Text

    judges = counted(len(report.judges), "judge")
    head = f"jury of {judges}, run {' and '.join(report.runs)}"
    console.print(Text(one_line(head), "bold"))
    session.print_line(console, Text(one_line(report.rule)))
    if report.chosen_by_labels:
        line = "chosen by the labels from a single judge, plurality, majority and learned weights"
        session.print_line(console, Text(line))
    counts = report.counts
    # Where one judge decides, nobody disagrees with it but itself.
    hung, short = (
        ("hung", "too few votes") if report.member is None else ("inconsistent", "no vote")
    )
    session.print_line(
        console,
        Text(
            f"{counted(report.pairs, 'pair')}: A wins {number(counts.wins_a)}, B wins "
            f"{number(counts.wins_b)}, ties {number(counts.ties)}, {hung} {number(counts.hung)}, "
            f"{short} {number(counts.no_quorum)}; unanimous {number(counts.unanimous)}"
        ),
    )
    if report.dissent is not None:
        console.print(Text(f"dissent: {100 * report.dissent:.1f}% of the votes"))
    for each in report.rates:
        _show_rate(console, report, each)
    _show_accuracy(console, report)
    _show_judges(console, report)
    _show_between(console, report)
    show_notes(console, report.notes, apart=True)


def _show_rate(console: Console, report: JuryReport, each: JuryRate) -> None:
    from rich.text import Text

    from evenhand.analyses.report import outcome_titles, rate_row
    from evenhand.blocks import Rates
    from evenhand.present.blocks import show_rates

    other = "B" if report.side == "A" else "A"
    names = f"{each.model or report.side} vs {each.against or other}"
    rows = [rate_row((part.name,), part.rate) for part in each.judges]
    shown = (rate_row(("jury",), each.jury), *rows)
    console.print()
    show_rates(console, Rates((names,), "win rate", outcome_titles(), shown))
    if report.member is None and (each.jury.counts.inconsistent or each.jury.counts.invalid):
        line = "for the jury, split votes count as inconsistent and too few votes as invalid"
        session.print_line(console, Text(line, "dim"))


def _show_accuracy(console: Console, report: JuryReport) -> None:
    from rich.text import Text

    console.print()
    _show_gain(console, report)
    if not report.accuracy:
        return
    labels = counted(report.labels, "labelled pair")
    line = f"from {labels}; learned or chosen juries are tested on held-out prompts"
    console.print()
    session.print_line(console, Text(line, "bold"))
    left = ("rule", "right")
    table = table_of("rule", "decided", "right", "undecided as half", "vs best judge", left=left)
    for rule in report.accuracy:
        decided = _plain_share(rule.decided.part, rule.decided.of)
        gain = "" if rule.gain is None else _points(rule.gain)
        cells = [decided, share(rule.accuracy), _percent(rule.half_credit.value), gain]
        table.add_row(Text(one_line(_named(rule))), *cells)
    print_table(console, table)
    if report.accuracy_reason is not None:
        console.print(Text(f"learned weights: {report.accuracy_reason}", "dim"))


def _show_gain(console: Console, report: JuryReport) -> None:
    from rich.text import Text

    gain, together = report.gain, report.effective_votes
    shown = _points(gain)
    if _by_construction(gain):
        shown = Message("trust.gain_by_construction")
    elif gain.value is not None:
        shown += " points, undecided pairs as half"
    lines = [f"gain over the best judge: {shown}"]
    judges = len(report.judges)
    if together.value is None:
        lines.append(f"effective votes: {together.reason}")
    else:
        lines.append(
            f"effective votes: {together.value:.1f} ({together.low:.1f} to {together.high:.1f}) "
            f"of {judges}"
        )
    for line in lines:
        session.print_line(console, Text(one_line(line)))


def _named(rule: RuleAccuracy) -> str:
    if len(rule.picks) == 1:
        return f"{rule.rule} ({next(iter(rule.picks))})"
    if rule.picks:
        folds = ", ".join(f"{name} in {n}" for name, n in rule.picks.items())
        return f"{rule.rule} ({folds} of {sum(rule.picks.values())} folds)"
    return f"{rule.rule}, quorum {rule.quorum}" if rule.quorum > 1 else rule.rule


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}%"


def _by_construction(gain: EstimatedValue) -> bool:
    """No pair differs from the best judge's verdict: a zero that needed no measuring."""
    return gain.value == gain.low == gain.high == 0


def _points(gain: EstimatedValue) -> str:
    if _by_construction(gain):
        return "the same verdicts"
    if gain.value is None or gain.low is None or gain.high is None:
        return gain.reason or "not enough data"
    value, low, high = (f"{100 * each:+.1f}" for each in (gain.value, gain.low, gain.high))
    return f"{value} ({low} to {high})"


def _show_judges(console: Console, report: JuryReport) -> None:
    from rich.text import Text

    weighted = any(each.weight is not None for each in report.judges)
    worth = any(each.worth is not None for each in report.judges)
    every = ("abstained", "recused")
    kinds = tuple(kind for kind in every if any(getattr(each, kind) for each in report.judges))
    columns = ["judge", "votes", "inconsistent", "invalid", *kinds, "not judged"]
    columns += ["against the jury"]
    columns += [*(["weight"] if weighted else []), *(["worth"] if worth else [])]
    table = table_of(*columns, left=("judge",))
    for each in report.judges:
        cells = [number(each.votes), number(each.inconsistent), number(each.invalid)]
        cells += [number(getattr(each, kind)) for kind in kinds]
        cells += [number(each.not_judged), _plain_share(each.against.part, each.against.of)]
        if weighted:
            cells.append("" if each.weight is None else f"{each.weight:.2f}")
        if worth:
            cells.append("" if each.worth is None else value(each.worth))
        table.add_row(Text(one_line(each.title)), *cells)
    console.print()
    print_table(console, table)
    if worth:
        level = percent(report.level)
        line = (
            f"worth: increase in log loss without the judge, in nats per label ({level} interval)"
        )
        session.print_line(console, Text(line, "dim"))
    for each in report.judges:
        if each.redundant and each.finding:
            console.print(Text(f"redundant: {one_line(each.title)}, {one_line(each.finding)}"))


def _plain_share(part: float, of: float) -> str:
    return f"{100 * part / of:.1f}%" if of else ""


def _show_between(console: Console, report: JuryReport) -> None:
    from rich.text import Text

    if not report.between:
        return
    left = ("judges", "agreement", "kappa")
    table = table_of("judges", "pairs", "agreement", "kappa", left=left)
    for each in report.between[:_PAIRS_AT_MOST]:
        names = one_line(f"{each.first} and {each.second}")
        table.add_row(Text(names), number(each.pairs), share(each.agreement), value(each.kappa))
    console.print()
    print_table(console, table)
    more = len(report.between) - _PAIRS_AT_MOST
    if more > 0:
        console.print(Text(f"and {number(more)} more in --json", "dim"))
