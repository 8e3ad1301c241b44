"""Foreign text in a message is one short line without secrets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenhand.judges.redaction import Redactor

KEY = "sk-test-0123456789abcdef"


@given(
    before=st.text(max_size=5000), after=st.text(max_size=300), key=st.sampled_from([KEY, "k" * 40])
)
def test_a_secret_shows_nowhere_in_quoted_text(before: str, after: str, key: str) -> None:
    quoted = Redactor([key])(f"{before} {key} {after}")
    assert key not in quoted
    assert key[:10] not in quoted.replace(before, "").replace(after, "")
    assert len(quoted) <= 200
