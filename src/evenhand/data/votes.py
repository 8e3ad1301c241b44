"""Files of votes (one a row, or a list of them a pair), and files of the pairs that people are to
label.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from evenhand.contract import Order, Winner
from evenhand.data.columns import (
    SKIPPED,
    VERDICT_SHAPE,
    Columns,
    FieldValues,
    number_of,
    optional_text,
    read_label,
    read_meanings,
    sendable,
    shown_spelling,
    spelling_of,
    text_of_id,
)
from evenhand.data.records import BadRow, kind_of, shortened
from evenhand.data.source import Source, source_of
from evenhand.data.tables import open_tables
from evenhand.errors import DataError, InputError
from evenhand.messages import Message

VOTE_FIELDS: Mapping[str, tuple[str, ...]] = {
    "pair": ("pair", "pair_id", "item_id", "example_id", "question_id"),
    # A row's own id is the pair's only if no other column is.
    "id": ("id", "uid", "uuid"),
    "who": (
        *("who", "annotator", "annotator_id", "rater", "rater_id", "worker", "worker_id", "voter"),
        *("labeler", "labeller", "evaluator", "user", "user_id", "person", "assessor"),
    ),
    "verdict": (
        *("verdict", "vote", "winner", "label", "preference", "choice", "human_label"),
        "human_preference",
    ),
    "votes": ("votes", "annotators", "annotations", "human_votes"),
    "at": ("at", "voted_at", "time", "timestamp", "created_at", "date"),
    "comment": ("comment", "comments", "note", "notes", "rationale"),
    "chance": ("chance", "sampling_probability", "inclusion_probability"),
    "draw": ("draw",),
    "shown_order": ("shown_order",),
    # Not `source`, which names the set in data sets.
    "origin": ("origin",),
}
VoteOrigin = Literal["import", "terminal", "page", "escalation"]
VoteDraw = Literal["random", "weighted", "chosen"]
_BOTH_BAD = frozenset({"bothbad", "tie(bothbad)", "都不好"})
_LISTED_MAX = 1 << 20  # characters of a list that is spelled in a cell

Models = Callable[[str], "tuple[str | None, str | None]"]


@dataclass(frozen=True, slots=True)
class VoteReading:
    """`columns` maps our field to their column. `who` names the person if rows do not, and prefixes
    the numbers of people in a list. `values` says what a spelling means; `unescape` undoes the
    escaping for spreadsheets."""

    columns: Mapping[str, str] = field(default_factory=dict)
    who: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    unescape: Callable[[str], str] = str


@dataclass(frozen=True, slots=True)
class VoteRow:
    """One vote; `verdict` is None if the person skipped the pair."""

    pair: str
    who: str
    verdict: Winner | None
    source: str
    row: int
    at: datetime | None = None
    comment: str | None = None
    chance: float | None = None
    draw: VoteDraw | None = None
    origin: VoteOrigin | None = None
    shown_order: Order | None = None
    both_bad: bool = False  # a tie because neither is any good


def read_votes(
    path: Source | Path | str,
    reading: VoteReading | None = None,
    *,
    models: Models = lambda pair: (None, None),
) -> Iterator[VoteRow | BadRow]:
    """Every vote of a file; `models` gives a pair's two names, which may stand for A and B."""
    source = source_of(path)
    reading = reading or VoteReading()
    empty = True
    for file, table in open_tables(source, wanted=Columns(VOTE_FIELDS, reading.columns).wanted):
        rows = _Rows(file.name, reading, models, tabular=table.tabular)
        if table.columns is not None:
            rows.check(table.columns)
        for number, row in table.rows:
            empty = False
            if isinstance(row, str):
                yield BadRow(file.name, number, row)
                continue
            try:
                # A row counts as a whole or not at all.
                read = list(rows.read(number, row))
            except InputError as error:
                yield BadRow(file.name, number, error.message)
                continue
            yield from read
    if empty:
        raise DataError.of("data.file_without_rows", name=source.name)


class _Rows:
    def __init__(self, source: str, reading: VoteReading, models: Models, *, tabular: bool) -> None:
        self._source = source
        self._who = reading.who
        self._meanings = read_meanings(reading.values)
        self._models = models
        self._columns = Columns(VOTE_FIELDS, reading.columns)
        self._fields = FieldValues(VOTE_FIELDS, reading.columns, required=())
        self._tabular = tabular
        self._unescape = reading.unescape if tabular else str

    def check(self, columns: tuple[str, ...]) -> None:
        fields = self._columns.find(columns)
        missing = None
        if "pair" not in fields and "id" not in fields:
            missing = "pair"
        elif "votes" not in fields:
            if "verdict" not in fields:
                missing = "verdict"
            elif "who" not in fields and self._who is None:
                raise DataError.of(
                    "data.source_columns", source=self._source, columns=self._nobody(columns)
                )
        if missing is not None:
            raise DataError.of(
                "data.source_missing",
                source=self._source,
                missing=self._columns.missing(missing, columns),
            )

    def _nobody(self, columns: tuple[str, ...]) -> str:
        return Message("data.nobody", missing=self._columns.missing("who", columns))

    def read(self, number: int, row: Mapping[str, Any]) -> Iterator[VoteRow]:
        _, values = self._fields.read(row)
        pair = text_of_id(values.get("pair")) or text_of_id(values.get("id"))
        if pair is None:
            raise DataError(self._columns.missing("pair", tuple(row)))
        pair = sendable("pair", self._unescape(pair))
        about = self._about(values)
        for who, given in self._given(values, tuple(row)):
            verdict = self._verdict(pair, given)
            both_bad = verdict == "TIE" and spelling_of(given) in _BOTH_BAD
            yield VoteRow(pair, who, verdict, self._source, number, **about, both_bad=both_bad)

    def _given(
        self, values: Mapping[str, Any], columns: tuple[str, ...]
    ) -> Iterator[tuple[str, Any]]:
        """Who gave which verdict; a list takes precedence over the row's verdict, its summary."""
        listed = values.get("votes")
        if self._tabular and isinstance(listed, str):
            listed = _listed(listed)
        who = _name(values.get("who"), self._unescape)
        if listed in (None, "", [], {}):
            who = who or self._who
            if who is None:
                raise DataError(self._nobody(columns))
            given = values.get("verdict")
            if given is None or given == "":
                raise DataError.of("data.row_without_verdict", shape=VERDICT_SHAPE)
            yield who, given
            return
        if who is not None:
            raise DataError.of("data.person_and_votes")
        if isinstance(listed, dict):
            named = [(_name(name, str), given) for name, given in listed.items()]
        elif isinstance(listed, (list, tuple)):
            named = [self._of_list(place, each) for place, each in enumerate(listed, 1)]
        else:
            raise DataError.of("data.votes_no_list", listed=kind_of(listed))
        for name, given in named:
            if name is None:
                raise DataError.of("data.vote_without_voter")
            if given is not None and given != "":
                yield name, given

    def _of_list(self, place: int, each: Any) -> tuple[str | None, Any]:
        if not isinstance(each, dict):
            return f"{self._who or 'annotator'} {place}", each
        _, values = self._fields.read(each)
        return _name(values.get("who"), str), values.get("verdict")

    def _verdict(self, pair: str, given: Any) -> Winner | None:
        spelled = spelling_of(given)
        if spelled in self._meanings:
            return self._meanings[spelled]
        if isinstance(given, str) and spelled in SKIPPED:
            return None
        model_a, model_b = self._models(pair)
        try:
            verdict = read_label(given, numbered=False, model_a=model_a, model_b=model_b)
        except DataError:
            verdict = None
        if verdict is not None:
            return verdict
        raise DataError.of(
            "data.vote_verdict_unknown",
            given=kind_of(given),
            shape=VERDICT_SHAPE,
            shortened=shown_spelling(given),
        )

    def _about(self, values: Mapping[str, Any]) -> dict[str, Any]:
        comment = optional_text("comment", values.get("comment"))
        return {
            "at": _moment(values.get("at")),
            "comment": None if comment is None else self._unescape(comment),
            "chance": read_chance(values.get("chance")),
            "draw": read_one_of("draw", values.get("draw"), get_args(VoteDraw)),
            "origin": read_one_of("origin", values.get("origin"), get_args(VoteOrigin)),
            "shown_order": read_one_of("shown_order", values.get("shown_order"), get_args(Order)),
        }


def _name(given: Any, unescape: Callable[[str], str]) -> str | None:
    if given is None:
        return None
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    if not isinstance(given, str):
        raise DataError.of("data.voter_no_name", given=kind_of(given))
    return sendable("who", unescape(given).strip()) or None


def _listed(cell: str) -> Any:
    """A cell: a JSON list or object, or verdicts separated by semicolons or commas."""
    if len(cell) > _LISTED_MAX:
        raise DataError.of("data.votes_too_long", n=len(cell), listed_max=_LISTED_MAX)
    text = cell.strip()
    if text[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise DataError.of("data.votes_not_json", text=shortened(text)) from None
    return [part.strip() for part in text.split(";" if ";" in text else ",")] if text else None


def _moment(given: Any) -> datetime | None:
    if given is None or given == "":
        return None
    try:
        if isinstance(given, str) and number_of(given) is None:
            read = datetime.fromisoformat(given.strip())
            return read if read.tzinfo else read.replace(tzinfo=UTC)
        if isinstance(given, datetime):
            return given if given.tzinfo else given.replace(tzinfo=UTC)
        if not isinstance(given, bool):
            return datetime.fromtimestamp(float(given), UTC)
    except (ValueError, TypeError, OverflowError, OSError):
        pass
    raise DataError.of("data.time_malformed", given=kind_of(given))


def read_chance(given: Any) -> float | None:
    if given is None or given == "":
        return None
    chance = number_of(given)
    if chance is None or not 0 < chance <= 1:
        raise DataError.of("data.chance_outside", given=kind_of(given))
    return float(chance)


def read_one_of(name: str, given: Any, known: tuple[str, ...]) -> Any:
    if given is None or given == "":
        return None
    if given not in known:
        raise DataError.of(
            "data.choice_unknown", name=name, given=kind_of(given), known=", ".join(known)
        )
    return str(given)


_FIELDS = {name: VOTE_FIELDS[name] for name in ("pair", "id", "draw", "chance", "origin")}


@dataclass(frozen=True, slots=True)
class DrawnRow:
    """`draw`, `chance` and `origin` are None if the file lacks them."""

    pair: str
    row: int
    draw: VoteDraw | None
    chance: float | None
    origin: VoteOrigin | None


def read_drawn(
    path: Source | Path | str,
    *,
    unescape: Callable[[str], str] = str,
) -> Iterator[DrawnRow]:
    """Every row in order; one that names no pair is an error, since the order matters."""
    source = source_of(path)
    fields = FieldValues(_FIELDS, {}, required=())
    number = 0
    for file, table in open_tables(source, wanted=Columns(_FIELDS, {}).wanted):
        for number, row in table.rows:
            try:
                if isinstance(row, str):
                    raise DataError(row)
                _, values = fields.read(row)
                pair = text_of_id(values.get("pair")) or text_of_id(values.get("id"))
                if pair is None:
                    raise DataError.of("data.vote_without_pair")
                yield DrawnRow(
                    pair=unescape(pair) if table.tabular else pair,
                    row=number,
                    draw=read_one_of("draw", values.get("draw"), get_args(VoteDraw)),
                    chance=read_chance(values.get("chance")),
                    origin=read_one_of("origin", values.get("origin"), get_args(VoteOrigin)),
                )
            except DataError as error:
                raise DataError.of(
                    "data.row_of_file_refused", name=file.name, number=number, message=error.message
                ) from None
    if not number:
        raise DataError.of("data.file_without_rows", name=source.name)
