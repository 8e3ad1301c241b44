"""What a judge's server may send: how much of it is parsed, kept and believed.

A server is as hostile as a client: 30 MB of `[],` are seconds of parsing and 800 MB, and 2⁶³ tokens
are somebody's budget. What is beyond a limit is refused before it is parsed, cut, or unknown.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import orjson

from evenhand.contract import Usage
from evenhand.contract.json_text import TooManyValues, refuse_many_values
from evenhand.judges.protocol import Finish

MAX_REPLY_BYTES = 32 * 1024 * 1024
# 4,096 tokens with 20 alternatives each and their bytes are 700,000 values, and 0.2 s of parsing.
MOST_VALUES = 1_000_000
# A provider's SDK makes an object of each, in the event loop: 0.1 s for these.
MOST_SDK_VALUES = 20_000
# Of an error: enough for any message, and for the request that some servers echo with it.
MOST_ERROR_VALUES = 10_000
MOST_ERROR_BYTES = 64 * 1024
MOST_ERROR_ENTRIES = 20
# No longer answer is read (`judging.answers`), and it is sent back where a repair is asked for.
LONGEST_TEXT = 1_000_000
LONGEST_NAME = 256  # of a model, or the id of a request
MOST_PLACES = 65_536  # tokens of an answer with their log-probabilities
MOST_ALTERNATIVES = 20  # to a token; no API gives more
# What is larger is read in a thread, and one at a time: each may take 200 MB while it is parsed.
LARGE_BYTES = 256 * 1024

MOST_TOKENS = 10_000_000  # in one request; no model's context is longer
LEAST_LOG_PROBABILITY = -10_000.0  # servers write -9999 or -3.4e38 for "never"
_ROUNDED_UP = 0.01  # a log-probability may be this much above 0
LONGEST_WAIT_S = 31 * 24 * 3600.0  # quotas are renewed by the month at the latest
LONGEST_HEADER = 64  # that holds a number or a date, in characters


def decoded(body: bytes, *, most_values: int = MOST_VALUES) -> Any:
    """The JSON in a body, or the body itself where it is none. Raises TooManyValues."""
    refuse_many_values(body, most_values, object_cost=1)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return _decoded_leniently(body)


def decoded_error(body: bytes) -> Any:
    """The same for an error, of which the beginning is shown where it is too much."""
    try:
        read = decoded(body, most_values=MOST_ERROR_VALUES)
    except TooManyValues:
        read = body
    return read[:MOST_ERROR_BYTES] if isinstance(read, bytes) else read


_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")


def _decoded_leniently(body: bytes) -> Any:
    """Some servers write -Infinity, or half of a surrogate pair where a token ends inside it."""
    try:
        read = json.loads(body.decode("utf-8", "replace"))
        if not _HALF_CHARACTER.search(body):
            return read
        text = json.dumps(read, ensure_ascii=False)
        return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    except (ValueError, RecursionError):
        return body


R = TypeVar("R")


async def read_off_the_loop(read: Callable[[], R], body: bytes) -> R:
    """What `read` makes of a body; of a large one without holding up the event loop."""
    if len(body) <= LARGE_BYTES:
        return read()
    return await asyncio.get_running_loop().run_in_executor(_large_replies(), read)


@cache
def _large_replies() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="evenhand-reply")


# Each number that a server sends, by what it is of. None: it is unknown.


def usage_of(*, input: Any, output: Any, cached: Any = None, requests: int) -> Usage:  # noqa: A002
    return Usage(
        input_tokens=token_count(input),
        output_tokens=token_count(output),
        cached_input_tokens=token_count(cached),
        requests=requests,
    )


def token_count(value: Any) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MOST_TOKENS else None


def log_probability(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    if not value <= _ROUNDED_UP or value == -math.inf:  # what is no number is not below it either
        return None
    return float(max(LEAST_LOG_PROBABILITY, min(0.0, value)))  # it may have 4,000 digits


def wait_s(seconds: float | None) -> float | None:
    if seconds is None or not 0 <= seconds <= LONGEST_WAIT_S:
        return None
    return seconds


def number_in(header: str | None) -> float | None:
    """What a header says, as a number from 0."""
    if header is None or len(header) > LONGEST_HEADER:
        return None
    try:
        number = float(header)
    except ValueError:
        return None
    return number if 0 <= number < math.inf else None


# Texts


def kept_text(text: str, finish: Finish) -> tuple[str, Finish]:
    """As much of an answer as is kept; one that is longer was cut, if by us."""
    return (text, finish) if len(text) <= LONGEST_TEXT else (text[:LONGEST_TEXT], "length")


def name_or_none(value: Any) -> str | None:
    """The name of a model, or the id of a request."""
    return value if isinstance(value, str) and 0 < len(value) <= LONGEST_NAME else None
