"""Our own style sheet, script and icon, from inside the package."""

from __future__ import annotations

from importlib.resources import files

from starlette.responses import Response

from evenhand.errors import NotFound
from evenhand.serve.pages.page import Filled, Page, Visit

_TYPES = {
    "evenhand.css": "text/css; charset=utf-8",
    "evenhand.js": "text/javascript; charset=utf-8",
    "evenhand.svg": "image/svg+xml",
    "try.js": "text/javascript; charset=utf-8",
}


async def static_file(visit: Visit) -> Filled | Response:
    name = visit.request.path_params["name"]
    kind = _TYPES.get(name)  # by this list alone: a name is never a path
    if kind is None:
        raise NotFound("there is no such file; the pages name those that there are")
    body = files("evenhand.pages").joinpath("static", name).read_bytes()
    return Response(body, media_type=kind, headers={"Cache-Control": "max-age=300"})


PAGES = (Page(path="/static/{name}", name="staticFile", work=static_file),)
