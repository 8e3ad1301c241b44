"""`evenhand demo`: two acts over a dozen pairs, and what to try next."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.errors import EvenhandError, InputError

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.contract import Verdict
    from evenhand.demo import DemoPair
    from evenhand.judges import Judge
    from evenhand.settings import Settings

# Which judge a key means when no judge is named: each provider's small, cheap model.
_JUDGE_FOR_KEY = (
    ("OPENAI_API_KEY", "openai:gpt-5-mini"),
    ("ANTHROPIC_API_KEY", "anthropic:claude-haiku-4-5"),
)
_SHOWN_WHOLE = 3


def demo(
    judge: opt.JudgeName = None,
    base_url: opt.BaseUrl = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Use the example answers even if a key is set.")
    ] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="Show every verdict of the second act whole.")
    ] = False,
) -> None:
    """See it work: a tiny model follows the place, a strong judge gives reasons."""
    from evenhand.settings import load_settings

    try:
        settings = opt.with_judge_options(load_settings(), judge=judge, base_url=base_url)
        session.run_async(_play(settings, offline=offline, whole=whole))
    except EvenhandError as error:
        session.fail(error, as_json=False)


async def _play(settings: Settings, *, offline: bool, whole: bool) -> None:
    from evenhand.demo import demo_pairs

    console = session.out()
    pairs = demo_pairs()
    await _first_act(console, pairs, settings)
    await _second_act(console, pairs, settings, offline=offline, whole=whole)
    _what_next(console)


async def _first_act(console: Console, pairs: Sequence[DemoPair], settings: Settings) -> None:
    from rich.text import Text

    from evenhand import api, judges
    from evenhand.cli.terminal import clean
    from evenhand.demo import tally

    console.rule(Text("Act 1: a tiny model judges, live", "bold"), align="left")
    console.print(
        f"{len(pairs)} pairs, each shown in both orders. A judge that reads the content "
        "names the same winner twice.\n"
    )
    try:
        embedded = judges.open_judge("local", api.judge_options(replace(settings, base_url=None)))
    except InputError as error:
        console.print(Text.assemble(("left out  ", "yellow"), error.message, "\n"))
        return
    verdicts = await _judge_all(embedded, pairs, "the embedded model judges")
    for pair, verdict in zip(pairs, verdicts, strict=True):
        console.print(
            Text.assemble(
                f"{pair.pair.id:<8} ",
                _places(verdict),
                (f"  {_short(clean(pair.pair.prompt))}", "dim"),
            )
        )
    counted = tally(verdicts)
    interval = counted.followed_place_interval
    bounds = f" (95 % interval {interval[0]:.0%} to {interval[1]:.0%})" if interval else ""
    console.print(
        Text.assemble(
            "\nIts verdict merely followed the place in ",
            (f"{counted.followed_place} of {counted.pairs} pairs", "bold"),
            f"{bounds}: the first {counted.first_place} times, the second "
            f"{counted.second_place} times.\nA tool that asks once would have reported a winner "
            "each time. evenhand asks in both orders and tells you.\n",
        )
    )


def _places(verdict: Verdict) -> tuple[str, str]:
    position = verdict.position_consistency
    first = position.first_pass_winner if position else None
    second = position.second_pass_winner if position else None
    if (first, second) == ("A", "B"):
        return "took the first-shown twice ", "yellow"
    if (first, second) == ("B", "A"):
        return "took the second-shown twice", "yellow"
    if first == second and first is not None:
        return f"said {first:<4} in both orders  ", "green"
    return f"said {first}, then {second}".ljust(27), "yellow"


async def _second_act(
    console: Console, pairs: Sequence[DemoPair], settings: Settings, *, offline: bool, whole: bool
) -> None:
    from rich.text import Text

    from evenhand.cli.show import headline, show_pair, show_verdict
    from evenhand.contract import Outcome

    console.rule(Text("Act 2: a strong judge, with reasons", "bold"), align="left")
    judge, described = _strong_judge(settings, offline=offline)
    console.print(Text(f"Judged by {described}.\n"))
    verdicts = await _judge_all(judge, pairs, "the judge answers")
    chosen = _worth_showing(verdicts) if not whole else list(range(len(pairs)))
    for index in chosen:
        pair, verdict = pairs[index], verdicts[index]
        show_pair(console, pair.pair, title=str(pair.pair.id))
        show_verdict(console, verdict)
        console.print()
    console.rule(Text("All of them", "bold"), align="left")
    for pair, verdict in zip(pairs, verdicts, strict=True):
        style = "yellow" if verdict.outcome is Outcome.INCONSISTENT else ""
        confidence = "–" if verdict.confidence is None else f"{verdict.confidence:.2f}"
        console.print(
            Text.assemble(
                f"{pair.pair.id:<8} ",
                (f"{headline(verdict):<48}", style),
                (f"{confidence:>5}   we say {pair.label}", "dim"),
            )
        )


def _strong_judge(settings: Settings, *, offline: bool) -> tuple[Judge, str]:
    from evenhand import api, judges
    from evenhand.demo import EXAMPLES_LABEL, answers_file

    spec = None if offline else settings.judge
    if spec is None and not offline:
        spec = next((name for key, name in _JUDGE_FOR_KEY if os.environ.get(key)), None)
    if spec is not None:
        return judges.open_judge(spec, api.judge_options(settings)), f"{spec} (your key, 24 calls)"
    replayed = judges.open_judge(f"replay:{answers_file()}")
    return replayed, f"a replay of {EXAMPLES_LABEL}: no model was asked"


def _worth_showing(verdicts: Sequence[Verdict]) -> list[int]:
    """A win, an inconsistent pair and a Chinese one: what a newcomer should see once."""
    from evenhand.contract import Outcome

    wanted = (
        lambda v: v.outcome is Outcome.WIN,
        lambda v: v.outcome is Outcome.INCONSISTENT,
        lambda v: v.metadata.locale == "zh" and v.outcome is Outcome.WIN,
    )
    found: list[int] = []
    for fits in wanted:
        found += [i for i, v in enumerate(verdicts) if fits(v) and i not in found][:1]
    return sorted(found)[:_SHOWN_WHOLE]


async def _judge_all(judge: Judge, pairs: Sequence[DemoPair], what: str) -> list[Verdict]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from evenhand.comparer import compare
    from evenhand.procedure import Procedure

    verdicts: list[Verdict] = []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    async with session.opened(judge):
        with Progress(*columns, console=session.err(), transient=sys.stderr.isatty()) as progress:
            task = progress.add_task(what, total=len(pairs))
            for demo_pair in pairs:
                procedure = Procedure(locale=demo_pair.locale)
                verdicts.append(await compare(demo_pair.pair, judge, procedure))
                progress.advance(task)
    return verdicts


def _short(text: str, width: int = 48) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= width else one_line[: width - 1] + "…"


def _what_next(console: Console) -> None:
    from rich.text import Text

    console.print()
    console.rule(Text("Try next", "bold"), align="left")
    for command in (
        'evenhand compare -p "What is 7 times 8?" --a "56" --b "54, I think" -c accuracy '
        "--judge local",
        'evenhand prompt -p "What is 7 times 8?" --a "56" --b "54, I think" -c accuracy',
        "evenhand doctor --judge openai:MODEL",
    ):
        console.print(Text(f"  {command}"), soft_wrap=True)
