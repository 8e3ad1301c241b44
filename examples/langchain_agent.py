"""A LangChain agent that asks evenhand, over HTTP, which of two answers is better.

Needs `pip install . langchain langchain-openai httpx`, OPENAI_API_KEY, and a server at
EVENHAND_URL (`evenhand serve`). Without a server, `evenhand.tools.langchain_tool("openai:…")` is
the same tool, judged in this process.
"""

import os
from typing import Any

import httpx
from langchain.agents import create_agent
from langchain_core.tools import StructuredTool

from evenhand import tools

URL = os.environ.get("EVENHAND_URL", "http://127.0.0.1:8321")
TOKEN = os.environ.get("EVENHAND_TOKEN")
MODEL = os.environ.get("AGENT_MODEL", "gpt-5-mini")


def pairwise_compare(**pair: Any) -> Any:
    headers = {"Authorization": f"Bearer {TOKEN}"} if TOKEN else {}
    # Failures are JSON too, with the reason in `error`: the model is told, nothing is made up.
    return httpx.post(f"{URL}/v1/compare", json=pair, headers=headers, timeout=300).json()


agent = create_agent(
    f"openai:{MODEL}",
    system_prompt="Compare by the tool, never by yourself. "
    "An inconsistent outcome is undecided, not a tie.",
    tools=[
        StructuredTool.from_function(
            pairwise_compare,
            name=tools.NAME,
            description=tools.DESCRIPTION,
            args_schema=tools.input_schema(),
            infer_schema=False,
        )
    ],
)
question = "Which answers 'What is 7 times 8?' better by accuracy: A '54' or B '56'?"
answer = agent.invoke({"messages": [{"role": "user", "content": question}]})
print(answer["messages"][-1].text)
