"""Many small cases in one test: a test of its own for each would cost more than the case does."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest


def each_case(
    names: str | Sequence[str], cases: Iterable[Any], *, ids: Callable[[Any], str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `pytest.mark.parametrize`, for cases that share their fixtures; every case is tried, and
    the failure has all that failed, each by its name.

        @each_case(("text", "expected"), [("A wins", "A"), ("B wins", "B")])
        def test_a_winner_is_read(text: str, expected: str) -> None: ...
    """
    single = isinstance(names, str)
    wanted = [names] if isinstance(names, str) else list(names)

    def looped(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def every(**fixtures: Any) -> None:
            failed, tried = [], 0
            for case in cases:
                tried += 1
                values = dict(zip(wanted, [case] if single else case, strict=True))
                try:
                    test(**fixtures, **values)
                except (Exception, pytest.fail.Exception) as error:
                    name = ids(case) if ids else repr(case)[:200]
                    failed.append(f"{name}: {type(error).__name__}: {error}")
            assert tried, "there is no case"
            if failed:
                pytest.fail(f"{len(failed)} of {tried} cases:\n" + "\n\n".join(failed))

        signature = inspect.signature(test)
        left = [each for name, each in signature.parameters.items() if name not in wanted]
        every.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return every

    return looped
