"""A reading in the labels that its pass showed becomes one in the caller's.

What `Ballot.mirrored` does to a ballot, done to the plain values before they are one: every type is
then built and checked once, and all texts are renamed in one go.
"""

from __future__ import annotations

from typing import Any

from evenhand.contract import CriterionBallot, flip, flip_or_none
from evenhand.contract.labels import rename_all
from evenhand.parse.outcome import Plain, Reading


def turned(reading: Reading) -> Reading:
    """The same statement with A and B exchanged."""
    criteria = [_plain(entry) for entry in reading.criteria]
    analysis = reading.analysis or {}
    # In the sequence in which the renamed ones are taken below.
    responses = (analysis.get("response_b") or {}, analysis.get("response_a") or {})
    texts = [reading.reasoning, *reading.differentiators]
    for entry in criteria:
        texts += (
            entry.get("reasoning", ""),
            entry.get("b_assessment", ""),
            entry.get("a_assessment", ""),
        )
    for response in responses:
        texts += response.get("strengths", ())
        texts += response.get("weaknesses", ())
    renamed = rename_all(texts)
    at = 1 + len(reading.differentiators)
    differentiators = tuple(renamed[1:at])
    entries: list[Plain] = []
    for entry in criteria:
        entries.append(
            {
                "criterion": entry["criterion"],
                "winner": flip_or_none(entry.get("winner")),
                "reasoning": renamed[at],
                "a_assessment": renamed[at + 1],
                "b_assessment": renamed[at + 2],
            }
        )
        at += 3
    sides: list[dict[str, Any]] = []
    for response in responses:
        weak = at + len(response.get("strengths", ()))
        end = weak + len(response.get("weaknesses", ()))
        sides.append({"strengths": renamed[at:weak], "weaknesses": renamed[weak:end]})
        at = end
    return reading._replace(
        winner=flip(reading.winner),
        criteria=tuple(entries),
        reasoning=renamed[0],
        differentiators=differentiators,
        analysis={"response_a": sides[0], "response_b": sides[1]},
        scores=reading.scores.mirrored() if reading.scores else None,
    )


def _plain(entry: CriterionBallot | Plain) -> Plain:
    return dict(entry) if isinstance(entry, CriterionBallot) else entry
