"""Juries kept for later runs: who sits on them, how their votes count, and who may take a seat."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.report.whole_file import written_whole
from evenhand.stats.jury import Jury
from evenhand.trust.jurors import Juror

_NAME = re.compile(r"[\w][\w.+-]{0,99}")
_MAKE = "make one with evenhand jury RUN --save NAME"


class SavedJury(Model):
    """`runs` are those whose judges and labels it was made of; they need not be there any more."""

    format: Literal["evenhand jury 1"] = "evenhand jury 1"
    runs: tuple[str, ...]
    jurors: tuple[Juror, ...]
    quorum: int
    jury: Jury

    def learned_on(self, runs: Sequence[str]) -> bool:
        """Whether labels of one of these runs have taught its weights."""
        return self.jury.weights is not None and bool(set(self.runs) & set(runs))


def save_jury(saved: SavedJury, name: str | Path, *, overwrite: bool = False) -> Path:
    path = jury_path(name)
    with written_whole(path, overwrite=overwrite, make_folder=_is_named(name)) as stream:
        stream.write(saved.model_dump_json(indent=2).encode() + b"\n")
    return path


def open_jury(name: str | Path) -> SavedJury:
    """By the name it was saved under, or a path that ends in .json."""
    path = jury_path(name)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        known = sorted(each.stem for each in path.parent.glob("*.json")) if _is_named(name) else []
        there = f"there are {', '.join(known[:5])}" if known else f"{path} does not exist"
        raise InputError(f"there is no jury {str(name)!r} ({there}); {_MAKE}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}; {_MAKE}") from None
    try:
        saved = SavedJury.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise InputError(f"{path} is no jury ({where}: {first['msg']}); {_MAKE}") from None
    _check(saved, path)
    return saved


def jury_path(name: str | Path) -> Path:
    if not _is_named(name):
        return Path(name).expanduser()
    if not _NAME.fullmatch(str(name)):
        raise InputError(
            f"{str(name)!r} is no name for a jury; use letters, digits, . + - and _, "
            "or a path that ends in .json"
        )
    from platformdirs import user_data_dir

    return Path(user_data_dir("evenhand")) / "juries" / f"{name}.json"


def seats_of(saved: SavedJury, jurors: Sequence[Juror], *, forced: bool) -> list[int | None]:
    """Whose votes stand on each seat of the jury, as places in `jurors`.

    `forced`: a judge of the same name takes the seat whatever its prompt; else the next that has
    none; and a seat for which nobody is left has no votes.
    """
    free = list(range(len(jurors)))
    taken: list[int | None] = [None] * len(saved.jurors)

    def fill(place: int, fitting: Sequence[int]) -> None:
        if taken[place] is None and fitting:
            taken[place] = fitting[0]
            free.remove(fitting[0])

    for place, wanted in enumerate(saved.jurors):
        fill(place, [each for each in free if jurors[each] == wanted])
    if None in taken and not forced:
        missing = saved.jurors[taken.index(None)]
        raise InputError(
            f"the jury has a seat for {_told(missing)}, which is not among the judges here "
            f"({', '.join(map(_told, jurors))}); learn a jury of these, or give --force"
        )
    for place, wanted in enumerate(saved.jurors):
        fill(place, [each for each in free if jurors[each].judge == wanted.judge])
    for place in range(len(taken)):
        fill(place, free[:1])
    return taken


def _is_named(name: str | Path) -> bool:
    return not str(name).endswith(".json")


def _check(saved: SavedJury, path: Path) -> None:
    jury, seats = saved.jury, len(saved.jurors)
    weights = [each for each in (jury.weights, jury.tie_weights) if each is not None]
    fits = len(jury.judges) == seats and all(len(each) == seats for each in weights)
    if not fits or not 1 <= saved.quorum <= max(seats, 1) or not seats:
        raise InputError(f"{path} is no jury (its seats, weights and quorum do not fit); {_MAKE}")


def _told(juror: Juror) -> str:
    details = [each for each in (juror.prompt_version, juror.locale) if each is not None]
    return f"{juror.judge} [{', '.join(details)}]" if details else juror.judge
