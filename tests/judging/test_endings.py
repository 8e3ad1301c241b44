"""Endings that quote, hedge, contradict and address the responses as judges do."""

from __future__ import annotations

import re
from pathlib import Path

from evenhand.contract import AnswerProtocol
from evenhand.judging.ballots import read_ballot
from evenhand.judging.decision import PassBallot

ENDINGS = Path(__file__).with_name("judge_endings.txt")
# Of the 186 that state a verdict; the others state it in a sentence, which takes a named protocol.
FEWEST_READ = 61


def endings() -> list[tuple[str, str]]:
    """What is due, and the text."""
    parts = re.split(r"(?m)^=== ", ENDINGS.read_text(encoding="utf-8"))[1:]
    return [(due, text.strip()) for due, _, text in (part.partition("\n") for part in parts)]


def reading(text: str, protocol: AnswerProtocol | None = None) -> str:
    outcome = read_ballot(text, protocol=protocol)
    return outcome.winner if isinstance(outcome, PassBallot) else "-"


def test_no_ending_is_misread_and_most_verdicts_are_read() -> None:
    made = [(due, reading(text), text) for due, text in endings()]
    assert len(made) == 207
    assert [each for each in made if each[1] not in (each[0], "-")] == []
    assert sum(due == found != "-" for due, found, _ in made) >= FEWEST_READ
    in_prose = [(due, reading(text, "evenhand")) for due, found, text in made if found == "-"]
    assert [each for each in in_prose if each[1] not in (each[0], "-")] == []
