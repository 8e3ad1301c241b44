"""A run on the terminal: its estimate, its progress, its summary; the first Ctrl-C lets requests in
flight finish, the second leaves at once. Loaded only when a run begins.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

from evenhand import quantities
from evenhand.cli import session
from evenhand.cli.figures import counted
from evenhand.errors import InputError, Status
from evenhand.judges.protocol import news_of
from evenhand.messages import Message, chained
from evenhand.messages.numbers import dollars, duration, number, percent, points, short
from evenhand.present.terminal import (
    one_line,
    table_of,
    without_commands,
)
from evenhand.runs import Observer, Stop

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, RenderableType
    from rich.live import Live

    from evenhand.judges.protocol import Judge
    from evenhand.runs import Estimate, Progress, Range, RunSummary, StoppedBy
    from evenhand.stats.always_valid import AlwaysValidInterval


# Ctrl-C in a run: the first lets what is in flight come home, the second leaves at once.


@contextlib.contextmanager
def _stop_on_interrupt(
    stop: Stop,
    say: Callable[[str], None],
    leave: Callable[[], NoReturn],
    *,
    by_the_batch: bool,
) -> Iterator[None]:
    """For SIGINT and SIGTERM, while the body runs."""
    loop = asyncio.get_running_loop()
    interrupted = False

    def tell() -> None:
        nonlocal interrupted
        if interrupted:
            leave()
        interrupted = True
        stop.ask("interrupt")
        say(Message("progress.stopping_batches" if by_the_batch else "progress.stopping"))

    def tell_from_handler(*_: object) -> None:
        loop.call_soon_threadsafe(tell)

    before = {}
    for each in (signal.SIGINT, signal.SIGTERM):
        before[each] = signal.getsignal(each)
        try:
            loop.add_signal_handler(each, tell)
        except NotImplementedError:  # Windows
            signal.signal(each, tell_from_handler)
    try:
        yield
    finally:
        for each, handler in before.items():
            with contextlib.suppress(NotImplementedError):
                loop.remove_signal_handler(each)
            if handler is not None:
                signal.signal(each, handler)


# A run on the terminal: what it will take, how it goes, what it came to.

_LOGGED_EVERY_S = 10.0
_LOGGED_AT_MOST_EVERY_S = 2.0
_STILL_LOGGED_EVERY_S = 600.0
_READ_SHOWN_EVERY = 50_000


@contextlib.contextmanager
def watching(
    judges: Sequence[Judge],
    *,
    as_json: bool,
    confirm_above: float | None,
    by_the_batch: bool = False,
) -> Iterator[tuple[ProgressLog, Stop]]:
    """A display that moves where standard error is a terminal, else a line now and then; and what
    Ctrl-C stops."""
    stop = Stop()
    view = ProgressDisplay if sys.stderr.isatty() else ProgressLog
    with (
        view(judges, as_json=as_json, confirm_above=confirm_above) as opened,
        _stop_on_interrupt(stop, opened.say, opened.leave, by_the_batch=by_the_batch),
    ):
        yield opened, stop


class ProgressLog(Observer):
    """Plain lines on standard error, for logs and pipes."""

    def __init__(
        self, judges: Sequence[Judge], *, as_json: bool, confirm_above: float | None
    ) -> None:
        self._judges = judges
        self._as_json = as_json
        self._confirm_above = confirm_above
        self._news = [news_of(judge) for judge in judges]
        self._logged = time.monotonic()
        self._tenths = 0
        self._stand = (0, 0)
        self._trouble_shown = float("-inf")

    def __enter__(self) -> ProgressLog:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to put back."""

    def say(self, text: str) -> None:
        sys.stderr.write(without_commands(one_line(text)) + "\n")
        sys.stderr.flush()

    def leave(self) -> NoReturn:
        """At once: whatever still waits for a judge or for a disk is not waited for. A store does
        not mind, and what it has not got is asked again."""
        self.__exit__()
        self.say(Message("progress.quit"))
        os._exit(Status.INTERRUPTED)

    def reading(self, rows: int) -> None:
        if rows % _READ_SHOWN_EVERY == 0:
            self.say(Message("progress.rows_read", n=rows))

    def generating(self, done: int, total: int, trouble: str | None = None) -> None:
        if trouble is not None:
            self.tell_trouble(Message("progress.answers", done=done, total=total), trouble)
            return
        now = time.monotonic()
        if done < total and now - self._logged < _LOGGED_EVERY_S:
            return
        self._logged = now
        self.say(Message("progress.answers", done=done, total=total))

    def began(self, run: str, store: str, *, done: int, total: int) -> None:
        self._tenths = 10 * done // max(1, total)
        for judge in self._judges:
            if judge.traits.caveat:
                self.say(f"note  {judge.name}: {judge.traits.caveat}")
        amount, judges = quantities.counted(total, "pair"), len(self._judges)
        if judges > 1:
            pairs = quantities.counted(total // judges, "pair")
            amount = Message("progress.judgments", n=total, pairs=pairs, judges=judges)
        own = {"run": run, "amount": amount}
        if done == total:
            self.say(Message("progress.all_judged", n=total, **own))
        elif done:
            self.say(Message("progress.continues", done=done, **own))
        else:
            self.say(Message("progress.begun", store=store, **own))

    def approve(self, estimate: Estimate) -> None:
        self.say(f"at most about {_estimated(estimate)}")
        limit, cost = self._confirm_above, estimate.cost_usd
        if limit is None or cost is None or cost.high <= limit:
            return
        if self._as_json or not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
            raise InputError(Message("command.costs_more", limit=limit, cost=dollars(cost.high)))
        sys.stderr.write("continue? [y/N] ")
        sys.stderr.flush()
        with _ordinary_interrupts():
            answer = sys.stdin.readline()
        if answer.strip().lower() not in ("y", "yes"):
            raise InputError(Message("command.not_begun"))

    def announce(self, what: str) -> None:
        self.say(what)

    def tell_news(self) -> None:
        for news in self._news:
            for each in news():
                self.say(str(each))

    def tell_trouble(self, so_far: str, trouble: str) -> None:
        """At once, and then as often as all else."""
        now = time.monotonic()
        if now - self._trouble_shown >= _LOGGED_EVERY_S:
            self._trouble_shown = self._logged = now
            self.say(f"{so_far} · {trouble}")

    def progress(self, progress: Progress) -> None:
        self.tell_news()
        if progress.trouble is not None and not progress.stopping:
            self.tell_trouble(_so_far(progress), progress.trouble)
            return
        now = time.monotonic()
        tenths = 10 * progress.done // max(1, progress.total)
        since = now - self._logged
        grown = tenths > self._tenths and since >= _LOGGED_AT_MOST_EVERY_S
        stand = (progress.done, progress.in_flight)
        # What is at a provider may stand still for hours.
        quiet = progress.limit == 0 and stand == self._stand and since < _STILL_LOGGED_EVERY_S
        if quiet or (since < _LOGGED_EVERY_S and not grown):
            return
        self._logged, self._tenths, self._stand = now, tenths, stand
        self.say(" · ".join([_so_far(progress), *_facts(progress)]))


@contextlib.contextmanager
def _ordinary_interrupts() -> Iterator[None]:
    """While the user is asked, the event loop that would handle Ctrl-C is blocked."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class ProgressDisplay(ProgressLog):
    """The same on a terminal, drawn over itself."""

    def __init__(
        self, judges: Sequence[Judge], *, as_json: bool, confirm_above: float | None
    ) -> None:
        super().__init__(judges, as_json=as_json, confirm_above=confirm_above)
        self._console: Console = session.err()
        self._live: Live | None = None
        self._last: Progress | None = None

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        from rich.text import Text

        session.print_line(self._console, Text(one_line(text)))

    def progress(self, progress: Progress) -> None:
        if self._live is None:
            from rich.live import Live

            self._live = Live(console=self._console, refresh_per_second=4, transient=True)
            self._live.start()
        self.tell_news()
        self._live.update(_drawn(progress))


def _drawn(progress: Progress) -> RenderableType:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    head = Table.grid(padding=(0, 1), expand=False)
    bar = ProgressBar(total=max(1, progress.total), completed=progress.done, width=30)
    head.add_row(bar, Text(_so_far(progress), style="bold"))
    lines = [Text(fact) for fact in _grouped(progress)]
    return Group(head, *lines)


def _so_far(progress: Progress) -> str:
    return f"{number(progress.done)}/{counted(progress.total, 'pair')}"


def _facts(progress: Progress) -> list[str]:
    return [fact for line in _grouped(progress) for fact in line.split(" · ")]


def _grouped(progress: Progress) -> list[str]:
    pace = []
    if progress.pairs_per_s is not None:
        pace.append(f"{progress.pairs_per_s:.1f} pairs/s")
    if progress.remaining_s is not None and progress.done < progress.total:
        pace.append(f"{duration(progress.remaining_s)} left")
    pace.append(counted(progress.calls, "call"))
    if progress.limit:
        pace.append(f"{progress.in_flight} of {progress.limit} in flight")
    else:
        pace.append(f"{counted(progress.in_flight, 'request')} at the provider")
    if progress.cost_usd is not None:
        pace.append(f"{dollars(progress.cost_usd)} spent")
    if progress.reused:
        pace.append(f"{counted(progress.reused, 'pass', 'passes')} reused")
    if progress.trouble is not None and not progress.stopping:
        pace.append(one_line(progress.trouble))
    elif progress.paused_s > 1:
        pace.append(f"waiting {duration(progress.paused_s)} as the judge asked")
    if progress.stopping:
        pace.append("stopping")
    return [" · ".join(pace), " · ".join(_outcomes(progress))]


def _outcomes(progress: Progress) -> list[str]:
    won = progress.win_rate_b
    parts = [
        f"A {number(progress.wins_a)}, B {number(progress.wins_b)}, ties {number(progress.ties)}"
    ]
    if won is not None:
        parts.append(f"B's win rate {_running_rate(won)}")
    flips = progress.flips
    inconsistent = f"inconsistent {number(progress.inconsistent)}"
    parts.append(inconsistent if flips is None else f"{inconsistent} ({_running_rate(flips)})")
    parts.append(f"invalid {number(progress.invalid)}")
    unread = progress.unread_passes
    parts.append(
        f"unread {number(progress.unread)}" + (f" ({_running_rate(unread)})" if unread else "")
    )
    return parts


def _running_rate(watched: AlwaysValidInterval) -> str:
    """Of a run that goes on."""
    return f"{percent(watched.mean)} ({points(watched.low)}–{points(watched.high)})"


def _tokens(amount: Range) -> str:
    return f"{short(amount.low)} to {short(amount.high)}"


def _estimated(estimate: Estimate) -> str:
    if estimate.batch and not estimate.calls:
        return f"{counted(estimate.pairs, 'pair')}, nothing left to submit"
    parts = [counted(estimate.pairs, "pair"), counted(estimate.calls, "call")]
    if estimate.input_tokens.high:
        parts.append(f"{_tokens(estimate.input_tokens)} tokens in")
        parts.append(f"{_tokens(estimate.output_tokens)} out")
    if estimate.cost_usd is None:
        parts.append("cost unknown (set --price)")
    elif estimate.cost_usd.high:
        cost = f"{dollars(estimate.cost_usd.low)} to {dollars(estimate.cost_usd.high)}"
        parts.append(f"{cost} at batch rates" if estimate.batch else cost)
    else:
        parts.append("no cost")
    return ", ".join(parts)


def show_summary(
    out: Console, err: Console, summary: RunSummary, store: str | Path | None = None
) -> None:
    from rich.text import Text

    for note in summary.notes:
        session.print_line(err, Text(f"note  {one_line(note)}"))
    out.print(Text(f"run {one_line(summary.run)}", style="bold"))
    counts = ("A wins", "B wins", "ties", "inconsistent", "invalid", "pending")
    table = table_of("judge", *counts, left=("judge",))
    for judge in summary.judges:
        cells = (judge.wins_a, judge.wins_b, judge.ties, judge.inconsistent, judge.invalid)
        table.add_row(Text(one_line(judge.judge)), *map(number, (*cells, judge.pending)))
    if summary.judges:
        out.print(table)
    skipped = f", {counted(summary.skipped_rows, 'row')} skipped" if summary.skipped_rows else ""
    pairs = counted(summary.pairs, "pair")
    out.print(Text(f"{pairs}{skipped}, stored in {one_line(summary.store)}"))
    out.print(Text(_spent(summary)))
    show_errors(err, summary, store)


def show_errors(err: Console, summary: RunSummary, store: str | Path | None = None) -> None:
    """Why it ended, and how it goes on, a line each: also where the rest is JSON."""
    from rich.text import Text

    for line in _closing(summary, store):
        session.print_line(err, Text(line))


def _spent(summary: RunSummary) -> str:
    parts = [counted(summary.calls, "call")]
    if summary.reused_passes:
        parts.append(f"{counted(summary.reused_passes, 'pass', 'passes')} reused")
    if summary.input_tokens is not None and summary.output_tokens is not None:
        parts.append(f"{counted(summary.input_tokens, 'token')} in")
        parts.append(f"{number(summary.output_tokens)} out")
    else:
        parts.append("tokens not reported by the judge")
    parts.append("cost unknown" if summary.cost_usd is None else dollars(summary.cost_usd))
    parts.append(duration(summary.seconds))
    return ", ".join(parts)


def _closing(summary: RunSummary, store: str | Path | None) -> list[str]:
    lines = []
    by, pending = summary.stopped_by, summary.pending
    if summary.error is not None:
        lines.append(f"error  {one_line(summary.error.message)}")
    if by in ("decided", "certain", "budget"):
        ended = [Message("progress.ended", why=why_stopped(by))]
        if pending:
            unasked = "progress.not_asked" if by == "budget" else "progress.not_needed"
            ended.append(Message(unasked, n=pending))
        lines.append(chained(ended))
    elif by is not None:
        lines.append(Message("progress.stopped", why=why_stopped(by), n=pending))
    elif summary.invalid:
        silent = all(each.judge.startswith("replay:") for each in summary.judges if each.invalid)
        command = session.pasted("runs", "show", summary.run, store=store)
        code = "progress.invalid" if silent else "progress.invalid_again"
        lines.append(Message(code, n=summary.invalid, command=command))
    return lines


def why_stopped(by: StoppedBy) -> Message:
    return Message(f"progress.why_{by}")
