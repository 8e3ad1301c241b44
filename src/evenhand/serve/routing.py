"""The page routes, loaded by the first visit, and HEAD requests: what stands between the app and
its routes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.routing import BaseRoute, Match, NoMatchFound
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand.serve.security.access import is_page

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.datastructures import URLPath

    from evenhand.serve.pages.page import Page


class HeadRequests:
    """An event stream is told at once that its client is gone, so that it ends with its head."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        ended = False

        async def gone() -> Message:
            return {"type": "http.disconnect"}

        async def head_alone(message: Message) -> None:
            nonlocal ended
            if message["type"] == "http.response.start":
                await send(message)
            elif not ended and not message.get("more_body", False):
                ended = True
                await send({"type": "http.response.body", "body": b""})

        await self._app({**scope, "method": "GET"}, gone, head_alone)
        if not ended:
            await send({"type": "http.response.body", "body": b""})


# The pages' routes, loaded by the first visit: templates and statistics come along with them, and
# a server that only programs call needs neither.


class LazyPages(BaseRoute):
    """Stands for every page until they are there; then for none."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._loading = asyncio.Lock()
        self._loaded = False

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        stands_for = not self._loaded and scope["type"] == "http" and is_page(scope["path"])
        return (Match.FULL if stands_for else Match.NONE), {}

    def url_path_for(self, name: str, /, **path_params: Any) -> URLPath:
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Those who come at once wait for the same loading, and are then routed anew."""
        async with self._loading:
            if not self._loaded:
                for page in await asyncio.to_thread(_pages):
                    page.add_to(self._app)
                self._loaded = True
        await self._app.router(scope, receive, send)


def _pages() -> tuple[Page, ...]:
    from evenhand.serve.pages.routes import PAGES

    return PAGES
