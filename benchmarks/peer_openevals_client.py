"""openevals again, with an OpenAI client in place of the model's name: its lighter way."""

from __future__ import annotations

from benchmarks.peer_measure import Ask, Row, measure
from benchmarks.peer_openevals import PROMPT
from openai import AsyncOpenAI
from openevals.llm import create_async_llm_as_judge  # type: ignore[import-not-found] # in its own environment


def make(url: str) -> Ask:
    client = AsyncOpenAI(api_key="none", base_url=url)
    judge = create_async_llm_as_judge(prompt=PROMPT, judge=client, model="bench")

    async def ask(row: Row) -> bool:
        result = await judge(
            inputs=row["prompt"],
            outputs=row["response_a"],
            reference_outputs=row["response_b"],
        )
        return bool(result["score"])

    return ask


if __name__ == "__main__":
    measure(make)
