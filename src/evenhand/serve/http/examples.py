"""The examples of the OpenAPI document: what a real server was sent, and what it answered."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import orjson

from evenhand import errors
from evenhand.serve.problems import problem_of

_TYPICAL: dict[int, errors.EvenhandError] = {
    401: errors.Unauthorized("the request has no token; send Authorization: Bearer TOKEN"),
    402: errors.CapReached("the judge's calls would cost more than is allowed; raise maxCost"),
    403: errors.Forbidden(
        "pages of 'https://example.org' may not call this server; its operator "
        "can name them in allowed_origins"
    ),
    404: errors.NotFound("there is no run '7'; GET /v1/runs lists them"),
    408: errors.TooSlow("the body stopped at 512 bytes for 60 s; send it faster"),
    409: errors.Conflict(
        "the request with the Idempotency-Key 'night-7' is still being answered; "
        "ask again in a moment"
    ),
    413: errors.TooLarge("the body is larger than 32 MiB; send less, or upload it as a run's file"),
    415: errors.WrongMediaType(
        "the body's content type is text/xml; send JSON with Content-Type: application/json"
    ),
    422: errors.InputError('criteria is empty; name at least one, e.g. ["accuracy"]'),
    429: errors.ServerBusy(
        "64 comparisons are being judged and 128 wait; ask again later, or ask fewer at once",
        retry_after_s=3,
    ),
    500: errors.EvenhandError(
        "the server met an error of its own; its log says where, please report it"
    ),
    501: errors.MissingExtra("pyarrow", "parquet"),
    502: errors.JudgeUnreachable("no connection to the judge could be made; try again later"),
    503: errors.StoreBusy("another process has the store in use; try again"),
    504: errors.JudgeTimeout("the judge gave no answer within 60 s; try again, or allow it longer"),
}


def problem_example(status: int) -> Any:
    told = problem_of(_TYPICAL[status]).model_dump(mode="json")
    return {**told, "metadata": {"outcome": None, "usage": {"requests": 0}}}


def example(name: str) -> Any:
    """JSON as a value, anything else as its text."""
    folder = files(__package__).joinpath("examples")
    text = folder.joinpath(f"{name}.txt")
    if text.is_file():
        return text.read_text("utf-8")
    return orjson.loads(folder.joinpath(f"{name}.json").read_bytes())
