"""`/`: every run in the store, newest first; a dropped file starts a run."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

from starlette.responses import RedirectResponse, Response

from evenhand.contract.pair import at_field, field_of
from evenhand.errors import InputError, StoreBusy, StoreError
from evenhand.messages import Message
from evenhand.report.conclusions import Conclusion, Conclusions
from evenhand.serve.http.requests import media_type_of
from evenhand.serve.http.uploads import FORM, spool_form
from evenhand.serve.pages.page import Fields, Filled, Page, Visit, require_csrf, require_same_origin
from evenhand.serve.report_cache import CachedFigure
from evenhand.serve.reports import conclusions
from evenhand.serve.service import Service
from evenhand.serve.values import RunStatus, StartRun, read_value

_ROWS = 50
_RATES_SHOWN = 2
_KEPT_GLANCES = 500
_FIELDS = frozenset({"csrf", "criteria", "name", "judges", "badRows", "keepGoingUnread", "maxCost"})
_BETWEEN_CRITERIA = re.compile(r"[\n,，;；、]+")


@dataclass(frozen=True, slots=True)
class Glance:
    """The first win rates of a run; `more` are not shown. `settled`: it stays as it is."""

    rates: tuple[Conclusion, ...]
    more: int
    several_judges: bool
    settled: bool

    @classmethod
    def of(cls, kept: CachedFigure[Conclusions]) -> Glance:
        settled = not kept.waiting
        if kept.value is None:
            return cls((), 0, several_judges=False, settled=settled)
        shown = kept.value.conclusions[:_RATES_SHOWN]
        # Their parts would be most of them, and are not shown here.
        rates = tuple(each.model_copy(update={"by_criterion": (), "by_tag": ()}) for each in shown)
        several = len(kept.value.judges) > 1
        return cls(
            rates, len(kept.value.conclusions) - len(rates), several_judges=several, settled=settled
        )


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
_seen: WeakKeyDictionary[Service, dict[tuple[str, datetime], Glance]] = WeakKeyDictionary()


async def list_runs(visit: Visit) -> Filled | Response:
    shown = await _listed(visit)
    offers = await asyncio.to_thread(visit.service.judges.offered_or_named)
    return Filled("runs.html", {**shown, "offers": offers})


async def list_progress(visit: Visit) -> Filled | Response:
    """The same rows alone, for the page that is open."""
    return Filled("_runs_live.html", await _listed(visit))


async def _listed(visit: Visit) -> dict[str, Any]:
    after = visit.request.query_params.get("after") or None
    page = await visit.service.runs(after=after, limit=_ROWS)
    lines = await asyncio.gather(*(_line(visit.service, status) for status in page.runs))
    live = any(line.live for line in lines)
    return {"lines": lines, "next": page.next, "after": after, "live": live}


async def _line(service: Service, status: RunStatus) -> RunListItem:
    if not status.at_rest or not status.done:
        return RunListItem(status, None)
    seen = _seen.setdefault(service, {})
    key = status.id, status.updated_at
    glance = seen.get(key)
    if glance is None:
        try:
            kept = await service.report_cache.get(conclusions(status.id))
        except StoreBusy:
            raise
        except StoreError as error:  # a row that cannot be read hides no other run
            return RunListItem(status, None, error.message)
        if kept.value is None and kept.error is not None:
            return RunListItem(status, None, kept.error.message)
        glance = Glance.of(kept)
        if glance.settled:
            while len(seen) >= _KEPT_GLANCES:
                del seen[next(iter(seen))]
            seen[key] = glance
    return RunListItem(status, glance)


async def start_run(visit: Visit) -> Filled | Response:
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
        status = await service.start_run(upload, _options(fields), token=visit.token)
    return RedirectResponse(f"/runs/{status.id}", status_code=303)


def _options(fields: Fields) -> StartRun:
    criteria = [name.strip() for name in _BETWEEN_CRITERIA.split(fields.get("criteria") or "")]
    given: dict[str, Any] = {
        "name": fields.get("name"),
        "judges": fields.all("judges"),
        "criteria": [name for name in criteria if name],
        "badRows": fields.get("badRows"),
        "keepGoingUnread": fields.get("keepGoingUnread") is not None,
        "maxCost": _amount(fields.get("maxCost")),
    }
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
    Page(path="/progress", name="runsProgress", work=list_progress),
    Page(path="/runs", name="startRunPage", work=start_run, method="POST", place="runs"),
    Page(path="/runs/{id}/cancel", name="cancelRunPage", work=cancel_run, method="POST"),
    Page(path="/runs/{id}/resume", name="resumeRunPage", work=resume_run, method="POST"),
)
