"""JSON from outside is counted in linear time."""

from __future__ import annotations

import pytest

from evenhand.contract.json_text import _STRINGS, TooManyValues, refuse_many_values


def test_a_string_that_is_never_closed_is_looked_at_once() -> None:
    """Each of its quotes began another search to the end, in one call that nothing interrupts."""
    text = b'{"a":"' + b"," * 1_000 + b'\\"' * 5_000
    found = [match.span() for match in _STRINGS.finditer(text)]
    assert found == [(1, 4), (5, len(text))]
    refuse_many_values(text, 300)  # commas in a string are no values; parsing will refuse it
    assert _STRINGS.findall(b'["a\\') == [b'"a\\']


def test_values_outside_strings_are_counted() -> None:
    refuse_many_values(b'["' + b"," * 1_000 + b'"]', 300)
    with pytest.raises(TooManyValues):
        refuse_many_values(b"[" + b"1," * 1_000 + b"1]", 300)
