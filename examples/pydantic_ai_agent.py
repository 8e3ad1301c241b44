"""A pydantic-ai agent that asks evenhand, over MCP, which of two answers is better.

Needs `pip install 'pydantic-ai-slim[mcp,openai]'`, the model's key (OPENAI_API_KEY), and a server
at EVENHAND_URL (`evenhand serve`).
"""

import os

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

URL = os.environ.get("EVENHAND_URL", "http://127.0.0.1:8321")
TOKEN = os.environ.get("EVENHAND_TOKEN")
MODEL = os.environ.get("AGENT_MODEL", "gpt-5-mini")

agent = Agent(
    f"openai:{MODEL}",
    instructions="Compare by the tool, never by yourself. "
    "An inconsistent outcome is undecided, not a tie.",
    toolsets=[
        MCPToolset(
            f"{URL}/mcp",
            headers={"Authorization": f"Bearer {TOKEN}"} if TOKEN else None,
            tool_error_behavior="failed",  # the model is told what went wrong, not made to retry
        )
    ],
)
question = "Which answers 'What is 7 times 8?' better by accuracy: A '54' or B '56'?"
print(agent.run_sync(question).output)
