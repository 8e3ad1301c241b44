"""One pass's completion becomes a ballot, or unread with a reason: from its text, or from the
probabilities of its letters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import cast

from evenhand.contract import (
    PROTOCOLS,
    AnswerProtocol,
    Criterion,
    Order,
    Pair,
    Probabilities,
    Scores,
    Unread,
    UnreadKind,
    Usage,
    Winner,
    flip,
    flip_or_none,
    rename,
)
from evenhand.judges.protocol import Completion, TokenLogprob
from evenhand.judging.answers.reader import parse, whole_characters
from evenhand.judging.answers.results import ParsedVerdict, ParseFailure, QuotedFrom
from evenhand.judging.decision import PassBallot, Reading
from evenhand.messages import Message

_RESULT = re.compile(r'"result"\s*:\s*\{', re.IGNORECASE)
_WINNER = re.compile(r'"winner"\s*:\s*"', re.IGNORECASE)
_LETTER_WINNER: dict[str, Winner] = {"A": "A", "B": "B", "C": "TIE"}


def add_usage(parts: Iterable[Usage]) -> Usage:
    """A sum is known only if every part is."""
    usages = list(parts)
    if len(usages) == 1:
        return usages[0]

    def total(values: list[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return sum(known) if known and len(known) == len(values) else None

    costs = [usage.cost_usd for usage in usages]
    known_costs = [cost for cost in costs if cost is not None]
    return Usage(
        input_tokens=total([usage.input_tokens for usage in usages]),
        output_tokens=total([usage.output_tokens for usage in usages]),
        cached_input_tokens=total([usage.cached_input_tokens for usage in usages]),
        cost_usd=sum(known_costs) if known_costs and len(known_costs) == len(costs) else None,
        requests=sum(usage.requests for usage in usages),
    )


def read_completion(
    completion: Completion,
    *,
    pair: Pair,
    order: Order,
    sample: int,
    protocol: AnswerProtocol | None = None,
    from_logprobs: bool = False,
    structured: bool = False,
) -> Reading:
    """The judge's written answer; `from_logprobs` takes the confidence from its tokens.

    With a schema (`structured`), the API's own field outranks any text.
    """
    if structured and completion.tool_arguments is not None:
        completion = replace(completion, text=completion.tool_arguments)
    if completion.verdict_as_shown is not None:
        return _read_recorded(completion, pair=pair, order=order, sample=sample)
    withheld = _withheld(completion)
    if withheld is None and not completion.text.strip():
        withheld = "empty", Message("unread.sent_nothing")
    if withheld is not None:
        kind, reason = withheld
        return _unread(completion.text, order=order, sample=sample, kind=kind, reason=reason)
    reading = read_ballot(
        completion.text,
        criteria=pair.criteria,
        allow_tie=pair.allow_tie,
        order=order,
        sample=sample,
        truncated=completion.finish == "length",
        protocol=protocol,
        quoted=quoted_from(pair),
    )
    if isinstance(reading, Unread):
        return reading
    if completion.flags:
        reading = replace(reading, flags=(*reading.flags, *completion.flags))
    if from_logprobs:
        confidence, probabilities = _confidence_from_logprobs(reading, completion.logprobs)
        reading = replace(
            reading,
            confidence=confidence,
            confidence_source="none" if confidence is None else "logprobs",
            probabilities=probabilities,
        )
    return reading


def read_ballot(
    text: str,
    *,
    criteria: Sequence[Criterion] = (),
    allow_tie: bool = True,
    order: Order = "original",
    sample: int = 1,
    truncated: bool = False,
    protocol: AnswerProtocol | None = None,
    quoted: QuotedFrom | None = None,
) -> Reading:
    """The text uses the labels that the pass showed: with `order="swapped"` they are exchanged."""
    text = whole_characters(text)
    parsed = parse(text, criteria, truncated=truncated, protocol=protocol, quoted=quoted)
    if isinstance(parsed, ParsedVerdict) and parsed.winner == "TIE" and not allow_tie:
        parsed = ParseFailure("tie_not_allowed", Message("unread.tie_not_allowed"))
    if isinstance(parsed, ParseFailure):
        return _unread(text, order=order, sample=sample, kind=parsed.kind, reason=parsed.reason)
    winner, scores = parsed.winner, parsed.scores
    won = [each.winner for each in parsed.criteria]
    if order == "swapped":
        winner, won = flip(winner), [flip_or_none(each) for each in won]
        scores = scores.mirrored() if scores else None
    return PassBallot(
        order=order,
        sample=sample,
        winner=winner,
        confidence=parsed.confidence,
        criteria=tuple(won),
        raw=text,
        confidence_source="none" if parsed.confidence is None else "stated",
        scores=scores,
        strength=parsed.strength,
        protocol=parsed.protocol,
        flags=tuple(map(whole_characters, parsed.flags)),
        read_as=protocol,
        prose=parsed,
    )


# Typography that a judge may change when it quotes.
_SPACE = re.compile(r"[\s*_`>\"'“”]+")
_WORD = re.compile(r"[^\W_]+")
_LONG_WORD = re.compile(r"\b[^\W_]{10,}")


def quoted_from(pair: Pair) -> QuotedFrom:
    """Whether the words occur in one of the pair's texts, ignoring spaces and typography."""

    def quoted(words: str) -> bool:
        texts = (pair.response_a, pair.response_b, pair.prompt, pair.context, pair.reference)
        # Without a brace no object is quoted.
        brace = "{" if words.startswith("{") else ""
        held = [text for text in texts if text and brace in text]
        if not held:
            return False
        # The longest word first, which settles nearly every answer.
        long = _LONG_WORD.search(words)
        word = long[0] if long else max(_WORD.findall(words[:300]), key=len, default="")
        held = [text for text in held if word in text]
        wanted = _SPACE.sub("", words) if held else ""
        return any(wanted in _SPACE.sub("", text) for text in held)

    return quoted


_NO_PROSE = ParsedVerdict("TIE")


def prose_of(ballot: PassBallot, pair: Pair) -> ParsedVerdict:
    """As parsed; a stored ballot is parsed from its text once, on first use."""
    if ballot.prose is not None:
        return ballot.prose
    if ballot.protocol not in PROTOCOLS:
        return _NO_PROSE  # letters, and verdicts that came without a text, have none
    parsed = parse(ballot.raw, pair.criteria, protocol=ballot.read_as, quoted=quoted_from(pair))
    prose = parsed if isinstance(parsed, ParsedVerdict) else _NO_PROSE
    object.__setattr__(ballot, "prose", prose)
    return prose


def unless_changed(repaired: PassBallot, first: Unread) -> Reading:
    """The repaired answer, unless it changes the only winner of the first: a judge asked again may
    restate, not change its mind."""
    if first.kind in ("tie_not_allowed", "refusal", "thinking", "empty"):
        return repaired  # there was nothing to restate
    from evenhand.judging.answers.recognition import named_winners

    named = named_winners(first.raw)
    if repaired.order == "swapped":
        named = {flip(winner) for winner in named}
    if len(named) != 1 or repaired.winner in named:
        return repaired
    reason = Message("unread.repair_differs", first=min(named), winner=repaired.winner)
    return Unread(
        order=repaired.order,
        sample=repaired.sample,
        kind="contradiction",
        reason=reason,
        raw=repaired.raw,
    )


def _read_recorded(completion: Completion, *, pair: Pair, order: Order, sample: int) -> Reading:
    """A verdict recorded without its text."""
    winner = cast("Winner", completion.verdict_as_shown)
    if winner == "TIE" and not pair.allow_tie:
        reason = Message("unread.named_tie_not_allowed")
        return _unread(
            completion.text, order=order, sample=sample, kind="tie_not_allowed", reason=reason
        )
    scores = None
    if completion.scores_as_shown is not None:
        first, second = completion.scores_as_shown
        scores = Scores(a=first, b=second)
    if order == "swapped":
        winner, scores = flip(winner), scores.mirrored() if scores else None
    return PassBallot(
        order,
        sample,
        winner,
        criteria=(None,) * len(pair.criteria),
        scores=scores,
        protocol="recorded",
        flags=completion.flags,
    )


def _unread(text: str, *, order: Order, sample: int, kind: UnreadKind, reason: str) -> Unread:
    # A reason may quote the judge, in the labels of its pass.
    if order == "swapped":
        reason = _changed(reason, rename)
    return Unread(
        order=order,
        sample=sample,
        kind=kind,
        reason=_changed(reason, whole_characters),
        raw=whole_characters(text),
    )


def _changed(reason: str, change: Callable[[str], str]) -> str:
    return reason.with_texts(change) if isinstance(reason, Message) else change(reason)


def _withheld(completion: Completion) -> tuple[UnreadKind, str] | None:
    """Why there is no answer, if the judge or its server says so."""
    if completion.refusal is not None or completion.finish == "refusal":
        refusal = " ".join((completion.refusal or completion.text).split())[:200]
        if refusal:
            return "refusal", Message("unread.declined_saying", reason=refusal)
        return "refusal", Message("unread.declined")
    if completion.finish == "filter":
        return "refusal", Message("unread.content_filter")
    if completion.text.strip() or completion.logprobs:
        return None
    if completion.finish == "length":
        return (
            "thinking",
            Message("unread.thinking_cut"),
        )
    if completion.thought:
        return (
            "thinking",
            Message("unread.only_thought"),
        )
    return None


def read_letters(
    completions: Sequence[Completion], *, pair: Pair, order: Order, sample: int
) -> Reading:
    """The whole first, then a completion for each criterion, each with a token's probabilities."""
    raw = whole_characters("\n".join(completion.text for completion in completions))
    withheld = _withheld(completions[0])
    if withheld is not None:
        kind, why = withheld
        return _unread(raw, order=order, sample=sample, kind=kind, reason=why)
    overall, *by_criterion = [
        _letter_probabilities(completion, allow_tie=pair.allow_tie) for completion in completions
    ]
    if isinstance(overall, str):
        return Unread(order=order, sample=sample, kind="no_probabilities", reason=overall, raw=raw)
    if order == "swapped":
        overall = overall.mirrored()
    winner = _likeliest(overall, allow_tie=pair.allow_tie)
    if winner is None:
        return Unread(
            order=order,
            sample=sample,
            kind="no_verdict",
            reason=Message("unread.letters_equally_probable"),
            raw=raw,
        )
    shares = tuple(
        None if isinstance(each, str) else each.mirrored() if order == "swapped" else each
        for each in by_criterion
    )
    # A tie between equal letters has no probability of its own.
    backed = _of(overall, winner) >= max(overall.a, overall.b, overall.tie)
    return PassBallot(
        order=order,
        sample=sample,
        winner=winner,
        confidence=_of(overall, winner) if backed else None,
        criteria=tuple(
            None if each is None else _likeliest(each, allow_tie=True) for each in shares
        ),
        raw=raw,
        confidence_source="logprobs" if backed else "none",
        probabilities=overall,
        criterion_probabilities=shares,
        protocol="letter",
    )


def _letter_probabilities(completion: Completion, *, allow_tie: bool) -> Probabilities | str:
    if not completion.logprobs:
        return Message("unread.no_logprobs")
    place = completion.logprobs[0]
    mass = _letter_mass(place)
    if not allow_tie:
        mass.pop("TIE", None)
    total = sum(mass.values())
    rather = _would_rather(place, total)
    if total <= 0 or rather is not None:
        return Message("unread.no_letter", rather=rather, percent=100 * total)
    return Probabilities(
        a=mass.get("A", 0.0) / total, b=mass.get("B", 0.0) / total, tie=mass.get("TIE", 0.0) / total
    )


def _letter_mass(place: TokenLogprob) -> dict[Winner, float]:
    """Probability by verdict, over the spellings of a letter (" A", "A", "▁A")."""
    mass: dict[Winner, float] = {}
    for token, logprob in place.top or ((place.token, place.logprob),):
        # Upper case only: " a" is more often an article than an answer.
        letter = token.strip().strip("\u2581\u0120")
        if letter in _LETTER_WINNER:
            winner = _LETTER_WINNER[letter]
            mass[winner] = mass.get(winner, 0.0) + math.exp(min(0.0, logprob))
    return mass


def _likeliest(odds: Probabilities, *, allow_tie: bool) -> Winner | None:
    """If A and B weigh exactly the same: a tie, or None."""
    if odds.a == odds.b or odds.tie >= max(odds.a, odds.b):
        return "TIE" if allow_tie else None
    return "A" if odds.a > odds.b else "B"


def _of(odds: Probabilities, winner: Winner) -> float:
    return {"A": odds.a, "B": odds.b, "TIE": odds.tie}[winner]


def _confidence_from_logprobs(
    ballot: PassBallot, logprobs: Sequence[TokenLogprob]
) -> tuple[float | None, Probabilities | None]:
    """The probabilities at the overall winner's token, in the caller's labels."""
    place = _verdict_place(logprobs)
    shown = _verdict_probabilities(place) if place is not None else None
    if shown is None:
        return None, None
    mapped = shown if ballot.order == "original" else shown.mirrored()
    confidence = _of(mapped, ballot.winner)
    return (confidence, mapped) if confidence else (None, None)


def _verdict_place(logprobs: Sequence[TokenLogprob]) -> TokenLogprob | None:
    """The first token of the overall winner's value, if unambiguous."""
    text = ""
    starts: list[int] = []
    for token in logprobs:
        starts.append(len(text))
        text += token.token
    # The winner in the last "result", or the only winner. Quotes inside strings are escaped, so
    # text that looks like a field does not match.
    results = [match.end() for match in _RESULT.finditer(text)]
    winners = [match.end() for match in _WINNER.finditer(text, results[-1] if results else 0)]
    if not winners or (not results and len(winners) > 1):
        return None
    for index, start in enumerate(starts):
        if start <= winners[0] < start + len(logprobs[index].token):
            return logprobs[index]
    return None


def _verdict_probabilities(place: TokenLogprob) -> Probabilities | None:
    mass: dict[Winner, float] = {"A": 0.0, "B": 0.0, "TIE": 0.0}
    for token, logprob in place.top or ((place.token, place.logprob),):
        # The token may carry the quote before or after the value.
        value = token.strip().strip('":,} \u2581\u0120').upper()
        winner = "TIE" if value and "TIE".startswith(value) else value
        if winner in mass:
            mass[winner] += math.exp(min(0.0, logprob))
    total = sum(mass.values())
    if total <= 0 or _would_rather(place, total) is not None:
        return None
    return Probabilities(a=mass["A"] / total, b=mass["B"] / total, tie=mass["TIE"] / total)


def _would_rather(place: TokenLogprob, total: float) -> str | None:
    """The judge's own token, if more probable than all verdicts together; the verdicts' odds are
    then not its answer."""
    token, logprob = max(
        place.top, key=lambda entry: entry[1], default=(place.token, place.logprob)
    )
    return token if math.exp(min(0.0, logprob)) > total else None
