"""autoevals' `Battle` as its documentation shows it: an async client, and `eval_async`."""

from __future__ import annotations

from autoevals import Battle  # type: ignore[import-not-found] # in its own environment
from benchmarks.peer_measure import Ask, Row, measure
from openai import AsyncOpenAI


def make(url: str) -> Ask:
    battle = Battle(model="bench", client=AsyncOpenAI(api_key="none", base_url=url))

    async def ask(row: Row) -> bool:
        score = await battle.eval_async(
            instructions=row["prompt"], output=row["response_a"], expected=row["response_b"]
        )
        return bool(score.score == 1)

    return ask


if __name__ == "__main__":
    measure(make)
