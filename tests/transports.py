"""The fixture `transport`: a test runs once with each way of sending that `openai:` judges have.

Where the extra `speed` is not installed its half is skipped, and fails where CI is set.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

import pytest

from evenhand.judges import openai
from evenhand.judges.registry import TransportName
from evenhand.judges.transport import JudgeEndpoint, Transport, open_transport
from parts import missing


@pytest.fixture(params=["aiohttp", "httptools"])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> TransportName:
    """The one that a judge takes whose options name none, whatever is installed."""
    fallback: TransportName = request.param
    if fallback == "httptools" and importlib.util.find_spec("httptools") is None:
        missing("httptools is not installed; install the extra speed")

    def opened(
        endpoint: JudgeEndpoint, headers: Mapping[str, str], *, name: TransportName | None = None
    ) -> Transport:
        # What httptools does not do, the default leaves to aiohttp.
        taken = name or (None if endpoint.proxy else fallback)
        return open_transport(endpoint, headers, name=taken)

    monkeypatch.setattr(openai, "open_transport", opened)
    return fallback
