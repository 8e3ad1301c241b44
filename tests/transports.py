"""The fixture `transport`: a test runs once with each way of sending that `openai:` judges have.

Where the extra `speed` is not installed its half is skipped, and fails where CI is set.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping

import pytest

from evenhand.judges import openai
from evenhand.judges.endpoint import Endpoint
from evenhand.judges.transport import (
    OPENSSL_VARIABLES,
    Transport,
    TransportName,
    open_transport,
)


@pytest.fixture(params=["aiohttp", "reqwest"])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> TransportName:
    """The one that a judge takes whose options name none, whatever is installed."""
    fallback: TransportName = request.param
    if fallback == "reqwest" and importlib.util.find_spec("pyreqwest") is None:
        if os.environ.get("CI"):
            pytest.fail("pyreqwest is not installed; install the extra speed")
        pytest.skip("pyreqwest is not installed")

    for variable in OPENSSL_VARIABLES:  # a machine's own, which only aiohttp honours
        monkeypatch.delenv(variable, raising=False)

    def opened(
        endpoint: Endpoint, headers: Mapping[str, str], *, name: TransportName | None = None
    ) -> Transport:
        return open_transport(endpoint, headers, name=name or fallback)

    monkeypatch.setattr(openai, "open_transport", opened)
    return fallback
