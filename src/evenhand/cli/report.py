"""`evenhand report`: a run's win rate with its interval, by criterion and tag; abstentions."""

from __future__ import annotations

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
    p_value,
    percent,
    rate,
    show_rates,
    style_of,
    wins_and_losses,
)
from evenhand.cli.options import Claiming, Counting, grouped
from evenhand.cli.session import named_or_latest, opened_store
from evenhand.cli.terminal import (
    one_line,
    show_facts,
    show_hanging,
    show_notes,
)
from evenhand.errors import InputError
from evenhand.messages import Message

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from evenhand.report.abstentions import Abstentions
    from evenhand.report.conclusions import Conclusion, Conclusions, GroupRate
    from evenhand.serve.pages.html_report import HtmlReport


# `evenhand report`: what a run says about its two sides, and how sure that is.


@grouped
def report(
    *,
    name: opt.LatestOrNamed = None,
    counting: Counting,
    claiming: Claiming,
    level: opt.Level = 0.95,
    plot: opt.Plot = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write it too as one HTML file, with charts and pairs to look through.",
        ),
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(
            "--pairs",
            min=0,
            max=20_000,
            help="How many pairs the HTML file holds at most. Default: 20,000.",
        ),
    ] = None,
    locale: Annotated[
        Literal["en", "zh"] | None,
        typer.Option("--locale", help="The language of the HTML file. Default: en."),
    ] = None,
    store: opt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Report what a run says: win rate with its interval, by criterion and tag, length, place."""
    from evenhand.report.conclusions import conclude

    written: HtmlReport | None = None
    for option, value in (("--pairs", pairs), ("--locale", locale)):
        if value is not None and html is None:
            raise InputError(Message("command.belongs_to", option=option, other="--html"))
    with opened_store(store) as opened:
        found = conclude(
            opened,
            named_or_latest(opened, name),
            side=counting.side,
            ties=counting.ties,
            level=level,
            limits=claiming.limits(counting),
        )
        if html is not None:
            from evenhand.serve.pages.html_report import write_html_report
            from evenhand.serve.pages.html_report_pairs import usable_processes

            written = write_html_report(
                opened,
                found,
                html,
                pairs=20_000 if pairs is None else pairs,
                language=locale or "en",
                processes=usable_processes(),
            )
    if plot is not None:
        from evenhand.report.charts.drawing import write_report_chart

        write_report_chart(found, plot)
    if as_json:
        session.write_json(found)
        return

    show_report(session.out(), found)
    if plot is not None:
        session.write_text(f"\nchart in {one_line(str(plot))}")
    if written is not None:
        session.write_text(f"\n{_told(written)}")


def _told(written: HtmlReport) -> str:
    held = f"{written.pairs:,} of {written.judged:,} judged pairs"
    if written.pairs == written.judged:
        held = "1 pair" if written.pairs == 1 else f"all {written.pairs:,} judged pairs"
    lines = [f"report in {one_line(str(written.path))}, with {held}"]
    if written.cut:
        pairs = "1 pair has" if written.cut == 1 else f"{written.cut:,} pairs have"
        lines.append(f"note  {pairs} texts too long for it, which are cut there")
    if written.undrawn:
        lines.append(f"note  without charts: {written.undrawn}")
    return "\n".join(lines)


# A run's conclusions as a person reads them.

# With more of them each one's own page would be a book.
_WHOLE_AT_MOST = 4
_PARTS_AT_MOST = 12
_TIES = {
    "half": "ties count as half, inconsistent pairs as half and left out",
    "excluded": "ties are excluded, inconsistent pairs count as half and left out",
    "wins": "only outright wins count",
}


def show_report(console: Console, found: Conclusions) -> None:
    from rich.text import Text

    state = found.state
    if state == "stopped" and found.stopped_by:
        stopped = f"stopped ({one_line(found.stopped_by)})"
        console.print(Text.assemble((f"run {one_line(found.run)}", "bold"), f"  {stopped}"))
    else:
        console.print(Text.assemble((f"run {one_line(found.run)}", "bold"), f"  {state}"))
    for each in found.conclusions[:_WHOLE_AT_MOST]:
        by = f" ({each.judge})" if len(found.judges) > 1 else ""
        show_hanging(console, Text(""), Text(one_line(each.sentence + by), "bold"))
    facts = [("compared", _compared(found))]
    if not found.conclusions:
        what = "pairs" if found.judges else "judges"
        facts.append(("win rate", f"not enough data: the run has no {what}"))
    show_facts(console, facts, width=10)
    if len(found.conclusions) > 1:
        console.print()
        show_rates(console, *_comparisons(found))
    if len(found.conclusions) <= _WHOLE_AT_MOST:
        for each in found.conclusions:
            console.print()
            if len(found.conclusions) > 1:
                head = f"{' against '.join(each.names)}, by {each.judge}"
                console.print(Text(one_line(head), "bold"))
            _show_conclusion(console, each)
    elif found.conclusions:
        console.print(Text("criteria, tags, length and position of each are in --json", "dim"))
    show_abstentions(console, found.abstentions)
    show_notes(console, found.notes, apart=True)


def _compared(found: Conclusions) -> str:
    sides = list(dict.fromkeys(each.names for each in found.conclusions))
    models = {name for names in sides for name in names}
    if len(sides) == 1:
        labels = found.side, "B" if found.side == "A" else "A"
        what = " against ".join(
            name if name == label else f"{name} ({label})"
            for name, label in zip(sides[0], labels, strict=True)
        )
    elif sides:
        what = f"{len(models)} models in {len(sides)} matchups"
    else:
        what = "nothing yet"
    judges = ", ".join(found.judges) or "nobody"
    size = f"{counted(found.pairs, 'pair')} of {counted(found.prompts, 'prompt')}"
    pending = f", {number(found.pending)} pending" if found.pending else ""
    skipped = f", {counted(found.skipped_rows, 'row')} skipped" if found.skipped_rows else ""
    return f"{one_line(what)}, judged by {one_line(judges)}; {size}{pending}{skipped}"


def _show_conclusion(console: Console, found: Conclusion) -> None:
    show_facts(console, _lines(found), width=10)
    parts = [*_parts(found.by_criterion)]
    if found.by_tag:
        parts += [RateLine(("tag",)), *_parts(found.by_tag)] if parts else _parts(found.by_tag)
    if parts:
        console.print()
        show_rates(console, ("criterion" if found.by_criterion else "tag",), parts)
    console.print()
    facts = [("length", "; ".join(_length(found))), ("position", "; ".join(_position(found)))]
    show_facts(console, facts, width=10)


def _lines(found: Conclusion) -> Iterator[tuple[str, str | Text]]:
    from rich.text import Text

    own = found.win_rate
    counts = own.counts
    new, old = (one_line(name) for name in found.names)
    won, lost = wins_and_losses(own)
    yield (
        "outcomes",
        f"{new} wins {number(won)}, {old} wins {number(lost)}, ties {number(counts.ties)}, "
        f"inconsistent {number(counts.inconsistent)}, invalid {number(counts.invalid)}"
        + (f", pending {number(found.pending)}" if found.pending else ""),
    )
    if own.rate is None or own.low is None or own.high is None:
        yield "win rate", own.reason or "not enough data"
    else:
        yield (
            "win rate",
            Text.assemble(
                (rate(own.rate), f"bold {style_of(own)}"),
                f" ({interval(own.low, own.high)})  {_kind(found)}; {_TIES[own.ties]}",
            ),
        )
        yield "", Text.assemble("0 ", (bar(own.rate, own.low, own.high), style_of(own)), " 1")
    if own.sign_test is not None:
        test = own.sign_test
        wins = (test.wins_a, test.wins_b) if own.side == "A" else (test.wins_b, test.wins_a)
        yield (
            "sign test",
            f"{p_value(test.p_value)}: {number(wins[0])} to {counted(wins[1], test.by)}, exact",
        )
    if found.decision is not None and found.account is not None:
        p = found.decision.p_value
        yield "decision", found.account + ("" if p is None else f" {p_value(p)}.")
    if own.worst_case is not None:
        worst = own.worst_case
        yield (
            "worst case",
            f"{rate(worst.rate_if_lost)} if {_all(own.missing)} had been lost, "
            f"{rate(worst.rate_if_won)} if won; with their intervals "
            f"{interval(worst.low, worst.high)}",
        )


def _all(missing: int) -> str:
    if missing == 1:
        return "the 1 pair without a verdict"
    return f"all {number(missing)} pairs without a verdict"


def _kind(found: Conclusion) -> str:
    own = found.win_rate
    level = percent(own.level)
    prompts = counted(own.prompts or 0, "prompt")
    if not own.always_valid:
        clustered = f", clustered by {prompts}" if own.clustered else ""
        kind = "exact" if own.method == "exact" else "score"
        return f"{level} {kind} interval{clustered}"
    if found.decision is not None and own.ties == "half":
        return f"{level} interval of the sequential test on {prompts}"
    return f"{level} always-valid interval on {prompts}"


def _length(found: Conclusion) -> Iterator[str]:
    longer = found.length.longer_wins
    yield f"the longer answer won {counted_share(longer)}"
    for each in found.length.controlled:
        if each.rate is None or each.low is None or each.high is None:
            yield f"win rate at equal length: {each.reason or 'not enough data'}"
        else:
            # The fit knows no other way to count them.
            ties = "" if found.win_rate.ties == "half" else ", ties as half"
            told = f"{rate(each.rate)} ({interval(each.low, each.high)}){ties}"
            caution = f"; {each.caution}" if each.caution else ""
            yield f"win rate at equal length {told}{caution}"


def _position(found: Conclusion) -> Iterator[str]:
    position = found.position
    if not position.pairs:
        yield "not enough data: no pair was read in both orders"
        return
    yield f"both orders agree in {counted_share(position.consistency)}"
    if position.favours is not None:
        leaning = position.first_preference
        part = leaning.part if position.favours == "first" else leaning.of - leaning.part
        tested = "" if position.p_value is None else f", {p_value(position.p_value)}"
        yield (
            f"the judge favours the {position.favours} place: {number(part)} of "
            f"{counted(leaning.of, 'inconsistent pair')} lean there{tested}"
        )
    elif position.first_preference.of == 0:
        yield "no winner changed with the order"
    elif position.reason is not None:
        yield "too few changed with the order to say which place is favoured"
    elif position.p_value is not None:
        yield f"no place is shown to be favoured, {p_value(position.p_value)}"


def _parts(parts: Sequence[GroupRate]) -> Iterator[RateLine]:
    """The largest, where they are many; criteria in their order."""
    largest = sorted(range(len(parts)), key=lambda place: -parts[place].rate.n)[:_PARTS_AT_MOST]
    for place in sorted(largest):
        yield RateLine((parts[place].name,), parts[place].rate)
    if len(parts) > _PARTS_AT_MOST:
        yield RateLine((f"and {number(len(parts) - _PARTS_AT_MOST)} more in --json",))


def _comparisons(found: Conclusions) -> tuple[tuple[str, ...], list[RateLine]]:
    judges = len(found.judges) > 1
    titles = (*(("judge",) if judges else ()), "model", "against")
    return titles, [
        RateLine((*((each.judge,) if judges else ()), *each.names), each.win_rate)
        for each in found.conclusions
    ]


# What stands and what abstained, as a person reads it.


def show_abstentions(console: Console, found: Sequence[Abstentions]) -> None:
    from rich.text import Text

    for each in found:
        console.print()
        who = f"{one_line(each.judge)}: " if len(found) > 1 else ""
        facts = ((name, f"{who}{fact}") for name, fact in _abstention_lines(each))
        show_facts(console, facts, width=10)
        warned = each.check is not None and each.check.contradicted
        for place, note in enumerate(each.notes, start=1):
            # The warning is the last of them.
            warns = warned and place == len(each.notes)
            head, style = ("WARNING", "bold red") if warns else ("learned", "dim")
            show_hanging(console, Text(f"{head:<10}", style), Text(one_line(note)))


def _abstention_lines(found: Abstentions) -> list[tuple[str, str]]:
    if found.threshold is None:
        limit = f"nothing could be guaranteed for {found.min_agreement:g}, so all of them"
    else:
        limit = f"below {found.threshold:.3f}, which an agreement of {found.min_agreement:g} needs"
    return [
        ("abstained", f"{number(found.abstained)} of {number(found.judged)} pairs: {limit}"),
        ("coverage", counted_share(found.coverage)),
        ("agreement", f"with labels: {counted_share(found.agreement_kept)} of those that stand"),
        ("", f"of those that abstained {counted_share(found.agreement_abstained)}"),
    ]
