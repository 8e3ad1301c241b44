"""Loopback providers with a batch API, by the documents of OpenAI and Anthropic.

    with OpenAIProvider() as provider:
        …run something with --base-url provider.url…
        assert provider.paid == 2 * pairs

A provider runs a batch when it is looked at, unless it is held back (`hold`). A request is
answered by `judge`: text, an `ItemFault`, or `NOT_RUN` for one that the batch did not come to
before it ended. `on_create` is called when a batch is there and its creator has not heard of it;
what it returns is sent instead. `cuts` are wrongs done to the next result files, one each.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes
from hashlib import sha256
from math import log
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from evenhand.contract import Criterion
from evenhand.data.options import ReadOptions
from evenhand.judges.protocol import Judge
from evenhand.judges.registry import JudgeOptions, open_judge
from evenhand.judges.retry import RetryPolicy
from evenhand.judging.config import JudgeConfig
from evenhand.runs import (
    JudgePlan,
    Observer,
    RunOptions,
    RunSummary,
    Stop,
    given_pairs,
    judge_pairs,
)
from evenhand.store import JudgedItem, RunRecord, Store, open_store
from run_data import right_place
from scripted import answer_json
from servers import (
    HalfBody,
    JudgeServer,
    Reply,
    Scripted,
    SeenRequest,
    chat_reply,
    error_reply,
    token_logprob,
)


@dataclass(frozen=True)
class ItemFault:
    """An error of one request, in the provider's words."""

    status: int
    message: str = "it did not work"
    kind: str = "api_error"
    param: str | None = None


class NotRun:
    """The batch ended before it came to this request."""


NOT_RUN = NotRun()
Answer = str | ItemFault | NotRun
Cut = Literal["half", "quiet"]  # the connection breaks in the middle; or the end is just not there


def adds_up(prompt: str, body: dict[str, Any]) -> Answer:
    winner = right_place(prompt)
    return answer_json(winner, confidence=0.9, criteria=[("accuracy", winner)])


@dataclass
class FakeBatch:
    id: str
    requests: list[tuple[str, dict[str, Any]]]
    created_at: float
    metadata: dict[str, str] = field(default_factory=dict)
    phase: str = "running"  # ended, expired, cancelled, refused
    errors: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    cancelling: bool = False


class Provider(ABC):
    def __init__(
        self,
        judge: Callable[[str, dict[str, Any]], Answer] = adds_up,
        *,
        on_create: Callable[[FakeBatch], Scripted | None] | None = None,
        model: str = "loopback-1",
    ) -> None:
        self._server = JudgeServer(self._handle)
        self._judge = judge
        self._on_create = on_create
        self.model = model
        self.hold = False
        self.expires = False  # what is not answered when it ends has expired; else it was cancelled
        self.crowd: int | None = None  # the most requests that it takes in one batch now
        self.cuts: list[Cut] = []
        self.batches: dict[str, FakeBatch] = {}
        self.down = False
        # Told of a request when what it asked for is done, and nobody has heard of that.
        self.after_each: Callable[[SeenRequest], None] | None = None
        self.looks = 0  # at single batches
        self.changed = threading.Condition()

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.__exit__(kind, error, traceback)

    @property
    def requests(self) -> list[SeenRequest]:
        return self._server.requests

    @property
    @abstractmethod
    def url(self) -> str: ...

    @property
    def submitted(self) -> int:
        return sum(len(batch.requests) for batch in self.batches.values())

    @property
    def paid(self) -> int:
        """Requests that a model has answered."""
        return sum(
            isinstance(answer, str)
            for batch in self.batches.values()
            for answer in batch.answers.values()
        )

    def wait_for(self, fact: Callable[[], bool], *, within_s: float = 120.0) -> bool:
        with self.changed:
            return self.changed.wait_for(fact, within_s)

    def cancel_by_hand(self) -> None:
        """As somebody does at the provider's own pages."""
        for batch in self.batches.values():
            if batch.phase == "running":
                self._run(batch, cancelled=True)

    def _handle(self, request: SeenRequest) -> Scripted:
        try:
            if self.down:
                return error_reply(503, "down for a while")
            reply = self._routed(request)
            if self.after_each is not None:
                self.after_each(request)
            return reply
        finally:
            with self.changed:
                self.changed.notify_all()

    @abstractmethod
    def _routed(self, request: SeenRequest) -> Scripted: ...

    @abstractmethod
    def _prompt(self, body: dict[str, Any]) -> str: ...

    def _created(self, batch: FakeBatch) -> Scripted | None:
        self.batches[batch.id] = batch
        if self.crowd is not None and len(batch.requests) > self.crowd:
            batch.phase = "refused"
            message = "Enqueued token limit reached for loopback-1"
            batch.errors = [{"code": "token_limit_exceeded", "message": message}]
        with self.changed:
            self.changed.notify_all()
        return self._on_create(batch) if self._on_create is not None else None

    def _looked_at(self, batch: FakeBatch) -> None:
        self.looks += 1
        self._advance(batch)

    def _advance(self, batch: FakeBatch) -> None:
        if batch.phase == "running" and (batch.cancelling or not self.hold):
            self._run(batch, cancelled=batch.cancelling)

    def _run(self, batch: FakeBatch, *, cancelled: bool = False) -> None:
        for custom_id, body in batch.requests:
            answer = NOT_RUN if cancelled else self._judge(self._prompt(body), body)
            batch.answers[custom_id] = answer
        ended = not any(answer is NOT_RUN for answer in batch.answers.values())
        if ended:
            batch.phase = "ended"
        else:
            batch.phase = "expired" if self.expires and not cancelled else "cancelled"

    def _file(self, lines: list[dict[str, Any]]) -> Scripted:
        """U+2028 ends a line for some, and stands unescaped in a provider's JSON."""
        body = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
        reply = Reply(body, content_type="application/binary")
        if not self.cuts:
            return reply
        if self.cuts.pop(0) == "half":
            return HalfBody(reply)
        return Reply(body[: len(body) * 2 // 3], content_type="application/binary")


class OpenAIProvider(Provider):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.files: dict[str, list[str]] = {}
        self.tells_logprobs = False

    @property
    def url(self) -> str:
        return self._server.url

    def _routed(self, request: SeenRequest) -> Scripted:
        path = request.path.removeprefix("/v1")
        if path == "/chat/completions":
            answer = self._judge(self._prompt(request.json), request.json)
            assert isinstance(answer, str)
            return Reply(self._completion(answer))
        if path == "/files":
            return self._upload(request)
        if path == "/batches" and request.method == "POST":
            return self._create(request.json)
        if path == "/batches":
            return self._listed(request)
        if found := re.fullmatch(r"/batches/([^/]+)(/cancel)?", path):
            batch = self.batches.get(found[1])
            if batch is None:
                return error_reply(404, f"No batch found with id {found[1]!r}.")
            if found[2]:
                batch.cancelling = True
            else:
                self._looked_at(batch)
            return Reply(self._shown(batch))
        if found := re.fullmatch(r"/files/(out|err)-([^/]+)/content", path):
            return self._results(self.batches[found[2]], errors=found[1] == "err")
        return error_reply(404, f"Unknown request URL: {request.method} {path}")

    def _upload(self, request: SeenRequest) -> Reply:
        head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
        parts = message_from_bytes(head + request.raw).get_payload()
        assert isinstance(parts, list)
        named = {}
        for part in parts:
            assert not isinstance(part, str)
            named[part.get_param("name", header="content-disposition")] = part
        assert named["purpose"].get_payload() == "batch"
        content = named["file"].get_payload(decode=True)
        assert isinstance(content, bytes)
        if len(content) > 200_000_000:
            return error_reply(413, "File too large")
        file_id = f"file-{len(self.files) + 1}"
        self.files[file_id] = content.decode().splitlines()
        return Reply(
            {
                "id": file_id,
                "object": "file",
                "bytes": len(content),
                "created_at": int(time.time()),
                "filename": named["file"].get_filename(),
                "purpose": "batch",
                "status": "processed",
            }
        )

    def _create(self, wanted: dict[str, Any]) -> Scripted:
        assert wanted["endpoint"] == "/v1/chat/completions"
        assert wanted["completion_window"] == "24h"
        lines = [json.loads(line) for line in self.files[wanted["input_file_id"]]]
        requests = []
        for line in lines:
            assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
            requests.append((line["custom_id"], line["body"]))
        assert len({custom_id for custom_id, _ in requests}) == len(requests) <= 50_000
        name = f"batch_{len(self.batches) + 1}"
        batch = FakeBatch(name, requests, time.time(), wanted.get("metadata") or {})
        return self._created(batch) or Reply(self._shown(batch))

    def _listed(self, request: SeenRequest) -> Reply:
        newest = sorted(self.batches.values(), key=lambda batch: -batch.created_at)
        after = re.search(r"after=([^&]+)", request.target)
        if after:
            names = [batch.id for batch in newest]
            newest = newest[names.index(after[1]) + 1 :]
        page = [self._shown(batch) for batch in newest[:2]]
        for batch in newest[:2]:
            self._advance(batch)
        return Reply({"object": "list", "data": page, "has_more": len(newest) > 2})

    def _shown(self, batch: FakeBatch) -> dict[str, Any]:
        status = {"running": "in_progress", "ended": "completed", "refused": "failed"}
        completed = len(self._lines(batch, errors=False))
        failed = sum(isinstance(answer, ItemFault) for answer in batch.answers.values())
        has_errors = bool(self._lines(batch, errors=True))
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "errors": {"object": "list", "data": batch.errors} if batch.errors else None,
            "input_file_id": "file-1",
            "completion_window": "24h",
            "status": status.get(batch.phase, batch.phase),
            "output_file_id": f"out-{batch.id}" if completed else None,
            "error_file_id": f"err-{batch.id}" if has_errors else None,
            "created_at": int(batch.created_at),
            "metadata": batch.metadata,
            "request_counts": {
                "total": len(batch.requests),
                "completed": completed,
                "failed": failed,
            },
        }

    def _results(self, batch: FakeBatch, *, errors: bool) -> Scripted:
        return self._file(self._lines(batch, errors=errors))

    def _lines(self, batch: FakeBatch, *, errors: bool) -> list[dict[str, Any]]:
        """Not in the order of asking: none is promised."""
        lines: list[dict[str, Any]] = []
        for custom_id, answer in reversed(batch.answers.items()):
            line: dict[str, Any] = {"id": f"batch_req_{custom_id}", "custom_id": custom_id}
            if isinstance(answer, str) and not errors:
                body = self._completion(answer)
                response = {"status_code": 200, "request_id": f"req-{custom_id}", "body": body}
                lines.append({**line, "response": response, "error": None})
            elif isinstance(answer, ItemFault) and errors:
                error = {"message": answer.message, "type": answer.kind, "param": answer.param}
                response = {
                    "status_code": answer.status,
                    "request_id": f"req-{custom_id}",
                    "body": {"error": {**error, "code": None}},
                }
                lines.append({**line, "response": response, "error": None})
            elif answer is NOT_RUN and errors:
                code = f"batch_{batch.phase}"
                told = {"code": code, "message": "This request could not be executed in time."}
                lines.append({**line, "response": None, "error": told})
        return lines

    def _completion(self, text: str) -> dict[str, Any]:
        usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
        logprobs = [_letter(sign, text) for sign in text] if self.tells_logprobs else None
        reply = chat_reply(text, model=self.model, usage=usage, logprobs=logprobs)
        body: dict[str, Any] = reply.body
        return body

    def _prompt(self, body: dict[str, Any]) -> str:
        return "\n".join(message["content"] for message in body["messages"])


def _letter(sign: str, text: str) -> dict[str, Any]:
    """A token of one letter; how sure it is hangs on the whole answer."""
    sure = 0.5 + sha256(text.encode()).digest()[0] / 512
    other = {"A": "B", "B": "A"}.get(sign, " ")
    return token_logprob(sign, log(sure), {sign: log(sure), other: log(1 - sure)})


class AnthropicProvider(Provider):
    @property
    def url(self) -> str:
        return self._server.origin

    def _routed(self, request: SeenRequest) -> Scripted:
        assert request.headers["authorization"] == "Bearer sk-loopback"
        path = request.path.removeprefix("/v1/messages")
        if path == "":
            answer = self._judge(self._prompt(request.json), request.json)
            assert isinstance(answer, str)
            return Reply(self._message(answer))
        if path == "/batches" and request.method == "POST":
            return self._create(request.json["requests"])
        if path == "/batches":
            return self._listed(request)
        if found := re.fullmatch(r"/batches/([^/]+)(/cancel|/results)?", path):
            batch = self.batches.get(found[1])
            if batch is None:
                error = {"type": "not_found_error", "message": "Not found"}
                return Reply({"type": "error", "error": error}, status=404)
            if found[2] == "/results":
                return self._file(self._lines(batch))
            if found[2]:
                batch.cancelling = True
            else:
                self._looked_at(batch)
            return Reply(self._shown(batch))
        return error_reply(404, f"{request.method} {path}")

    def _create(self, wanted: list[dict[str, Any]]) -> Scripted:
        requests = [(each["custom_id"], each["params"]) for each in wanted]
        for custom_id, params in requests:
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", custom_id)
            assert {"model", "max_tokens", "messages"} <= params.keys()
        assert len({custom_id for custom_id, _ in requests}) == len(requests) <= 100_000
        batch = FakeBatch(f"msgbatch_{len(self.batches) + 1}", requests, time.time())
        return self._created(batch) or Reply(self._shown(batch))

    def _listed(self, request: SeenRequest) -> Reply:
        newest = sorted(self.batches.values(), key=lambda batch: -batch.created_at)
        after = re.search(r"after_id=([^&]+)", request.target)
        if after:
            names = [batch.id for batch in newest]
            newest = newest[names.index(after[1]) + 1 :]
        page = [self._shown(batch) for batch in newest[:2]]
        for batch in newest[:2]:
            self._advance(batch)
        ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {}
        return Reply({"data": page, "has_more": len(newest) > 2, **ends})

    def _shown(self, batch: FakeBatch) -> dict[str, Any]:
        running = batch.phase == "running"
        made = datetime.fromtimestamp(batch.created_at, UTC)
        answers = list(batch.answers.values())
        not_run = sum(answer is NOT_RUN for answer in answers)
        address = f"{self.url}/v1/messages/batches/{batch.id}/results"
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "in_progress" if running else "ended",
            "request_counts": {
                "processing": len(batch.requests) if running else 0,
                "succeeded": sum(isinstance(answer, str) for answer in answers),
                "errored": sum(isinstance(answer, ItemFault) for answer in answers),
                "canceled": not_run if batch.phase == "cancelled" else 0,
                "expired": not_run if batch.phase == "expired" else 0,
            },
            "ended_at": None if running else made.isoformat(),
            "created_at": made.isoformat(),
            "expires_at": made.isoformat(),
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": None if running else address,
        }

    def _lines(self, batch: FakeBatch) -> list[dict[str, Any]]:
        lines = []
        for custom_id, answer in reversed(batch.answers.items()):
            result: dict[str, Any]
            if isinstance(answer, str):
                result = {"type": "succeeded", "message": self._message(answer)}
            elif isinstance(answer, ItemFault):
                error = {"type": answer.kind, "message": answer.message}
                result = {"type": "errored", "error": {"type": "error", "error": error}}
            else:
                phase = "expired" if batch.phase == "expired" else "canceled"
                result = {"type": phase}
            lines.append({"custom_id": custom_id, "result": result})
        return lines

    def _message(self, text: str) -> dict[str, Any]:
        return {
            "id": "msg_loopback",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1000, "output_tokens": 100},
        }

    def _prompt(self, body: dict[str, Any]) -> str:
        texts = [body.get("system", "")]
        for message in body["messages"]:
            content = message["content"]
            parts = [content] if isinstance(content, str) else [part["text"] for part in content]
            texts += parts
        return "\n".join(texts)


KEY = "sk-loopback"
Start = Callable[..., Provider]
QUICK = JudgeConfig(retry=RetryPolicy(attempts=3, base_s=0.001, cap_s=0.01))


class Hearer(Observer):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def announce(self, what: str) -> None:
        self.heard.append(what)


def spec_of(provider: Provider) -> str:
    model = "claude-loopback" if isinstance(provider, AnthropicProvider) else "loopback-1"
    kind = "anthropic" if isinstance(provider, AnthropicProvider) else "openai"
    return f"{kind}:{model}"


def judge_of(provider: Provider, **options: Any) -> Judge:
    given = JudgeOptions(base_url=provider.url, api_key=KEY, timeout_s=60, **options)
    return open_judge(spec_of(provider), given)


async def by_batch(
    provider: Provider,
    rows: list[dict[str, Any]],
    at: str | Path,
    *,
    stop: Stop | None = None,
    hearer: Observer | None = None,
    config: JudgeConfig = QUICK,
    judge: Judge | None = None,
    **options: Any,
) -> RunSummary:
    """`batch=False` asks one by one."""
    plan = JudgePlan(judge or judge_of(provider), config)
    return await by_plans([plan], rows, at, stop=stop, hearer=hearer, **options)


async def by_plans(
    plans: list[JudgePlan],
    rows: list[dict[str, Any]],
    at: str | Path,
    *,
    stop: Stop | None = None,
    hearer: Observer | None = None,
    **options: Any,
) -> RunSummary:
    """The same by several judges, which are closed then."""
    chosen = RunOptions(**{"store": at, "batch": True, **options})
    sources = given_pairs(rows, ReadOptions(criteria=(Criterion(name="accuracy"),)))
    try:
        with open_store(at) as store:
            return await judge_pairs(
                sources, plans, chosen, store=store, stop=stop, observer=hearer
            )
    finally:
        sources.close()
        for plan in plans:
            await plan.judge.close()


async def interrupted(
    provider: Provider, rows: list[dict[str, Any]], at: str | Path, **options: Any
) -> RunSummary:
    """A run that is stopped while the provider holds its batch back, and goes on doing so."""
    provider.hold = True
    stop = Stop()
    running = asyncio.create_task(by_batch(provider, rows, at, stop=stop, **options))
    await asyncio.to_thread(provider.wait_for, lambda: provider.looks > 0)
    stop.ask("interrupt")
    return await running


def only_run(store: Store) -> RunRecord:
    (run,) = store.runs.all()
    return run


def judged_items(at: str | Path) -> dict[str, JudgedItem]:
    """Each row by its id, with its verdict and its passes."""
    found = {}
    with open_store(at) as store:
        run = only_run(store)
        numbers = range(1, store.items.count(run.id) + 1)
        for key in store.items.keys(run.id, numbers).values():
            whole = store.verdicts.item(run.id, key)
            assert whole is not None
            (found[key],) = whole.judged
    return found
