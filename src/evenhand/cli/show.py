"""`evenhand show`: one pair of a run whole, with every pass of every judge; `evenhand flag`: a flag
on one, with a comment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.session import named_or_latest, opened_store
from evenhand.present.terminal import one_line

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.report.records import FlaggedPair, JudgedPair, PairReport, StoredAnswer


_PASS = {"original": "first pass", "swapped": "second pass"}
_WON = {"A": "A", "B": "B", "TIE": "tie"}


def show(
    run: Annotated[
        str, typer.Argument(metavar="[RUN]", help="The run's name. Default: the latest run.")
    ],
    identifier: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="The pair's id, or its number (7 or #7, from 1)."),
    ] = None,
    store: opt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show one pair in full, with every pass."""
    from evenhand.report.records import report_pair
    from evenhand.settings import load_settings

    with opened_store(store) as opened:
        # One name is the pair's: the run is then the latest.
        named = named_or_latest(opened, run if identifier is not None else None)
        wanted = run if identifier is None else identifier
        report = report_pair(opened, named, wanted, families=load_settings().families)
    session.present(report, _show, as_json=as_json)


def _show(console: Console, report: PairReport) -> None:
    from rich.text import Text

    where = f"pair {report.number} of run {report.run}, row {report.row} of {report.source}"
    console.print(Text.assemble((one_line(report.id), "bold"), (f"  {one_line(where)}", "dim")))
    known = ", ".join(_known(report))
    if known:
        console.print(Text(known))
    show_flag(console, flagged=report.flagged, comment=report.comment)
    _show_texts(console, report)
    for judged in report.judges:
        console.rule(Text(one_line(judged.judge), "bold"), align="left")
        _show_judged(console, judged)
    if not report.judges:
        console.print(Text("no judge has been asked yet", "dim"))


def show_flag(console: Console, *, flagged: bool, comment: str | None) -> None:
    from rich.text import Text

    from evenhand.present.terminal import plain, show_hanging

    if flagged:
        show_hanging(console, Text("flagged", "yellow"), plain(comment or ""))


def flag(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's name.")],
    identifier: Annotated[
        str, typer.Argument(metavar="ID", help="The pair's id, or its number (7 or #7).")
    ],
    comment: Annotated[
        str | None, typer.Option("--comment", help="A comment of up to 4,000 characters.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Unflag it.")] = False,
    store: opt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Flag a pair with a comment, or unflag it."""
    from evenhand.report.records import flag_pair

    with opened_store(store) as opened:
        flagged = flag_pair(opened, run, identifier, comment=comment, remove=remove)
    session.present(flagged, _show_flagged, as_json=as_json)


def _show_flagged(console: Console, pair: FlaggedPair) -> None:
    from rich.text import Text

    where = f"  pair {pair.number} of run {one_line(pair.run)}"
    console.print(Text.assemble((one_line(pair.id), "bold"), (where, "dim")))
    if not pair.flagged:
        console.print("not flagged")
    show_flag(console, flagged=pair.flagged, comment=pair.comment)


def _known(report: PairReport) -> list[str]:
    from evenhand.contract.pair import drawn_order

    parts = []
    if report.label:
        parts.append(f"label {report.label}")
    if report.model_a is not None:
        parts.append(f"A by {report.model_a}")
    if report.model_b is not None:
        parts.append(f"B by {report.model_b}")
    if report.tags:
        parts.append(f"tags {', '.join(report.tags)}")
    if not report.pair.allow_tie:
        parts.append("ties not allowed")
    if not report.pair.swap_positions:
        drawn = drawn_order(report.pair) is not None
        parts.append("one random order" if drawn else "one order only")
    return [one_line(part) for part in parts]


def _show_texts(console: Console, report: PairReport) -> None:
    from rich.text import Text

    from evenhand.present.terminal import plain, show_hanging

    pair = report.pair
    criteria = "\n".join(
        (each.name if each.description is None else f"{each.name}: {each.description}")
        + ("" if each.weight is None else f" (weight {each.weight:g})")
        for each in pair.criteria
    )
    for name, text in (
        ("criteria", criteria or "none"),
        ("prompt", pair.prompt),
        ("context", pair.context),
        ("reference", pair.reference),
        ("A", pair.response_a),
        ("B", pair.response_b),
    ):
        if text is not None:
            shown = plain(text) if text.strip() else Text("empty", "dim")
            show_hanging(console, Text(f"{name:>9} ", "dim"), shown)


def _show_judged(console: Console, judged: JudgedPair) -> None:
    from rich.text import Text

    from evenhand.cli.compare import show_verdict
    from evenhand.contract import Outcome, Verdict

    if judged.prompt_version:  # some judges read no prompt
        asked = (judged.prompt_version, judged.locale, judged.mode)
        console.print(Text(one_line(", ".join(part for part in asked if part)), "dim"))
    if isinstance(judged.verdict, Verdict):
        show_verdict(console, judged.verdict)
    elif judged.verdict is None:
        console.print(Text("Pending: no verdict yet", "bold"))
    else:
        error = judged.verdict.error
        kind = "" if error.kind == Outcome.INVALID else f" ({error.kind})"
        console.print(Text.assemble((f"Invalid{kind}", "bold red"), f"  {one_line(error.message)}"))
    for answer in judged.passes:
        _show_answer(console, answer)
    for answer in judged.replaced:
        _show_answer(console, answer, earlier=True)


def _show_answer(console: Console, answer: StoredAnswer, *, earlier: bool = False) -> None:
    from rich.text import Text

    from evenhand.cli.compare import footer
    from evenhand.cli.runs import moment
    from evenhand.present.terminal import plain

    name = _PASS[answer.order] + (f", sample {answer.sample}" if answer.sample > 1 else "")
    if earlier:
        name += ", an earlier attempt, replaced"
    console.print(Text.assemble("\n", (name, "bold"), f": {_outcome(answer)}"))
    took = [footer(answer.model, answer.usage, answer.time_ms), moment(answer.created_at)]
    if answer.request_ids:
        took.append(f"request {', '.join(answer.request_ids)}")
    if answer.reused:
        took.append("made by another run")
    console.print(Text(one_line(" · ".join(took)), "dim"))
    for before in answer.repaired:
        console.print(
            Text(f"asked again because {one_line(before.reason)}; the first answer was", "dim")
        )
        console.print(plain(before.raw, indent=2))
    if answer.raw.strip():
        # What the judge wrote is never rewritten, so that its labels are those of its pass.
        labels = ", which saw A and B swapped" if answer.order == "swapped" else ""
        console.print(Text(f"the judge's own words{labels}:", "dim"))
        console.print(plain(answer.raw, indent=2))


def _outcome(answer: StoredAnswer) -> str:
    if answer.ballot is not None:
        confidence = answer.ballot.confidence
        shown = "not given" if confidence is None else f"{confidence:.2f}"
        return f"{_WON[answer.ballot.winner]}, confidence {shown}"
    if answer.unread is not None:
        return f"unread ({answer.unread.kind}): {one_line(answer.unread.reason)}"
    if answer.error is not None:
        return f"failed ({answer.error.kind}): {one_line(answer.error.message)}"
    return answer.status
