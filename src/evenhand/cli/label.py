"""`evenhand label`: a person votes on the pairs of a run, blind and in random order."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.figures import counted
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.messages.numbers import number
from evenhand.present.terminal import one_line, plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from evenhand.contract import Pair
    from evenhand.store import Store
    from evenhand.trust.labelling import Choice, Labelling


_CHOICES: dict[str, Choice] = {
    **dict.fromkeys("1a", "first"),
    **dict.fromkeys("2b", "second"),
    "t": "tie",
    "s": "skip",
}
_UNDO, _WHOLE = "u", "w"
_QUIT = frozenset("q\x04")


def label(
    name: opt.RunArgument,
    who: Annotated[
        str | None, typer.Option("--who", help="Your name. Default: your user name.")
    ] = None,
    only: Annotated[
        Literal["random", "unlabelled", "inconsistent", "disagreements", "abstained"] | None,
        typer.Option(
            "--only",
            help="random: all pairs; unlabelled: pairs without a label or vote; "
            "inconsistent: pairs that flipped; disagreements: judges differ from each "
            "other or the label; abstained: pairs that no judge settled. Default: random.",
        ),
    ] = None,
    drawn: Annotated[
        str | None,
        typer.Option(
            "--drawn",
            metavar="FILE",
            help="Vote on the pairs in a file written by evenhand correct --draw, in order; each "
            "vote records its pair's probability of being drawn.",
        ),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option("--number", min=1, help="How many pairs to vote on. Default: all."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed for the order of pairs and sides.")] = 0,
    store: opt.StoreAddress = None,
) -> None:
    """Vote on a run's pairs in the terminal, blind; resumable.

    Every vote is saved immediately; run the same command to continue. Exit codes: 0 you
    voted on every pair, or quit; 2 bad input, no terminal or a store error; 130 interrupted.
    """
    from evenhand.cli.session import opened_store
    from evenhand.report.lookup import find_run
    from evenhand.trust.labelling import begin_labelling

    if drawn is not None and only is not None:
        raise InputError(Message("command.drawn_and_only"))
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError(Message("command.no_terminal"))
    person = _person(who)
    with opened_store(store) as opened:
        run = find_run(opened, name)
        chosen = only or "random"
        if drawn is not None:
            labelling = _of_draw(opened, run.id, person, drawn, number=number, seed=seed)
        else:
            labelling = begin_labelling(
                opened, run.id, person, only=chosen, number=number, seed=seed
            )
        _ask_all(labelling, run.name, person, only="drawn" if drawn is not None else chosen)


def _of_draw(
    store: Store, run_id: int, who: str, file: str, *, number: int | None, seed: int
) -> Labelling:
    from evenhand.cli.inputs import data_path
    from evenhand.data.source import open_source
    from evenhand.data.votes import read_drawn
    from evenhand.report.files import unescape
    from evenhand.trust.labelling import begin_drawn

    with open_source(data_path(file)) as source:
        rows = read_drawn(source, unescape=unescape)
        return begin_drawn(store, run_id, who, rows=rows, number=number, seed=seed)


def _person(given: str | None) -> str:
    import getpass

    from evenhand.store.records import LONGEST_NAME
    from evenhand.store.schema import unprintable

    if given is None:
        try:
            given = getpass.getuser()
        except (KeyError, OSError):
            raise InputError(Message("command.who_unknown")) from None
    person = given.strip()
    if not 0 < len(person) <= LONGEST_NAME:
        raise InputError(Message("command.who_too_long", n=len(person), most=LONGEST_NAME))
    if character := unprintable(person):
        raise InputError(Message("command.who_unprintable", character=character))
    return person


def _ask_all(labelling: Labelling, run: str, who: str, *, only: str) -> None:

    console = session.out()
    show_beginning(console, labelling, run, who, only=only)
    if labelling.next() is None:
        return
    with single_keys() as keys:
        _ask(console, labelling, keys)
    show_end(console, labelling)


def _ask(console: Console, labelling: Labelling, keys: Keys) -> None:

    while True:
        asked = labelling.next()
        if asked is None:
            keys.forget()
            show_last(console)
            if keys.read() != _UNDO:
                return
            labelling.undo()
            continue
        pair = labelling.pair(asked)
        show_question(console, labelling, pair, whole=False)
        keys.forget()
        while True:
            show_keys(console, ties=pair.allow_tie)
            pressed = keys.read()
            if pressed in _QUIT:
                console.print()
                return
            if pressed == _WHOLE:
                console.print()
                show_question(console, labelling, pair, whole=True)
            elif pressed == _UNDO:
                if labelling.undo():
                    show_message(console, "undone")
                    break
                show_message(console, "nothing to undo")
            elif pressed in _CHOICES:
                choice = _CHOICES[pressed]
                if choice == "tie" and not pair.allow_tie:
                    show_message(console, "ties are not allowed for this pair")
                    continue
                labelling.vote(asked, choice)
                show_chosen(console, choice)
                break
            else:
                show_message(console, "unknown key")


# Pairs as a person who votes on them sees them: nothing says whose they are or who judged what.

_SAID: dict[Choice, str] = {
    "first": "response 1 is better",
    "second": "response 2 is better",
    "tie": "a tie",
    "skip": "skipped",
}
_CHOSEN = {
    "random": "all pairs",
    "unlabelled": "pairs without a label or someone else's vote",
    "inconsistent": "pairs that flipped",
    "disagreements": "pairs on which judges disagree",
    "abstained": "pairs that no judge settled",
    "drawn": "drawn in the file",
}
_LEAST_LINES = 4
# Lines of a screen that are not the texts of responses.
_FRAME_LINES = 16


def show_beginning(
    console: Console, labelling: Labelling, run: str, who: str, *, only: str
) -> None:
    from rich.text import Text

    size, voted = len(labelling.queue), labelling.voted
    console.print(
        Text.assemble(
            (f"labelling run {one_line(run)}", "bold"),
            f" as {one_line(who)}: {counted(size, 'pair')} ({_CHOSEN[only]}), ",
            f"{number(voted)} voted",
        )
    )
    if voted == size:
        console.print("nothing left to vote on" if size else "nothing to vote on")
        return
    order = (
        "the order follows the draw, and the sides"
        if only == "drawn"
        else "the order and the sides"
    )
    console.print(Text(f"{order} are random; every vote is saved immediately", "dim"))


def show_question(console: Console, labelling: Labelling, pair: Pair, *, whole: bool) -> None:
    from rich.text import Text

    place = f"pair {number(labelling.voted + 1)} of {number(len(labelling.queue))}"
    console.print()
    console.rule(Text(place, "bold"), align="left")
    small = max(_LEAST_LINES, (console.height - _FRAME_LINES) // 4)
    large = max(_LEAST_LINES, (console.height - _FRAME_LINES) // 2)
    names = ", ".join(
        criterion.name + (f" ({criterion.description})" if criterion.description else "")
        for criterion in pair.criteria
    )
    for title, text, most in (
        ("judge by", one_line(names) or None, small),
        ("prompt", pair.prompt, small),
        ("context", pair.context, small),
        ("reference", pair.reference, small),
        ("response 1", pair.response_a, large),
        ("response 2", pair.response_b, large),
    ):
        if text is not None:
            console.print(Text(title, "bold cyan"))
            _show_text(console, text, most=None if whole else most)


def _show_text(console: Console, text: str, *, most: int | None) -> None:
    from rich.text import Text

    shown = plain(text)
    if not shown.text.strip():
        console.print(_dim("(empty)"))
        return
    if most is None:
        console.print(shown)
        return
    # No more than could fill the lines is wrapped: a text may have megabytes.
    lines = list(islice(shown.lines(console, console.width), most + 1))
    for line in lines[:most]:
        console.print(Text(line), soft_wrap=True)
    left = len(shown.text) - sum(map(len, lines[:most]))
    if len(lines) > most:
        console.print(_dim(f"… about {number(left)} more characters; press w to show them"))


def show_keys(console: Console, *, ties: bool) -> None:
    keys = (
        "1 or 2 is better, " + ("t tie, " if ties else "") + "s skip, u undo, w show all, q quit: "
    )
    console.print(_dim(keys), end="", soft_wrap=True)


def show_chosen(console: Console, choice: Choice) -> None:
    show_message(console, _SAID[choice])


def show_last(console: Console) -> None:
    console.print()
    console.print(_dim("that was the last one; u undo, any other key to finish: "), end="")


def show_end(console: Console, labelling: Labelling) -> None:
    size, voted = len(labelling.queue), labelling.voted
    left = f"; run the same command to vote on the other {number(size - voted)}"
    console.print(
        f"\n{number(voted)} of {counted(size, 'pair')} voted{left if voted < size else ''}"
    )


def show_message(console: Console, message: str) -> None:
    console.print(_dim(message))


def _dim(message: str) -> Text:
    from rich.text import Text

    return Text(message, "dim")


# Single keys from a terminal, without Enter.

# Also what a terminal sends when it is closed.
END = "\x04"
_ESCAPE = b"\x1b"
# The rest of an arrow key comes at once.
_REST_S = 0.05


class Keys(Protocol):
    def forget(self) -> None:
        """Drop what was typed before now: a key that was pressed too often must not answer a
        question that nobody has seen."""

    def read(self) -> str:
        """Wait for the next key that is a plain sign, in lower case. Ctrl-C interrupts as ever."""


@contextmanager
def single_keys() -> Iterator[Keys]:
    if sys.platform == "win32":
        import msvcrt

        yield _WindowsKeys(msvcrt)
        return
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal, termios.TCSADRAIN)
    try:
        yield _UnixKeys(terminal)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


class _UnixKeys:
    def __init__(self, terminal: int) -> None:
        self._terminal = terminal

    def forget(self) -> None:
        import termios

        termios.tcflush(self._terminal, termios.TCIFLUSH)

    def read(self) -> str:
        while True:
            byte = os.read(self._terminal, 1)
            if not byte:
                return END
            if byte == _ESCAPE:
                self._drop_sequence()
            elif byte < b"\x80":
                return byte.decode().lower()

    def _drop_sequence(self) -> None:
        """The rest of an arrow or a function key, up to its letter; or of Alt and a key."""
        byte = self._rest()
        if byte in (b"[", b"O"):
            byte = self._rest()
            while byte and not b"@" <= byte <= b"~":
                byte = self._rest()

    def _rest(self) -> bytes:
        if not select.select([self._terminal], [], [], _REST_S)[0]:
            return b""
        return os.read(self._terminal, 1)


class _WindowsKeys:
    def __init__(self, console: Any) -> None:
        self._console = console

    def forget(self) -> None:
        while self._console.kbhit():
            self._console.getwch()

    def read(self) -> str:
        while True:
            key: str = self._console.getwch()
            if key in ("\x00", "\xe0"):  # an arrow or a function key; its second half follows
                self._console.getwch()
            elif key == "\x03":
                raise KeyboardInterrupt
            else:
                return key.lower()
