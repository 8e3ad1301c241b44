"""Why a verdict came out as it did, in a line: of a table's row, served or in a file."""

from __future__ import annotations

import re

from evenhand.contract import Order, Outcome, Winner
from evenhand.judges.addresses import AddressRedactor
from evenhand.judging.decision import PassBallot
from evenhand.judging.explanation import ballot_in_contract
from evenhand.messages import Language, render
from evenhand.messages.phrases import list_choices
from evenhand.store import FailedPass, WholeVerdict

_REASON_CHARACTERS = 240
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")


def reason_of(whole: WholeVerdict, language: Language, hide: AddressRedactor) -> str:
    row = whole.row
    if row.outcome is Outcome.INCONSISTENT:
        chosen: list[tuple[Order, Winner | None]] = [
            ("original", row.first_pass_winner),
            ("swapped", row.second_pass_winner),
        ]
        return render(list_choices(language, chosen), language)
    if row.outcome is Outcome.INVALID:
        return "" if row.error_message is None else render(hide(row.error_message), language)
    for stored in whole.passes:
        reading = None if isinstance(stored.made, FailedPass) else stored.made.reading
        if isinstance(reading, PassBallot) and reading.winner == row.winner:
            return first_sentence(ballot_in_contract(whole.pair, reading).reasoning)
    return ""


def first_sentence(text: str) -> str:
    begun = " ".join(text[: 2 * _REASON_CHARACTERS].split())
    end = _SENTENCE_END.search(begun)
    sentence = begun[: end.end()] if end else begun
    return sentence.strip()[:_REASON_CHARACTERS]
