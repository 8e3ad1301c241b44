"""Full-text search over prompts and responses: FTS5 in SQLite, a tsvector in PostgreSQL, the same
words in both.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlalchemy import Connection, bindparam, delete, exists, func, insert, select, text, update

from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.store.database import Database
from evenhand.store.rows import count_items, in_slices
from evenhand.store.schema import items, pairs, run_indexes, search_docs
from evenhand.store.verdict_index import Coverage, begin_index, index_state, set_index

# Case, width and composed letters are all one. Scripts that set no spaces between words are taken
# letter by letter, and what is looked for in them must stand there as it is written.

# Of each text; a response is seldom a tenth as long. PostgreSQL holds no more than 16,383 places.
MOST_WORDS = 5_000
_MOST_CHARACTERS = 100_000
_LONGEST_WORD = 64
_MOST_QUERIED = 64
_QUERY_CHARACTERS = 4_000
# A tsvector has a megabyte at most, and 256 places of a word.
_MOST_BYTES = 400_000
_MOST_PLACES = 256
# Between the texts of a pair, so that nothing is found across their ends.
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


class WordStore(Database):
    """The words of pairs."""

    def add_words(self, run_id: int, *, limit: int = 200) -> int:
        """Index the words of up to `limit` further items; how many that were, 0 at the end."""
        with self._writing() as connection:
            if not is_searchable(connection):
                return 0
            state = begin_index(connection, run_id)
            query = (
                select(items.c.number, items.c.pair_id, items.c.length_a + items.c.length_b)
                .where(items.c.run_id == run_id, items.c.number > state.words_to)
                .order_by(items.c.number)
                .limit(limit)
            )
            numbers: list[int] = []
            pair_ids: list[int] = []
            characters = 0
            for number, pair_id, length in connection.execute(query):
                characters += length
                if numbers and characters > _PAGE_CHARACTERS:
                    break
                numbers.append(number)
                pair_ids.append(pair_id)
            if not numbers:
                return 0
            for some in in_slices(sorted(set(pair_ids))):
                _add_pairs(connection, some)
            set_index(connection, run_id, words_to=numbers[-1])
        if self._growth:
            self._growth.note("search_docs", len(numbers))
        return len(numbers)

    def words_coverage(self, run_id: int) -> Coverage:
        """How many of the run's pairs can be found by their words."""
        with self._reading() as connection:
            state = index_state(connection, run_id)
            return Coverage(state.words_to, count_items(connection, run_id))


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
    """What must be found, each as it is written; whatever a query language would read into it are
    plain words. Empty where it has none."""
    phrases: list[list[str]] = []
    for word in words_of(query[:_QUERY_CHARACTERS], most=_MOST_QUERIED):
        if word.joined:
            phrases[-1].append(word.word)
        else:
            phrases.append([word.word])
    return [phrase for place, phrase in enumerate(phrases) if phrase not in phrases[:place]]


# SQLite's FTS5


def spaced(text: str) -> str:
    return " ".join(word.word for word in words_of(text))


def fts_query(phrases: list[list[str]]) -> str:
    """Words hold neither quotes nor anything else that would end them."""
    return " ".join(f'"{" ".join(phrase)}"' for phrase in phrases)


# PostgreSQL's tsvector. It keeps 256 places of a word at most, and the commonest letters of a
# Chinese text are more: so two neighbours are one word as well, and phrases are looked for by them.


def places_of(texts: tuple[str, ...]) -> str:
    """A tsvector, in its own notation."""
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


# Filled behind the runs, as the verdict index is; pairs that runs share are in it once.

_PAGE_CHARACTERS = 4_000_000
# The words themselves, under the ids of `search_docs`. It keeps no texts, and cannot delete.
FTS = "search_words"
MAKE_FTS = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS search_words USING fts5(prompt, response_a, response_b, "
    "content='', columnsize=0, tokenize='unicode61 remove_diacritics 0')"
)
_ADD_TO_FTS = "INSERT INTO search_words (rowid, prompt, response_a, response_b) VALUES (?, ?, ?, ?)"
_EMPTY_FTS = text("INSERT INTO search_words (search_words) VALUES ('delete-all')")
# In `run_indexes`, for the store itself: how many documents there are of pairs that are gone.
_STORE = 0
_FEW_LEFT = 1_000

Phrases = list[list[str]]


def is_searchable(connection: Connection) -> bool:
    if connection.dialect.name != "sqlite":
        return True
    query = text("SELECT count(*) FROM pragma_module_list WHERE name = 'fts5'")
    return bool(connection.execute(query).scalar())


def _add_pairs(connection: Connection, pair_ids: Sequence[int]) -> None:
    there = exists().where(search_docs.c.pair_id == pairs.c.id)
    query = (
        select(pairs.c.id, pairs.c.prompt, pairs.c.response_a, pairs.c.response_b)
        .where(pairs.c.id.in_(pair_ids), ~there)
        .order_by(pairs.c.id)
    )
    rows = connection.execute(query).all()
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        # Another run may have the same pair, and another process be at it.
        statement = text(
            "INSERT INTO search_docs (pair_id, words) VALUES (:pair, CAST(:words AS tsvector)) "
            "ON CONFLICT DO NOTHING"
        )
        values = [{"pair": pair_id, "words": places_of(tuple(texts))} for pair_id, *texts in rows]
        connection.execute(statement, values)
        return
    connection.execute(text(MAKE_FTS))
    connection.execute(insert(search_docs), [{"pair_id": row[0]} for row in rows])
    added = select(search_docs.c.pair_id, search_docs.c.doc_id)
    added_rows = connection.execute(
        added.where(search_docs.c.pair_id.in_([row[0] for row in rows]))
    )
    docs = {row.pair_id: row.doc_id for row in added_rows}
    written = [(docs[pair_id], *map(spaced, texts)) for pair_id, *texts in rows]
    connection.exec_driver_sql(_ADD_TO_FTS, written)


# CROSS JOIN and the plus sign keep SQLite to this way: from the words, which are few, to the items.
_ITEMS_IN_FTS = text(
    "SELECT items.number FROM search_words "
    "CROSS JOIN search_docs ON search_docs.doc_id = search_words.rowid "
    "CROSS JOIN items ON items.pair_id = search_docs.pair_id "
    "WHERE search_words MATCH :asked AND +items.run_id = :run LIMIT :most"
)
_ITEMS_IN_POSTGRES = text(
    "SELECT items.number FROM search_docs "
    "JOIN items ON items.pair_id = search_docs.pair_id AND items.run_id = :run "
    "WHERE search_docs.words @@ CAST(:asked AS tsquery) LIMIT :most"
)
_DOCS_IN_FTS = text(
    "SELECT rowid FROM search_words WHERE search_words MATCH :asked AND rowid IN :docs"
).bindparams(bindparam("docs", expanding=True))
_PAIRS_IN_POSTGRES = text(
    "SELECT pair_id FROM search_docs WHERE pair_id IN :pairs AND words @@ CAST(:asked AS tsquery)"
).bindparams(bindparam("pairs", expanding=True))


def items_with(connection: Connection, run_id: int, phrases: Phrases, *, most: int) -> list[int]:
    """The numbers of a run's items that hold all of this, up to `most`, in no order."""
    if not phrases or not _is_filled(connection):
        return []
    asked = {"run": run_id, "most": most}
    if connection.dialect.name == "postgresql":
        numbers = connection.execute(_ITEMS_IN_POSTGRES, {**asked, "asked": ts_query(phrases)})
    else:
        numbers = connection.execute(_ITEMS_IN_FTS, {**asked, "asked": fts_query(phrases)})
    return list(numbers.scalars())


def pairs_with(connection: Connection, pair_ids: Collection[int], phrases: Phrases) -> set[int]:
    """Which of these pairs hold all of this."""
    if not phrases or not _is_filled(connection):
        return set()
    matching: set[int] = set()
    for some in in_slices(sorted(set(pair_ids))):
        if connection.dialect.name == "postgresql":
            asked = {"asked": ts_query(phrases), "pairs": list(some)}
            matching.update(connection.execute(_PAIRS_IN_POSTGRES, asked).scalars())
            continue
        query = select(search_docs.c.doc_id, search_docs.c.pair_id)
        rows = connection.execute(query.where(search_docs.c.pair_id.in_(some)))
        docs = {row.doc_id: row.pair_id for row in rows}
        asked = {"asked": fts_query(phrases), "docs": list(docs)}
        matching.update(docs[doc] for doc in connection.execute(_DOCS_IN_FTS, asked).scalars())
    return matching


def _is_filled(connection: Connection) -> bool:
    """Whether there is anything to search in."""
    if connection.dialect.name == "postgresql":
        return True
    if not is_searchable(connection):
        raise InputError(Message("store.no_full_text"))
    made = text("SELECT 1 FROM sqlite_master WHERE name = :name")
    return bool(connection.execute(made, {"name": FTS}).scalar())


def forget_words(connection: Connection, first: int, last: int) -> None:
    """Of pairs between these that are gone."""
    its_pair = exists().where(pairs.c.id == search_docs.c.pair_id)
    gone = delete(search_docs).where(search_docs.c.pair_id.between(first, last), ~its_pair)
    count = connection.execute(gone).rowcount
    if connection.dialect.name == "postgresql" or not count:
        return
    # Without the texts FTS5 cannot delete. What is left over is found under no pair; where it is
    # more than what is not, all of it goes, and is made again behind the runs.
    left = begin_index(connection, _STORE).indexed + count
    there = connection.execute(select(func.count()).select_from(search_docs)).scalar_one()
    if left > there + (_FEW_LEFT if there else 0):
        _drop_all_words(connection)
    else:
        set_index(connection, _STORE, indexed=left)


def drop_words(connection: Connection, pair_ids: Sequence[int]) -> None:
    """Of pairs that stay without their texts. FTS5 cannot delete what it keeps no text of, so all
    of it goes, and is made again behind the runs."""
    if connection.dialect.name == "postgresql":
        for some in in_slices(pair_ids):
            connection.execute(delete(search_docs).where(search_docs.c.pair_id.in_(some)))
        return
    if is_searchable(connection) and _is_filled(connection):
        _drop_all_words(connection)


def _drop_all_words(connection: Connection) -> None:
    connection.execute(_EMPTY_FTS)
    connection.execute(delete(search_docs))
    connection.execute(delete(run_indexes).where(run_indexes.c.run_id == _STORE))
    connection.execute(update(run_indexes).values(words_to=0))
