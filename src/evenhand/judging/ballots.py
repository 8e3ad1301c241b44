"""A judge's completion becomes a ballot, or an unread answer that says why: from its text, or from
the probabilities of its letters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from evenhand.contract import (
    Ballot,
    CriterionBallot,
    Order,
    Pair,
    Probabilities,
    Scores,
    Unread,
    UnreadKind,
    Vote,
    Winner,
    other_order,
    rename,
)
from evenhand.judges import Completion, TokenLogprob
from evenhand.judging.answers.reader import AnswerProtocol, read, read_briefly, whole_characters

_RESULT = re.compile(r'"result"\s*:\s*\{', re.IGNORECASE)
_WINNER = re.compile(r'"winner"\s*:\s*"', re.IGNORECASE)
_LETTER_WINNER: dict[str, Winner] = {"A": "A", "B": "B", "C": "TIE"}


def read_reasoned(
    completion: Completion,
    *,
    pair: Pair,
    order: Order,
    sample: int,
    protocol: AnswerProtocol | None = None,
    from_logprobs: bool = False,
) -> Ballot | Unread:
    def unread(kind: UnreadKind, reason: str) -> Unread:
        return _unread(completion.text, order=order, sample=sample, kind=kind, reason=reason)

    if completion.verdict_as_shown is not None:
        if completion.verdict_as_shown == "TIE" and not pair.allow_tie:
            return unread("tie_not_allowed", "the judge named a tie, and a tie is not allowed")
        return _as_shown_to_caller(
            Ballot(
                order=_built_as(order),
                sample=sample,
                winner=completion.verdict_as_shown,
                scores=_scores(completion),
                criteria=tuple(CriterionBallot(criterion=c.name) for c in pair.criteria),
                protocol="recorded",
                flags=completion.flags,
            ),
            order,
        )
    withheld = _withheld(completion)
    if withheld is not None:
        return unread(*withheld)
    if not completion.text.strip():
        return unread("empty", "the judge sent an empty answer")
    reading = read(
        completion.text,
        criteria=pair.criteria,
        allow_tie=pair.allow_tie,
        order=order,
        sample=sample,
        truncated=completion.finish == "length",
        protocol=protocol,
    )
    if isinstance(reading, Unread):
        return reading
    changes: dict[str, object] = {}
    if completion.flags:
        changes["flags"] = (*reading.flags, *completion.flags)
    if from_logprobs:
        changes |= _confidence_from_logprobs(reading, completion.logprobs, order)
    return reading.model_copy(update=changes) if changes else reading


def _scores(completion: Completion) -> Scores | None:
    if completion.scores_as_shown is None:
        return None
    first, second = completion.scores_as_shown
    return Scores(a=first, b=second)


def read_vote(
    completion: Completion,
    *,
    pair: Pair,
    order: Order,
    sample: int,
    protocol: AnswerProtocol | None,
) -> Vote | Ballot | Unread:
    """The same, of a plain answer only its vote; what else there is to an answer is in a ballot."""
    if (
        completion.verdict_as_shown is not None
        or completion.flags
        or _withheld(completion) is not None
        or not completion.text.strip()
    ):
        return read_reasoned(completion, pair=pair, order=order, sample=sample, protocol=protocol)
    return read_briefly(
        completion.text,
        criteria=pair.criteria,
        allow_tie=pair.allow_tie,
        order=order,
        sample=sample,
        truncated=completion.finish == "length",
        protocol=protocol,
    )


def whole_ballot(bare: Ballot, pair: Pair) -> Ballot:
    """The ballot of a vote, with the prose that was left in its text.

    Who won was decided when the vote was read, and stays decided where a later version would read
    the same text in another way.
    """
    again = read(
        bare.raw,
        criteria=pair.criteria,
        allow_tie=pair.allow_tie,
        order=bare.order,
        sample=bare.sample,
    )
    if isinstance(again, Unread):
        return bare
    winners = {entry.criterion: entry.winner for entry in bare.criteria}
    same = {entry.criterion: entry.winner for entry in again.criteria} == winners
    if same and (again.winner, again.confidence) == (bare.winner, bare.confidence):
        return again
    told = {entry.criterion: entry for entry in again.criteria}
    return again.model_copy(
        update={
            "winner": bare.winner,
            "confidence": bare.confidence,
            "confidence_source": bare.confidence_source,
            "criteria": tuple(
                told.get(entry.criterion, entry).model_copy(update={"winner": entry.winner})
                for entry in bare.criteria
            ),
        }
    )


def _unread(text: str, *, order: Order, sample: int, kind: UnreadKind, reason: str) -> Unread:
    # A reason may quote the judge, whose labels are those of its pass.
    reason = reason if order == "original" else rename(reason)
    return Unread(
        order=order,
        sample=sample,
        kind=kind,
        reason=whole_characters(reason),
        raw=whole_characters(text),
    )


def _withheld(completion: Completion) -> tuple[UnreadKind, str] | None:
    """Why there is no answer at all, where the judge or its server says so."""
    if completion.refusal is not None or completion.finish == "refusal":
        said = " ".join((completion.refusal or completion.text).split())[:200]
        what = f"the judge declined: {said}" if said else "the judge declined"
        return "refusal", f"{what}; try another judge, or judge this pair by hand"
    if completion.finish == "filter":
        return "refusal", "the provider's content filter withheld the answer; try another judge"
    if completion.text.strip() or completion.logprobs:
        return None
    if completion.finish == "length":
        return (
            "thinking",
            "the answer is empty because the thinking used up the token limit; raise --max-tokens",
        )
    if completion.thought:
        return (
            "thinking",
            "the judge thought, but sent no answer; check the server's reasoning parser, "
            "or turn thinking off",
        )
    return None


def read_letters(
    completions: Sequence[Completion], *, pair: Pair, order: Order, sample: int
) -> Ballot | Unread:
    """The whole first, then a completion for each criterion, each a token's probabilities."""
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
    winner = _likeliest(overall, allow_tie=pair.allow_tie)
    if winner is None:
        return Unread(
            order=order,
            sample=sample,
            kind="no_verdict",
            reason="the letters A and B are equally probable, and a tie is not allowed",
            raw=raw,
        )
    criteria = tuple(
        CriterionBallot(criterion=criterion.name)
        if isinstance(found, str)
        else CriterionBallot(
            criterion=criterion.name,
            winner=_likeliest(found, allow_tie=True),
            probabilities=found,
        )
        for criterion, found in zip(pair.criteria, by_criterion, strict=True)
    )
    # A tie between equal letters is backed by no probability of its own.
    backed = _of(overall, winner) >= max(overall.a, overall.b, overall.tie)
    ballot = Ballot(
        order=_built_as(order),
        sample=sample,
        winner=winner,
        confidence=_of(overall, winner) if backed else None,
        confidence_source="logprobs" if backed else "none",
        probabilities=overall,
        criteria=criteria,
        protocol="letter",
        raw=raw,
    )
    return _as_shown_to_caller(ballot, order)


def _built_as(order: Order) -> Order:
    """The order to build a ballot with in the labels shown: mirroring turns it round again."""
    return order if order == "original" else other_order(order)


def _as_shown_to_caller(ballot: Ballot, order: Order) -> Ballot:
    return ballot if order == "original" else ballot.mirrored()


def _letter_probabilities(completion: Completion, *, allow_tie: bool) -> Probabilities | str:
    if not completion.logprobs:
        return "the judge gave no log-probabilities; use --mode reasoned with it"
    place = completion.logprobs[0]
    mass = _letter_mass(place)
    if not allow_tie:
        mass.pop("TIE", None)
    total = sum(mass.values())
    rather = _would_rather(place, total)
    if total <= 0 or rather is not None:
        return (
            f"the judge would answer {rather!r} rather than a letter on offer "
            f"(which have {total:.1%} of the probability); use --mode reasoned with it"
        )
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


def _likeliest(found: Probabilities, *, allow_tie: bool) -> Winner | None:
    """Where A and B weigh exactly the same it is a tie, or nothing."""
    if found.a == found.b or found.tie >= max(found.a, found.b):
        return "TIE" if allow_tie else None
    return "A" if found.a > found.b else "B"


def _of(found: Probabilities, winner: Winner) -> float:
    return {"A": found.a, "B": found.b, "TIE": found.tie}[winner]


def _confidence_from_logprobs(
    ballot: Ballot, logprobs: Sequence[TokenLogprob], order: Order
) -> dict[str, object]:
    """The probabilities at the token that names the overall winner, in the caller's labels."""
    place = _verdict_place(logprobs)
    found = _verdict_probabilities(place) if place is not None else None
    if found is None:
        return {"confidence": None, "confidence_source": "none", "probabilities": None}
    mapped = found if order == "original" else found.mirrored()
    if _of(mapped, ballot.winner) == 0:
        return {"confidence": None, "confidence_source": "none", "probabilities": None}
    return {
        "confidence": _of(mapped, ballot.winner),
        "confidence_source": "logprobs",
        "probabilities": mapped,
    }


def _verdict_place(logprobs: Sequence[TokenLogprob]) -> TokenLogprob | None:
    """The first token of the overall winner's value, where it is beyond doubt which that is."""
    text = ""
    starts: list[int] = []
    for token in logprobs:
        starts.append(len(text))
        text += token.token
    # The winner in the last "result", or the only winner there is. Quotes inside a string are
    # escaped, so that a text that looks like a field is not one.
    begun = [match.end() for match in _RESULT.finditer(text)]
    winners = [match.end() for match in _WINNER.finditer(text, begun[-1] if begun else 0)]
    if not winners or (not begun and len(winners) > 1):
        return None
    for index, start in enumerate(starts):
        if start <= winners[0] < start + len(logprobs[index].token):
            return logprobs[index]
    return None


def _verdict_probabilities(place: TokenLogprob) -> Probabilities | None:
    mass: dict[Winner, float] = {"A": 0.0, "B": 0.0, "TIE": 0.0}
    for token, logprob in place.top or ((place.token, place.logprob),):
        # The token may carry the quote before the value or after it.
        value = token.strip().strip('":,} \u2581\u0120').upper()
        winner = "TIE" if value and "TIE".startswith(value) else value
        if winner in mass:
            mass[winner] += math.exp(min(0.0, logprob))
    total = sum(mass.values())
    if total <= 0 or _would_rather(place, total) is not None:
        return None
    return Probabilities(a=mass["A"] / total, b=mass["B"] / total, tie=mass["TIE"] / total)


def _would_rather(place: TokenLogprob, total: float) -> str | None:
    """A token that is more probable than all verdicts on offer together: the judge's own choice.

    Where there is one, the odds of the verdicts are not what the judge says.
    """
    token, logprob = max(
        place.top, key=lambda entry: entry[1], default=(place.token, place.logprob)
    )
    return token if math.exp(min(0.0, logprob)) > total else None
