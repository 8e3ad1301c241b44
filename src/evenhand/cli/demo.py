"""`evenhand demo`: two acts over a dozen pairs, and what to try next."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.options import JudgeChoices, ServerChoices, grouped
from evenhand.errors import (
    EvenhandError,
    InputError,
    JudgeAuthentication,
    JudgeQuotaExceeded,
    JudgeUnreachable,
)
from evenhand.messages import Message

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from evenhand.contract import Failure, Locale, Verdict
    from evenhand.demo import DemoPair
    from evenhand.judges.protocol import Judge
    from evenhand.judging.config import JudgeConfig

# Which judge a key means when no judge is named: each provider's small, cheap model.
_JUDGE_FOR_KEY = (
    ("OPENAI_API_KEY", "openai:gpt-5-mini"),
    ("ANTHROPIC_API_KEY", "anthropic:claude-haiku-4-5"),
)
_SHOWN_WHOLE = 3
# What stands in the way of one pair here stands in the way of all of them.
_HOPELESS = (JudgeAuthentication, JudgeQuotaExceeded, JudgeUnreachable)


@grouped
def demo(
    *,
    judge: opt.JudgeName = None,
    server: ServerChoices,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Ask a real judge in act 2 (--judge, your configured judge, or the one your "
            "key is for): 24 calls.",
        ),
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Use the example answers (default without --live).")
    ] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="Show every verdict of act 2 in full.")
    ] = False,
    pairs: Annotated[
        int | None,
        typer.Option("--pairs", min=1, help="Judge only this many pairs, for slow machines."),
    ] = None,
) -> None:
    """See it work: a tiny model live, then a strong judge's reasons.

    It costs nothing unless --live is given.
    """
    if live and offline:
        raise InputError(Message("command.demo_live_and_offline"))
    if not live and (judge is not None or server.values):
        raise InputError(Message("command.demo_judge_unasked"))
    strong = _strong_judge(judge, base_url=server.base_url) if live else _example_judge()
    session.run_async(_play(strong, whole=whole, most=pairs))


class _Demonstrated(NamedTuple):
    """A judge, how it is asked in a pair's language, and what is said of it."""

    judge: Judge
    config: Callable[[Locale], JudgeConfig]
    described: str = ""


async def _play(strong: _Demonstrated, *, whole: bool, most: int | None) -> None:
    from evenhand.demo import demo_pairs

    console = session.out()
    pairs = demo_pairs()[:most]
    await _first_act(console, pairs)
    if console.quiet:  # the reader went away, and the second act may cost money
        return
    await _second_act(console, pairs, strong, whole=whole)
    _what_next(console)


async def _first_act(console: Console, pairs: Sequence[DemoPair]) -> None:
    from rich.text import Text

    from evenhand.contract import Verdict
    from evenhand.demo import tally
    from evenhand.present.terminal import one_line

    console.rule(Text("Act 1: a tiny model judges, live", "bold"), align="left")
    console.print(
        f"{len(pairs)} pairs, each shown in both orders. A judge that reads the content "
        "names the same winner twice.\n"
    )
    try:
        config = partial(_settings_for, "local", None)
        embedded = _Demonstrated(config("en").open_judge(), config)
        settled = await _judge_all(embedded, pairs, "the embedded model is judging")
    except EvenhandError as error:
        left_out = Text.assemble(("skipped  ", "yellow"), one_line(error.message), "\n")
        session.print_line(console, left_out)
        return
    for pair, result in zip(pairs, settled, strict=True):
        console.print(
            Text.assemble(
                f"{pair.pair.id:<8} ",
                _places(result),
                (f"  {one_line(pair.pair.prompt)}", "dim"),
            ),
            no_wrap=True,
            overflow="ellipsis",
        )
    verdicts = [result for result in settled if isinstance(result, Verdict)]
    counted = tally(verdicts)
    interval = counted.followed_place_interval
    bounds = f" (95% interval {interval[0]:.0%} to {interval[1]:.0%})" if interval else ""
    console.print(
        Text.assemble(
            "\nPosition alone decided ",
            (f"{counted.followed_place} of {counted.pairs} pairs", "bold"),
            f"{bounds}: first {counted.first_place} times, second {counted.second_place} "
            "times.\nA tool that asks once would have reported a winner each time. evenhand "
            "asks in both orders and tells you.\n",
        )
    )


def _places(result: Verdict | Failure) -> tuple[str, str]:
    from evenhand.contract import Failure

    if isinstance(result, Failure):
        return "no valid verdict           ", "red"
    position = result.position_consistency
    first = position.first_pass_winner if position else None
    second = position.second_pass_winner if position else None
    if (first, second) == ("A", "B"):
        return "chose the first one twice  ", "yellow"
    if (first, second) == ("B", "A"):
        return "chose the second one twice ", "yellow"
    if first == second and first is not None:
        return f"chose {first} in both orders".ljust(27), "green"
    return f"chose {first}, then {second}".ljust(27), "yellow"


async def _second_act(
    console: Console, pairs: Sequence[DemoPair], strong: _Demonstrated, *, whole: bool
) -> None:
    from rich.text import Text

    from evenhand.cli.compare import show_failure, show_pair, show_verdict
    from evenhand.contract import Failure

    console.rule(Text("Act 2: a strong judge, with reasons", "bold"), align="left")
    console.print(Text(f"Judged by {strong.described}.\n"))
    results = await _judge_all(strong, pairs, "the judge is answering")
    for index in range(len(pairs)) if whole else _worth_showing(results):
        pair, result = pairs[index], results[index]
        show_pair(console, pair.pair, title=str(pair.pair.id))
        if isinstance(result, Failure):
            show_failure(console, result)
        else:
            show_verdict(console, result)
        console.print()
    console.rule(Text("All verdicts", "bold"), align="left")
    for pair, result in zip(pairs, results, strict=True):
        console.print(_summary(pair, result))


def _summary(pair: DemoPair, result: Verdict | Failure) -> Text:
    from rich.text import Text

    from evenhand.cli.compare import headline
    from evenhand.contract import Failure, Outcome
    from evenhand.present.terminal import one_line

    if isinstance(result, Failure):
        reason = one_line(result.error.message)
        return Text.assemble(f"{pair.pair.id:<8} ", ("Invalid: ", "red"), (reason, "dim"))
    style = "yellow" if result.outcome is Outcome.INCONSISTENT else ""
    confidence = "–" if result.confidence is None else f"{result.confidence:.2f}"
    return Text.assemble(
        f"{pair.pair.id:<8} ",
        (f"{headline(result):<48}", style),
        (f"{confidence:>5}   our label: {pair.label}", "dim"),
    )


def _strong_judge(named: str | None, *, base_url: list[str] | None) -> _Demonstrated:
    from evenhand.present.terminal import one_line

    if _settings_for(named, base_url, "en").judge is None:
        named = next((name for key, name in _JUDGE_FOR_KEY if os.environ.get(key)), None)
    config = partial(_settings_for, named, base_url)
    judge = config("en").judge
    if judge is None:
        raise InputError(Message("command.demo_no_judge"))
    return _Demonstrated(config("en").open_judge(), config, f"{one_line(judge)}, live")


def _example_judge() -> _Demonstrated:
    from evenhand.demo import EXAMPLES_LABEL, answers_file
    from evenhand.judges.registry import open_judge
    from evenhand.judging.config import JudgeConfig

    # Its answers are there in one form, whatever the settings say.
    return _Demonstrated(
        open_judge(f"replay:{answers_file()}"),
        lambda locale: JudgeConfig(locale=locale),
        f"a replay of {EXAMPLES_LABEL}; no model was asked (use --live to ask yours)",
    )


def _settings_for(named: str | None, base_url: list[str] | None, locale: Locale) -> JudgeConfig:
    return JudgeChoices().config(named, base_url=base_url, locale=locale)


def _worth_showing(results: Sequence[Verdict | Failure]) -> list[int]:
    """A win, an inconsistent pair and a Chinese one: what a newcomer should see once."""
    from evenhand.contract import Outcome

    wanted = (
        (Outcome.WIN, None),
        (Outcome.INCONSISTENT, None),
        (Outcome.WIN, "zh"),
    )
    chosen: list[int] = []
    for outcome, locale in wanted:
        chosen += [
            index
            for index, result in enumerate(results)
            if result.metadata.outcome is outcome
            and locale in (None, result.metadata.locale)
            and index not in chosen
        ][:1]
    return sorted(chosen)[:_SHOWN_WHOLE]


async def _judge_all(
    by: _Demonstrated, pairs: Sequence[DemoPair], what: str
) -> list[Verdict | Failure]:
    """Every pair's verdict or failure; an error only where there is no verdict at all."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from evenhand.contract import Verdict
    from evenhand.judging.comparison import settle

    results: list[Verdict | Failure] = []
    errors: list[EvenhandError] = []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    async with session.opened(by.judge):
        with Progress(*columns, console=session.err(), transient=sys.stderr.isatty()) as progress:
            task = progress.add_task(what, total=len(pairs))
            for demo_pair in pairs:
                settled = await settle(demo_pair.pair, by.judge, by.config(demo_pair.locale))
                if isinstance(settled, Verdict):
                    results.append(settled)
                else:
                    failure, error = settled
                    results.append(failure)
                    errors.append(error)
                    if isinstance(error, _HOPELESS) and len(errors) == len(results):
                        raise error
                progress.advance(task)
    if len(errors) == len(pairs):
        raise errors[0]
    return results


def _what_next(console: Console) -> None:
    from rich.text import Text

    console.print()
    console.rule(Text("Try next", "bold"), align="left")
    for command in (
        'evenhand compare -p "What is 7 times 8?" --a "56" --b "54, I think" -c accuracy '
        "--judge local",
        'evenhand prompt -p "What is 7 times 8?" --a "56" --b "54, I think" -c accuracy',
        "evenhand doctor",
    ):
        console.print(Text(f"  {command.replace('evenhand', _program(), 1)}"), soft_wrap=True)


def _program() -> str:
    """What a shell calls this command: `make demo` runs it in a virtual environment that the
    caller's shell has not activated."""
    own = Path(sys.prefix) / "bin" / "evenhand"
    named = shutil.which("evenhand")
    if not own.is_file() or (named is not None and Path(named).resolve() == own.resolve()):
        return "evenhand"
    if own.is_relative_to(Path.cwd()):
        own = own.relative_to(Path.cwd())
    return shlex.quote(str(own))
