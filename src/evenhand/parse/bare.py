"""A verdict without a label: the whole answer, or the first or the last line of it, is `B`."""

from __future__ import annotations

import re

from evenhand.contract import Winner
from evenhand.parse.outcome import FILLER, Failure, Reading, shown
from evenhand.parse.prose import claims
from evenhand.parse.words import winner_of

_BOXED = re.compile(r"\$?\\boxed\{(?:\\text\{)?([^{}]{1,20})\}{1,2}\$?")
_ENDED = (".", "!", "?", ":", "。", "！", "？", "：", "*", "`", ")", "）", '"', "”")


def read_bare(text: str) -> Reading | Failure | None:
    """None where no line is a verdict and nothing else."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if len(lines) == 1:
        winner = _verdict(lines[0])
        return None if winner is None else Reading(winner)
    stated = [(number, winner) for number, line in enumerate(lines) if (winner := _verdict(line))]
    if not stated:
        return None
    number, winner = stated[-1]
    if len({each for _, each in stated}) > 1:
        return None  # headings, or a menu
    if number == len(lines) - 1:
        before = lines[number - 1]
        if not before.endswith((*_ENDED, FILLER)):
            return None
    elif number != 0 or _names_a_response(lines[0]):
        return None  # a heading over what is said of one response looks the same
    against = [claim for claim in claims(text) if claim.winner != winner]
    if any(claim.concluding or claim.alone for claim in against):
        return Failure(
            "contradiction", f"the line {shown(lines[number])} and a sentence beside it differ"
        )
    return Reading(winner)


def _verdict(line: str) -> Winner | None:
    if len(line) > 60 or "[[" in line:  # a mark is another protocol's
        return None
    boxed = _BOXED.fullmatch(line)
    return winner_of(line if boxed is None else boxed[1])


def _names_a_response(line: str) -> bool:
    return len(line.strip(" *_`#\"'()[].。")) > 3
