"""Claude asks evenhand, over HTTP, which of two answers is better.

Needs `pip install . anthropic httpx`, ANTHROPIC_API_KEY, and a server at EVENHAND_URL
(`evenhand serve`). Without a server, `evenhand.tools.run_tool_sync(block.input, "openai:…")` is
the same call, judged in this process.
"""

import os
from typing import Any

import httpx
from anthropic import Anthropic
from anthropic.types import MessageParam, ToolResultBlockParam

from evenhand import tools

URL = os.environ.get("EVENHAND_URL", "http://127.0.0.1:8321")
TOKEN = os.environ.get("EVENHAND_TOKEN")
MODEL = os.environ.get("AGENT_MODEL", "claude-haiku-5-5")


def compare(arguments: object) -> tuple[str, bool]:
    """The result as JSON, failures included, and whether it is one."""
    headers = {"Authorization": f"Bearer {TOKEN}"} if TOKEN else {}
    reply = httpx.post(f"{URL}/v1/compare", json=arguments, headers=headers, timeout=300)
    return reply.text, reply.is_error


client = Anthropic()
offered: list[Any] = [tools.anthropic_tool()]
question = "Which answers 'What is 7 times 8?' better by accuracy: A '54' or B '56'?"
messages: list[MessageParam] = [{"role": "user", "content": question}]
while True:
    reply = client.messages.create(
        model=MODEL,
        max_tokens=1024,
        system="Compare by the tool, never by yourself. "
        "An inconsistent outcome is undecided, not a tie.",
        tools=offered,
        messages=messages,
    )
    if reply.stop_reason != "tool_use":
        break
    results: list[ToolResultBlockParam] = []
    for block in reply.content:
        if block.type == "tool_use":
            told, failed = compare(block.input)
            results.append(
                {
                    "type": "tool_result",
                    "tool_use_id": block.id,
                    "content": told,
                    "is_error": failed,
                }
            )
    messages += [
        {"role": "assistant", "content": reply.content},
        {"role": "user", "content": results},
    ]
print("".join(block.text for block in reply.content if block.type == "text"))
