"""Which statement in a text is the judge's verdict, and in which protocol it was given."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evenhand.contract import Criterion, Winner
from evenhand.parse.answer import is_answer, is_full, read_answer, winner_in
from evenhand.parse.bare import read_bare
from evenhand.parse.lines import Labelled, introduces_quote, labelled, quotes
from evenhand.parse.marks import marks
from evenhand.parse.objects import Found, Search, find
from evenhand.parse.outcome import Failure, Protocol, Reading, Statement, shown
from evenhand.parse.prose import claims
from evenhand.parse.prose_labels import as_reasons
from evenhand.parse.scores import first_line, read_scores
from evenhand.parse.sentences import read_class, read_conclusion, read_outputs
from evenhand.parse.words import NOUN, is_refusal, plainly

_DECORATION_ONLY = re.compile(r"[\s`~*_>#,\[\]-]*(?:json|JSON)?[\s`~*_>#,\[\]-]*")
_RESPONSE = re.compile(rf"{NOUN}\s?[(（]?[AB12](?![A-Za-z0-9])")
# The sentence that an object stands in goes on after it.
_GOES_ON = re.compile(r"[`\"”'\s]{0,3}(?:[,，;；]|[a-z]|这|是|等|的)")
_OWN = re.compile(r"\b(?:my|verdict|final|i)\b|我的|判定|最终", re.IGNORECASE)
_HEAD, _TAIL = 10_000, 50_000


def read_text(
    body: str, criteria: Sequence[Criterion], protocol: Protocol | None
) -> Reading | Failure:
    """Everything but the plain JSON answer: objects in prose, labelled lines, other protocols."""
    plain = plainly(body)
    if protocol is None or protocol == "evenhand":
        outcome = _native(body, plain, criteria, alone=protocol is not None)
        if outcome is None:
            outcome = _foreign(_edges(plain))
    else:
        outcome = _by(protocol, _edges(plain))
    if isinstance(outcome, Failure):
        if outcome.kind == "no_verdict" and is_refusal(plain):
            return Failure("refusal", f"the judge declined: {shown(body)}")
        return outcome
    if outcome.from_object:
        return outcome
    # Outside JSON the text itself is the reasoning.
    held = outcome.criteria or tuple({"criterion": criterion.name} for criterion in criteria)
    return outcome._replace(criteria=held, reasoning=as_reasons(body, outcome.protocol))


def _edges(text: str) -> str:
    """A text of absurd length without its middle: a verdict stands near one of the ends."""
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"


def _native(
    body: str, plain: str, criteria: Sequence[Criterion], *, alone: bool
) -> Reading | Failure | None:
    """JSON in a fence or in prose, then labelled lines. None: not in the native format."""
    search = find(body) if "{" in body else Search([])
    if search.gave_up:
        return Failure("malformed", "too many unclosed braces to look for an answer among them")
    answer = _answer(plain, search.found)
    if isinstance(answer, Failure):
        return answer
    prose = _without(plain, search.found)
    if answer is not None:
        return _checked(answer, prose, criteria)
    prose = _edges(prose)
    lines = labelled(prose, criteria)
    stated = lines.statements if alone else [*lines.statements, *marks(prose)]
    verdict = _final(sorted(stated, key=lambda statement: statement.start))
    if verdict is None:
        return _conclude(prose) if alone else None
    if isinstance(verdict, Failure):
        return verdict
    return _with_lines(verdict, lines, prose)


def _with_lines(verdict: Statement, lines: Labelled, prose: str) -> Reading | Failure:
    assert verdict.winner is not None  # noqa: S101 - _final lets no other pass
    against = _contradicted(prose[verdict.end :], verdict.winner)
    if against is not None:
        return against
    native = verdict.protocol == "evenhand"
    return Reading(
        verdict.winner,
        verdict.protocol,
        confidence=lines.confidence if native else None,
        criteria=lines.criteria if native else (),
        flags=lines.flags if native else (),
        strength=verdict.strength,
    )


def _final(stated: list[Statement]) -> Statement | Failure | None:
    """The final statement; two that both have a claim to be it, and differ, are none."""
    if not stated:
        return None
    last = stated[-1]
    rivals = [
        other
        for other in stated[:-1]
        if other.winner != last.winner and (other.final or not last.final)
    ]
    if rivals:
        return Failure(
            "contradiction",
            f"two statements differ: {shown(rivals[-1].text, 40)} and {shown(last.text, 40)}",
        )
    if last.winner is None:
        return Failure("off_menu", f"{shown(last.text)} names none of the verdicts on offer")
    return last


def _contradicted(after: str, winner: Winner) -> Failure | None:
    for claim in claims(after):
        if claim.winner != winner and (claim.concluding or claim.alone):
            return Failure(
                "contradiction",
                f"the verdict is {winner}, but later it says "
                f"{shown(after[claim.start : claim.end])}",
            )
    return None


def _answer(body: str, found: list[Found]) -> Found | Failure | None:
    """The object that is the answer, if one is."""
    answers: list[Found] = []
    broken: Found | None = None
    for item in found:
        if item.value is None:
            broken = broken or item
        elif is_answer(item.value) and not _mentioned(body, item):
            if broken is not None and not is_full(item.value):
                continue  # a part of the broken one
            broken = None
            answers.append(item)
    if broken is not None:
        if broken.unclosed:
            return Failure("truncated", "the answer's JSON stops in the middle")
        return Failure("malformed", "the answer's JSON is broken, and no whole one follows")
    if not answers:
        return None
    full = [item for item in answers if item.value is not None and is_full(item.value)]
    chosen = full[-1] if full else answers[-1]
    for other in answers:
        rival = other.start > chosen.start or _adjacent(body, other, chosen)
        if other is not chosen and rival and _winner(other) != _winner(chosen):
            return Failure("contradiction", "two answer objects name different winners")
    return chosen


def _winner(item: Found) -> Winner | None:
    winner = winner_in(item.value or {})
    return None if isinstance(winner, Failure) else winner


def _adjacent(body: str, first: Found, second: Found) -> bool:
    between = body[first.end : second.start]
    return len(between) < 200 and _DECORATION_ONLY.fullmatch(between) is not None


def _mentioned(body: str, item: Found) -> bool:
    """Whether the object is quoted: in the middle of a sentence about it, or announced as such."""
    before = body[max(0, item.start - 400) : item.start]
    line = before.rsplit("\n", 1)[-1]
    following = body[item.end : item.end + 200].split("\n", 1)[0]
    if _GOES_ON.match(following) and (quotes(following) or _RESPONSE.search(following)):
        return True
    if line.strip(" \t*_>#`") and (
        quotes(line) or _RESPONSE.search(line) or (line.rstrip().endswith("`"))
    ):
        return _OWN.search(line) is None or _RESPONSE.search(line) is not None
    lead = before[: len(before) - len(line)].rstrip()
    while lead.rsplit("\n", 1)[-1].strip().startswith("```"):
        lead = lead.rsplit("\n", 1)[0].rstrip() if "\n" in lead else ""
    return introduces_quote(lead.rsplit("\n", 1)[-1], set_off=True)


def _without(body: str, found: list[Found]) -> str:
    """The prose around the objects, every character still at its place."""
    parts: list[str] = []
    at = 0
    for item in found:
        if item.value is None:
            continue
        parts.append(body[at : item.start])
        parts.append(" " * (item.end - item.start))
        at = item.end
    parts.append(body[at:])
    return "".join(parts)


def _checked(answer: Found, prose: str, criteria: Sequence[Criterion]) -> Reading | Failure:
    reading = read_answer(answer.value or {}, criteria)
    if isinstance(reading, Failure):
        return reading
    before, after = _edges(prose[: answer.start]), _edges(prose[answer.end :])
    if before.strip("`~ \n\t") and not is_full(answer.value or {}):
        # The whole answer outweighs what led to it; a verdict alone is no more than another one.
        for statement in labelled(before, ()).statements:
            if statement.final and statement.winner != reading.winner:
                return _differs(reading.winner, statement)
    if after.strip("`~ \n\t"):
        for statement in (*labelled(after, ()).statements, *marks(after)):
            if statement.winner != reading.winner:
                return _differs(reading.winner, statement)
        against = _contradicted(after, reading.winner)
        if against is not None:
            return against
    return reading


def _differs(winner: Winner, statement: Statement) -> Failure:
    return Failure(
        "contradiction", f"the JSON answer says {winner}, the text says {shown(statement.text)}"
    )


_OUTPUT = re.compile(r"(?:(?i:\boutput)|输出)\s{0,2}[(（][abAB][)）]|^\s*\([ab]\)[\s.]*$")
_NUMBERED = re.compile(r"(?:(?i:\bassistant)|助手|助理)\s?[12]")


def _foreign(body: str) -> Reading | Failure:
    """The other protocols, each only where the text really looks like it."""
    if body in ("1", "2", "3"):
        return read_class(body)
    if _OUTPUT.search(body):
        return read_outputs(body)
    if _NUMBERED.search(body) or "output tuple is (" in body:
        return _numbered(body)
    return _conclude(body)


def _numbered(body: str) -> Reading | Failure:
    by_class = read_class(body)
    opening = first_line(body)
    if opening is not None:
        return read_scores(body, first_line_only=True)
    if isinstance(by_class, Reading) and body.rstrip()[-1:].isdigit():
        return by_class
    scored = read_scores(body)
    if isinstance(scored, Reading) or scored.kind == "contradiction":
        return scored
    return by_class


def _conclude(body: str) -> Reading | Failure:
    bare = read_bare(body)
    if bare is not None:
        return bare
    of_assistants = re.search(r"(?i:\bassistant)\s?[AB]\b|助手\s?[AB]", body)
    return read_conclusion(body, "mt-bench" if of_assistants else "evenhand")


def _by(protocol: Protocol, body: str) -> Reading | Failure:
    if protocol == "llmbar":
        return read_outputs(body)
    if protocol == "three-class":
        return read_class(body)
    if protocol == "scores":
        return read_scores(body)
    verdict = _final(marks(body, protocol))
    if verdict is None:
        return read_conclusion(body, protocol)
    if isinstance(verdict, Failure):
        return verdict
    return _with_lines(verdict, Labelled([], (), None, ()), body)
