"""The spellings in which files say which response a person preferred."""

from __future__ import annotations

from evenhand.contract import Winner
from evenhand.data.columns import plain
from evenhand.data.rows import kind_of
from evenhand.errors import DataError

_SIDES = (
    *("", "model", "response", "output", "answer", "completion", "assistant"),
    *("响应", "回答", "答案", "回复", "模型"),
)
_SPELLED: dict[str, Winner] = {
    **{f"{side}a": "A" for side in _SIDES},
    **{f"{side}b": "B" for side in _SIDES},
    **{f"{side}1": "A" for side in _SIDES if side},
    **{f"{side}2": "B" for side in _SIDES if side},
    **dict.fromkeys(("a>b", "a>>b"), "A"),
    **dict.fromkeys(("b>a", "b>>a"), "B"),
    **dict.fromkeys(
        (
            *("tie", "tied", "draw", "equal", "a=b", "tie(bothbad)", "bothbad", "bothgood"),
            *("平局", "平手", "都不好"),
        ),
        "TIE",
    ),
}
# A bare number is a side only where the responses are numbered too (output_1, output_2); 0 never,
# since it is a tie in some data sets and the first response in others.
_NUMBERED: dict[float, Winner] = {1: "A", 2: "B", 1.5: "TIE"}


def read_label(
    value: object, *, numbered: bool, model_a: str | None, model_b: str | None
) -> Winner | None:
    """The label in the pair's own letters; None where the row has none."""
    if value is None:
        return None
    if isinstance(value, str):
        text = value.strip()
        if not text:
            return None
        spelled = _SPELLED.get(plain(text))
        if spelled is not None:
            return spelled
        if model_a != model_b and text in (model_a, model_b):
            return "A" if text == model_a else "B"
    number = _number(value)
    if numbered and number in _NUMBERED:
        return _NUMBERED[number]
    raise DataError(
        f"the label is {kind_of(value)}; it takes A, B or TIE, or turn labels off with --map label="
    )


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return None
