"""Files of what was learned: what is in them is what is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.trust.saved_files import SavedFiles


class Learned(Model):
    name: str
    values: dict[str, float]


LEARNED = SavedFiles(Learned, "lesson", "lessons", "make one")


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text('{"name": "first", "values": {"a": 1.0}}')
    assert LEARNED.open(path).name == "first"
    for text in (
        '{"name": "first", "values": {"a": 1.0}, "name": "second"}',
        '{"name": "first", "values": {"a": 1.0, "a": 2.0}}',
    ):
        path.write_text(text)
        with pytest.raises(
            InputError,
            match=r"is not a lesson: the key '\w+' appears twice in one object; keep one$",
        ):
            LEARNED.open(path)
