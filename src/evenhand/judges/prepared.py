"""A judge whose texts another model prepares (`--prepare-with`). Separate from the registry, which
every command loads without prices.
"""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256

from evenhand.judges.prices import cost_usd
from evenhand.judges.protocol import (
    ClosedOnExit,
    Completion,
    Judge,
    JudgeCall,
    OpenJudge,
    identity_of,
)


class PreparedJudge(ClosedOnExit):
    """Calls that ask for an artefact go to the writer, all others to the judge."""

    def __init__(self, judge: OpenJudge, writer: OpenJudge) -> None:
        self._judge = judge
        self.artefact_writer: Judge = writer
        self._writer = writer
        self.name = judge.name
        self.traits = judge.traits
        # The settings as a digest: they may hold an address, and clients see these.
        settings = json.dumps(dict(identity_of(writer)), sort_keys=True, default=str)
        written_by = f"{writer.name}@{sha256(settings.encode()).hexdigest()[:12]}"
        self.identity = {**identity_of(judge), "prepare_with": written_by}
        self.base_urls = (*_addresses_of(judge), *_addresses_of(writer))

    def __getattr__(self, name: str) -> object:  # its account and news
        return getattr(self._judge, name)

    async def ask(self, call: JudgeCall) -> Completion:
        if call.artefact is None:
            return await self._judge.ask(call)
        completion = await self._writer.ask(call)
        # At the writer's own price, if listed.
        cost = cost_usd(completion.usage, model=completion.model, traits=self._writer.traits)
        usage = completion.usage.model_copy(update={"cost_usd": cost})
        return completion if cost is None else replace(completion, usage=usage)

    async def close(self) -> None:
        await self._judge.close()
        await self._writer.close()


def writer_of(judge: Judge) -> Judge:
    """The model that prepares texts for the judge, through any wrapper."""
    writer: Judge = getattr(judge, "artefact_writer", judge)
    return writer


def _addresses_of(judge: Judge) -> tuple[str, ...]:
    address = judge.traits.api_url
    return getattr(judge, "base_urls", ()) or (() if address is None else (address,))
