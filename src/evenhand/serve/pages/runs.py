"""`/`: every run in the store, newest first. `/new`: files are looked at, and start a run."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from evenhand import formats
from evenhand.analyses.rank import RunRanking, sum_up_ranking
from evenhand.analyses.registry import REPORT
from evenhand.analyses.report import Report
from evenhand.analysis_options import RankOptions, ReportOptions
from evenhand.contract.pair import at_field, field_of
from evenhand.errors import Conflict, DataError, InputError, StoreBusy, StoreError, TooLarge
from evenhand.messages import Message
from evenhand.messages.numbers import points
from evenhand.present.html.figures import by_others, claim_of, several_models
from evenhand.present.html.rendering import Wording
from evenhand.report.conclusions import Conclusion
from evenhand.serve.figures import CachedFigure
from evenhand.serve.http.problems import Problem, problem_of
from evenhand.serve.http.requests import media_type_of
from evenhand.serve.http.uploads import FORM, spool_form
from evenhand.serve.pages.charts import ranking_of
from evenhand.serve.pages.page import Fields, Filled, Page, Visit, require_csrf, require_same_origin
from evenhand.serve.reports import analysed
from evenhand.serve.runs import UploadPreview
from evenhand.serve.service import Service
from evenhand.serve.uploads import Upload
from evenhand.serve.values import RunStatus, StartRun, read_value

_ROWS = 50
_KEPT_GLANCES = 500
_SIDE_FIELDS = ("modelA", "modelB", "systemA", "systemB", "templateA", "templateB")
_FIELDS = frozenset(
    {
        "csrf",
        "kind",
        "criteria",
        "name",
        "judges",
        "badRows",
        "keepGoingUnread",
        "maxCost",
        "prepare",
        "act",
        *_SIDE_FIELDS,
    }
)
# What a run is made from: each has a form of its own.
_KINDS = ("pairs", "outputs", "models")
_ANY_CRITERION = read_value(StartRun, {"criteria": ["accuracy"]}).criteria
_BETWEEN_CRITERIA = re.compile(r"[\n,，;；、]+")


@dataclass(frozen=True, slots=True)
class Glance:
    """Of two models, what is `shown` of the first judge, as every figure of the row then is; of
    `judges` on the same two, `otherwise` claim something else. `models` have names; of three or
    more `leads` says who does. `orders`: how many pairs they agree on, and of how many. `settled`:
    it stays as it is."""

    shown: Conclusion | None = None
    comparisons: int = 0
    judges: int = 1
    otherwise: int = 0
    models: int = 0
    leads: tuple[Message, ...] = ()
    orders: tuple[int, int] = (0, 0)
    follows_position: bool = False
    settled: bool = True

    @property
    def claims(self) -> bool:
        """One of the two is said to be better."""
        return self.shown is not None and claim_of(self.shown) is not None

    @property
    def agreement(self) -> str:
        """Of the judges, in a word of `runs`."""
        if self.otherwise:
            return "otherwise"
        return "agree" if self.claims else "none_better"

    @classmethod
    def of(
        cls, kept: CachedFigure[Report], ranked: CachedFigure[RunRanking] | None = None
    ) -> Glance:
        settled = not kept.waiting and (ranked is None or not ranked.waiting)
        if kept.value is None:
            return cls(settled=settled)
        concluded = kept.value.conclusions
        found = concluded.conclusions
        models = len({name for each in found for name in (each.model, each.against)} - {None})
        told = found if models > 2 else found[:1]
        agreed = [each.position.consistency for each in told]
        others, otherwise = by_others(found[0], concluded) if found else ([], [])
        return cls(
            # Its parts would be most of it, and are not shown here.
            shown=found[0].model_copy(update={"by_criterion": (), "by_tag": ()}) if found else None,
            comparisons=len(found),
            judges=len(others) + 1,
            otherwise=len(otherwise),
            models=models,
            leads=sum_up_ranking(ranked.value) if ranked and ranked.value else (),
            orders=(sum(each.part for each in agreed), sum(each.of for each in agreed)),
            follows_position=_follow_position(told),
            settled=settled,
        )


def _follow_position(told: Sequence[Conclusion]) -> bool:
    """Of one conclusion as it says itself; of several together, by the rule of a ranking."""
    if len(told) == 1:
        return told[0].win_rate.doubts[:1] == ("position",)
    agreed = [each.position.consistency for each in told]
    counts = [each.win_rate.counts for each in told]
    decided = sum(each.wins_a + each.wins_b + each.inconsistent for each in counts)
    return 2 * sum(each.of - each.part for each in agreed) >= decided > 0


@dataclass(frozen=True, slots=True)
class RunListItem:
    """`result` is None while a run goes on: its interval would be of a moment long past."""

    status: RunStatus
    result: Glance | None
    problem: str | None = None

    @property
    def live(self) -> bool:
        return not self.status.at_rest or (self.result is not None and not self.result.settled)


# Of each service, what its runs at rest came to: a list of fifty would ask the store for each.
_seen: WeakKeyDictionary[Service, dict[tuple[str, datetime, str], Glance]] = WeakKeyDictionary()


async def list_runs(visit: Visit) -> Filled | Response:
    return Filled("runs.html", await _listed(visit))


async def list_progress(visit: Visit) -> Filled | Response:
    """The same rows alone, for the page that is open."""
    return Filled("_runs_live.html", await _listed(visit))


async def _listed(visit: Visit) -> dict[str, Any]:
    after = visit.request.query_params.get("after") or None
    page = await visit.service.runs(after=after, limit=_ROWS)
    labels = await asyncio.to_thread(_labels_stamp, visit.service)
    lines = await asyncio.gather(*(_line(visit.service, status, labels) for status in page.runs))
    live = any(line.live for line in lines)
    say = Wording(visit.language)
    return {
        "lines": lines,
        "next": page.next,
        "after": after,
        "live": live,
        "glance": lambda conclusion: _in_short(conclusion, say),
    }


_AGAINST = ("position_alarm", "labels_open")  # what a claim must not be read without


def _in_short(conclusion: Conclusion, say: Wording) -> Markup:
    """What its sentence claims, in a line: by the claim alone, or why there is none."""
    claim = conclusion.messages[0].code if conclusion.messages else ""
    rate, benchmark = conclusion.claimed, conclusion.accuracy
    values = {"model": conclusion.names[0], "against": conclusion.names[1]}
    if benchmark is not None and claim == "benchmark.right":
        share = benchmark.accuracy
        ends = {"rate": share.value, "low": share.low, "high": share.high}
        figures = {name: points(end or 0) for name, end in ends.items()}
        return say("glance.accuracy", **figures)
    if claim.startswith("conclusion.") and None not in (rate.rate, rate.low, rate.high):
        ends = {"rate": rate.rate, "low": rate.low, "high": rate.high}
        values |= {name: points(end or 0) for name, end in ends.items()}
        code = claim.removeprefix("conclusion.").removesuffix("_here").removesuffix("_beyond")
        said = [say(f"glance.{code}", **values)]
        codes = " ".join(each.code for each in conclusion.messages)
        said += [say(f"glance.{each}") for each in _AGAINST if f"trust.{each}" in codes]
        return Markup(" · ").join(said)
    why = claim.removeprefix("no_conclusion.")
    return say(f"glance.{why}" if say.knows(f"glance.{why}") else "glance.nothing", **values)


def _labels_stamp(service: Service) -> str:
    """Labels and votes on any run speak of its judges in others too."""
    store = service.store
    return f"{store.figures.votes_stamp()} {store.runs.judges_stamp()}"


async def _line(service: Service, status: RunStatus, labels: str) -> RunListItem:
    if not status.at_rest or not status.done:
        return RunListItem(status, None)
    seen = _seen.setdefault(service, {})
    key = status.id, status.updated_at, labels
    glance = seen.get(key)
    if glance is None:
        try:
            kept = await service.figures.get(analysed(REPORT, (status.id,), ReportOptions()))
        except StoreBusy:
            raise
        except StoreError as error:  # a row that cannot be read hides no other run
            return RunListItem(status, None, error.message)
        if kept.value is None and kept.error is not None:
            return RunListItem(status, None, kept.error.message)
        ranked = None
        if several_models(kept.value and kept.value.conclusions):
            ranked = await service.figures.get(ranking_of([status.id], RankOptions()))
        glance = Glance.of(kept, ranked)
        if glance.settled:
            while len(seen) >= _KEPT_GLANCES:
                del seen[next(iter(seen))]
            seen[key] = glance
    return RunListItem(status, glance)


async def show_new(visit: Visit) -> Filled | Response:
    return await _new_page(visit, Fields({"kind": visit.request.query_params.getlist("kind")[:1]}))


async def start_run(visit: Visit) -> Filled | Response:
    """Or look at what would be started. What was filled in stays, whatever is wrong with it; only
    files have to be chosen again, which no page may do."""
    request, service = visit.request, visit.service
    require_same_origin(request)
    if media_type_of(request)[0] != FORM:
        raise InputError(Message("serve.upload_without_file", form=FORM))
    await service.refuse_when_full()
    upload, sent = await spool_form(
        request, limit_bytes=service.config.limits.upload_bytes, fields=_FIELDS
    )
    with upload:
        fields = Fields(sent)
        require_csrf(request, fields)
        try:
            options = _options(fields)
            if fields.get("act") == "preview":
                if not options.criteria:  # they may come after the file; one costs what one costs
                    options = options.model_copy(update={"criteria": _ANY_CRITERION})
                looked_at = await service.preview_upload(upload, options)
                return await _new_page(visit, fields, preview=looked_at)
            status = await service.start_run(upload, options, token=visit.token)
        except (InputError, DataError, Conflict, TooLarge) as error:
            return await _new_page(visit, fields, problem=problem_of(error), upload=upload)
    return RedirectResponse(f"/runs/{status.id}", status_code=303)


async def _new_page(
    visit: Visit,
    fields: Fields,
    *,
    preview: UploadPreview | None = None,
    problem: Problem | None = None,
    upload: Upload | None = None,
) -> Filled:
    kind = fields.get("kind")
    given = {
        name: " ".join(fields.all(name)) for name in _FIELDS - {"csrf", "kind", "act", "judges"}
    }
    offers = await asyncio.to_thread(visit.service.judges.offered_or_named)
    values = {
        "kinds": _KINDS,
        "kind": kind if kind in _KINDS else _KINDS[0],
        "offers": offers,
        "models": visit.service.judges.answering(),
        "given": given,
        "judges": fields.all("judges"),
        "preview": preview,
        "problem": problem,
        "formats": ("、" if visit.language == "zh" else ", ").join(formats.labels()),
        "endings": ",".join((*formats.endings(), ".gz")),
        "files": [] if upload is None else [each.name for each in upload.files],
    }
    return Filled("new.html", values, status=200 if problem is None else problem.status)


def _options(fields: Fields) -> StartRun:
    criteria = [name.strip() for name in _BETWEEN_CRITERIA.split(fields.get("criteria") or "")]
    given: dict[str, Any] = {
        "name": fields.get("name"),
        "judges": fields.all("judges"),
        "criteria": [name for name in criteria if name],
        "badRows": fields.get("badRows"),
        "prepare": fields.get("prepare"),
        "keepGoingUnread": fields.get("keepGoingUnread") is not None,
        "maxCost": _amount(fields.get("maxCost")),
        **{name: fields.get(name) for name in _SIDE_FIELDS},
    }
    if fields.get("kind") == "models" and not (given["modelA"] and given["modelB"]):
        raise InputError(Message("serve.one_model", name="modelA"))
    try:
        return read_value(StartRun, {name: value for name, value in given.items() if value})
    except InputError as error:
        if field_of(error.message) == "maxCost":
            error.message = at_field(error.message, Message("serve.highest_cost"))
        raise


def _amount(given: str | None) -> float | None:
    if given is None:
        return None
    try:
        return float(given.strip().removeprefix("$"))
    except ValueError:
        raise InputError(Message("serve.max_cost_malformed", given=given[:40])) from None


async def cancel_run(visit: Visit) -> Filled | Response:
    await visit.form()
    status = await visit.service.cancel(visit.run_id)
    return RedirectResponse(f"/runs/{status.id}", status_code=303)


async def resume_run(visit: Visit) -> Filled | Response:
    await visit.form()
    status = await visit.service.resume(visit.run_id)
    return RedirectResponse(f"/runs/{status.id}", status_code=303)


PAGES = (
    Page(path="/", name="runsPage", work=list_runs, place="runs"),
    Page(path="/new", name="newRunPage", work=show_new, place="runs"),
    Page(path="/progress", name="runsProgress", work=list_progress),
    Page(path="/runs", name="startRunPage", work=start_run, method="POST", place="runs"),
    Page(path="/runs/{id}/cancel", name="cancelRunPage", work=cancel_run, method="POST"),
    Page(path="/runs/{id}/resume", name="resumeRunPage", work=resume_run, method="POST"),
)
