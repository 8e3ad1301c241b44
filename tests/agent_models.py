"""A loopback agent model, in the wire formats of OpenAI (both APIs) and Anthropic.

It asks for the tool `pairwiseCompare` once, with the arguments that it is scripted with, and then
says what it was told: an example that prints its last words has been through the whole loop.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from servers import JudgeServer, Reply, SeenRequest, error_reply

TOOL = "pairwiseCompare"
PAIR = {
    "prompt": "What is 7 times 8?",
    "responseA": "54",
    "responseB": "56",
    "criteria": ["accuracy"],
}
_USAGE = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}


class AgentModel(JudgeServer):
    """`offered` are the tools of the first request, `told` is what the call came back with."""

    def __init__(self, arguments: Mapping[str, Any] = PAIR) -> None:
        super().__init__(self._answer)
        self._arguments = dict(arguments)
        self.offered: dict[str, Any] = {}
        self.told: Any = None

    def _answer(self, request: SeenRequest) -> Reply:
        speaks = {
            "/v1/chat/completions": self._chat,
            "/v1/responses": self._responses,
            "/v1/messages": self._messages,
        }.get(request.path)
        if speaks is None:
            return error_reply(404, f"nothing is at {request.path}")
        return Reply(speaks(request.json))

    def _chat(self, asked: Any) -> dict[str, Any]:
        self._offer((tool["function"] for tool in asked["tools"]), "parameters")
        results = [message for message in asked["messages"] if message["role"] == "tool"]
        said: dict[str, Any] = {"role": "assistant", "content": None}
        if results:
            said["content"] = self._last_words(results[-1]["content"])
        else:
            function = {"name": TOOL, "arguments": json.dumps(self._arguments)}
            said["tool_calls"] = [{"id": "call-1", "type": "function", "function": function}]
        reason = "stop" if results else "tool_calls"
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": asked["model"],
            "choices": [{"index": 0, "message": said, "finish_reason": reason}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18},
        }

    def _responses(self, asked: Any) -> dict[str, Any]:
        self._offer(asked["tools"], "parameters")
        results = [item for item in asked["input"] if item.get("type") == "function_call_output"]
        item: dict[str, Any]
        if results:
            text = {
                "type": "output_text",
                "text": self._last_words(results[-1]["output"]),
                "annotations": [],
            }
            item = {"type": "message", "id": "msg-1", "role": "assistant", "content": [text]}
        else:
            item = {"type": "function_call", "id": "fc-1", "call_id": "call-1", "name": TOOL}
            item["arguments"] = json.dumps(self._arguments)
        none: dict[str, int] = {"cached_tokens": 0, "reasoning_tokens": 0}
        return {
            "id": "resp-1",
            "object": "response",
            "created_at": 0,
            "model": asked["model"],
            "status": "completed",
            "output": [{**item, "status": "completed"}],
            "tools": [],
            "tool_choice": "auto",
            "parallel_tool_calls": True,
            "usage": {**_USAGE, "input_tokens_details": none, "output_tokens_details": none},
        }

    def _messages(self, asked: Any) -> dict[str, Any]:
        self._offer(asked["tools"], "input_schema")
        results = [
            block
            for message in asked["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
            if block["type"] == "tool_result"
        ]
        block: dict[str, Any]
        if results:
            block = {"type": "text", "text": self._last_words(results[-1]["content"])}
        else:
            block = {"type": "tool_use", "id": "toolu-1", "name": TOOL, "input": self._arguments}
        return {
            "id": "msg-1",
            "type": "message",
            "role": "assistant",
            "model": asked["model"],
            "content": [block],
            "stop_reason": "end_turn" if results else "tool_use",
            "stop_sequence": None,
            "usage": _USAGE,
        }

    def _offer(self, tools: Any, schema: str) -> None:
        if not self.offered:
            self.offered = {tool["name"]: tool[schema] for tool in tools}

    def _last_words(self, told: Any) -> str:
        """What the tool said, as the model's own words."""
        self.told = found = _found(told)
        if not isinstance(found, dict) or "success" not in found:
            return f"The tool said: {found}"
        if found["success"]:
            return f"The judge says {found['winner']} ({found['metadata']['outcome']})."
        return f"There is no verdict: {found['error']['message']}"


def _found(told: Any) -> Any:
    """The result inside whatever the framework wraps it in: a text, blocks, MCP's own result."""
    if isinstance(told, str):
        try:
            return _found(json.loads(told))
        except ValueError:
            return told
    if isinstance(told, list):
        for item in told:
            found = _found(item)
            if isinstance(found, dict):
                return found
        return told
    if isinstance(told, dict) and "success" not in told:
        for name in ("structuredContent", "structured_content", "text", "value", "content"):
            if name in told:
                return _found(told[name])
    return told
