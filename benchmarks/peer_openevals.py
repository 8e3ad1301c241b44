"""openevals' `create_async_llm_as_judge`, its model named by a string as its documentation does."""

from __future__ import annotations

import os

from benchmarks.peer_measure import Ask, Row, measure
from openevals.llm import create_async_llm_as_judge  # type: ignore[import-not-found] # in its own environment

PROMPT = """You compare two answers to one question, by accuracy and by clarity.

<question>
{inputs}
</question>
<first_answer>
{outputs}
</first_answer>
<second_answer>
{reference_outputs}
</second_answer>

Is the first answer better than the second?"""


def make(url: str) -> Ask:
    os.environ["OPENAI_BASE_URL"] = url
    os.environ["OPENAI_API_KEY"] = "none"
    judge = create_async_llm_as_judge(prompt=PROMPT, model="openai:bench")

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
