"""OpenAI's Batch API, and compatible servers: a file of requests, answered in a file."""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal

import orjson

from evenhand.contract import Usage
from evenhand.errors import JudgeError, JudgeServerError, MissingExtra
from evenhand.judges.batch import (
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
from evenhand.judges.chat_completions import Dialect, usage_of
from evenhand.judges.openai import OpenAIJudge
from evenhand.judges.protocol import Completion, JudgeCall
from evenhand.judges.reply_limits import name_or_none
from evenhand.judges.transport import Reply, read_base_url

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import Batch


_ENDPOINT: Literal["/v1/chat/completions"] = "/v1/chat/completions"
_METADATA = "evenhand"
_UPLOAD_TIMEOUT_S = 600.0
# Requests that the batch never reached.
_NOT_RUN = ("batch_expired", "batch_cancelled")
_CROWDED = "token_limit_exceeded"


class OpenAIBatches:
    # Their limits are 50,000 requests and 200 MB.
    limits = BatchLimits(requests=50_000, bytes=32_000_000)

    def __init__(self, judge: OpenAIJudge) -> None:
        self._judge = judge
        url = read_base_url(judge.base_url)
        default = {"http": 80, "https": 443}[url.scheme]
        self._host = f"{url.host}" if url.port == default else f"{url.host}:{url.port}"
        self._redact = judge.redact
        self._client = self._open(judge)

    @staticmethod
    def _open(judge: OpenAIJudge) -> AsyncOpenAI:
        try:
            from openai import AsyncOpenAI

            from evenhand.judges.bounded_client import open_bounded_client
        except ImportError:
            raise MissingExtra("the openai SDK", "providers") from None
        headers = {"User-Agent": "evenhand"}
        if judge.authorization is not None:
            headers["Authorization"] = judge.authorization
        return AsyncOpenAI(
            # Without one the SDK would use another account's key from the environment.
            api_key=judge.api_key or "none",
            base_url=judge.base_url,
            timeout=judge.timeout_s,
            max_retries=0,
            http_client=open_bounded_client(timeout_s=judge.timeout_s),
            default_headers=headers,
            default_query=dict(judge.query),
        )

    @property
    def host(self) -> str:
        return self._host

    @property
    def form(self) -> str | None:
        return _form_of(self._judge.dialect)

    async def write(self, call: JudgeCall, form: str | None) -> bytes:
        return self._judge.written(call, _dialect_of(form))

    def read(
        self, call: JudgeCall, tried: AnsweredRequest, *, refusals: dict[str, JudgeError]
    ) -> Completion | AskAgain:
        body = orjson.loads(tried.answer)
        if "error" in body:
            quoted = self._redact(f"{body['error']}")
            raise JudgeServerError.of("judges.server_asked_in_vain", host=self._host, quoted=quoted)
        headers = {"x-request-id": body["id"]} if body["id"] else {}
        reply = Reply(body["status"], headers, orjson.dumps(body["body"]))
        sent = _dialect_of(tried.form)
        answer = self._judge.read(call, reply, sent=sent, refusals=refusals)
        return answer if isinstance(answer, Completion) else AskAgain(_form_of(answer))

    def usage(self, answer: str) -> tuple[Usage, str | None] | None:
        reply = orjson.loads(answer)
        body = reply.get("body")
        if reply.get("status") != 200 or not isinstance(body, dict):
            return None
        used = body.get("usage")
        usage = usage_of(used if isinstance(used, dict) else {}, requests=1)
        return usage, name_or_none(body.get("model"))

    async def submit(self, draft: Draft, sending: Callable[[], Awaitable[None]]) -> str:
        file = io.BytesIO()
        for custom_id, body in draft.lines:
            head = {"custom_id": custom_id, "method": "POST", "url": _ENDPOINT}
            file.write(orjson.dumps(head)[:-1] + b',"body":' + body + b"}\n")
        file.seek(0)
        with self._judge_errors():
            named = (f"evenhand-{draft.nonce}.jsonl", file, "application/jsonl")
            uploaded = await self._client.files.create(
                file=named, purpose="batch", timeout=_UPLOAD_TIMEOUT_S
            )
            await sending()
            created = await self._client.batches.create(
                completion_window="24h",
                endpoint=_ENDPOINT,
                input_file_id=uploaded.id,
                metadata={_METADATA: draft.nonce},
            )
        return created.id

    async def find(self, sought: UnconfirmedBatch) -> str | Unsure | None:
        listing = Listing(sought)
        with self._judge_errors():
            async for batch in self._client.batches.list(limit=100):
                if (batch.metadata or {}).get(_METADATA) == sought.nonce:
                    return batch.id
                listing.is_older(batch.created_at)
                if listing.is_past:
                    return None
        return None

    async def look(self, batch_id: str) -> BatchStatus:
        with self._judge_errors():
            batch = await self._client.batches.retrieve(batch_id)
        counts = batch.request_counts
        through = counts.completed + counts.failed if counts else 0
        files = tuple(f for f in (batch.output_file_id, batch.error_file_id) if f)
        answered = counts.completed if counts else 0
        match batch.status:
            case "completed":
                return BatchStatus("ended", through, answered, files=files)
            case "expired" | "cancelled":
                return BatchStatus(batch.status, through, answered, files=files)
            case "failed":
                return BatchStatus(
                    "refused", why=self._redact(_why(batch)), crowded=_is_crowded(batch)
                )
        return BatchStatus("running", through)

    async def results(
        self, batch_id: str, status: BatchStatus
    ) -> AsyncGenerator[RequestResult, None]:
        for file_id in status.files:
            with self._judge_errors():
                content = self._client.files.with_streaming_response.content(file_id)
                async with content as response:
                    async for line in objects_in(response.iter_bytes(), host=self._host):
                        read = _result(line)
                        if read is not None:
                            # Stored unread until its pass is made.
                            yield (
                                read
                                if read.answer is None
                                else read._replace(answer=self._redact.cut(read.answer))
                            )

    async def cancel(self, batch_id: str) -> None:
        with self._judge_errors():
            await self._client.batches.cancel(batch_id)

    async def close(self) -> None:
        await self._client.close()

    def _judge_errors(self) -> AbstractContextManager[None]:
        return raising_judge_errors(host=self._host, key="OPENAI_API_KEY", redact=self._redact)


def _form_of(dialect: Dialect) -> str | None:
    return ",".join(map(str, dialect)) if any(dialect) else None


def _dialect_of(form: str | None) -> Dialect:
    return Dialect(*map(int, form.split(","))) if form else Dialect()


def _result(line: dict[str, Any]) -> RequestResult | None:
    custom_id = line.get("custom_id")
    if not isinstance(custom_id, str):
        return None
    response, error = line.get("response"), line.get("error")
    if isinstance(response, dict) and isinstance(response.get("status_code"), int):
        body = {
            "status": response["status_code"],
            "id": name_or_none(response.get("request_id")),
            "body": response.get("body"),
        }
        return RequestResult(custom_id, orjson.dumps(body).decode())
    code = error.get("code") if isinstance(error, dict) else None
    if code in _NOT_RUN:
        return RequestResult(custom_id, None)
    message = error.get("message") if isinstance(error, dict) else None
    body = {"error": f"{code or 'no code'}: {message or 'no reason given'}"}
    return RequestResult(custom_id, orjson.dumps(body).decode())


def _why(batch: Batch) -> str:
    errors = (batch.errors.data if batch.errors else None) or []
    reasons = [
        f"{error.message or error.code}" + (f" (line {error.line})" if error.line else "")
        for error in errors
    ]
    more = f", and {len(reasons) - 1:,} more" if len(reasons) > 1 else ""
    return (reasons[0] + more) if reasons else "no reason given"


def _is_crowded(batch: Batch) -> bool:
    errors = (batch.errors.data if batch.errors else None) or []
    return any(error.code == _CROWDED for error in errors)
