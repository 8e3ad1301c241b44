"""`evenhand label`: a person votes on the pairs of a run, blind and in random order."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evenhand.cli import run_options as ropt
from evenhand.cli import session
from evenhand.cli.report import RunArgument
from evenhand.errors import EvenhandError, InputError

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.cli.keys import Keys
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
    name: RunArgument,
    who: Annotated[
        str | None, typer.Option("--who", help="Who votes. Default: your name on this machine.")
    ] = None,
    only: Annotated[
        Literal["random", "unlabelled", "inconsistent", "disagreements", "abstained"] | None,
        typer.Option(
            "--only",
            help="random: all pairs; unlabelled: those without a label or a vote; inconsistent: "
            "where a judge changed with the order; disagreements: where judges differ, or differ "
            "from the label; abstained: where no judge's verdict stands. Default: random.",
        ),
    ] = None,
    drawn: Annotated[
        str | None,
        typer.Option(
            "--drawn",
            metavar="FILE",
            help="The pairs of a file that evenhand correct --draw wrote, from the top, each vote "
            "with its chance.",
        ),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option("--number", min=1, help="How many pairs in all. Default: all of them."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the order and the sides.")] = 0,
    store: ropt.StoreAddress = None,
) -> None:
    """Vote on the pairs of a run in the terminal: blind, in random order, and resumable.

    Exit codes: 0 all are voted on, or you quit; 2 bad input, no terminal, or the store failed;
    130 interrupted. Every vote is stored at once, so that the same command goes on.
    """
    from evenhand.cli.stores import opened_store
    from evenhand.report.lookup import find_run
    from evenhand.trust.labelling import begin_labelling

    try:
        if drawn is not None and only is not None:
            raise InputError("--drawn says which pairs, and so does --only; give one of them")
        if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
            raise InputError(
                "voting needs a terminal, and there is none; run it in one, or bring votes in "
                "from a file with evenhand votes import"
            )
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
    except EvenhandError as error:
        session.fail(error, as_json=False, of_pair=False)


def _of_draw(
    store: Store, run_id: int, who: str, file: str, *, number: int | None, seed: int
) -> Labelling:
    from evenhand.cli.run_inputs import data_path
    from evenhand.data import open_source
    from evenhand.data.drawn_pairs import read_drawn
    from evenhand.report.csv_table import unescape
    from evenhand.trust.labelling import begin_drawn

    with open_source(data_path(file)) as source:
        rows = read_drawn(source, unescape=unescape)
        return begin_drawn(store, run_id, who, rows=rows, number=number, seed=seed)


def _person(given: str | None) -> str:
    import getpass

    from evenhand.store.texts import unprintable
    from evenhand.store.vote_records import LONGEST_NAME

    if given is None:
        try:
            given = getpass.getuser()
        except (KeyError, OSError):
            raise InputError("nobody knows your name; give --who NAME") from None
    person = given.strip()
    if not 0 < len(person) <= LONGEST_NAME:
        raise InputError(f"--who has {len(person)} characters; give 1 to {LONGEST_NAME}")
    if character := unprintable(person):
        raise InputError(f"--who holds {character}, a character that is not seen; leave it out")
    return person


def _ask_all(labelling: Labelling, run: str, who: str, *, only: str) -> None:
    from evenhand.cli.keys import single_keys
    from evenhand.cli.show_label import show_beginning, show_end

    console = session.out()
    show_beginning(console, labelling, run, who, only=only)
    if labelling.next() is None:
        return
    with single_keys() as keys:
        _ask(console, labelling, keys)
    show_end(console, labelling)


def _ask(console: Console, labelling: Labelling, keys: Keys) -> None:
    from evenhand.cli.show_label import show_chosen, show_keys, show_last, show_question, tell

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
                    tell(console, "taken back")
                    break
                tell(console, "there is no vote to take back")
            elif pressed in _CHOICES:
                choice = _CHOICES[pressed]
                if choice == "tie" and not pair.allow_tie:
                    tell(console, "a tie is not allowed for this pair")
                    continue
                labelling.vote(asked, choice)
                show_chosen(console, choice)
                break
            else:
                tell(console, "that key does nothing here")
