"""`POST /v1/runs`: pairs come in, as lines, as a file or as JSON."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.responses import Response

from evenhand.errors import InputError, WrongMediaType
from evenhand.serve.config import Limits
from evenhand.serve.http.bodies import media_type_of, read_body
from evenhand.serve.http.endpoint import Answer, Body, Call, Endpoint, answer
from evenhand.serve.http.uploads import FORM, LINES, spool_form, spool_lines
from evenhand.serve.idempotency import key_of, once
from evenhand.serve.upload import Upload
from evenhand.serve.values import RunStatus, StartRun, StartRunWithPairs


async def start_run(call: Call[StartRun]) -> Response:
    """Pairs to be judged in the background: as JSON lines (streamed, options in the query), as a
    form with a file of any format that `evenhand run` reads (likewise), or as JSON with the
    options beside the pairs. 202 says that all pairs are stored; the same data and judges again
    find the same run (200), which goes on where it had been stopped."""
    key_of(call.request)
    await call.service.refuse_when_full()
    kind, _ = media_type_of(call.request)
    limit_bytes = call.service.config.limits.upload_bytes
    if kind in LINES:
        spool = await spool_lines(call.request, limit_bytes=limit_bytes)
    elif kind == FORM:
        spool = await spool_form(call.request, limit_bytes=limit_bytes)
    elif kind == "application/json":
        return await _start_with_pairs(call)
    else:
        takes = f"{LINES[0]}, {FORM} or application/json"
        raise WrongMediaType(
            f"the body's content type is {kind[:60] or 'missing'}; send pairs as {takes}"
        )
    try:
        return await _started(call, spool.upload, call.query, spool.digest)
    finally:
        spool.close()


async def _start_with_pairs(call: Call[StartRun]) -> Response:
    body = await call.body()
    if call.request.query_params:
        name = next(iter(call.request.query_params))
        raise InputError(
            f"the query parameter {name} goes with JSON lines and files; "
            "put it into the body, beside the pairs"
        )
    upload, options = await call.service.read_in(body, partial(_read_pairs, limits=call.limits))
    with upload:
        return await _started(call, upload, options, body)


def _read_pairs(body: bytes, *, limits: Limits) -> tuple[Upload, StartRun]:
    request = read_body(body, StartRunWithPairs, limits, rows="pairs")
    return Upload.of_pairs(request.pairs), request.options()


async def _started(
    call: Call[StartRun], upload: Upload, options: StartRun, content: bytes
) -> Response:
    async def started() -> Response:
        status = await call.service.start_run(upload, options, token=call.token)
        place = {"Location": f"/v1/runs/{status.id}"}
        return answer(status, 200 if status.found else 202, headers=place)

    return await once(
        call.request, started, store=call.service.store, token=call.token, content=content
    )


_PAIR_LINES = {"type": "string", "format": "binary", "description": "One pair a line, as JSON"}
_FORM = {
    "type": "object",
    "required": ["file"],
    "additionalProperties": False,
    "properties": {
        "file": {
            "type": "string",
            "format": "binary",
            "description": "JSON lines, JSON, CSV, TSV or Parquet, by the name's ending; or .gz",
        }
    },
}

ENDPOINTS: tuple[Endpoint[Any], ...] = (
    Endpoint(
        method="POST",
        path="/v1/runs",
        name="startRun",
        summary="Judge many pairs in the background",
        work=start_run,
        query=StartRun,
        bodies={
            "application/x-ndjson": Body(schema=_PAIR_LINES, examples=("lines",)),
            FORM: Body(schema=_FORM),
            "application/json": Body(model=StartRunWithPairs, examples=("start-run",)),
        },
        answers={
            202: Answer(
                "All pairs are stored and wait to be judged",
                RunStatus,
                example="started-run",
                headers={"Location": "Where the run's status is"},
            ),
            200: Answer(
                "The same run was there already",
                RunStatus,
                example="run",
                headers={"Location": "Where the run's status is"},
            ),
        },
        refusals=(402, 501),
    ),
)
