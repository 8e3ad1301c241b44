"""An OpenAI Agents SDK agent that asks evenhand, over MCP, which of two answers is better.

Needs `pip install openai-agents mcp`, OPENAI_API_KEY, and a server at EVENHAND_URL
(`evenhand serve`).
"""

import asyncio
import os

from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp

URL = os.environ.get("EVENHAND_URL", "http://127.0.0.1:8321")
TOKEN = os.environ.get("EVENHAND_TOKEN")
MODEL = os.environ.get("AGENT_MODEL", "gpt-5-mini")


async def main() -> None:
    set_tracing_disabled(True)  # else the SDK sends every text to its makers' tracing service
    async with MCPServerStreamableHttp(
        params={
            "url": f"{URL}/mcp",
            "headers": {"Authorization": f"Bearer {TOKEN}"} if TOKEN else {},
        },
        client_session_timeout_seconds=300,  # a judge takes longer than the SDK's five seconds
    ) as evenhand:
        agent = Agent(
            name="editor",
            model=MODEL,
            instructions="Compare by the tool, never by yourself. "
            "An inconsistent outcome is undecided, not a tie.",
            mcp_servers=[evenhand],
        )
        question = "Which answers 'What is 7 times 8?' better by accuracy: A '54' or B '56'?"
        print((await Runner.run(agent, question)).final_output)


asyncio.run(main())
