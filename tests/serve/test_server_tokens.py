from __future__ import annotations

import hmac
import multiprocessing
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import SettingsError
from evenhand.serve.config import Token, read_tokens
from evenhand.serve.security import access as tokens_module
from evenhand.serve.security.access import (
    LocalBuckets,
    RateLimit,
    SharedBuckets,
    Tokens,
    address_key,
)

LONG = "0123456789abcdef"


def test_several_tokens_come_with_names_or_without() -> None:
    read = read_tokens(f"ci={LONG}, {LONG}x ,anna={LONG}==")
    assert [(token.name, token.secret) for token in read] == [
        ("ci", LONG),
        ("token2", f"{LONG}x"),
        ("anna", f"{LONG}=="),
    ]


def test_base64_is_not_taken_for_a_name() -> None:
    (token,) = read_tokens("QmFzZTY0U2VjcmV0IQ==")
    assert token.secret == "QmFzZTY0U2VjcmV0IQ=="


@pytest.mark.parametrize("text", ["", " ", ",", " , "])
def test_an_empty_variable_is_no_token(text: str) -> None:
    assert read_tokens(text) == ()


def test_a_short_secret_is_refused_without_being_shown() -> None:
    with pytest.raises(SettingsError, match="token ci in EVENHAND_TOKEN has 6 char") as refused:
        read_tokens("ci=hunter")
    assert "hunter" not in str(refused.value)


def test_a_secret_that_no_header_carries_is_refused_without_being_shown() -> None:
    with pytest.raises(SettingsError, match="token token1") as refused:
        read_tokens("correct horse battery staple")
    assert "horse" not in str(refused.value)


def test_a_secret_shows_in_no_repr() -> None:
    assert LONG not in repr(Token("ci", LONG))


def test_every_token_is_compared_in_constant_time_also_after_one_that_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def watched(one: Any, other: Any) -> bool:
        compared.append((one, other))
        return hmac.compare_digest(one, other)

    class Watched:
        compare_digest = staticmethod(watched)

    monkeypatch.setattr(tokens_module, "hmac", Watched)
    tokens = Tokens([Token("a", LONG), Token("b", "x" * 40), Token("c", "y" * 20)])
    found = tokens.find(LONG.encode())
    assert found is not None
    assert found.name == "a"
    assert tokens.find(b"z") is None
    assert len(compared) == 6
    # What is compared are digests of one length: not even a secret's length shows in the time.
    assert {len(each) for pair in compared for each in pair} == {32}


@given(st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), max_size=40))
def test_only_the_secret_itself_fits(guess: str) -> None:
    found = Tokens([Token("a", LONG)]).find(guess.encode())
    assert (found is not None) == (guess == LONG)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_minutes_worth_may_come_at_once_and_then_one_every_so_often() -> None:
    clock = Clock()
    rate = RateLimit(6, clock=clock)
    assert [rate.take("a") for _ in range(6)] == [0.0] * 6
    assert rate.take("a") == pytest.approx(10.0)  # 60 s / 6
    assert rate.take("b") == 0.0  # another's bucket is its own
    clock.now += 10
    assert rate.take("a") == 0.0
    assert rate.wait_s("a") == pytest.approx(10.0)


@given(st.lists(st.floats(0, 30), max_size=60), st.integers(1, 20))
def test_no_minute_sees_more_than_two_minutes_worth(gaps: list[float], per_minute: int) -> None:
    """A full bucket and its refill within a minute: at most twice the rate, in any minute."""
    clock = Clock()
    rate = RateLimit(per_minute, clock=clock)
    taken = []
    for gap in gaps:
        clock.now += gap
        if rate.take("a") == 0.0:
            taken.append(clock.now)
    for start in taken:
        assert sum(start <= at < start + 60 for at in taken) <= 2 * per_minute


def test_a_ledger_forgets_the_longest_silent_first() -> None:
    ledger = LocalBuckets(most=2)
    for key in ("a", "b", "a", "c"):
        ledger.put(key, 0.0, 1.0)
    assert ledger.get("b") is None
    assert ledger.get("a") == (0.0, 1.0)


def _take(ledger: SharedBuckets, times: int) -> None:
    rate = RateLimit(1_000_000, ledger=ledger)
    for _ in range(times):
        assert rate.take("ci") == 0.0


def test_processes_draw_from_one_bucket() -> None:
    context = multiprocessing.get_context("spawn")
    ledger = SharedBuckets(["", "ci"], context)
    clock = Clock()
    clock.now = time.monotonic()  # which the child reads; of a machine that has just started, small
    own = RateLimit(3, ledger=ledger, clock=clock)
    other = RateLimit(3, ledger=ledger, clock=clock)
    assert [own.take("ci"), other.take("ci"), own.take("ci")] == [0.0] * 3
    assert other.take("ci") == pytest.approx(20.0)
    child = context.Process(target=_take, args=(ledger, 5))
    child.start()
    child.join()
    assert child.exitcode == 0
    level, _ = ledger.get("ci") or (0.0, 0.0)
    assert level < 1_000_000 - 3


def test_processes_count_an_address_that_nobody_knew_of_together() -> None:
    ledger = SharedBuckets(["", "ci"], multiprocessing.get_context("spawn"))
    clock = Clock()
    own, other = RateLimit(3, ledger=ledger, clock=clock), RateLimit(3, ledger=ledger, clock=clock)
    address = "address 192.0.2.1"
    assert [own.take(address), other.take(address), own.take(address)] == [0.0] * 3
    assert other.wait_s(address) == pytest.approx(20.0)
    assert own.take("ci") == own.take("") == 0.0


@pytest.mark.parametrize(
    ("address", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),  # one /64
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("testclient", "other", False),
    ],
)
def test_failures_are_counted_for_a_household(address: str, other: str, same: bool) -> None:
    assert (address_key(address) == address_key(other)) == same
