"""The MCP server of a Service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from evenhand import __version__
from evenhand.errors import EvenhandError, InputError, MissingExtra, NotFound
from evenhand.messages import render

try:
    from mcp.server.lowlevel import Server
except ImportError:
    raise MissingExtra("mcp", "serve") from None
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from evenhand.serve.mcp import prompts, resources
from evenhand.serve.mcp.schemas import INSTRUCTIONS
from evenhand.serve.mcp.tools import TOOLS, ToolCall, bug, failed, reporting
from evenhand.serve.security.limits import refuse_wide
from evenhand.serve.values import for_clients, presentable

if TYPE_CHECKING:
    from evenhand.serve.service import Service

Context = ServerRequestContext[Any, Any]
_Page = types.PaginatedRequestParams | None

# What is listed changes with the program alone, but for the resources, of which runs are some.
_HOUR_MS = 3_600_000
_HINTS: dict[Any, CacheHint] = {
    method: CacheHint(ttl_ms=_HOUR_MS, scope="public")
    for method in ("tools/list", "prompts/list", "resources/templates/list")
}


def make_server(service: Service) -> Server[Any]:
    """The low-level server with every tool, prompt and resource, for any transport."""
    to_operator = service.judges.shows_addresses

    def refusing(method: str) -> AbstractContextManager[None]:
        return _refusing(method, to_operator=to_operator)

    async def list_tools(_: Context, __: _Page) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool.definition for tool in TOOLS.values()])

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            known = ", ".join(TOOLS)
            raise MCPError(types.INVALID_PARAMS, f"no such tool; the tools are {known}")
        try:
            async with reporting(context.session.report_progress) as progress:
                call = ToolCall(service, params.arguments or {}, progress, token=_token(context))
                refuse_wide(call.arguments, service.config.limits, rows=tool.rows)
                answer = await tool.answer(call)
            return answer.result()
        except EvenhandError as error:
            return failed(error if to_operator else for_clients(error))
        except Exception as error:
            return failed(bug(error, where=params.name))

    async def list_prompts(_: Context, __: _Page) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=prompts.list_prompts())

    async def get_prompt(_: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        with refusing("prompts/get"):
            return prompts.get_prompt(params.name, params.arguments or {})

    async def list_resources(_: Context, __: _Page) -> types.ListResourcesResult:
        with refusing("resources/list"):
            listed = await resources.list_resources(service)
        return types.ListResourcesResult(resources=listed)

    async def list_templates(_: Context, __: _Page) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=resources.list_templates())

    async def read_resource(
        _: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        with refusing("resources/read"):
            read = await resources.read_resource(service, str(params.uri))
        return types.ReadResourceResult(contents=[read])

    async def complete(_: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        name, begun = params.argument.name, params.argument.value
        if isinstance(params.ref, types.PromptReference):
            completed = prompts.complete_argument(name, begun)
        else:
            with refusing("completion/complete"):
                completed = await resources.complete_argument(service, name, begun)
        return types.CompleteResult(completion=types.Completion(values=completed[:100]))

    server: Server[Any] = Server(
        "evenhand",
        version=__version__,
        title="evenhand",
        description="An even-handed LLM judge: pairwise comparison in both orders.",
        instructions=INSTRUCTIONS,
        cache_hints=_HINTS,
        get_tool_input_schema=lambda name: (
            TOOLS[name].definition.input_schema if name in TOOLS else None
        ),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_completion=complete,
    )
    # The SDK's spans would hold what clients send: names of tools that do not exist, messages.
    server.middleware.clear()
    return server


@contextmanager
def _refusing(method: str, *, to_operator: bool) -> Iterator[None]:
    """What is no tool has no result to fail in: its errors are the protocol's, told as ours."""
    try:
        yield
    except EvenhandError as raised:
        error = raised if to_operator else for_clients(raised)
        message = render(presentable(error.message), face="http")
        body = {"kind": error.kind, "message": message, "retryable": error.retryable}
        is_ours = not isinstance(error, InputError | NotFound)
        code = types.INTERNAL_ERROR if is_ours else types.INVALID_PARAMS
        raise MCPError(code, message, {"error": body}) from None
    except Exception as error:
        raise MCPError(types.INTERNAL_ERROR, bug(error, where=method).message) from None


def _token(context: Context) -> str | None:
    """The name of the token that came with an HTTP request, as the guard left it."""
    scope = getattr(context.request, "scope", None)
    token = scope.get("state", {}).get("token") if isinstance(scope, dict) else None
    return token if isinstance(token, str) else None
