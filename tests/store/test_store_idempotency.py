"""Requests under a key: one of many is answered, the others get its answer."""

from __future__ import annotations

import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from evenhand.store import Store, open_store
from evenhand.store.requests import KeyedRequest, StoredRequest, StoredResponse

ANSWER = StoredResponse(202, b'{"id": "1"}\x00\xff', {"location": "/v1/runs/1"})


def request(key: str = "k", **changes: str) -> KeyedRequest:
    made = KeyedRequest("token", key, "POST /v1/runs", "digest", secrets.token_hex(8))
    return replace(made, **changes)


def kept(store: Store, asked: KeyedRequest) -> StoredRequest:
    found = store.requests.begin(asked)
    assert found is not None
    return found


def test_the_first_is_to_be_answered_and_the_next_get_its_answer(store: Store) -> None:
    first = request()
    assert store.requests.begin(first) is None
    running = kept(store, request())
    assert (running.answer, running.path, running.digest) == (None, "POST /v1/runs", "digest")
    assert store.requests.finish(first, ANSWER)
    assert kept(store, request()).answer == ANSWER
    # Whoever asks decides what another body, or another path, under the same key means.
    other = kept(store, request(digest="another"))
    assert (other.digest, other.answer) == ("digest", ANSWER)


def test_keys_of_two_tokens_are_two_keys(store: Store) -> None:
    assert store.requests.begin(request()) is None
    assert store.requests.begin(request(token="another")) is None
    assert store.requests.begin(request("k2")) is None
    assert store.requests.begin(request("x" * 5000)) is None
    assert store.requests.begin(request("x" * 4999 + "y")) is None
    assert kept(store, request("x" * 5000)).answer is None


def test_what_was_forgotten_may_be_tried_again(store: Store) -> None:
    first = request()
    store.requests.begin(first)
    store.requests.forget(first)
    assert store.requests.begin(request()) is None


def test_only_who_began_it_can_end_it(store: Store) -> None:
    first = request()
    store.requests.begin(first)
    stranger = request()
    assert not store.requests.finish(stranger, ANSWER)
    store.requests.forget(stranger)
    assert store.requests.finish(first, ANSWER)
    # Once it is answered, it is answered.
    store.requests.forget(first)
    assert not store.requests.finish(first, StoredResponse(200, b""))
    assert kept(store, request()).answer == ANSWER


def test_a_request_of_a_dead_process_is_taken_over_and_its_late_answer_dropped(
    store: Store,
) -> None:
    dead = request()
    assert store.requests.begin(dead, leased_s=-1) is None
    # Another body under that key is still another request.
    assert kept(store, request(digest="another")).answer is None
    heir = request()
    assert store.requests.begin(heir) is None
    assert kept(store, request()).answer is None
    assert not store.requests.finish(dead, StoredResponse(200, b"late"))
    assert store.requests.finish(heir, ANSWER)
    assert kept(store, request()).answer == ANSWER


def test_keys_are_free_again_after_a_day(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first = request()
    store.requests.begin(first)
    store.requests.finish(first, ANSWER)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 24 * 3600 - 60)
    assert kept(store, request()).answer == ANSWER
    assert store.requests.forget_old() == 0
    monkeypatch.setattr(time, "time", lambda: now + 24 * 3600 + 60)
    assert store.requests.begin(request()) is None
    monkeypatch.setattr(time, "time", lambda: now + 48 * 3600 + 120)
    assert store.requests.forget_old() == 1


def test_of_many_at_the_same_moment_one_is_given_it(address: str) -> None:
    """Two processes, some threads each; every key is begun once."""
    with open_store(address) as one, open_store(address) as other:

        def begun(number: int) -> bool:
            store = (one, other)[number % 2]
            return store.requests.begin(request(f"key-{number // 8}")) is None

        with ThreadPoolExecutor(8) as threads:
            given = list(threads.map(begun, range(80)))
    assert sum(given) == 10
    assert all(sum(given[start : start + 8]) == 1 for start in range(0, 80, 8))
