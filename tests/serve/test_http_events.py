"""Server-sent events: each is a whole status, and nothing is told twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.responses import Response
from starlette.types import Message

from evenhand.errors import NotFound, StoreError
from evenhand.serve.http import runs as events
from evenhand.serve.http.runs import event_id, event_stream
from evenhand.serve.values import RunStatus

AT = datetime(2026, 1, 2, tzinfo=UTC)
NUMBERS = ("wins_a", "wins_b", "ties", "inconsistent", "invalid", "calls")


def status(done: int, state: Any = "judging", **more: Any) -> RunStatus:
    values: dict[str, Any] = dict.fromkeys(NUMBERS, 0)
    values |= {"id": "1", "name": "n", "judges": ("good",), "pairs": 3, "cost_usd": None}
    values |= {"state": state, "done": done, "pending": 3 - done}
    return RunStatus(created_at=AT, updated_at=AT, **{**values, **more})


class Client:
    """Reads what is sent; leaves when it is told to."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.leaves = asyncio.Event()
        self.was_told = asyncio.Event()

    async def receive(self) -> Message:
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.messages.append(message)
        if message.get("body", b"").startswith(b"event: "):
            self.was_told.set()

    @property
    def text(self) -> str:
        return b"".join(message.get("body", b"") for message in self.messages).decode()

    @property
    def events(self) -> list[tuple[str, str]]:
        blocks = [block.split("\n") for block in self.text.split("\n\n")]
        named = [dict(line.split(": ", 1) for line in block if line[:1] > ":") for block in blocks]
        return [(block["event"], block.get("id", "")) for block in named if "event" in block]


async def stream(response: Response, client: Client) -> None:
    await asyncio.wait_for(response({"type": "http"}, client.receive, client.send), 10)


async def going(*statuses: RunStatus) -> AsyncIterator[RunStatus]:
    for each in statuses:
        yield each


async def test_every_change_is_told_and_then_the_end() -> None:
    client = Client()
    told = [status(0), status(2), status(3, "finished")]
    await stream(await event_stream(going(*told)), client)
    assert client.events == [
        *(("progress", event_id(each)) for each in told),
        ("end", f"end-{event_id(told[-1])}"),
    ]
    assert client.messages[-1] == {"type": "http.response.body", "body": b""}
    assert f"data: {told[-1].model_dump_json()}\n\n" in client.text


async def test_whoever_comes_back_is_not_told_the_same_again() -> None:
    client = Client()
    told = [status(2), status(3, "finished")]
    await stream(await event_stream(going(*told), last_id=event_id(told[0])), client)
    assert [event for event, _ in client.events] == ["progress", "end"]


async def test_whoever_was_told_the_end_is_told_to_stay_away() -> None:
    last = status(3, "finished")
    answer = await event_stream(going(last), last_id=f"end-{event_id(last)}")
    assert answer.status_code == 204


async def test_run_that_was_resumed_is_told_again_to_whoever_saw_it_end() -> None:
    client = Client()
    ended = f"end-{event_id(status(1, 'stopped'))}"
    await stream(await event_stream(going(status(2)), last_id=ended), client)
    assert [event for event, _ in client.events] == ["progress"]


async def test_speed_alone_makes_no_other_id() -> None:
    assert event_id(status(1, pairs_per_s=1.0)) == event_id(status(1, pairs_per_s=2.0))
    assert event_id(status(1)) != event_id(status(2))
    assert event_id(status(1, notes=("n",))) != event_id(status(1))


async def test_stream_of_a_server_that_goes_down_has_no_end_event() -> None:
    client = Client()
    await stream(await event_stream(going(status(1))), client)
    assert [event for event, _ in client.events] == ["progress"]


async def test_what_is_wrong_at_first_is_raised_and_later_is_an_event() -> None:
    async def failing(error: Exception, *before: RunStatus) -> AsyncIterator[RunStatus]:
        for each in before:
            yield each
        raise error

    with pytest.raises(NotFound):
        await event_stream(failing(NotFound("no run 7")))
    client = Client()
    await stream(await event_stream(failing(StoreError("the disk is full"), status(1))), client)
    assert [event for event, _ in client.events] == ["progress", "problem"]
    # The log has the store's own words; clients get none of them.
    assert "the server's store failed" in client.text
    assert "the disk is full" not in client.text


async def test_silence_is_filled_with_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.01)

    async def slow() -> AsyncIterator[RunStatus]:
        yield status(1)
        await asyncio.sleep(0.2)
        yield status(3, "finished")

    client = Client()
    await stream(await event_stream(slow()), client)
    assert client.text.count(": still here\n\n") >= 2
    assert [event for event, _ in client.events] == ["progress", "progress", "end"]


async def test_client_that_goes_ends_the_following() -> None:
    ended = asyncio.Event()

    async def endless() -> AsyncIterator[RunStatus]:
        try:
            yield status(1)
            await asyncio.sleep(3600)
        finally:
            ended.set()

    client = Client()
    streaming = asyncio.ensure_future(stream(await event_stream(endless()), client))
    await client.was_told.wait()
    client.leaves.set()
    await streaming
    assert ended.is_set()
