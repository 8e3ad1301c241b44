"""How long a server asks to wait is read from each header that tells it."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.judges.retry import retry_after_s

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "9"}, 9.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": formatdate(NOW + 90, usegmt=True)}, 90.0),
        ({"retry-after": formatdate(NOW - 90, usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon", "x-ratelimit-reset-requests": "2s"}, 2.0),
        ({"x-ratelimit-reset-requests": "1m30s", "x-ratelimit-reset-tokens": "250ms"}, 0.25),
        (
            {
                "x-ratelimit-reset-requests": "1h0m0.5s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "6s",
            },
            3600.5,
        ),
        ({"x-ratelimit-reset": str(int(NOW + 20))}, 20.0),
        ({"x-ratelimit-reset": str(int((NOW + 20) * 1000))}, 20.0),
        ({"x-ratelimit-reset-tokens": "never"}, None),
    ],
)
def test_the_wait_is_read_from_each_header_that_tells_it(
    headers: dict[str, str], wait_s: float | None
) -> None:
    assert retry_after_s(headers, now=NOW) == wait_s


@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset"]), st.text()
    )
)
def test_no_header_breaks_the_reading_of_the_wait(headers: dict[str, str]) -> None:
    wait = retry_after_s(headers, now=NOW)
    assert wait is None or 0 <= wait < float("inf")


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-after": "1e308"},
        {"retry-after": str(31 * 24 * 3600 + 1)},
        {"retry-after": "0" * 100 + "9"},
        {"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"},
        {"retry-after-ms": "1e300"},
        {"x-ratelimit-reset": "9" * 300 + "h"},
        {"x-ratelimit-reset": "999999999999999999h"},
    ],
)
def test_a_wait_beyond_a_month_is_unknown(headers: dict[str, str]) -> None:
    assert retry_after_s(headers, now=NOW) is None
