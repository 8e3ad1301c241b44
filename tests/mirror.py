"""The mirror image of a verdict: what compare(B, A) must give when compare(A, B) gave it.

Written from the contract, independently of the code under test.
"""

from __future__ import annotations

import re
from typing import Any

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
    "a": "b",
}
_KEYS |= {value: key for key, value in _KEYS.items()}
_VALUES = {
    "winner": {"A": "B", "B": "A"},
    "firstPassWinner": {"A": "B", "B": "A"},
    "secondPassWinner": {"A": "B", "B": "A"},
    "order": {"original": "swapped", "swapped": "original"},
}
# Times and request ids aside; `raw` is what the judge wrote, in the labels that it was shown.
_ASIDE = {"evaluationTimeMs", "timeMs", "requestIds"}
_AS_IS = {"raw"}


def mirrored(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {
            _KEYS.get(name, name): mirrored(entry, name)
            for name, entry in value.items()
            if name not in _ASIDE
        }
    if isinstance(value, list):
        entries = [mirrored(entry, key) for entry in value]
        return sorted(entries, key=_pass_key) if key == "passes" else entries
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
        return sorted(entries, key=_pass_key) if key == "passes" else entries
    return value


def _pass_key(entry: dict[str, Any]) -> tuple[str, int]:
    return entry["order"], entry["sample"]


def _swap_names(text: str) -> str:
    text = _LABELS.sub(lambda m: m[1] + ("B" if m[2] == "A" else "A"), text)
    return _PASSES.sub(lambda m: _PASS_NAMES[m[0]], text)
