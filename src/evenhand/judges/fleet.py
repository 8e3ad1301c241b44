"""Several servers of one model as one judge: each call goes to a good one, and on to another where
that fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from evenhand.errors import (
    EvenhandError,
    JudgeError,
    JudgeRateLimited,
    JudgeRejected,
    JudgeServerError,
    JudgeTimeout,
    JudgeUnreachable,
    SettingsError,
)
from evenhand.judges.fleet_asking import OF_ACCOUNT, Asking
from evenhand.judges.fleet_choice import choose, key_of, seed_of
from evenhand.judges.fleet_member import Member, Server, Turn
from evenhand.judges.fleet_story import Story
from evenhand.judges.protocol import Account, Completion, JudgeCall, News, Traits, identity_of

if TYPE_CHECKING:
    from evenhand.judges import JudgeOptions

_CHECK_S = 5.0


def open_fleet(model: str, options: JudgeOptions) -> FleetJudge:
    """`openai:MODEL` at each of the addresses."""
    from evenhand.judges.openai import OpenAIJudge, OpenAIOptions
    from evenhand.judges.openai_dialect import Learned

    learned = Learned()
    return FleetJudge(
        [
            OpenAIJudge(
                OpenAIOptions.from_judge_options(model, replace(options, base_url=address)),
                learned=learned,
            )
            for address in options.base_urls
        ]
    )


class FleetJudge:
    """The first server names the fleet: its identity, its price. The others may come and go."""

    def __init__(
        self,
        servers: Sequence[Server],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        addresses = [server.base_url for server in servers]
        for place, address in enumerate(addresses):
            if address in addresses[:place]:
                raise SettingsError(f"base URL {address} is given twice; name each server once")
        self._members = [Member(server) for server in servers]
        self._seeds = [seed_of(address) for address in addresses]
        self._first = servers[0]
        self._clock = clock
        self._sleep = sleep
        self._story = Story(self._first.name, self._members)
        self._watches: dict[Member, asyncio.Task[None]] = {}

    def __repr__(self) -> str:
        return f"FleetJudge({self.name!r}, base_url={self.base_urls!r})"

    @property
    def name(self) -> str:
        return self._first.name

    @property
    def traits(self) -> Traits:
        return self._first.traits

    @property
    def identity(self) -> Mapping[str, object]:
        return identity_of(self._first)

    @property
    def base_urls(self) -> tuple[str, ...]:
        """Where the servers are, without credentials and query."""
        return tuple(member.address for member in self._members)

    def open_account(self) -> Account:
        return self._story.open_account()

    def open_news(self) -> News:
        return self._story.open_news()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        for watch in self._watches.values():
            loop = watch.get_loop()
            if loop is asyncio.get_running_loop():
                watch.cancel()
                await asyncio.wait([watch])
            elif not loop.is_closed():
                loop.call_soon_threadsafe(watch.cancel)
        for member in self._members:
            await member.judge.close()

    async def ask(self, call: JudgeCall) -> Completion:
        asking = Asking(key_of(call.pair))
        while True:
            member = self._next(asking)
            if member is None:
                raise self._given_up(asking)
            turn = member.begin(self._clock())
            try:
                completion = await member.judge.ask(call)
            except JudgeError as error:
                asking.requests += error.requests
                self._failed(member, turn, error)
                asking.failed(member, error)
                if not asking.goes_on:
                    raise self._given_up(asking) from None
            else:
                return self._answered(asking, member, turn, completion)
            finally:
                member.end(turn)

    def _next(self, asking: Asking) -> Member | None:
        """None: there is nobody left to ask."""
        now = self._clock()
        members = self._members
        ready = [
            (member, seed)
            for member, seed in zip(members, self._seeds, strict=True)
            if member.is_ready(now) and member not in asking.met
        ]
        if ready:
            return choose(ready, asking.key, now=now)
        if not asking.met and all(member.is_out for member in members):
            # A fleet that is all gone is asked like a single server: by trying.
            return min(members, key=lambda member: member.out_s(now))
        return None

    def _answered(
        self, asking: Asking, member: Member, turn: Turn, completion: Completion
    ) -> Completion:
        now = self._clock()
        if member.answered(turn, now):
            self._story.returned(member)
        for other, error in asking.met.items():
            # What this one takes, the other should have taken.
            if isinstance(error, OF_ACCOUNT):
                self._blame(other, Turn(now), error, at_once=True)
            elif isinstance(error, JudgeRejected):
                self._blame(other, Turn(now), error, at_once=False)
        if completion.pause_s is not None:
            member.told_to_wait(turn, now, wait_s=completion.pause_s)
            completion = replace(completion, pause_s=self._all_rest_s(now))
        if asking.requests:
            usage = completion.usage
            requests = usage.requests + asking.requests
            usage = usage.model_copy(update={"requests": requests})
            completion = replace(completion, usage=usage)
        return completion

    def _failed(self, member: Member, turn: Turn, error: JudgeError) -> None:
        if isinstance(error, JudgeRateLimited) or (
            isinstance(error, JudgeServerError) and error.retry_after_s is not None
        ):
            member.told_to_wait(turn, self._clock(), wait_s=error.retry_after_s)
        elif error.retryable or isinstance(error, JudgeUnreachable):
            self._blame(member, turn, error, at_once=isinstance(error, JudgeUnreachable))

    def _blame(self, member: Member, turn: Turn, error: JudgeError, *, at_once: bool) -> None:
        why = error.message.partition(";")[0]
        slow = isinstance(error, JudgeTimeout)
        times_out = member.times_out
        if not member.failed(turn, self._clock(), why=why, at_once=at_once, slow=slow):
            return
        if member.times_out > times_out:  # a trial that failed is no news
            self._story.left(member, kind=error.kind)
        if member in self._watches:
            self._watches[member].cancel()
        self._watches[member] = asyncio.create_task(self._watch(member))

    def _given_up(self, asking: Asking) -> JudgeError:
        now, count = self._clock(), len(self._members)
        error = asking.telling_error()
        wait_s = self._all_rest_s(now)
        if error is None:
            error = JudgeRateLimited(
                f"none of the {count} servers takes a request for another {wait_s or 0:.1f} s; "
                "ask less at a time, or wait",
            )
        elif error.retryable or isinstance(error, JudgeUnreachable):
            error.message = f"none of the {count} servers answered; the last one: {error.message}"
            error.args = (error.message,)
        if wait_s is not None and isinstance(error, JudgeRateLimited | JudgeServerError):
            error.retry_after_s = wait_s
        error.requests = asking.requests
        return error

    def _all_rest_s(self, now: float) -> float | None:
        """Until the first of them can be asked, where none can and one has said so."""
        if any(member.is_ready(now) for member in self._members):
            return None
        rests = [member.rests_s(now) for member in self._members if not member.is_out]
        return min((rest for rest in rests if rest > 0), default=None)

    async def _watch(self, member: Member) -> None:
        """Until its server is well, or has answered a call after all."""
        while True:
            await self._sleep(member.out_s(self._clock()))
            if not member.is_left_alone:
                return
            try:
                await member.judge.check(timeout_s=_CHECK_S)
            except EvenhandError:
                member.checked(self._clock(), well=False)
            else:
                member.checked(self._clock(), well=True)
