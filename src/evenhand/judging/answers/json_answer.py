"""The answer that our prompts ask for, one JSON object: found in a text, and read in every spelling
that models write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from evenhand.contract import Criterion, Winner, criterion_key
from evenhand.judging.answers.results import (
    ParsedAnalysis,
    ParsedCriterion,
    ParsedVerdict,
    ParseFailure,
    shown,
)
from evenhand.judging.answers.vocabulary import (
    NATIVE_FIELDS,
    NOUN,
    calls_by_number,
    field_name,
    letter,
    winner_of,
)
from evenhand.messages import Message

# Finding JSON objects in a text, with work that stays linear whatever the text holds.


class ConflictingValues(NamedTuple):
    """A key that an object holds more than once, with different values."""

    values: tuple[Any, ...]


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    return held if len(held) == len(pairs) else _with_conflicts(pairs)


def _with_conflicts(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, list[Any]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return {
        key: said[0] if all(value == said[0] for value in said) else ConflictingValues(tuple(said))
        for key, said in values.items()
    }


# strict=False: raw newlines inside strings are what models write.
_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, strict=False)
_OPENS = re.compile(r"\{(?=\s{0,200}(?:[\"'}]|//|/\*|[a-z_]{1,40}\s?:))")
_FIRST_KEY = re.compile(
    r"\{\s{0,200}(?://[^\n]{0,200}\n\s{0,200})?[\"']?([^\"'\\\s:]{1,40})[\"']?\s{0,200}:"
)
# What models write beside strict JSON: comments, single quotes, bare keys, a comma too many.
_LOOSE = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*+")|'(?P<single>(?:[^'\\]|\\.)*+)'"""
    r"|(?P<comment>//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)"
    r"|(?P<comma>,(?=(?:\s|//[^\n]*+\n|/\*(?:[^*]|\*(?!/))*+\*/)*+[}\]]))"
    r"|(?P<key>(?<![\w\"'])[A-Za-z_]\w{0,40}+(?=\s{0,8}:))|(?P<brace>[{}])",
    re.DOTALL,
)
_LONGEST_LOOSE, _MOST_LOOSE = 50_000, 8
# More objects than any answer holds; each is looked at with what stands before it.
_MOST_OBJECTS = 500


class FoundObject(NamedTuple):
    """An object and where it stands; `value` is None for one that began as an answer and broke."""

    start: int
    end: int
    value: dict[str, Any] | None
    unclosed: bool = False


def whole_object(text: str) -> dict[str, Any] | None:
    """The text, without blanks around it, as one JSON object and nothing else; or None."""
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and end == len(text) else None


def find_objects(text: str) -> list[FoundObject] | None:
    """Every outermost JSON object, or None where there are too many to tell. Objects inside another
    one, or in its strings, are its own."""
    found: list[FoundObject] = []
    # What a failed attempt has scanned is scanned again by the next: bounded, so that nested
    # unclosed braces cannot make it quadratic.
    budget = 8 * len(text) + 200_000
    attempts = _MOST_LOOSE
    written = len(text.rstrip(" \t\r\n"))
    at = 0
    while (opened := _OPENS.search(text, at)) is not None:
        start = opened.start()
        at = start + 1
        budget -= 64
        try:
            value, at = _DECODER.raw_decode(text, start)
            found.append(FoundObject(start, at, value))
        except (ValueError, RecursionError) as error:
            key = _FIRST_KEY.match(text, start)
            field = None if key is None else field_name(key[1])
            unclosed = False
            if isinstance(error, json.JSONDecodeError):
                # An unterminated string is reported where it starts.
                unclosed = error.pos >= written or error.msg.startswith("Unterminated")
                # The error itself counts the lines before it.
                budget -= (len(text) if unclosed else error.pos) - start + error.pos // 16
            else:
                budget -= 50_000
            loose = None
            if field is not None and attempts:
                attempts -= 1
                loose = _loose_object(text, start)
            if loose is not None:
                found.append(loose)
                at = loose.end
            elif field in _OPENING_FIELDS:
                found.append(FoundObject(start, at, None, unclosed))
        if budget < 0 or len(found) > _MOST_OBJECTS:
            return None
    return found


def _loose_object(text: str, at: int) -> FoundObject | None:
    """The object that opens there, where it is JSON but for how its author spelt it."""
    parts: list[str] = []
    depth = 0
    done = at
    for token in _LOOSE.finditer(text, at, at + _LONGEST_LOOSE):
        parts.append(text[done : token.start()])
        done = token.end()
        if token["single"] is not None:
            parts.append(json.dumps(token["single"].replace("\\'", "'"), ensure_ascii=False))
        elif token["key"] is not None:
            parts.append(f'"{token["key"]}"')
        elif token["string"] is not None or token["brace"] is not None:
            parts.append(token[0])
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0:
            value = whole_object("".join(parts))
            return None if value is None else FoundObject(at, done, value)
    return None


_OPENING_FIELDS = frozenset({"analysis", "comparison", "result", "winner", "verdict", "preference"})

# The native answer, one JSON object, read into a verdict.

AnswerFields = dict[str, Any]

key_of = lru_cache(maxsize=4096)(criterion_key)

# A criterion may be called by a whole paragraph; what is longer was not written to be matched.
_LONGEST_NAME = 20_000


def fields(value: dict[str, Any]) -> AnswerFields:
    """The object's fields by the contract's names; two spellings that differ are a conflict."""
    try:
        return {NATIVE_FIELDS[key]: item for key, item in value.items()}
    except KeyError:
        pass  # some key is spelt in another way
    named: AnswerFields = {}
    for key, item in value.items():
        name = field_name(key)
        if name is None:
            continue
        if name in named and named[name] != item:
            item = ConflictingValues((named[name], item))
        named[name] = item
    return named


def is_answer(value: dict[str, Any]) -> bool:
    """Whether the object names an overall winner, on the menu or not, where an answer does."""
    named = fields(value)
    stated = _verdicts(_places(named))
    return bool(stated) and not ("criterion" in named and "result" not in named)


def is_full(value: dict[str, Any]) -> bool:
    named = fields(value)
    return "comparison" in named or "analysis" in named


_WRAPPERS = ("result", "verdict", "preference", "answer")
_DEEPEST = 4


def _places(named: AnswerFields, deeper: int = _DEEPEST) -> list[AnswerFields]:
    """The object's fields, and those of the objects that wrap its verdict: `result`, a `verdict`
    that is an object, what a tool was called with."""
    wrapped = [named[wrapper] for wrapper in _WRAPPERS if wrapper in named]
    held = [value for each in wrapped for value in _unwrapped(each)]
    inner = [fields(value) for value in held if isinstance(value, dict)] if deeper else []
    return [named, *(place for each in inner for place in _places(each, deeper - 1))]


def _unwrapped(value: Any) -> Sequence[Any]:
    """A list's items; and an object that was written as a string, as tool calls do."""
    held = [each[:_MOST_WRAPPED] if isinstance(each, list) else [each] for each in _flat(value)]
    return [
        (isinstance(item, str) and whole_object(item.strip())) or item
        for items in held
        for item in items
    ]


_MOST_WRAPPED = 20


def _verdicts(places: list[AnswerFields]) -> list[Any]:
    """Every value that stands where the overall winner is named."""

    def held(name: str) -> list[Any]:
        return [leaf for place in places if name in place for leaf in _flat(place[name])]

    stated = held("winner")
    for leaf in held("verdict"):
        # "verdict" is also a word for prose: beside a winner, only a label under it is a statement.
        if not isinstance(leaf, dict) and (not stated or winner_of(leaf)):
            stated.append(leaf)
    stated += [leaf for leaf in held("preference") if winner_of(leaf)]
    return stated or [
        leaf for name in ("result", "answer") for leaf in held(name) if winner_of(leaf)
    ]


def _flat(value: Any) -> Sequence[Any]:
    if isinstance(value, ConflictingValues):
        return [leaf for item in value.values for leaf in _flat(item)]
    return (value,)


def winner_in(value: dict[str, Any]) -> Winner | ParseFailure:
    return _winner_of_all(_verdicts(_places(fields(value))), "")


# "1 = Response A", `"2": "Response B"`, "3 means a tie".
_LEGEND = re.compile(
    r"(?<![\w.])(?P<number>[0-3])[\"')]{0,2}\s{0,2}(?:[=:：→-]>?|(?i:is|means|for|if)\b|表示|代表"
    r"|是|为)"
    rf"[\s\"'*]{{0,3}}(?:(?i:the\s)?{NOUN}\s?(?P<letter>[AB])|(?P<tie>(?i:a\s)?(?i:tie|draw)|平局))"
    r"(?![A-Za-z0-9])"
)
_BY_NUMBER: dict[str, Winner] = {"1": "A", "2": "B", "3": "TIE"}


def legend_of(text: str) -> dict[str, Winner]:
    """What numbers stand for, where the answer says so or calls the responses by number."""
    said: dict[str, set[Winner]] = {}
    for match in islice(_LEGEND.finditer(text), 100):
        winner: Winner = "TIE" if match["tie"] else letter(match["letter"])
        said.setdefault(match["number"], set()).add(winner)
    if {"A"} in said.values() and {"B"} in said.values():
        return {number: min(named) for number, named in said.items() if len(named) == 1}
    return _BY_NUMBER if not said and calls_by_number(text) else {}


def _winner_of_all(stated: list[Any], text: str) -> Winner | ParseFailure:
    winners = [winner_of(item) for item in stated]
    if None in winners and any(_number(item) for item in stated):
        legend = legend_of(text)
        winners = [winner_of(item) or legend.get(_number(item)) for item in stated]
    if len(set(winners)) > 1:
        return ParseFailure(
            "contradiction",
            f"the answer names {len(stated)} winners that differ: "
            + ", ".join(shown(str(item), 20) for item in stated[:4]),
        )
    winner = winners[0] if winners else None
    if winner is None:
        if not stated:
            return ParseFailure("no_verdict", Message("unread.no_overall_winner"))
        said = "null" if stated[0] is None else shown(str(stated[0]), 40)
        return ParseFailure("off_menu", Message("unread.winner_unknown", reason=said))
    return winner


def _number(value: Any) -> str:
    """A digit as it stands in a legend; empty for anything else."""
    digit = str(value).strip() if isinstance(value, (int, str)) and value is not True else ""
    return digit if digit in ("0", "1", "2", "3") else ""


def read_answer(
    value: dict[str, Any], criteria: Sequence[Criterion], text: str = ""
) -> ParsedVerdict | ParseFailure:
    """`text` is all that the judge wrote: numbers in the object may be explained in it."""
    named = fields(value)
    places = _places(named)
    winner = _winner_of_all(_verdicts(places), text)
    if isinstance(winner, ParseFailure):
        return winner
    flags: list[str] = []
    held: AnswerFields = {}
    for place in places:  # the innermost one that has a field counts
        held |= place
    analysis = fields(said) if isinstance(said := held.get("analysis"), dict) else {}
    return ParsedVerdict(
        winner=winner,
        confidence=confidence_of(held.get("confidence")),
        criteria=_criteria(held.get("comparison"), criteria, flags),
        reasoning=_text(held.get("reasoning")),
        differentiators=_texts(held.get("differentiators")),
        response_a=_analysis(analysis.get("response_a")),
        response_b=_analysis(analysis.get("response_b")),
        flags=tuple(flags),
        from_object=True,
    )


def confidence_of(value: object) -> float | None:
    """A number from 0 to 1; anything else is no confidence."""
    if isinstance(value, str) and len(value) <= 20 and "_" not in value:
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= 1 else None


def _criteria(
    comparison: Any, criteria: Sequence[Criterion], flags: list[str]
) -> tuple[ParsedCriterion, ...]:
    if not criteria:
        return ()
    said: dict[str, ParsedCriterion] = {}
    wanted = {key_of(criterion.name): criterion.name for criterion in criteria}
    for name, entry in _entries(comparison):
        key = key_of(name)
        if key not in wanted:
            key = key_of(_ECHOED.sub("", name))
        if key not in wanted:
            flags.append(Message("unread.criterion_unasked", name=shown(name, 40)))
            continue
        keep_criterion(said, key, _criterion(wanted[key], entry, flags), flags)
    return tuple(said.get(key, ParsedCriterion()) for key in wanted)


def keep_criterion(
    said: dict[str, ParsedCriterion], key: str, parsed: ParsedCriterion, flags: list[str]
) -> None:
    """What is said on a criterion; once its winners differ, it has none."""
    before = said.setdefault(key, parsed)
    if before.winner != parsed.winner:
        flags.append(Message("unread.criterion_judged_twice", wanted=shown(key, 40)))
        said[key] = before._replace(winner=None)


# What a prompt shows beside a criterion's name: "conciseness (weight 2)", "2. conciseness".
_ECHOED = re.compile(
    r"^\s{0,4}(?:#|\d{1,2}[.)、:：])\s{0,4}|\s{0,4}[(（\[][^()（）\[\]]{0,40}[)）\]]\s{0,4}$"
    r"|\s{0,4}[-–—,:：，]\s{0,4}(?:(?i:weight)|权重).{0,20}$"
)


def _entries(comparison: Any) -> Iterator[tuple[str, AnswerFields]]:
    for block in _flat(comparison):
        if isinstance(block, list):
            for item in block:
                if isinstance(item, dict):
                    entry = fields(item)
                    for name in _flat(entry.get("criterion")):
                        if isinstance(name, str) and len(name) <= _LONGEST_NAME:
                            yield name, entry
        elif isinstance(block, dict):
            for name, items in block.items():
                for item in _flat(items):
                    if isinstance(item, dict):
                        yield name, fields(item)
                    elif isinstance(item, str):
                        yield name, {"winner": item}


def _criterion(name: str, entry: AnswerFields, flags: list[str]) -> ParsedCriterion:
    value = entry.get("winner", entry.get("verdict"))
    winner = winner_of(value)
    if winner is None and ("winner" in entry or "verdict" in entry):
        winners = {winner_of(item) for item in _flat(value)}
        winner = winners.pop() if len(winners) == 1 else None
        if winner is None:
            named = {"criterion": shown(name, 40)}
            flags.append(
                Message("unread.winner_named_twice", **named)
                if winners
                else Message("unread.winner_off_menu", value=shown(str(value), 30), **named)
            )
    return ParsedCriterion(
        winner,
        reasoning=_text(entry.get("reasoning")),
        a_assessment=_text(entry.get("a_assessment")),
        b_assessment=_text(entry.get("b_assessment")),
    )


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(item for item in value if isinstance(item, str))
    if isinstance(value, ConflictingValues):
        return "\n".join(filter(None, map(_text, value.values)))
    return ""


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        # A list first: that is many times faster than feeding a tuple one by one.
        return tuple([item for item in value if isinstance(item, str)])
    return (value,) if isinstance(value, str) and value else ()


def _analysis(value: Any) -> ParsedAnalysis:
    if not isinstance(value, dict):
        return ParsedAnalysis()
    named = fields(value)
    return ParsedAnalysis(_texts(named.get("strengths")), _texts(named.get("weaknesses")))
