"""The native answer, one JSON object, read into a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from evenhand.contract import Criterion, Winner, criterion_key
from evenhand.parse.objects import Conflict
from evenhand.parse.outcome import Failure, Plain, Reading, shown
from evenhand.parse.words import NATIVE_FIELDS, field_name, winner_of

Fields = dict[str, Any]

key_of = lru_cache(maxsize=4096)(criterion_key)

# A criterion may be called by a whole paragraph; what is longer was not written to be matched.
_LONGEST_NAME = 20_000


def fields(value: dict[str, Any]) -> Fields:
    """The object's fields by the contract's names; two spellings that differ are a conflict."""
    try:
        return {NATIVE_FIELDS[key]: item for key, item in value.items()}
    except KeyError:
        pass  # some key is spelt in another way
    named: Fields = {}
    for key, item in value.items():
        name = field_name(key)
        if name is None:
            continue
        if name in named and named[name] != item:
            item = Conflict((named[name], item))
        named[name] = item
    return named


def is_answer(value: dict[str, Any]) -> bool:
    """Whether the object names an overall winner, on the menu or not, where an answer does."""
    named = fields(value)
    stated = _verdicts(named, _results(named))
    return bool(stated) and not ("criterion" in named and "result" not in named)


def is_full(value: dict[str, Any]) -> bool:
    named = fields(value)
    return "comparison" in named or "analysis" in named


def _results(named: Fields) -> list[Fields]:
    """The objects in which the overall verdict stands: `result`, or a `verdict` that is one."""
    held = (*_flat(named.get("result")), *_flat(named.get("verdict")))
    return [fields(value) for value in held if isinstance(value, dict)]


def _verdicts(named: Fields, results: list[Fields]) -> list[Any]:
    """Every value that stands where the overall winner is named."""
    places = (named, *results)
    stated = [leaf for place in places if "winner" in place for leaf in _flat(place["winner"])]
    labels = [
        leaf
        for place in places
        if "verdict" in place
        for leaf in _flat(place["verdict"])
        if not isinstance(leaf, dict)
    ]
    # "verdict" is also a word for prose: beside a winner, only a label under it is a statement.
    stated.extend(leaf for leaf in labels if not stated or winner_of(leaf))
    if not stated and "result" in named and not isinstance(named["result"], dict):
        stated.extend(value for value in _flat(named["result"]) if winner_of(value))
    return stated


def _flat(value: Any) -> Sequence[Any]:
    if isinstance(value, Conflict):
        return [leaf for item in value.values for leaf in _flat(item)]
    return (value,)


def winner_in(value: dict[str, Any]) -> Winner | Failure:
    named = fields(value)
    return _winner_of_all(_verdicts(named, _results(named)))


def _winner_of_all(stated: list[Any]) -> Winner | Failure:
    if len(stated) == 1 and (only := winner_of(stated[0])):
        return only
    winners = [winner_of(item) for item in stated]
    if len(set(winners)) > 1:
        return Failure(
            "contradiction",
            f"the answer names {len(stated)} winners that differ: "
            + ", ".join(shown(str(item), 20) for item in stated[:4]),
        )
    winner = winners[0] if winners else None
    if winner is None:
        if not stated:
            return Failure("no_verdict", "the JSON answer names no overall winner")
        said = "null" if stated[0] is None else shown(str(stated[0]), 40)
        return Failure("off_menu", f"the winner is {said}, which is none of A, B and TIE")
    return winner


def read_answer(value: dict[str, Any], criteria: Sequence[Criterion]) -> Reading | Failure:
    named = fields(value)
    results = _results(named)
    winner = _winner_of_all(_verdicts(named, results))
    if isinstance(winner, Failure):
        return winner
    result = results[-1] if results else named
    flags: list[str] = []
    return Reading(
        winner=winner,
        confidence=confidence_of(result.get("confidence", named.get("confidence"))),
        criteria=_criteria(named.get("comparison"), criteria, flags),
        reasoning=_text(result.get("reasoning", named.get("reasoning"))),
        differentiators=_texts(result.get("differentiators", named.get("differentiators"))),
        analysis=_analysis(named.get("analysis")),
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
) -> tuple[Plain, ...]:
    if not criteria:
        return ()
    said: dict[str, dict[str, Any]] = {}
    wanted = {key_of(criterion.name): criterion.name for criterion in criteria}
    for name, entry in _entries(comparison):
        key = key_of(name)
        if key not in wanted:
            flags.append(f"criterion {shown(name, 40)} was not asked for")
            continue
        ballot = _criterion(wanted[key], entry, flags)
        before = said.get(key)
        if before is None:
            said[key] = ballot
        elif before["winner"] != ballot["winner"]:
            flags.append(f"criterion {shown(wanted[key], 40)} is judged twice, differently")
            before["winner"] = None
    return tuple(said.get(key) or {"criterion": name} for key, name in wanted.items())


def _entries(comparison: Any) -> Iterator[tuple[str, Fields]]:
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


def _criterion(name: str, entry: Fields, flags: list[str]) -> dict[str, Any]:
    value = entry.get("winner", entry.get("verdict"))
    winner = winner_of(value)
    if winner is None and ("winner" in entry or "verdict" in entry):
        winners = {winner_of(item) for item in _flat(value)}
        winner = winners.pop() if len(winners) == 1 else None
        if winner is None:
            what = "is named twice" if winners else f"{shown(str(value), 30)} is off the menu"
            flags.append(f"criterion {shown(name, 40)}: its winner {what}")
    return {
        "criterion": name,
        "winner": winner,
        "reasoning": _text(entry.get("reasoning")),
        "a_assessment": _text(entry.get("a_assessment")),
        "b_assessment": _text(entry.get("b_assessment")),
    }


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(item for item in value if isinstance(item, str))
    if isinstance(value, Conflict):
        return "\n".join(filter(None, map(_text, value.values)))
    return ""


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        # A list first: that is many times faster than feeding a tuple one by one.
        return tuple([item for item in value if isinstance(item, str)])
    return (value,) if isinstance(value, str) and value else ()


def _analysis(value: Any) -> Plain:
    if not isinstance(value, dict):
        return {}
    named = fields(value)
    return {
        "response_a": _response(named.get("response_a")),
        "response_b": _response(named.get("response_b")),
    }


def _response(value: Any) -> Plain:
    if not isinstance(value, dict):
        return {}
    named = fields(value)
    return {
        "strengths": _texts(named.get("strengths")),
        "weaknesses": _texts(named.get("weaknesses")),
    }
