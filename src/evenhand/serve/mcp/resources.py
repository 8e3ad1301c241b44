"""What agents can read: the judging prompt, the judges, runs with their reports; as Markdown or
JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from mcp_types import Resource, ResourceTemplate, TextResourceContents

from evenhand.analyses.registry import OURS
from evenhand.errors import NotFound, visible
from evenhand.messages import FOR_CLIENTS, Message, render
from evenhand.serve.prompt_texts import EXAMPLE, prompt_text

if TYPE_CHECKING:
    from evenhand.analyses.registry import AnalysisEntry
    from evenhand.ranker.responses import RankedResponses
    from evenhand.serve.reports import ToolAudit
    from evenhand.serve.service import Service
    from evenhand.serve.values import RunStatus


# Runs, reports and audits as Markdown, for agents that read and people that look over.
#
# Names in it come from data and may be hostile: they are put on one line, short, as code.

_NAME_AT_MOST = 80
_MARKS = re.compile(r"[\s`|]+")


def named(text: str) -> str:
    """A name from data, as code that cannot end early, nor turn what follows around."""
    plain = visible(_MARKS.sub(" ", text).strip())
    short = plain if len(plain) <= _NAME_AT_MOST else plain[: _NAME_AT_MOST - 1] + "…"
    return f"`{short or ' '}`"


def status_line(status: RunStatus) -> str:
    """One run in a line or two, and what to do next."""
    total = status.done + status.pending
    counts = (
        f"Run {status.id} ({named(status.name)}) is {status.state}: {status.done} of {total} "
        f"verdicts (A {status.wins_a}, B {status.wins_b}, ties {status.ties}, inconsistent "
        f"{status.inconsistent}, invalid {status.invalid})."
    )
    if status.error is not None:
        counts += f" Stopped by an error, {status.error.kind}: {_one_line(status.error.message)}."
    elif status.stopped_by is not None:
        counts += f" Stopped by: {status.stopped_by}."
    if not status.at_rest:
        if status.trouble is not None:
            counts += f" Now {_one_line(render(status.trouble, face='http'))}."
        if status.remaining_s is not None:
            counts += f" About {status.remaining_s:.0f} s to go."
        counts += f' It continues in the background; call runStatus with run "{status.id}".'
    elif status.state == "finished":
        counts += f' See runReport with run "{status.id}".'
    return counts


def ranking_lines(ranked: RankedResponses) -> str:
    """The order in words; responses are called by their numbers, never by their texts."""
    lines = []
    for place in ranked.ranking:
        ranks = (
            f"{place.rank_from}"
            if place.rank_from == place.rank_to
            else f"{place.rank_from} to {place.rank_to}"
        )
        lines.append(f"- rank {ranks}: responses[{place.index}]")
    lines += [f"- {_one_line(note)}" for note in ranked.notes]
    return "\n".join(lines)


def page_of(analysis: AnalysisEntry, result: Any) -> str:
    """What an analysis says, as Markdown."""
    from evenhand.present.blocks import markdown

    return markdown(analysis.implementation.blocks(result)) + "\n"


def audit_page(report: ToolAudit) -> str:
    """The findings in words; which judge, on how many pairs."""
    audit, findings = report.audit, report.findings
    lines = [f"# Judge {named(audit.judge)}: {findings.word}", ""]
    lines.append(f"- labelled pairs: {audit.n}; without a label: {audit.unlabelled}")
    lines += [f"- {_one_line(line)}" for line in findings.lines]
    lines += [
        f"- threshold {each.name}: {each.ruling}; {_one_line(each.line)}"
        for each in findings.checks
    ]
    if findings.ruling is not None:
        lines.append(f"- all thresholds together: {findings.ruling}")
    if audit.disagreements_in_all:
        lines.append(f"- disagreements with the labels: {audit.disagreements_in_all}")
    lines += [f"- {_one_line(note)}" for note in audit.notes]
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()))


_SCHEME = "evenhand://"
_JSON = "application/json"
_MARKDOWN = "text/markdown"
_PLAIN = "text/plain"
# Newest first; older ones are read by their id all the same.
_RUNS_LISTED = 20
_RUNS_READ = 50
_LONGEST_URI = 2000

_READ = tuple(each for each in OURS.values() if each.resource)
_STATIC = (
    (
        "judging-prompt",
        "The judging prompt",
        "What the default judge is sent in both passes, with placeholders for the texts.",
        _PLAIN,
    ),
    ("judges", "The judges", "The judges that this server offers, with their caveats.", _JSON),
    ("runs", "Runs", f"The newest {_RUNS_READ} runs and their progress.", _JSON),
)
_TEMPLATES = (
    (
        "judging-prompt/{judge}",
        "A judge's prompt",
        "What this judge is sent; use its offered name.",
        _PLAIN,
    ),
    ("runs/{id}", "A run", "A run's progress, as in runStatus.", _JSON),
    *(
        template
        for each in _READ
        for template in (
            (
                f"runs/{{id}}/{each.name}",
                f"A run's {each.name}",
                f"A run's {each.name} as Markdown.",
                _MARKDOWN,
            ),
            (
                f"runs/{{id}}/{each.name}.json",
                f"A run's {each.name} as JSON",
                f"The same as JSON, as in {each.tool}.",
                _JSON,
            ),
        )
    ),
)


async def list_resources(service: Service) -> list[Resource]:
    """Those that are always there, and the reports of the newest runs."""
    fixed = [
        Resource(
            uri=_SCHEME + path, name=path, title=title, description=description, mime_type=mime_type
        )
        for path, title, description, mime_type in _STATIC
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
            description=description,
            mime_type=mime_type,
        )
        for path, title, description, mime_type in _TEMPLATES
    ]


async def read_resource(service: Service, uri: str) -> TextResourceContents:
    for pattern, mime_type, read in _READERS:
        match = pattern.fullmatch(uri) if len(uri) <= _LONGEST_URI else None
        if match is not None:
            text = await read(service, *(unquote(part) for part in match.groups()))
            return TextResourceContents(uri=uri, mime_type=mime_type, text=visible(text))
    known = ", ".join(_SCHEME + path for path, *_ in (*_STATIC, *_TEMPLATES))
    raise NotFound(Message("serve.resource_unknown", known=known))


async def complete_argument(service: Service, argument: str, begun: str) -> list[str]:
    if argument == "judge":
        return [name for name in service.judges.names if name.startswith(begun)]
    if argument == "id":
        page = await service.runs(limit=_RUNS_READ)
        return [run.id for run in page.runs if run.id.startswith(begun)]
    return []


async def _judging_prompt(service: Service, judge: str | None = None) -> str:
    return prompt_text(EXAMPLE, service.judges.plan(judge))


async def _judges(service: Service) -> str:
    return _as_json(
        [each.model_dump(mode="json", context=FOR_CLIENTS) for each in service.judges.offered()]
    )


async def _runs(service: Service) -> str:
    return (await service.runs(limit=_RUNS_READ)).model_dump_json(indent=2, context=FOR_CLIENTS)


async def _run(service: Service, run: str) -> str:
    return (await service.run(run)).model_dump_json(indent=2, context=FOR_CLIENTS)


async def _analysis(service: Service, run: str, *, analysis: AnalysisEntry) -> str:
    return page_of(analysis, await service.analyse(analysis, (run,), analysis.options()))


async def _analysis_json(service: Service, run: str, *, analysis: AnalysisEntry) -> str:
    result = await service.analyse(analysis, (run,), analysis.options())
    text: str = result.model_dump_json(indent=2, context=FOR_CLIENTS)
    return text


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


_Read = Callable[..., Awaitable[str]]
_FORMS: tuple[tuple[str, str, _Read], ...] = (
    ("", _MARKDOWN, _analysis),
    (r"\.json", _JSON, _analysis_json),
)
_ANALYSES: tuple[tuple[str, str, _Read], ...] = tuple(
    (f"runs/([^/]+)/{each.name}{ending}", mime_type, partial(read, analysis=each))
    for each in _READ
    for ending, mime_type, read in _FORMS
)
_PLACES: tuple[tuple[str, str, _Read], ...] = (
    ("judging-prompt", _PLAIN, _judging_prompt),
    ("judging-prompt/([^/]+)", _PLAIN, _judging_prompt),
    ("judges", _JSON, _judges),
    ("runs", _JSON, _runs),
    ("runs/([^/]+)", _JSON, _run),
    *_ANALYSES,
)
_READERS = tuple(
    (re.compile(re.escape(_SCHEME) + path), mime_type, read) for path, mime_type, read in _PLACES
)
