"""What agents can read: the judging prompt, the judges, and runs with their reports."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from mcp_types import Resource, ResourceTemplate, TextResourceContents

from evenhand.errors import NotFound, visible
from evenhand.serve.mcp.markdown import report_page

if TYPE_CHECKING:
    from evenhand.serve.service import Service

_SCHEME = "evenhand://"
_JSON = "application/json"
_MARKDOWN = "text/markdown"
_PLAIN = "text/plain"
# Newest first; older ones are read by their id all the same.
_RUNS_LISTED = 20
_RUNS_READ = 50
_LONGEST_URI = 2000

_STATIC = (
    (
        "judging-prompt",
        "The judging prompt",
        "What the default judge is shown in both passes, with the names of the texts in place of "
        "the texts.",
        _PLAIN,
    ),
    ("judges", "The judges", "The judges that this server offers, with their caveats.", _JSON),
    ("runs", "Runs", f"The newest {_RUNS_READ} runs and how far they are.", _JSON),
)
_TEMPLATES = (
    (
        "judging-prompt/{judge}",
        "The judging prompt of a judge",
        "What this judge is shown, by its offered name.",
        _PLAIN,
    ),
    ("runs/{id}", "A run", "How far a run is, as runStatus tells it.", _JSON),
    ("runs/{id}/report", "A run's report", "What a run says, to be read.", _MARKDOWN),
    ("runs/{id}/report.json", "A run's report as JSON", "The same, as runReport gives it.", _JSON),
)


async def list_resources(service: Service) -> list[Resource]:
    """Those that are always there, and the reports of the newest runs."""
    fixed = [
        Resource(uri=_SCHEME + path, name=path, title=title, description=said, mime_type=mime_type)
        for path, title, said, mime_type in _STATIC
    ]
    page = await service.runs(limit=_RUNS_LISTED)
    reports = [
        Resource(
            uri=f"{_SCHEME}runs/{quote(run.id, safe='')}/report",
            name=f"runs/{run.id}/report",
            title=f"Report of run {run.id}",
            description=f"A run of {run.pairs} pairs, {run.state}.",
            mime_type=_MARKDOWN,
        )
        for run in page.runs
    ]
    return fixed + reports


def list_templates() -> list[ResourceTemplate]:
    return [
        ResourceTemplate(
            uri_template=_SCHEME + path,
            name=path,
            title=title,
            description=said,
            mime_type=mime_type,
        )
        for path, title, said, mime_type in _TEMPLATES
    ]


async def read_resource(service: Service, uri: str) -> TextResourceContents:
    for pattern, mime_type, read in _READERS:
        found = pattern.fullmatch(uri) if len(uri) <= _LONGEST_URI else None
        if found is not None:
            text = await read(service, *(unquote(part) for part in found.groups()))
            return TextResourceContents(uri=uri, mime_type=mime_type, text=visible(text))
    known = ", ".join(_SCHEME + path for path, *_ in (*_STATIC, *_TEMPLATES))
    raise NotFound(f"there is no such resource; the resources are {known}")


async def complete_argument(service: Service, argument: str, begun: str) -> list[str]:
    if argument == "judge":
        return [name for name in service.offers.names if name.startswith(begun)]
    if argument == "id":
        page = await service.runs(limit=_RUNS_READ)
        return [run.id for run in page.runs if run.id.startswith(begun)]
    return []


async def _judging_prompt(service: Service, judge: str | None = None) -> str:
    return await service.judging_prompt(judge=judge)


async def _judges(service: Service) -> str:
    return _as_json([each.model_dump(mode="json") for each in service.offers.offered()])


async def _runs(service: Service) -> str:
    return (await service.runs(limit=_RUNS_READ)).model_dump_json(indent=2)


async def _run(service: Service, run: str) -> str:
    return (await service.run(run)).model_dump_json(indent=2)


async def _report(service: Service, run: str) -> str:
    return report_page(await service.report(run))


async def _report_json(service: Service, run: str) -> str:
    return (await service.report(run)).model_dump_json(indent=2)


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


_Read = Callable[..., Awaitable[str]]
_READERS: tuple[tuple[re.Pattern[str], str, _Read], ...] = tuple(
    (re.compile(re.escape(_SCHEME) + path), mime_type, read)
    for path, mime_type, read in (
        ("judging-prompt", _PLAIN, _judging_prompt),
        ("judging-prompt/([^/]+)", _PLAIN, _judging_prompt),
        ("judges", _JSON, _judges),
        ("runs", _JSON, _runs),
        ("runs/([^/]+)", _JSON, _run),
        ("runs/([^/]+)/report", _MARKDOWN, _report),
        (r"runs/([^/]+)/report\.json", _JSON, _report_json),
    )
)
