"""Full-text search over prompts and responses: FTS5 in SQLite, a tsvector in PostgreSQL, with the
same tokens.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlalchemy import (
    ColumnElement,
    Connection,
    delete,
    exists,
    false,
    insert,
    select,
    text,
)

from evenhand.errors import InputError
from evenhand.store.database import Subject
from evenhand.store.rows import in_slices
from evenhand.store.schema import figures, items, pairs, search_docs

# Case, width and composition are normalised. Scripts without spaces are indexed by character and
# searched as phrases.

# The cache key of "all words of this run are indexed".
WORDS_FIGURE = "words"

# Per text; a response is seldom a tenth as long. PostgreSQL holds 16,383 positions.
MOST_WORDS = 5_000
_MOST_CHARACTERS = 100_000
_LONGEST_WORD = 64
_MOST_QUERIED = 64
_QUERY_CHARACTERS = 4_000
# A tsvector has at most a megabyte, and 256 positions per word.
_MOST_BYTES = 400_000
_MOST_PLACES = 256
# Between the texts of a pair, so that no phrase spans two.
_GAP = 10

# Han, kana, hangul, bopomofo; Thai, Lao, Burmese, Khmer.
_UNSPACED = (
    "\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")


@dataclass(frozen=True, slots=True)
class Word:
    word: str
    joined: bool  # to the one before it, as letters of an unspaced script are


class WordStore(Subject):
    def add(self, run_id: int, *, after: int = 0, limit: int = 200) -> int | None:
        """Index the next unindexed items after this number; returns the last of them, None at the
        end."""
        with self._writing() as connection:
            if not is_searchable(connection):
                return None
            query = (
                select(items.c.number, items.c.pair_id, items.c.length_a + items.c.length_b)
                .where(items.c.run_id == run_id, items.c.number > after)
                .where(~exists().where(search_docs.c.pair_id == items.c.pair_id))
                .order_by(items.c.number)
                .limit(limit)
            )
            last = None
            pair_ids: set[int] = set()
            characters = 0
            for number, pair_id, length in connection.execute(query):
                characters += length
                if pair_ids and characters > _PAGE_CHARACTERS:
                    break
                last = number
                pair_ids.add(pair_id)
            for some in in_slices(sorted(pair_ids)):
                _add_pairs(connection, some)
        self._database.note_growth("search_docs", len(pair_ids))
        return last


def words_of(text: str, *, most: int = MOST_WORDS) -> Iterator[Word]:
    folded = unicodedata.normalize("NFKC", text[:_MOST_CHARACTERS]).casefold()
    end = -1  # of the letter before, in an unspaced script
    for place, match in enumerate(_WORD.finditer(folded)):
        if place == most:
            return
        word = match[0]
        if _IS_UNSPACED.match(word):
            yield Word(word, joined=end == match.start())
            end = match.end()
        else:
            yield Word(word[:_LONGEST_WORD], joined=False)
            end = -1


def phrases_of(query: str) -> list[list[str]]:
    """The phrases that must all occur; query syntax is plain text. Empty if there are none."""
    phrases: list[list[str]] = []
    for word in words_of(query[:_QUERY_CHARACTERS], most=_MOST_QUERIED):
        if word.joined:
            phrases[-1].append(word.word)
        else:
            phrases.append([word.word])
    return [phrase for place, phrase in enumerate(phrases) if phrase not in phrases[:place]]


def spaced(text: str) -> str:
    return " ".join(word.word for word in words_of(text))


def fts_query(phrases: list[list[str]]) -> str:
    """Words contain no quotes or other delimiters."""
    return " ".join(f'"{" ".join(phrase)}"' for phrase in phrases)


# PostgreSQL's tsvector keeps 256 positions of a word, and Chinese texts have more of their
# commonest characters: so pairs of neighbours are indexed as words too, and phrases use those.


def places_of(texts: tuple[str, ...]) -> str:
    """A tsvector literal."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    end = 0
    size = 0
    for each in texts:
        before = ""
        for word in words_of(each):
            end += 1
            terms = [(word.word, end)]
            if word.joined:
                terms.append((before + word.word, end - 1))
            for term, place in terms:
                size += 0 if term in places else len(term.encode())
                places[term].append(place)
            before = word.word
            if size > _MOST_BYTES:
                break
        end += _GAP
    return " ".join(
        f"'{word}':{','.join(map(str, at[:_MOST_PLACES]))}" for word, at in places.items()
    )


def ts_query(phrases: list[list[str]]) -> str:
    return " & ".join(f"({_following(_neighbours(phrase))})" for phrase in phrases)


def _following(parts: list[str]) -> str:
    return " <-> ".join(f"'{part}'" for part in parts)


def _neighbours(phrase: list[str]) -> list[str]:
    return [one + other for one, other in pairwise(phrase)] or phrase


# Filled on a run's first search; shared pairs are indexed once.

_PAGE_CHARACTERS = 4_000_000
# The words by pair id. It keeps no texts.
FTS = "search_words"
MAKE_FTS = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS search_words USING fts5(prompt, response_a, response_b, "
    "content='', columnsize=0, tokenize='unicode61 remove_diacritics 0')"
)
_ADD_TO_FTS = "INSERT INTO search_words (rowid, prompt, response_a, response_b) VALUES (?, ?, ?, ?)"
_EMPTY_FTS = text("INSERT INTO search_words (search_words) VALUES ('delete-all')")
_ADD_TO_POSTGRES = text(
    "INSERT INTO search_docs (pair_id, words) VALUES (:pair, CAST(:words AS tsvector)) "
    "ON CONFLICT DO NOTHING"
)


def is_searchable(connection: Connection) -> bool:
    if connection.dialect.name != "sqlite":
        return True
    query = text("SELECT count(*) FROM pragma_module_list WHERE name = 'fts5'")
    return bool(connection.execute(query).scalar())


def _add_pairs(connection: Connection, pair_ids: Sequence[int]) -> None:
    query = select(pairs.c.id, pairs.c.prompt, pairs.c.response_a, pairs.c.response_b)
    rows = connection.execute(query.where(pairs.c.id.in_(pair_ids)).order_by(pairs.c.id)).all()
    if connection.dialect.name == "postgresql":
        # Another process may be indexing the same pair for another run.
        values = [{"pair": pair_id, "words": places_of(tuple(texts))} for pair_id, *texts in rows]
        connection.execute(_ADD_TO_POSTGRES, values)
        return
    connection.execute(text(MAKE_FTS))
    connection.execute(insert(search_docs), [{"pair_id": row[0]} for row in rows])
    written = [(pair_id, *map(spaced, texts)) for pair_id, *texts in rows]
    connection.exec_driver_sql(_ADD_TO_FTS, written)


# CROSS JOIN and the plus sign fix SQLite's plan: from the few matching words to the items.
_IN_FTS = text(
    "SELECT items.number FROM search_words "
    "CROSS JOIN items ON items.pair_id = search_words.rowid "
    "WHERE search_words MATCH :asked AND +items.run_id = :searched"
)
_IN_POSTGRES = text(
    "SELECT items.number FROM search_docs "
    "JOIN items ON items.pair_id = search_docs.pair_id AND items.run_id = :searched "
    "WHERE search_docs.words @@ CAST(:asked AS tsquery)"
)


def has_words(
    connection: Connection, number: ColumnElement[int], run_id: int, query: str
) -> ColumnElement[bool]:
    """That this item of the run contains the whole query, as far as it is indexed."""
    phrases = phrases_of(query)
    if connection.dialect.name == "postgresql":
        matching, asked = _IN_POSTGRES, ts_query(phrases)
    else:
        matching, asked = _IN_FTS, fts_query(phrases)
    if not phrases or not _is_filled(connection):
        return false()
    return number.in_(matching.bindparams(searched=run_id, asked=asked))


def _is_filled(connection: Connection) -> bool:
    """Whether there is anything to search."""
    if connection.dialect.name == "postgresql":
        return True
    if not is_searchable(connection):
        raise InputError.of("store.no_full_text")
    made = text("SELECT 1 FROM sqlite_master WHERE name = :name")
    return bool(connection.execute(made, {"name": FTS}).scalar())


def forget_words(connection: Connection, those: ColumnElement[bool]) -> None:
    """Of pairs deleted or without texts; `those` selects from `search_docs`. FTS5 cannot delete
    rows without their texts, so the whole index is dropped there and rebuilt by the next search."""
    deleted = connection.execute(delete(search_docs).where(those)).rowcount
    if connection.dialect.name == "sqlite" and deleted:
        connection.execute(_EMPTY_FTS)
        connection.execute(delete(search_docs))
    if deleted:
        connection.execute(delete(figures).where(figures.c.name == WORDS_FIGURE))
