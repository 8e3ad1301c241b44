"""`/runs/{id}/vote`: a person votes on pairs, blind; `/runs/{id}/votes`: their result."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote, unquote

from starlette.responses import RedirectResponse, Response

from evenhand.analyses.registry import VOTES
from evenhand.analyses.votes import sum_up_votes
from evenhand.analysis_options import VotesOptions
from evenhand.contract import Pair
from evenhand.errors import Conflict, InputError, NotFound
from evenhand.messages import Message
from evenhand.present.html.texts import show_responses, show_text
from evenhand.serve.pages.page import Fields, Filled, Page, Visit
from evenhand.serve.reports import analysed
from evenhand.serve.run_status import is_number
from evenhand.serve.voting import CHOICES, LONGEST_COMMENT, Choice, VoteQuestion
from evenhand.store.records import LONGEST_NAME

# Who votes where nobody has to log in: this machine's own users.
NAME_COOKIE = "evenhand_voter"
_YEAR_S = 365 * 24 * 3600


async def show_vote(visit: Visit) -> Filled | Response:
    who = _who(visit)
    asked = visit.request.query_params
    if who is None or ("rename" in asked and _may_rename(visit)):
        return Filled("vote_name.html", {"run_id": visit.run_id, "name": who or ""})
    number = _number(asked["pair"]) if "pair" in asked else None
    raw = asked.get("view") == "raw"
    question = await _asked(visit, who, number)
    if question is None:
        return Filled("vote_waiting.html", {"run_id": visit.run_id})
    shown = None
    if question.pair is not None:
        shown = await asyncio.to_thread(_shown, question.pair, rendered=not raw)
    values = {"question": question, "shown": shown, "who": who, "raw": raw}
    more = {"may_rename": _may_rename(visit), "votes_only": _votes_only(visit)}
    return Filled("vote.html", {**values, **more, "longest": LONGEST_COMMENT})


async def take_vote(visit: Visit) -> Filled | Response:
    fields = await visit.form()
    back = f"/runs/{quote(visit.run_id, safe='')}/vote"
    if fields.get("name") is not None:
        return _named(visit, fields.needed("name"), back)
    who = _who(visit)
    if who is None or fields.needed("who") != who:
        # Which response stands first depends on the person: another's page says nothing here.
        raise Conflict(Message("serve.page_of_another_voter"))
    number = _number(fields.needed("pair"))
    query = {"view": "raw"} if fields.get("view") == "raw" else {}
    voting = visit.service.voting
    try:
        if fields.get("act") == "undo":
            await voting.undo(visit.run_id, who, number=number)
            query["pair"] = str(number)
        else:
            comment = (fields.get("comment") or "").strip() or None
            choice = _choice(fields)
            await voting.vote(visit.run_id, who, number=number, choice=choice, comment=comment)
    except NotFound as error:
        raise _told_to(visit, error) from None
    address = "&".join(f"{name}={value}" for name, value in query.items())
    return RedirectResponse(f"{back}?{address}" if address else back, status_code=303)


async def show_votes(visit: Visit) -> Filled | Response:
    status = await visit.service.run(visit.run_id)
    kept = await visit.service.figures.get(analysed(VOTES, (status.id,), VotesOptions()))
    said = None if kept.value is None else sum_up_votes(kept.value)
    values = {"run": status, "kept": kept, "votes": kept.value, "said": said}
    return Filled("votes.html", values)


async def _asked(visit: Visit, who: str, number: int | None) -> VoteQuestion | None:
    try:
        return await visit.service.voting.ask(visit.run_id, who, number=number)
    except NotFound as error:
        raise _told_to(visit, error) from None


def _told_to(visit: Visit, error: NotFound) -> NotFound:
    """Voters are told no names of other runs, which may be those of models."""
    if not _votes_only(visit):
        return error
    return NotFound(Message("serve.nothing_to_vote"))


def _shown(pair: Pair, *, rendered: bool) -> dict[str, Any]:
    both = show_responses(pair.response_a, pair.response_b, rendered=rendered, compare=False)
    texts = {"prompt": pair.prompt, "context": pair.context, "reference": pair.reference}
    return {
        **{
            name: None if text is None else show_text(text, rendered=rendered)
            for name, text in texts.items()
        },
        "responses": (both.a, both.b),
        "criteria": pair.criteria,
        "ties": pair.allow_tie,
    }


def _who(visit: Visit) -> str | None:
    if visit.token is not None:
        return visit.token
    name = unquote(visit.request.cookies.get(NAME_COOKIE, ""), errors="replace").strip()
    return name if _is_name(name) else None


def _is_name(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and name.isprintable()


def _named(visit: Visit, name: str, back: str) -> Response:
    if not _may_rename(visit):
        raise Conflict(Message("serve.voter_is_token"))
    name = name.strip()
    if not _is_name(name):
        raise InputError(Message("serve.voter_name_unusable", longest_name=LONGEST_NAME))
    response = RedirectResponse(back, status_code=303)
    response.set_cookie(
        NAME_COOKIE, quote(name, safe=""), max_age=_YEAR_S, httponly=True, samesite="strict"
    )
    return response


def _may_rename(visit: Visit) -> bool:
    return visit.token is None


def _votes_only(visit: Visit) -> bool:
    return visit.session is not None and visit.session.token.votes_only


def _number(given: str) -> int:
    if not is_number(given):
        raise InputError(Message("serve.vote_pair_malformed", given=given[:40]))
    return int(given)


def _choice(fields: Fields) -> Choice:
    given = fields.needed("choice")
    for choice in CHOICES:
        if given == choice:
            return choice
    raise InputError(Message("serve.choice_unknown", given=given[:40], choices=", ".join(CHOICES)))


PAGES = (
    Page(path="/runs/{id}/vote", name="votePage", work=show_vote, place="runs"),
    Page(path="/runs/{id}/vote", name="takeVote", work=take_vote, method="POST", place="runs"),
    Page(path="/runs/{id}/votes", name="votesPage", work=show_votes, place="runs"),
)
