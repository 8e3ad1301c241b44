"""Answers read, decided on and explained as a comparison does it, without a judge.

The mirror image of a verdict, which compare(B, A) must give when compare(A, B) gave it, is written
from the contract, independently of the code under test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from evenhand.contract import (
    AnswerProtocol,
    Ballot,
    Criterion,
    CriterionBallot,
    Locale,
    Order,
    Pair,
    Reconciling,
    Unread,
    Verdict,
    criterion_key,
    flip_or_none,
)
from evenhand.judging.answers.results import ParsedAnalysis, ParsedCriterion, ParsedVerdict
from evenhand.judging.ballots import quoted_from, read_ballot
from evenhand.judging.decision import Judged, PassBallot, PassResult, Reading, VerdictContext
from evenhand.judging.explanation import ballot_in_contract, explain
from evenhand.judging.reconciliation import Unreconciled, decide
from evenhand.options import JudgingOptions

CONTEXT = VerdictContext("judge", None, "reasoned", "agreement", None, JudgingOptions())


def read(
    text: str,
    *,
    criteria: Sequence[Criterion] = (),
    allow_tie: bool = True,
    order: Order = "original",
    sample: int = 1,
    truncated: bool = False,
    protocol: AnswerProtocol | None = None,
    planted: str = "",
) -> Ballot | Unread:
    """The whole ballot, prose and all; read again from its text it is the same. `planted` is what
    a response says."""
    asked = Pair.model_construct(
        prompt="",
        response_a=planted,
        response_b="",
        context=None,
        reference=None,
        criteria=tuple(criteria),
    )
    reading = read_ballot(
        text,
        criteria=criteria,
        allow_tie=allow_tie,
        order=order,
        sample=sample,
        truncated=truncated,
        protocol=protocol,
        quoted=quoted_from(asked) if planted else None,
    )
    if isinstance(reading, Unread):
        return reading
    whole = ballot_in_contract(asked, reading)
    assert ballot_in_contract(asked, replace(reading, prose=None)) == whole
    return whole


def as_read(whole: Ballot, pair: Pair) -> PassBallot:
    """The ballot as a reader would have made it of a text that says all this."""
    shown = whole if whole.order == "original" else whole.mirrored()
    by_key = {criterion_key(each.criterion): each for each in shown.criteria}
    entries = [
        by_key.get(criterion_key(c.name), CriterionBallot(criterion="")) for c in pair.criteria
    ]
    won = [entry.winner for entry in entries]
    shares = [entry.probabilities for entry in entries]
    if whole.order == "swapped":
        won = [flip_or_none(winner) for winner in won]
        shares = [each and each.mirrored() for each in shares]
    a, b = shown.analysis.response_a, shown.analysis.response_b
    return PassBallot(
        order=whole.order,
        sample=whole.sample,
        winner=whole.winner,
        confidence=whole.confidence,
        criteria=tuple(won),
        raw=whole.raw,
        confidence_source=whole.confidence_source,
        probabilities=whole.probabilities,
        criterion_probabilities=tuple(shares) if any(shares) else (),
        scores=whole.scores,
        strength=whole.strength,
        protocol=whole.protocol,
        flags=whole.flags,
        prose=ParsedVerdict(
            shown.winner,
            criteria=tuple(
                ParsedCriterion(e.winner, e.reasoning, e.a_assessment, e.b_assessment)
                for e in entries
            ),
            reasoning=shown.reasoning,
            differentiators=shown.differentiators,
            response_a=ParsedAnalysis(a.strengths, a.weaknesses),
            response_b=ParsedAnalysis(b.strengths, b.weaknesses),
        ),
    )


def reconcile(
    pair: Pair,
    readings: Sequence[Ballot | Reading],
    *,
    how: Reconciling = "agreement",
    locale: Locale = "en",
    shows_first: Order | None = None,
) -> Verdict | Unreconciled:
    """The verdict on a pair whose texts make this order show the smaller hash first."""
    one, other = sorted("xy", key=lambda text: sha256(text.encode()).digest())
    texts = {"original": (one, other), "swapped": (other, one), None: (one, one)}[shows_first]
    pair = pair.model_copy(update={"response_a": texts[0], "response_b": texts[1]})
    read = [as_read(each, pair) if isinstance(each, Ballot) else each for each in readings]
    decision = decide(pair, read, how=how, shows_first=shows_first)
    if isinstance(decision, Unreconciled):
        return decision
    judged = Judged(decision, tuple(PassResult(each) for each in read))
    return explain(
        pair, judged, replace(CONTEXT, options=JudgingOptions(locale=locale), reconcile=how)
    )


_LABELS = re.compile(r"(Response |response |响应 )([AB])(?![A-Za-z0-9])")
_PASSES = re.compile(r"First pass|Second pass|第一轮|第二轮")
_PASS_NAMES = {
    "First pass": "Second pass",
    "Second pass": "First pass",
    "第一轮": "第二轮",
    "第二轮": "第一轮",
}
# Fields that hold one thing for each side or pass: their names exchange.
_KEYS = {
    "responseA": "responseB",
    "aStrength": "bStrength",
    "aAssessment": "bAssessment",
    "aAdvantages": "bAdvantages",
    "firstPassWinner": "secondPassWinner",
    "scoresA": "scoresB",
    "a": "b",
}
_KEYS |= {value: key for key, value in _KEYS.items()}
_VALUES = {
    "winner": {"A": "B", "B": "A"},
    "firstPassWinner": {"A": "B", "B": "A"},
    "secondPassWinner": {"A": "B", "B": "A"},
    "order": {"original": "swapped", "swapped": "original"},
    "response": {"A": "B", "B": "A"},
}
# Times and request ids aside; `raw` is what the judge wrote, in the labels that it was shown.
_ASIDE = {"evaluationTimeMs", "timeMs", "requestIds"}
_AS_IS = {"raw", "text"}


def mirrored(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {
            _KEYS.get(name, name): mirrored(entry, name)
            for name, entry in value.items()
            if name not in _ASIDE
        }
    if isinstance(value, list):
        entries = [mirrored(entry, key) for entry in value]
        return sorted(entries, key=_SORTED[key]) if key in _SORTED else entries
    if isinstance(value, str):
        if key in _AS_IS:
            return value
        if key in _VALUES:
            return _VALUES[key].get(value, value)
        return _swap_names(value)
    return value


def plain(value: Any, key: str = "") -> Any:
    """The same shape without what is left aside, for the other side of the comparison."""
    if isinstance(value, dict):
        return {name: plain(entry, name) for name, entry in value.items() if name not in _ASIDE}
    if isinstance(value, list):
        entries = [plain(entry, key) for entry in value]
        return sorted(entries, key=_SORTED[key]) if key in _SORTED else entries
    return value


def _pass_key(entry: dict[str, Any]) -> tuple[str, int]:
    return entry["order"], entry["sample"]


def _artefact_key(entry: dict[str, Any]) -> tuple[str, str, str]:
    return entry["kind"], entry["response"] or "", entry["text"]


_SORTED: dict[str, Callable[[dict[str, Any]], tuple[Any, ...]]] = {
    "passes": _pass_key,
    "artefacts": _artefact_key,
}


def _swap_names(text: str) -> str:
    text = _LABELS.sub(lambda m: m[1] + ("B" if m[2] == "A" else "A"), text)
    return _PASSES.sub(lambda m: _PASS_NAMES[m[0]], text)
