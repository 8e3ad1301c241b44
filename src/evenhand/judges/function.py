"""A judge from a plain function: prompt in, answer out."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from hashlib import sha256
from typing import TypeAlias, overload

from evenhand.errors import InputError, JudgeError
from evenhand.judges.protocol import ClosedOnExit, Completion, JudgeCall, Traits
from evenhand.judges.redaction import Redactor, secrets_in

Answering: TypeAlias = Callable[[str], "str | Awaitable[str]"]

# Synchronous calls wait in threads; asyncio's own pool is small on few cores.
_THREADS = 32


@overload
def judge(function: Answering, /) -> FunctionJudge: ...


@overload
def judge(
    *, name: str | None = None, version: str | None = None
) -> Callable[[Answering], FunctionJudge]: ...


def judge(
    function: Answering | None = None,
    /,
    *,
    name: str | None = None,
    version: str | None = None,
) -> FunctionJudge | Callable[[Answering], FunctionJudge]:
    """`@judge`, or `@judge(name="house", version="2")`, on a function, async or not.

    `version` identifies what the source does not: the model it calls, its settings.
    """
    if function is None:
        return lambda decorated: FunctionJudge(decorated, name=name, version=version)
    return FunctionJudge(function, name=name, version=version)


class FunctionJudge(ClosedOnExit):
    """Still callable as the original function."""

    traits = Traits(modes=("reasoned",))

    def __init__(
        self, function: Answering, *, name: str | None = None, version: str | None = None
    ) -> None:
        if not callable(function):  # callers may be untyped
            raise InputError.of("judges.function_not_callable", given=function)
        called = getattr(function, "__name__", type(function).__name__)
        self.name = name or f"function:{called}"
        self.__doc__ = function.__doc__
        self.identity: Mapping[str, object] = {"source": _digest(function), "version": version}
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - whether it is async, not whether it is
        )
        self._threads: ThreadPoolExecutor | None = None
        self._pid = 0  # a forked child has the pool, but not its threads

    def __call__(self, prompt: str) -> str | Awaitable[str]:
        return self._function(prompt)

    def __repr__(self) -> str:
        return f"FunctionJudge({self.name!r})"

    @cached_property
    def _redact(self) -> Redactor:
        # On first use: keys are often loaded after the imports.
        return Redactor(others=secrets_in(os.environ))

    async def ask(self, call: JudgeCall) -> Completion:
        prompt = "\n\n".join(message.text for message in call.messages)
        try:
            answer = await self._answer(prompt)
        except JudgeError:  # the function says whether asking again is of use
            raise
        except Exception as error:  # whatever its author's code raises is this judge's failure
            raise JudgeError.of(
                "judges.function_raised",
                name=self.name,
                kind=type(error).__name__,
                error=self._redact(str(error)),
            ) from error
        if not isinstance(answer, str):
            raise JudgeError.of(
                "judges.function_no_text", name=self.name, kind=type(answer).__name__
            )
        return self._redact.clean(Completion(text=answer))

    async def _answer(self, prompt: str) -> object:
        if self._is_async:
            answer = self._function(prompt)
        else:
            if self._threads is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="evenhand-judge")
            run = contextvars.copy_context().run
            answer = await asyncio.get_running_loop().run_in_executor(
                self._threads, run, self._function, prompt
            )
        return await answer if inspect.isawaitable(answer) else answer

    async def close(self) -> None:
        """End its threads; a later call starts new ones."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)


def _digest(function: Answering) -> str | None:
    """Of its source, so that answers of another version are not reused."""
    try:
        source = inspect.getsource(inspect.unwrap(function))
    except (OSError, TypeError):  # typed into an interpreter, or no Python function
        return None
    return sha256(inspect.cleandoc(source).encode("utf-8", "surrogatepass")).hexdigest()[:16]
