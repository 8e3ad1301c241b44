"""Rows become pairs and items by content digest; bad rows are counted as skipped. Items are read
back without texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import orjson
from sqlalchemy import Connection, RowMapping, delete, func, select, update

from evenhand.contract import Criterion, Pair
from evenhand.contract.pair import drawn_order
from evenhand.data.records import BadRow, Record, Tag
from evenhand.errors import DataError
from evenhand.messages import from_text, to_text
from evenhand.store.database import Subject
from evenhand.store.deletion import FORGOTTEN
from evenhand.store.records import TAG_COLUMNS, RunItem
from evenhand.store.rows import (
    OF_ITEM,
    count_items,
    in_slices,
    insert_new,
    pair_of,
    to_json,
    write_criteria,
)
from evenhand.store.runs import run_at, update_run
from evenhand.store.schema import (
    escape,
    escape_or_none,
    item_tags,
    items,
    pairs,
    runs,
    shorten,
    skipped_rows,
)

_VERSION = b"pair 1;"
_TOPICS_MAX = 1_000


class IntakeStore(Subject):
    def add(self, run_id: int, records: Sequence[Record], *, by_id: bool = False) -> int:
        """How many were new. Idempotent; the same id with other content is a DataError.

        `by_id` keeps pairs of equal texts apart, for judges that answer by id.
        """
        with self._writing() as connection:
            added = _add_items(connection, run_id, records, by_id=by_id)
        self._database.note_growth("pairs, items", added)
        return added

    def count(self, run_id: int) -> int:
        with self._reading() as connection:
            return count_items(connection, run_id)

    def add_skipped(self, run_id: int, rows: Sequence[BadRow]) -> None:
        with self._writing() as connection:
            values = [
                (
                    run_id,
                    place_digest(each.source, each.row, each.turn),
                    each.row,
                    *map(escape, (each.source, to_text(each.reason))),
                )
                for each in rows
            ]
            insert_new(connection, skipped_rows, _SKIPPED_COLUMNS, values)

    def reopen(self, run_id: int) -> None:
        """Read the rows anew: skipped ones may be valid by now."""
        with self._writing() as connection:
            connection.execute(delete(skipped_rows).where(skipped_rows.c.run_id == run_id))
            connection.execute(update(runs).where(runs.c.id == run_id).values(intake_done=False))

    def skipped(self, run_id: int, *, limit: int = 100) -> list[BadRow]:
        with self._reading() as connection:
            query = (
                select(skipped_rows)
                .where(skipped_rows.c.run_id == run_id)
                .order_by(skipped_rows.c.source, skipped_rows.c.row)
                .limit(limit)
            )
            rows = connection.execute(query).mappings()
            return [BadRow(row["source"], row["row"], from_text(row["reason"])) for row in rows]

    def all(self, run_id: int) -> list[RunItem]:
        """Every item by number, without texts."""
        column = items.c
        query = (
            select(
                *(column.number, column.key, column.full_key, column.pair_id),
                *(column.label, column.model_a, column.model_b, column.prompt_key),
                *(column.length_a, column.length_b),
            )
            .where(column.run_id == run_id)
            .order_by(column.number)
        )
        seen: dict[Any, Any] = {}  # few labels, models and prompts among very many rows

        def once(values: Iterable[Any]) -> Iterator[Any]:
            return (seen.setdefault(value, value) for value in values)

        with self._reading() as connection:
            return [
                RunItem(
                    *(row.number, row.full_key or row.key, row.pair_id),
                    *once((*row[4:8], (row.length_a, row.length_b))),
                )
                for row in connection.execute(query)
            ]

    def text_digests(self, pair_ids: Sequence[int]) -> dict[int, tuple[bytes, bytes]]:
        """A digest of each pair's prompt and responses, whatever the criteria; the second is of the
        swapped pair."""
        column = pairs.c
        query = select(column.id, column.prompt, column.response_a, column.response_b)
        digests: dict[int, tuple[bytes, bytes]] = {}
        with self._reading() as connection:
            for some in in_slices(sorted(set(pair_ids))):
                for pair_id, prompt, a, b in connection.execute(
                    query.where(column.id.in_(some), column.prompt != FORGOTTEN)
                ):
                    digests[pair_id] = _digest(prompt, a, b), _digest(prompt, b, a)
        return digests

    def pair(self, run_id: int, number: int) -> Pair | None:
        with self._reading() as connection:
            query = (
                select(*OF_ITEM, pairs)
                .join(pairs, pairs.c.id == items.c.pair_id)
                .where(items.c.run_id == run_id, items.c.number == number)
            )
            row = connection.execute(query).mappings().first()
            return None if row is None else pair_of(row)

    def shared(self, run_id: int, other_id: int) -> tuple[list[int], list[int]]:
        """The numbers in both runs of items with the same content, ordered by the first."""
        # Not a join: to sort it, SQLite would read all of one run for each item of the other.
        query = select(items.c.number, items.c.pair_id).order_by(items.c.number)
        with self._reading() as connection:
            theirs: dict[int, int] = {}
            for number, pair_id in connection.execute(query.where(items.c.run_id == other_id)):
                theirs.setdefault(pair_id, number)
            shared = {
                number: theirs[pair_id]
                for number, pair_id in connection.execute(query.where(items.c.run_id == run_id))
                if pair_id in theirs
            }
        return list(shared), list(shared.values())

    def keys(self, run_id: int, numbers: Sequence[int]) -> dict[int, str]:
        """Some items' ids by number."""
        with self._reading() as connection:
            query = select(items.c.number, items.c.key, items.c.full_key).where(
                items.c.run_id == run_id
            )
            keys: dict[int, str] = {}
            for some in in_slices(numbers):
                rows = connection.execute(query.where(items.c.number.in_(some)))
                keys |= {number: full or key for number, key, full in rows}
            return keys


def pair_digest(pair: Pair, salt: str | None = None) -> bytes:
    """Sixteen bytes over the texts, each with its length, so that none runs into another.

    Without id and orders, which belong to the item: no single pass depends on them.
    """
    digest = blake2b(_VERSION, digest_size=16)
    for text in (pair.prompt, pair.response_a, pair.response_b):
        digest.update(_sized(text))
    digest.update(_criteria(pair.criteria))
    for optional in (pair.context, pair.reference, salt):
        digest.update(_sized_or_none(optional))
    digest.update(b"t" if pair.allow_tie else b"f")
    return digest.digest()


def prompt_key(prompt: str, context: str | None) -> int:
    """Shared by rows with the same question, in every run and store: 64 signed bits. Among a
    million prompts a collision has probability 3e-8."""
    asked = prompt.encode()
    if context is not None:
        asked += b"\xff" + context.encode()  # a byte that no UTF-8 has
    return int.from_bytes(blake2b(asked, digest_size=8).digest(), "little", signed=True)


def place_digest(source: str, row: int, turn: int = 1) -> bytes:
    place = b"%d;" % row if turn == 1 else b"%d:%d;" % (row, turn)
    return blake2b(place + source.encode(), digest_size=16).digest()


def _digest(*texts: str) -> bytes:
    digest = blake2b(digest_size=16)
    for each in texts:
        digest.update(_sized(each))
    return digest.digest()


def _sized(text: str) -> bytes:
    encoded = text.encode()
    return b"%d:%s" % (len(encoded), encoded)


def _sized_or_none(text: str | None) -> bytes:
    return b"-" if text is None else _sized(text)


@lru_cache(maxsize=64)
def _criteria(criteria: tuple[Criterion, ...]) -> bytes:
    parts = [b"%d[" % len(criteria)]
    for criterion in criteria:
        weight = "" if criterion.weight is None else criterion.weight.hex()
        parts += (
            _sized(criterion.name),
            _sized_or_none(criterion.description),
            _sized(weight),
        )
    return b"".join(parts)


_PAIR_COLUMNS = (
    *("digest", "allow_tie", "criteria", "prompt", "context", "reference"),
    *("response_a", "response_b"),
)
_ITEM_COLUMNS = (
    *("run_id", "number", "key", "full_key", "pair_id", "swap_positions"),
    *("row", "label", "source", "model_a", "model_b", "tags"),
    *("prompt_key", "length_a", "length_b", "noted", "drawn_order"),
)
_TAG_COLUMNS = ("run_id", "tag", "number")
_SKIPPED_COLUMNS = ("run_id", "digest", "row", "source", "reason")

# What must match for two rows to be one item.
_Content = tuple[Any, ...]


def _add_items(connection: Connection, run_id: int, new: Sequence[Record], *, by_id: bool) -> int:
    from evenhand.judging.explanation import is_noted

    keys = [shorten(item.key) for item in new]
    known = _known_items(connection, run_id, keys)
    fresh: dict[str, tuple[Record, bytes]] = {}
    for key, item in zip(keys, new, strict=True):
        digest = pair_digest(item.pair, item.pair.id if by_id else None)
        content = _content(item, digest)
        if key in known:
            source, row, before = known[key]
            if before != content:
                raise _different(item, source, row)
            continue
        known[key] = (item.source, item.row, content)
        fresh[key] = (item, digest)
    if not fresh:
        return 0
    ids = _pair_ids(connection, fresh.values())
    last = select(func.max(items.c.number)).where(items.c.run_id == run_id)
    number = connection.execute(last).scalar() or 0
    rows = [
        (
            *(run_id, number + place, escape(key), escape(item.key) if item.key != key else None),
            *(ids[digest], item.pair.swap_positions, item.row, item.label, escape(item.source)),
            *(escape_or_none(item.model_a), escape_or_none(item.model_b), _tags(item)),
            *(_cluster_key(item), len(item.pair.response_a), len(item.pair.response_b)),
            *(is_noted(item.pair), drawn_order(item.pair)),
        )
        for place, (key, (item, digest)) in enumerate(fresh.items(), start=1)
    ]
    insert_new(connection, items, _ITEM_COLUMNS, rows)
    tagged = [
        (run_id, escape(shorten(tag)), number + place)
        for place, (item, _) in enumerate(fresh.values(), start=1)
        for tag in item.tags
    ]
    insert_new(connection, item_tags, _TAG_COLUMNS, tagged)
    _note_tag_columns(connection, run_id, [item for item, _ in fresh.values()])
    return len(rows)


def _note_tag_columns(connection: Connection, run_id: int, new: Sequence[Record]) -> None:
    """Which column each tag comes from, so that topics can be chosen by column."""
    given: dict[str, set[str]] = {}
    for item in new:
        for tag in item.tags:
            if isinstance(tag, Tag):
                given.setdefault(tag.column, set()).add(str(tag))
    if not given:
        return
    run = run_at(connection, run_id)
    summary = {} if run is None else dict(run.summary)
    known = {column: set(tags) for column, tags in summary.get(TAG_COLUMNS, {}).items()}
    merged = {column: known.get(column, set()) | tags for column, tags in (known | given).items()}
    # A column with more values is not one of topics.
    kept = {column: sorted(tags)[: _TOPICS_MAX + 1] for column, tags in merged.items()}
    if kept != summary.get(TAG_COLUMNS):
        update_run(connection, run_id, {"summary": to_json({**summary, TAG_COLUMNS: kept})})


def _known_items(
    connection: Connection, run_id: int, keys: Sequence[str]
) -> dict[str, tuple[str, int, _Content]]:
    query = select(items, pairs.c.digest).join(pairs, pairs.c.id == items.c.pair_id)
    known = {}
    for some in in_slices(keys):
        matching = query.where(items.c.run_id == run_id, items.c.key.in_(some))
        for row in connection.execute(matching).mappings():
            known[row["key"]] = (row["source"], row["row"], _stored_content(row))
    return known


def _content(item: Record, digest: bytes) -> _Content:
    pair = item.pair
    models = item.model_a, item.model_b
    orders = pair.swap_positions, drawn_order(pair)
    return (digest, *orders, item.label, *models, _tags(item), _cluster_key(item))


def _stored_content(row: RowMapping) -> _Content:
    names = ("digest", "swap_positions", "drawn_order", "label", "model_a", "model_b", "tags")
    return tuple(row[name] for name in (*names, "prompt_key"))


def _cluster_key(item: Record) -> int:
    if item.cluster is not None:
        return prompt_key(item.cluster, None)
    return prompt_key(item.pair.prompt, item.pair.context)


def _tags(item: Record) -> str | None:
    return orjson.dumps(item.tags).decode() if item.tags else None


def _different(item: Record, source: str, row: int) -> DataError:
    if (source, row) == (item.source, item.row):
        return DataError.of("store.file_changed", source=source, row=row)
    shown = item.key if len(item.key) <= 80 else f"{item.key[:79]}…"
    if source == item.source:
        return DataError.of("store.id_twice", id=shown, row=row, row2=item.row)
    places = {"row": row, "source": source, "row2": item.row, "source2": item.source}
    return DataError.of("store.id_in_two_files", id=shown, **places)


def _pair_ids(connection: Connection, fresh: Iterable[tuple[Record, bytes]]) -> dict[bytes, int]:
    """These pairs' ids; missing pairs are added."""
    by_digest = {digest: item.pair for item, digest in fresh}
    # In a fixed order, so that two processes cannot deadlock.
    digests = sorted(by_digest)
    rows = [
        (
            *(digest, pair.allow_tie, write_criteria(pair.criteria), escape(pair.prompt)),
            *(escape_or_none(pair.context), escape_or_none(pair.reference)),
            *(escape(pair.response_a), escape(pair.response_b)),
        )
        for digest, pair in ((digest, by_digest[digest]) for digest in digests)
    ]
    insert_new(connection, pairs, _PAIR_COLUMNS, rows)
    ids: dict[bytes, int] = {}
    for some in in_slices(digests):
        query = select(pairs.c.digest, pairs.c.id).where(pairs.c.digest.in_(some))
        ids.update((row.digest, row.id) for row in connection.execute(query))
    return ids
