"""Texts and queries as words that can be searched: the same in both engines.

Case, width and composed letters are all one. Scripts that set no spaces between words are taken
letter by letter, and what is looked for in them must stand there as it is written.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

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


def words_of(text: str, *, most: int = MOST_WORDS) -> Iterator[Word]:
    folded = unicodedata.normalize("NFKC", text[:_MOST_CHARACTERS]).casefold()
    end = -1  # of the letter before, in an unspaced script
    for place, found in enumerate(_WORD.finditer(folded)):
        if place == most:
            return
        word = found[0]
        if _IS_UNSPACED.match(word):
            yield Word(word, joined=end == found.start())
            end = found.end()
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
    for text in texts:
        before = ""
        for word in words_of(text):
            end += 1
            found = [(word.word, end)]
            if word.joined:
                found.append((before + word.word, end - 1))
            for each, place in found:
                size += 0 if each in places else len(each.encode())
                places[each].append(place)
            before = word.word
            if size > _MOST_BYTES:
                break
        end += _GAP
    return " ".join(
        f"'{word}':{','.join(map(str, found[:_MOST_PLACES]))}" for word, found in places.items()
    )


def ts_query(phrases: list[list[str]]) -> str:
    return " & ".join(f"({_following(_neighbours(phrase))})" for phrase in phrases)


def _following(parts: list[str]) -> str:
    return " <-> ".join(f"'{part}'" for part in parts)


def _neighbours(phrase: list[str]) -> list[str]:
    return [one + other for one, other in pairwise(phrase)] or phrase
