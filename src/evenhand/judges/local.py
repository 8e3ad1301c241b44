"""A model in this process, on llama.cpp: the embedded one, or a GGUF file of the user's.

llama.cpp's own HTTP server runs inside the process on a loopback port, behind a random key.
Judged text reaches it as token ids in which no special token can occur, so nothing inside a
response can end its turn or open another.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import aiohttp
import orjson

from evenhand.contract import Usage
from evenhand.errors import (
    JudgeConnectionLost,
    JudgeGarbled,
    JudgeRejected,
    JudgeServerError,
    JudgeTimeout,
    JudgeUnreachable,
)
from evenhand.judges.llama_server import DEFAULT_CONTEXT, LlamaServer, model_file
from evenhand.judges.protocol import (
    ChatMessage,
    ClosedOnExit,
    Completion,
    JudgeCall,
    TokenLogprob,
    Traits,
)
from evenhand.judges.registry import JudgeName, JudgeOptions

EMBEDDED_CAVEAT = (
    "the embedded model is not a reliable judge (57% on LLMBar-Natural, 95% CI 47–66; "
    "position decides most of its verdicts); it is for trying things out without a key"
)

_EMBEDDED = Traits(
    modes=("letter",), parallel=False, continues=True, free=True, caveat=EMBEDDED_CAVEAT
)
_OWN_MODEL = Traits(modes=("reasoned", "letter"), parallel=False, continues=True, free=True)

MAX_TOKENS = 2048
TIMEOUT_S = 600.0

# Of 49,152 tokens the likeliest 1,000 cost 19 ms and hold 98.6% of the mass. A letter outside them
# has less than a thousandth and counts as nothing.
_LIKELIEST = 1000
_KEPT = 200
# Enough to force a token, whatever its own probability.
_FORCED = 1000.0
_TEXT_TOP = 20


def open_named(
    name: JudgeName, options: JudgeOptions, *, n_ctx: int = DEFAULT_CONTEXT
) -> LocalJudge:
    """The embedded judge, or a GGUF file. It loads on first use."""
    path = Path(name.model).expanduser() if name.model else None
    return LocalJudge(
        model_file(path, cache=options.cache_dir),
        options,
        name="local" if path is None else f"local:{path.name}",
        traits=traits_of(name),
        n_ctx=n_ctx,
    )


def traits_of(name: JudgeName) -> Traits:
    return _OWN_MODEL if name.model else _EMBEDDED


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A loaded model and its HTTP session."""

    native: LlamaServer
    session: aiohttp.ClientSession


class LocalJudge(ClosedOnExit):
    """One model, one slot, one question at a time. Belongs to the event loop that first asks it."""

    def __init__(
        self,
        file: Path,
        options: JudgeOptions,
        *,
        name: str,
        traits: Traits,
        n_ctx: int,
    ) -> None:
        self.name = name
        self.traits = traits
        self._file = file
        self._n_ctx = n_ctx
        self._max_tokens = MAX_TOKENS if options.max_tokens is None else options.max_tokens
        self._temperature = options.temperature or 0.0
        self._timeout_s = TIMEOUT_S if options.timeout_s is None else options.timeout_s
        self._loading: asyncio.Task[_Loaded] | None = None
        self._closed = False
        self._turn = asyncio.Lock()
        self._frames: dict[tuple[str, ...], _Frame] = {}

    @cached_property
    def identity(self) -> Mapping[str, object]:
        return {
            "model": self._file.name,
            **_file_identity(self._file),
            "n_ctx": self._n_ctx,
            "temperature": self._temperature,
            "max_tokens": self._max_tokens,
        }

    async def ask(self, call: JudgeCall) -> Completion:
        loaded = await self._ready()
        async with self._turn:
            tokens = await self._tokens(loaded, call.messages)
            if call.letters:
                return await self._ask_letter(loaded, tokens, call.letters)
            return await self._ask_text(loaded, tokens, call)

    async def close(self) -> None:
        self._closed = True
        loading, self._loading = self._loading, None
        if loading is None:
            return
        await asyncio.wait([loading])
        if loading.cancelled() or loading.exception() is not None:
            return
        loaded = loading.result()
        await loaded.session.close()
        await asyncio.to_thread(loaded.native.free)

    async def _ready(self) -> _Loaded:
        if self._closed:
            raise JudgeRejected.of("judges.closed", name=self.name)
        if self._loading is None:
            self._loading = asyncio.create_task(self._load())
        # Shielded: the load serves later questions even if this one is cancelled.
        return await asyncio.shield(self._loading)

    async def _load(self) -> _Loaded:
        key = secrets.token_urlsafe(32)
        try:
            native = await asyncio.to_thread(
                LlamaServer, self._file, n_ctx=self._n_ctx, name=self.name, api_key=key
            )
        except ImportError as error:
            raise JudgeRejected.of("judges.xllamacpp_not_loading", error=error) from None
        except RuntimeError:
            raise JudgeRejected.of("judges.model_not_loading", file=self._file) from None
        session = aiohttp.ClientSession(
            native.address,
            headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
            timeout=aiohttp.ClientTimeout(total=self._timeout_s),
        )
        return _Loaded(native, session)

    async def _tokens(self, loaded: _Loaded, messages: Sequence[ChatMessage]) -> list[int]:
        if messages[-1].role == "assistant":
            # The model continues an answer begun for it, inside its own turn.
            begun = await self._tokenize(loaded, messages[-1].text, special=False)
            return await self._tokens(loaded, messages[:-1]) + begun
        frame, contents = await self._framed(loaded, messages)
        tokens = list(frame.parts[0])
        for content, part in zip(contents, frame.parts[1:], strict=True):
            tokens += await self._tokenize(loaded, content, special=False)
            tokens += part
        return tokens

    async def _framed(
        self, loaded: _Loaded, messages: Sequence[ChatMessage]
    ) -> tuple[_Frame, list[str]]:
        """The chat template's tokens around the contents, and the contents."""
        turns = [(message.role, message.text) for message in messages]
        try:
            frame = await self._frame(loaded, tuple(role for role, _ in turns))
        except JudgeRejected:
            if len(turns) < 2 or turns[0][0] != "system" or turns[1][0] != "user":
                raise
            # Some templates have no system role: its text then opens the user's turn.
            turns[:2] = [("user", f"{turns[0][1]}\n\n{turns[1][1]}")]
            frame = await self._frame(loaded, tuple(role for role, _ in turns))
        return frame, [text for _, text in turns]

    async def _frame(self, loaded: _Loaded, roles: tuple[str, ...]) -> _Frame:
        if roles not in self._frames:
            marks = [secrets.token_hex(16) for _ in roles]
            turns = [
                {"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True)
            ]
            reply = await self._post(
                loaded,
                "/apply-template",
                {"messages": turns, "chat_template_kwargs": {"enable_thinking": False}},
            )
            pieces = _split_at(str(reply["prompt"]), marks)
            if pieces is None:
                raise JudgeRejected.of("judges.chat_template_unfit", name=self._file.name)
            parts = [
                await self._tokenize(loaded, piece, special=True, opening=place == 0)
                for place, piece in enumerate(pieces)
            ]
            self._frames[roles] = _Frame(tuple(tuple(part) for part in parts))
        return self._frames[roles]

    async def _tokenize(
        self, loaded: _Loaded, text: str, *, special: bool, opening: bool = False
    ) -> list[int]:
        body = {"content": text, "parse_special": special, "add_special": opening}
        reply = await self._post(loaded, "/tokenize", body)
        return [int(token) for token in reply["tokens"]]

    async def _ask_letter(
        self, loaded: _Loaded, tokens: list[int], letters: tuple[str, ...]
    ) -> Completion:
        # The server lists probabilities only beside a token that it can show, and the likeliest may
        # be half a character or the end; those listed are from before the bias.
        shown = (await self._tokenize(loaded, letters[0], special=False))[-1]
        options = {
            "n_predict": 1,
            "n_probs": _LIKELIEST,
            "temperature": 0.0,
            "logit_bias": [[shown, _FORCED]],
        }
        reply = await self._complete(loaded, tokens, options)
        answer = _first_token(reply, letters)
        return Completion(
            text="" if answer is None else answer.token,
            finish="stop",  # one token was asked for, and came
            logprobs=() if answer is None else (answer,),
            usage=_usage(reply),
            model=self._file.stem,
        )

    async def _ask_text(self, loaded: _Loaded, tokens: list[int], call: JudgeCall) -> Completion:
        options: dict[str, Any] = {
            "n_predict": self._max_tokens,
            "temperature": self._temperature,
            "seed": call.sample,
        }
        if call.answer_schema is not None:
            options["json_schema"] = call.answer_schema
        if call.logprobs:
            options["n_probs"] = _TEXT_TOP
        reply = await self._complete(loaded, tokens, options)
        return Completion(
            text=str(reply.get("content", "")),
            finish=_FINISH.get(str(reply.get("stop_type")), "other"),
            logprobs=tuple(
                _token(entry, tuple(entry["top_logprobs"]))
                for entry in reply.get("completion_probabilities", ())
            ),
            usage=_usage(reply),
            model=self._file.stem,
        )

    async def _complete(
        self, loaded: _Loaded, tokens: list[int], options: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        body = {"prompt": tokens, "cache_prompt": True, **options}
        reply: Mapping[str, Any] = await self._post(loaded, "/completion", body)
        return reply

    async def _post(self, loaded: _Loaded, path: str, body: Mapping[str, Any]) -> Any:
        if loaded.session.closed:
            raise JudgeRejected.of("judges.closed", name=self.name)
        try:
            async with loaded.session.post(path, data=orjson.dumps(body)) as response:
                status, raw = response.status, await response.read()
        except TimeoutError:
            raise JudgeTimeout.of(
                "judges.embedded_timeout", name=self.name, timeout_s=self._timeout_s
            ) from None
        except aiohttp.ClientConnectorError as error:
            raise JudgeUnreachable.of("judges.embedded_gone", name=self.name, error=error) from None
        except aiohttp.ClientError as error:
            raise JudgeConnectionLost.of(
                "judges.embedded_connection_broke", name=self.name, name2=type(error).__name__
            ) from None
        try:
            reply = orjson.loads(raw)
        except orjson.JSONDecodeError:
            raise JudgeGarbled.of("judges.embedded_not_json", name=self.name, n=len(raw)) from None
        if status != 200:
            self._refuse(status, reply)
        return reply

    def _refuse(self, status: int, reply: Any) -> None:
        error = reply.get("error", {}) if isinstance(reply, dict) else {}
        if error.get("type") == "exceed_context_size_error":
            raise JudgeRejected.of(
                "judges.prompt_too_long",
                error=error["n_prompt_tokens"],
                name=self.name,
                error2=error["n_ctx"],
            )
        reason = " ".join(str(error.get("message", "no reason given")).split())[:300]
        if status >= 500 and error.get("type") != "invalid_request_error":
            raise JudgeServerError.of(
                "judges.provider_failed_with_status", name=self.name, status=status, reason=reason
            )
        raise JudgeRejected.of(
            "judges.provider_refused_with_status", name=self.name, status=status, reason=reason
        )


# A model file may have gigabytes. Its head holds the settings and chat template, its tail the last
# weights; fine-tunes of one base have the same size.
_END_BYTES = 1024 * 1024


def _file_identity(path: Path) -> Mapping[str, object]:
    with path.open("rb") as file:
        digest = hashlib.sha256(file.read(_END_BYTES))
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _END_BYTES))
        digest.update(file.read(_END_BYTES))
    return {"bytes": size, "sha256_of_ends": digest.hexdigest()}


@dataclass(frozen=True, slots=True)
class _Frame:
    """A chat template's tokens around the contents of its messages."""

    parts: tuple[tuple[int, ...], ...]


_FINISH: dict[str, Literal["stop", "length"]] = {"eos": "stop", "word": "stop", "limit": "length"}


def _split_at(text: str, marks: Sequence[str]) -> list[str] | None:
    """The pieces around the marks, or None unless each occurs once, in order."""
    pieces: list[str] = []
    rest = text
    for mark in marks:
        before, separator, rest = rest.partition(mark)
        if not separator:
            return None
        pieces.append(before)
    pieces.append(rest)
    return None if any(mark in piece for piece in pieces for mark in marks) else pieces


def _first_token(reply: Mapping[str, Any], letters: tuple[str, ...]) -> TokenLogprob | None:
    """The likeliest next token, and the alternatives."""
    places = reply.get("completion_probabilities")
    if not places:
        return None
    likeliest = places[0]["top_logprobs"]
    listed = likeliest[:_KEPT] + [
        entry for entry in likeliest[_KEPT:] if entry["token"].strip() in letters
    ]
    return _token(likeliest[0], listed)


def _token(entry: Mapping[str, Any], top: Sequence[Mapping[str, Any]]) -> TokenLogprob:
    return TokenLogprob(
        token=str(entry["token"]),
        logprob=float(entry["logprob"]),
        top=tuple((str(each["token"]), float(each["logprob"])) for each in top),
    )


def _usage(reply: Mapping[str, Any]) -> Usage:
    return Usage(
        input_tokens=reply.get("tokens_evaluated"),
        output_tokens=reply.get("tokens_predicted"),
        cached_input_tokens=reply.get("timings", {}).get("cache_n"),
        cost_usd=0.0,
        requests=1,
    )
