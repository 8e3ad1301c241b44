"""Anthropic's Message Batches by its SDK; pydantic-ai writes and reads the messages."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager, aclosing
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import orjson

from evenhand.contract import Usage
from evenhand.errors import InputError, JudgeError, JudgeRejected
from evenhand.judges.batch import (
    UNSURE,
    AnsweredRequest,
    AskAgain,
    BatchLimits,
    BatchStatus,
    Draft,
    RequestResult,
    UnconfirmedBatch,
    Unsure,
)
from evenhand.judges.batch.sdk import Listing, objects_in, raising_judge_errors
from evenhand.judges.protocol import Completion, JudgeCall
from evenhand.judges.providers import ProviderJudge
from evenhand.judges.redaction import Redactor
from evenhand.judges.reply_limits import name_or_none, usage_of

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types.messages import MessageBatch
    from pydantic_ai.models.batch import BatchResultStatus


_UPLOAD_TIMEOUT_S = 600.0


class AnthropicBatches:
    # Their limits are 100,000 requests and 256 MB; the SDK holds several copies.
    limits = BatchLimits(requests=100_000, bytes=32_000_000)
    form = None  # what a model takes is known beforehand

    def __init__(self, judge: ProviderJudge) -> None:
        self._judge = judge
        self._betas: list[str] = []
        base_url = judge.identity["base_url"]
        self._host = urlsplit(base_url).netloc if isinstance(base_url, str) else "api.anthropic.com"

    @property
    def host(self) -> str:
        return self._host

    async def write(self, call: JudgeCall, form: str | None) -> bytes:
        from pydantic_ai.exceptions import UserError

        model = await self._judge.opened_model()
        try:
            encoded = await model.batch_encode(self._judge.batch_request(call))
        except UserError as error:
            reason = Redactor()(str(error))
            raise JudgeRejected.of(
                "judges.batch_not_possible", name=self._judge.name, reason=reason
            ) from None
        # Headers of every request of a batch: artefacts may need other ones than passes.
        self._betas = list(dict.fromkeys([*self._betas, *json.loads(encoded.group)["betas"]]))
        return encoded.body.encode()

    def read(
        self, call: JudgeCall, tried: AnsweredRequest, *, refusals: dict[str, JudgeError]
    ) -> Completion | AskAgain:
        from pydantic_ai.models.batch import BatchResult

        status = cast("BatchResultStatus", orjson.loads(tried.answer)["type"])
        result = BatchResult(custom_id="-", status=status, body=tried.answer)
        return self._judge.batch_completion(call, result)

    def usage(self, answer: str) -> tuple[Usage, str | None] | None:
        message = orjson.loads(answer).get("message")
        if not isinstance(message, dict):
            return None
        used = message.get("usage")
        used = used if isinstance(used, dict) else {}
        usage = usage_of(
            input=used.get("input_tokens"), output=used.get("output_tokens"), requests=1
        )
        return usage, name_or_none(message.get("model"))

    async def submit(self, draft: Draft, sending: Callable[[], Awaitable[None]]) -> str:
        client = await self._client()
        requests: list[Any] = [
            {"custom_id": custom_id, "params": orjson.loads(body)}
            for custom_id, body in draft.lines
        ]
        headers = {"anthropic-beta": ",".join(self._betas)} if self._betas else None
        await sending()
        with _judge_errors(client, self.host):
            created = await client.messages.batches.create(
                requests=requests, extra_headers=headers, timeout=_UPLOAD_TIMEOUT_S
            )
        return created.id

    async def find(self, sought: UnconfirmedBatch) -> str | Unsure | None:
        """Only the request ids of a batch are ours, and they appear only in its results. Until then
        one of the same size may be ours."""
        client = await self._client()
        unsure = False
        listing = Listing(sought)
        with _judge_errors(client, self.host):
            async for batch in client.messages.batches.list(limit=100):
                is_older = listing.is_older(batch.created_at.timestamp())
                if listing.is_past:
                    break
                other = batch.id in sought.others or _total(batch) != sought.requests
                if is_older or other:
                    continue
                if batch.processing_status != "ended":
                    unsure = True
                elif await self._is_ours(batch, sought.nonce):
                    return batch.id
        return UNSURE if unsure else None

    async def _is_ours(self, batch: MessageBatch, nonce: str) -> bool:
        if batch.results_url is None:  # archived: whosever it was, nothing can be had of it
            return False
        async with aclosing(self.results(batch.id, BatchStatus("ended"))) as results:
            async for result in results:
                return result.custom_id.startswith(f"{nonce}-")
        return False

    async def look(self, batch_id: str) -> BatchStatus:
        client = await self._client()
        with _judge_errors(client, self.host):
            batch = await client.messages.batches.retrieve(batch_id)
        counts = batch.request_counts
        through = _total(batch) - counts.processing
        if batch.processing_status != "ended":
            return BatchStatus("running", through)
        if batch.results_url is None:
            return BatchStatus("expired", through)
        answered = counts.succeeded + counts.errored
        if counts.canceled:
            return BatchStatus("cancelled", through, answered)
        return BatchStatus("expired" if counts.expired else "ended", through, answered)

    async def results(
        self, batch_id: str, status: BatchStatus
    ) -> AsyncGenerator[RequestResult, None]:
        client = await self._client()
        redact = _redactor(client)
        with _judge_errors(client, self.host):
            streamed = client.messages.batches.with_streaming_response.results(batch_id)
            async with streamed as response:
                async for line in objects_in(response.iter_bytes(), host=self.host):
                    read = _result(line)
                    if read is not None:
                        # Stored unread until its pass is made.
                        yield (
                            read
                            if read.answer is None
                            else read._replace(answer=redact.cut(read.answer))
                        )

    async def cancel(self, batch_id: str) -> None:
        client = await self._client()
        with _judge_errors(client, self.host):
            await client.messages.batches.cancel(batch_id)

    async def close(self) -> None:
        """The client is closed by the judge."""

    async def _client(self) -> AsyncAnthropic:
        from anthropic import AsyncAnthropic

        model = await self._judge.opened_model()
        client = getattr(model, "client", None)
        if not isinstance(client, AsyncAnthropic):
            raise InputError.of("judges.batch_anthropic_only", name=self._judge.name)
        # Not retried: a batch that may have arrived is looked up instead.
        return client.with_options(max_retries=0)


def _judge_errors(client: AsyncAnthropic, host: str) -> AbstractContextManager[None]:
    return raising_judge_errors(host=host, key="ANTHROPIC_API_KEY", redact=_redactor(client))


def _redactor(client: AsyncAnthropic) -> Redactor:
    return Redactor([client.api_key or "", client.auth_token or ""])


def _total(batch: MessageBatch) -> int:
    counts = batch.request_counts
    return counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired


def _result(line: dict[str, Any]) -> RequestResult | None:
    custom_id, result = line.get("custom_id"), line.get("result")
    if not isinstance(custom_id, str) or not isinstance(result, dict):
        return None
    if result.get("type") in ("succeeded", "errored"):
        return RequestResult(custom_id, orjson.dumps(result).decode())
    return RequestResult(custom_id, None)
