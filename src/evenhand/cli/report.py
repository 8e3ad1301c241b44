"""`evenhand report`: a run's win rate with its interval, by criterion and tag; abstentions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.figures import (
    RateLine,
    bar,
    counted,
    counted_share,
    interval,
    number,
    percent,
    show_rates,
    style_of,
)
from evenhand.cli.manifest import manifest_line
from evenhand.cli.options import ReportChoices, grouped
from evenhand.cli.session import named_or_latest, opened_store
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.messages.numbers import p_value, rate
from evenhand.present.terminal import (
    one_line,
    show_facts,
    show_hanging,
    show_notes,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from evenhand.report.abstentions import Abstentions
    from evenhand.report.conclusions import Conclusion, Conclusions, GroupRate
    from evenhand.serve.pages.html_report import HtmlReport


@grouped
def report(
    *,
    name: opt.LatestOrNamed = None,
    choices: ReportChoices,
    plot: opt.Plot = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Also write the report as one HTML file, with its pairs to browse.",
        ),
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(
            "--pairs",
            min=0,
            max=20_000,
            help="Maximum number of pairs in the HTML file. Default: 20,000.",
        ),
    ] = None,
    locale: Annotated[
        Literal["en", "zh"] | None,
        typer.Option("--locale", help="The language of the HTML file. Default: en."),
    ] = None,
    store: opt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Report a run's win rate with its interval.

    Also by criterion and tag, with the effects of length and position.
    """
    from evenhand.report.conclusions import ConclusionLimits, conclude
    from evenhand.report.manifest import manifest_of
    from evenhand.settings import load_settings

    claims = choices.claims()
    written: HtmlReport | None = None
    for option, value in (("--pairs", pairs), ("--locale", locale)):
        if value is not None and html is None:
            raise InputError(Message("command.belongs_to", option=option, other="--html"))
    with opened_store(store) as opened:
        concluded = conclude(
            opened,
            named_or_latest(opened, name),
            side=claims.side,
            ties=claims.ties,
            level=choices.values["level"],
            limits=ConclusionLimits.of(claims),
            families=load_settings().families,
        )
        manifest = manifest_of(opened, concluded.run)
        if html is not None:
            from evenhand.serve.pages.html_report import write_html_report
            from evenhand.serve.pages.html_report_pairs import usable_processes

            written = write_html_report(
                opened,
                concluded,
                html,
                pairs=20_000 if pairs is None else pairs,
                language=locale or "en",
                processes=usable_processes(),
            )
    if plot is not None:
        from evenhand.present.charts import write_report_chart

        write_report_chart(concluded, plot)
    if as_json:
        whole = json.loads(concluded.model_dump_json())
        made_by = json.loads(manifest.model_dump_json())
        session.write_json(whole | {"manifest": made_by})
        return

    show_report(session.out(), concluded)
    show_facts(session.out(), [("made by", manifest_line(manifest))], width=10)
    if plot is not None:
        session.write_text(f"\nchart saved to {one_line(str(plot))}")
    if written is not None:
        session.write_text(f"\n{_about_file(written)}")


def _about_file(written: HtmlReport) -> str:
    held = f"{written.pairs:,} of {written.judged:,} judged pairs"
    if written.pairs == written.judged:
        held = "1 pair" if written.pairs == 1 else f"all {written.pairs:,} judged pairs"
    lines = [f"report saved to {one_line(str(written.path))}, with {held}"]
    if written.cut:
        pairs = "1 pair has" if written.cut == 1 else f"{written.cut:,} pairs have"
        lines.append(f"note  {pairs} texts too long for it, which are truncated")
    return "\n".join(lines)


# A run's conclusions as a person reads them.

# With more of them each one's own page would be a book.
_WHOLE_AT_MOST = 4
_PARTS_AT_MOST = 12


def show_report(console: Console, report: Conclusions) -> None:
    from rich.text import Text

    state = report.state
    if state == "stopped" and report.stopped_by:
        stopped = f"stopped ({one_line(report.stopped_by)})"
        console.print(Text.assemble((f"run {one_line(report.run)}", "bold"), f"  {stopped}"))
    else:
        console.print(Text.assemble((f"run {one_line(report.run)}", "bold"), f"  {state}"))
    for each in report.conclusions[:_WHOLE_AT_MOST]:
        by = f" ({each.judge})" if len(report.judges) > 1 else ""
        show_hanging(console, Text(""), Text(one_line(each.sentence + by), "bold"))
    if len(report.conclusions) > _WHOLE_AT_MOST:
        more = number(len(report.conclusions) - _WHOLE_AT_MOST)
        show_hanging(console, Text(""), Text(f"{more} more are in the table below."))
    facts = [("compared", _compared(report))]
    if not report.conclusions:
        what = "pairs" if report.judges else "judges"
        facts.append(("win rate", f"not enough data: the run has no {what}"))
    show_facts(console, facts, width=10)
    if len(report.conclusions) > 1:
        console.print()
        show_rates(console, *_comparisons(report))
    if len(report.conclusions) <= _WHOLE_AT_MOST:
        for each in report.conclusions:
            console.print()
            if len(report.conclusions) > 1:
                head = f"{' vs '.join(each.names)}, by {each.judge}"
                console.print(Text(one_line(head), "bold"))
            _show_conclusion(console, each)
    elif report.conclusions:
        console.print(Text("see --json for criteria, tags, length and position of each", "dim"))
    show_abstentions(console, report.abstentions)
    show_notes(console, report.notes, apart=True)


def _compared(report: Conclusions) -> str:
    sides = list(dict.fromkeys(each.names for each in report.conclusions))
    models = {name for names in sides for name in names}
    if len(sides) == 1:
        labels = report.side, "B" if report.side == "A" else "A"
        what = " vs ".join(
            name if name == label or name.endswith(f"({label})") else f"{name} ({label})"
            for name, label in zip(sides[0], labels, strict=True)
        )
    elif sides:
        what = f"{len(models)} models in {len(sides)} matchups"
    else:
        what = "nothing yet"
    judges = ", ".join(report.judges) or "nobody"
    size = f"{counted(report.pairs, 'pair')} of {counted(report.prompts, 'prompt')}"
    pending = f", {number(report.pending)} pending" if report.pending else ""
    skipped = f", {counted(report.skipped_rows, 'row')} skipped" if report.skipped_rows else ""
    return f"{one_line(what)}, judged by {one_line(judges)}; {size}{pending}{skipped}"


def _show_conclusion(console: Console, claim: Conclusion) -> None:
    show_facts(console, _lines(claim), width=10)
    parts = [*_parts(claim.by_criterion, claim)]
    if claim.by_tag:
        parts += [RateLine(("tag",))] if parts else []
        parts += _parts(claim.by_tag, claim)
    if parts:
        console.print()
        show_rates(console, ("criterion" if claim.by_criterion else "tag",), parts)
    console.print()
    facts = [("length", "; ".join(_length(claim))), ("position", "; ".join(_position(claim)))]
    show_facts(console, facts, width=10)


def _lines(claim: Conclusion) -> Iterator[tuple[str, str | Text]]:
    from rich.text import Text

    own = claim.win_rate
    counts = own.counts
    new, old = (one_line(name) for name in claim.names)
    won, lost = own.won_and_lost
    yield (
        "outcomes",
        f"{new} wins {number(won)}, {old} wins {number(lost)}, ties {number(counts.ties)}, "
        f"inconsistent {number(counts.inconsistent)}, invalid {number(counts.invalid)}"
        + (f", pending {number(claim.pending)}" if claim.pending else ""),
    )
    name, labelled = "win rate", claim.claimed
    if claim.by_people and labelled.rate is not None:
        ends = interval(labelled.low or 0.0, labelled.high or 1.0)
        yield name, f"{rate(labelled.rate)} ({ends})  {percent(labelled.level)} interval, by labels"
        name = "judge"
    if own.rate is None or own.low is None or own.high is None:
        yield name, own.reason or "not enough data"
    else:
        style = style_of(own.low, own.shows_difference and claim.judge_claims)
        yield (
            name,
            Text.assemble(
                (rate(own.rate), f"bold {style}"),
                f" ({interval(own.low, own.high)})  {_kind(claim)}; {own.counting}",
            ),
        )
        yield "", Text.assemble("0 ", (bar(own.rate, own.low, own.high), style), " 1")
    if own.sign_test is not None:
        test = own.sign_test
        wins = (test.wins_a, test.wins_b) if own.side == "A" else (test.wins_b, test.wins_a)
        yield (
            "sign test",
            f"{p_value(test.p_value)}: {number(wins[0])} to {counted(wins[1], test.by)}, exact",
        )
    if claim.decision is not None and claim.account is not None:
        p = claim.decision.p_value
        yield "decision", claim.account + ("" if p is None else f" {p_value(p)}.")
    if own.worst_case is not None:
        worst = own.worst_case
        yield (
            "worst case",
            f"{rate(worst.rate_if_lost)} if {_all(own.missing)} were lost, "
            f"{rate(worst.rate_if_won)} if won; with their intervals "
            f"{interval(worst.low, worst.high)}",
        )


def _all(missing: int) -> str:
    if missing == 1:
        return "the 1 pair without a verdict"
    return f"all {number(missing)} pairs without a verdict"


def _kind(claim: Conclusion) -> str:
    own = claim.win_rate
    level = percent(own.level)
    prompts = counted(own.prompts or 0, "prompt")
    if not own.always_valid:
        clustered = f", clustered by {prompts}" if own.clustered else ""
        kind = "exact" if own.method == "exact" else "score"
        return f"{level} {kind} interval{clustered}"
    if claim.decision is not None and own.ties == "half":
        return f"{level} interval of the sequential test on {prompts}"
    return f"{level} always-valid interval on {prompts}"


def _length(claim: Conclusion) -> Iterator[str]:
    longer = claim.length.longer_wins
    yield f"the longer response won {counted_share(longer)}"
    for each in claim.length.controlled:
        if each.rate is None or each.low is None or each.high is None:
            yield f"win rate at equal length: {each.reason or 'not enough data'}"
        else:
            # The fit knows no other way to count them.
            ties = "" if claim.win_rate.ties == "half" else ", ties as half"
            shown = f"{rate(each.rate)} ({interval(each.low, each.high)}){ties}"
            caution = f"; {each.caution}" if each.caution else ""
            yield f"win rate at equal length {shown}{caution}"


def _position(claim: Conclusion) -> Iterator[str]:
    position = claim.position
    if not position.pairs:
        yield "not enough data: no pair was read in both orders"
        return
    yield f"both orders agree in {counted_share(position.consistency)}"
    if position.favours is not None:
        leaning = position.first_preference
        part = leaning.part if position.favours == "first" else leaning.of - leaning.part
        tested = "" if position.p_value is None else f", {p_value(position.p_value)}"
        yield (
            f"position bias: {number(part)} of {counted(leaning.of, 'flipped pair')} went to the "
            f"response shown {position.favours}{tested}" + ("; ALARM" if position.alarm else "")
        )
    elif position.first_preference.of == 0:
        yield "no verdict flipped with the order"
    elif position.reason is not None:
        yield "too few verdicts flipped to test for position bias"
    elif position.p_value is not None:
        yield f"no significant position bias, {p_value(position.p_value)}"


def _parts(parts: Sequence[GroupRate], claim: Conclusion) -> Iterator[RateLine]:
    """The largest, where they are many; criteria in their order."""
    largest = sorted(range(len(parts)), key=lambda place: -parts[place].rate.n)[:_PARTS_AT_MOST]
    for place in sorted(largest):
        yield RateLine((parts[place].name,), parts[place].rate, claim.judge_claims)
    if len(parts) > _PARTS_AT_MOST:
        yield RateLine((f"and {number(len(parts) - _PARTS_AT_MOST)} more in --json",))


def _comparisons(report: Conclusions) -> tuple[tuple[str, ...], list[RateLine]]:
    judges = len(report.judges) > 1
    titles = (*(("judge",) if judges else ()), "model", "against")
    return titles, [
        RateLine(
            (*((each.judge,) if judges else ()), *each.names),
            each.win_rate,
            each.claims,
            each.claimed,
        )
        for each in report.conclusions
    ]


# Verdicts that stand and that abstained, for a reader.


def show_abstentions(console: Console, own: Sequence[Abstentions]) -> None:
    from rich.text import Text

    for each in own:
        console.print()
        who = f"{one_line(each.judge)}: " if len(own) > 1 else ""
        facts = ((name, f"{who}{fact}") for name, fact in _abstention_lines(each))
        show_facts(console, facts, width=10)
        warned = each.check is not None and each.check.contradicted
        for place, note in enumerate(each.notes, start=1):
            # The warning is the last of them.
            warns = warned and place == len(each.notes)
            head, style = ("WARNING", "bold red") if warns else ("learned", "dim")
            show_hanging(console, Text(f"{head:<10}", style), Text(one_line(note)))


def _abstention_lines(own: Abstentions) -> list[tuple[str, str]]:
    if own.threshold is None:
        limit = f"all of them, as no threshold guarantees {own.min_agreement:g} agreement"
    else:
        limit = f"below {own.threshold:.3f}, the threshold for {own.min_agreement:g} agreement"
    return [
        ("abstained", f"{number(own.abstained)} of {number(own.judged)} pairs: {limit}"),
        ("coverage", counted_share(own.coverage)),
        ("agreement", f"with labels: {counted_share(own.agreement_kept)} of those that stand"),
        ("", f"of those that abstained: {counted_share(own.agreement_abstained)}"),
    ]
