"""`evenhand mcp`: the tools for an agent that starts this program and talks by its streams."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from evenhand.cli import options as opt
from evenhand.cli import run_options as ropt
from evenhand.cli import session
from evenhand.cli.serve import ConfigFile, OfferedJudges, chosen_offers
from evenhand.errors import EvenhandError

if TYPE_CHECKING:
    from evenhand.serve.config import ServerConfig


def mcp(
    judge: OfferedJudges = None,
    base_url: opt.BaseUrl = None,
    store: ropt.StoreAddress = None,
    config: ConfigFile = None,
) -> None:
    """Serve MCP on standard input and output, for an agent that starts this command.

    Nothing but the protocol is written to standard output; notes and the log go to standard
    error. It ends with its input, by SIGTERM or by Ctrl-C; background runs are saved and go on at
    the next start. Exit codes: 0 it was ended, 2 bad input or the store cannot be used.
    """
    from evenhand.serve.config_file import read_config
    from evenhand.serve.extras import refuse_without

    try:
        refuse_without("mcp")
        chosen: dict[str, Any] = {"judges": chosen_offers(judge, base_url, config), "store": store}
        given = {name: value for name, value in chosen.items() if value is not None}
        session.run_async(_serve(read_config(config, chosen=given)))
    except EvenhandError as error:
        session.fail(error, as_json=False, of_pair=False)


async def _serve(config: ServerConfig) -> None:
    from evenhand.serve.collecting import loading

    with loading():
        from evenhand.serve.logs import configure_logs
        from evenhand.serve.mcp.stdio import serve_stdio
        from evenhand.serve.service import Service

    configure_logs(config)
    if not config.judges:
        sys.stderr.write(
            "note  no judge is offered, so nothing can be compared; give --judge or --config\n"
        )
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write(
            "note  this command speaks MCP, for an agent that starts it; Ctrl-C ends it\n"
        )
    async with Service.opened(config, for_operator=True) as service:
        await serve_stdio(service)
