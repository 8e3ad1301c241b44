"""Reasons read from prose are in the caller's labels, and hold no bare verdict of their pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.contract import PROTOCOLS, Ballot, Criterion
from evenhand.judging.answers.reasons import exchanged
from explained import read


def reasons(text: str, order: str) -> tuple[str, str]:
    ballot = read(text, order=order)  # type: ignore[arg-type]
    assert isinstance(ballot, Ballot), ballot
    return ballot.winner, ballot.reasoning


@pytest.mark.parametrize(
    ("text", "as_shown", "turned_round"),
    [
        (
            "Response A is correct.\n\nWinner: A\nConfidence: 0.9",
            ("A", "Response A is correct."),
            ("B", "Response B is correct."),
        ),
        (
            "响应 B 更准确。\n\n获胜者：B\n置信度：0.8",
            ("B", "响应 B 更准确。"),
            ("A", "响应 A 更准确。"),
        ),
        (
            "Assistant B errs. Assistant A is precise.\n\n[[A]]",
            ("A", "Assistant B errs. Assistant A is precise."),
            ("B", "Assistant A errs. Assistant B is precise."),
        ),
        (
            "Output (a) is off. Therefore, Output (b) is better.",
            ("B", "Output (a) is off. Therefore, Output (b) is better."),
            ("A", "Output (b) is off. Therefore, Output (a) is better."),
        ),
        (
            "Both were good, but Assistant 2 gave more detail.\n\n2",
            ("B", "Both were good, but Assistant 2 gave more detail."),
            ("A", "Both were good, but Assistant 1 gave more detail."),
        ),
        (
            "9 7\nAssistant 1 is more complete than Assistant 2.",
            ("A", "Assistant 1 is more complete than Assistant 2."),
            ("B", "Assistant 2 is more complete than Assistant 1."),
        ),
    ],
)
def test_the_text_and_the_winner_agree_in_both_orders(
    text: str, as_shown: tuple[str, str], turned_round: tuple[str, str]
) -> None:
    assert reasons(text, "original") == as_shown
    assert reasons(text, "swapped") == turned_round


@given(st.text(alphabet="AaBb12 ()Outpsianresm助手输出", max_size=60))
def test_exchanging_twice_changes_nothing(text: str) -> None:
    for protocol in PROTOCOLS:
        assert exchanged(exchanged(text, protocol), protocol) == text


def test_a_confidence_of_many_digits_is_none_and_no_crash() -> None:
    for number in ("1" + "0" * 400, "1_0e-1_0", '"1_0e-1_0"'):
        reading = read(f'{{"result": {{"winner": "A", "confidence": {number}}}}}')
        if isinstance(reading, Ballot):
            assert reading.confidence is None


def test_a_criterion_called_by_a_paragraph_is_matched() -> None:
    name = "is it right " * 120
    text = (
        '{"comparison": [{"criterion": "' + name + '", "winner": "A", "reasoning": "r"}],'
        ' "result": {"winner": "A"}}'
    )
    ballot = read(text, criteria=[Criterion(name=name)])
    assert isinstance(ballot, Ballot)
    assert ballot.criteria[0].winner == "A"
