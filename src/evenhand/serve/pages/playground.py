"""`/try`: one comparison by hand, whose two passes can be watched as they arrive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

import orjson
from pydantic.alias_generators import to_camel
from starlette.responses import Response, StreamingResponse

from evenhand.contract import ORDERS, Metadata, Order, Pass, Verdict
from evenhand.errors import EvenhandError, InputError, NoVerdict, TooLarge
from evenhand.messages import Message
from evenhand.options import JudgingOptions
from evenhand.present.html.rendering import render_template
from evenhand.serve.config import ServerLimits
from evenhand.serve.http.problems import Problem, problem_of
from evenhand.serve.pages.page import TEMPLATES, Fields, Filled, Page, Visit, read_form
from evenhand.serve.security.limits import too_long
from evenhand.serve.service import Service

LINES = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class PlaygroundForm:
    """What the form holds."""

    prompt: str = ""
    response_a: str = ""
    response_b: str = ""
    criteria: str = ""
    context: str = ""
    reference: str = ""
    prepare: str = ""
    judge: str | None = None
    allow_tie: bool = True
    swap_positions: bool = True

    @classmethod
    def of(cls, form: Fields) -> PlaygroundForm:
        sent = {each.name: form.get(to_camel(each.name)) for each in fields(cls)}
        values: dict[str, Any] = {name: text or "" for name, text in sent.items()}
        values |= {name: sent[name] is not None for name in ("allow_tie", "swap_positions")}
        return cls(**values | {"judge": sent["judge"]})

    def refuse_large(self, limits: ServerLimits) -> None:
        """Before it is shown again, whatever else may be wrong with it."""
        for each in fields(self):
            text = getattr(self, each.name)
            if isinstance(text, str) and len(text) > limits.field_chars:
                raise TooLarge(too_long(to_camel(each.name), len(text), limits.field_chars))
        lines = self.criteria.count("\n")
        if lines > 2 * limits.criteria:  # some are blank
            raise TooLarge(
                Message("serve.too_many_criteria", lines=lines + 1, criteria=limits.criteria)
            )

    @property
    def options(self) -> dict[str, Any]:
        if not self.prepare:
            return {}
        return {"prepare": JudgingOptions.row("prepare").check("prepare", self.prepare)}

    def exchanged(self) -> PlaygroundForm:
        return replace(self, response_a=self.response_b, response_b=self.response_a)

    def pair(self) -> dict[str, Any]:
        """The contract's input; an empty response is one, an empty prompt was forgotten."""
        if not self.prompt:
            raise InputError(Message("serve.prompt_empty"))
        return {
            "prompt": self.prompt,
            "responseA": self.response_a,
            "responseB": self.response_b,
            "criteria": [_criterion(line) for line in self.criteria.split("\n") if line.strip()],
            "context": self.context or None,
            "reference": self.reference or None,
            "allowTie": self.allow_tie,
            "swapPositions": self.swap_positions,
        }


@dataclass(frozen=True, slots=True)
class PlaygroundResult:
    """What came of it: a verdict, or a failure with the passes that there are."""

    verdict: Verdict | None = None
    problem: Problem | None = None
    invalid: bool = False  # the judge answered, and it is no verdict
    passes: tuple[Pass, ...] = field(default=())

    @property
    def criteria(self) -> tuple[str, ...]:
        """In the caller's order, or as the passes have them where there is no verdict."""
        if self.verdict is not None:
            return tuple(each.criterion for each in self.verdict.comparison)
        ballots = (made.ballot for made in self.passes if made.ballot is not None)
        return tuple(dict.fromkeys(own.criterion for each in ballots for own in each.criteria))

    @classmethod
    def of(cls, error: EvenhandError) -> PlaygroundResult:
        metadata = error.metadata
        passes = metadata.passes if isinstance(metadata, Metadata) else ()
        return cls(problem=problem_of(error), invalid=isinstance(error, NoVerdict), passes=passes)


async def show_form(visit: Visit) -> Filled | Response:
    return await _filled(visit, PlaygroundForm())


async def compare(visit: Visit) -> Filled | Response:
    limits = visit.service.config.limits
    form = await read_form(visit.request, limit_bytes=limits.compare_bytes)
    attempt = PlaygroundForm.of(form)
    attempt.refuse_large(limits)
    if form.get("act") == "swap":
        return await _filled(visit, attempt.exchanged())
    if LINES in visit.request.headers.get("accept", ""):
        return StreamingResponse(
            _lines(visit, attempt),
            media_type=LINES,
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
    try:
        verdict = await visit.service.comparisons.compare(
            attempt.pair(), judge=attempt.judge, options=attempt.options
        )
        result = PlaygroundResult(verdict=verdict, passes=verdict.metadata.passes)
    except EvenhandError as error:
        result = PlaygroundResult.of(error)
    return await _filled(visit, attempt, result)


async def _filled(
    visit: Visit, attempt: PlaygroundForm, result: PlaygroundResult | None = None
) -> Filled:
    offers = await asyncio.to_thread(visit.service.judges.offered_or_named)
    # Where the judge answered and it is no verdict, nothing went wrong here.
    failed = result is not None and result.problem is not None and not result.invalid
    status = result.problem.status if failed and result is not None and result.problem else 200
    return Filled(
        "try.html", {"attempt": attempt, "result": result, "offers": offers}, status=status
    )


async def _lines(visit: Visit, attempt: PlaygroundForm) -> AsyncIterator[bytes]:
    """One line for what is waited for, one for each pass, and one for the verdict."""
    service, language = visit.service, visit.language
    made: asyncio.Queue[Pass | None] = asyncio.Queue()

    async def work() -> Verdict:
        return await service.comparisons.compare(
            attempt.pair(),
            judge=attempt.judge,
            options=attempt.options,
            heard=made.put_nowait,
        )

    working = asyncio.ensure_future(work())
    working.add_done_callback(lambda _: made.put_nowait(None))
    try:
        yield _line(
            render_template(
                "_try_waiting.html", language, TEMPLATES, waited=_waited(service, attempt)
            )
        )
        while (one := await made.get()) is not None:
            if isinstance(one, Pass):
                yield _line(render_template("_try_pass.html", language, TEMPLATES, made=one))
        try:
            verdict = await working
            result = PlaygroundResult(verdict=verdict, passes=verdict.metadata.passes)
        except EvenhandError as error:
            result = PlaygroundResult.of(error)
        yield _line(render_template("_try_result.html", language, TEMPLATES, result=result))
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


def _waited(service: Service, attempt: PlaygroundForm) -> list[tuple[Order, int]]:
    """Both orders, as often as the judge is asked."""
    try:
        samples = service.judges.plan(attempt.judge).config.samples_per_order
    except EvenhandError:
        return []  # it is told in the end
    orders = ORDERS if attempt.swap_positions else ORDERS[:1]
    return [(order, sample) for sample in range(1, samples + 1) for order in orders]


def _line(html: str) -> bytes:
    # A judge's answer may hold half a sign, which is in no text that can be sent.
    whole = html.encode("utf-8", "replace").decode()
    return orjson.dumps({"html": whole}) + b"\n"


def _criterion(line: str) -> str | dict[str, str]:
    """`name`, or `name: description`, as on the command line."""
    name, colon, description = line.replace("：", ":", 1).partition(":")
    if not colon or not description.strip():
        return line.strip()
    return {"name": name.strip(), "description": description.strip()}


PAGES = (
    Page(path="/try", name="tryPage", work=show_form, place="try"),
    Page(path="/try", name="tryIt", work=compare, method="POST", place="try"),
)
