"""`evenhand serve`: the HTTP and MCP server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.options import ServerChoices, grouped
from evenhand.messages import Message

if TYPE_CHECKING:
    from evenhand.serve.config import JudgeOffer, ServerConfig

OfferedJudges = Annotated[
    list[str] | None,
    typer.Option(
        "--judge",
        "-j",
        help="A judge that clients may use; the first is the default. Repeatable; replaces "
        "those of --config. Default: EVENHAND_JUDGE.",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="A TOML file with judges, limits and these options; see docs/operating.md.",
    ),
]
Host = Annotated[
    str | None,
    typer.Option(
        "--host",
        help="The address to listen on; all but loopback need EVENHAND_TOKEN. Default: 127.0.0.1.",
    ),
]
Port = Annotated[
    int | None,
    typer.Option("--port", min=0, max=65535, help="The port; 0 for any free one. Default: 8321."),
]
WorkerCount = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, max=64, help="Server processes sharing one store. Default: 1."
    ),
]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        help="Another host name to accept, e.g. behind a proxy. Repeatable.",
    ),
]
AllowedOrigins = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-origin",
        help="An origin whose pages may call the server, e.g. https://app.example.org. Repeatable.",
    ),
]
LogTexts = Annotated[bool, typer.Option("--log-texts", help="Log request and response contents.")]
LogJson = Annotated[bool, typer.Option("--log-json", help="Log as JSON Lines.")]


@grouped
def serve(
    *,
    judge: OfferedJudges = None,
    server: ServerChoices,
    config: ConfigFile = None,
    host: Host = None,
    port: Port = None,
    store: opt.StoreAddress = None,
    workers: WorkerCount = None,
    allow_host: AllowedHosts = None,
    allow_origin: AllowedOrigins = None,
    log_texts: LogTexts = False,
    log_json: LogJson = False,
) -> None:
    """Serve the HTTP API at /v1, MCP at /mcp and web pages.

    Runs until Ctrl-C or SIGTERM; a second one stops it immediately.

    Clients choose among the judges offered here and cannot set addresses, files or templates.
    Tokens come from EVENHAND_TOKEN. Exit codes: 0 stopped, 2 bad input, or the port or store
    cannot be used, 130 stopped immediately.
    """
    from evenhand.serve.config import read_config
    from evenhand.serve.startup import refuse_without

    refuse_without("fastapi", "uvicorn", "mcp")
    chosen: dict[str, Any] = {
        "judges": chosen_offers(judge, server.base_url, config),
        "host": host,
        "port": port,
        "store": store,
        "workers": workers,
        "allowed_hosts": tuple(allow_host) if allow_host else None,
        "allowed_origins": tuple(allow_origin) if allow_origin else None,
        "log_texts": log_texts or None,
        "log_json": log_json or None,
    }
    given = {name: value for name, value in chosen.items() if value is not None}
    code = _run(read_config(config, chosen=given))
    raise typer.Exit(code)


def chosen_offers(
    named: list[str] | None, base_url: list[str] | None, config: Path | None
) -> tuple[JudgeOffer, ...] | None:
    """None: the config file's. Without one, the settings' judge, where there is one."""
    from evenhand.errors import InputError
    from evenhand.serve.config import offers_of
    from evenhand.settings import load_settings

    if named:
        return offers_of(named, base_url=base_url)
    if config is not None:
        if base_url:
            raise InputError(Message("command.base_url_of_judge"))
        return None
    settled = load_settings().judge
    return offers_of([settled], base_url=base_url) if settled else None


def _run(config: ServerConfig) -> int:
    from evenhand.serve.running import address_of, bind, check, serve

    caveats = session.run_async(check(config))
    with bind(config) as listener:
        address = address_of(config, listener)

        def on_ready() -> None:
            _show(config, address, caveats)

        if config.workers == 1:
            return serve(config, listener, on_ready=on_ready)
        from evenhand.serve.running import serve_by_several

        return serve_by_several(config, listener, on_ready=on_ready)


def _show(config: ServerConfig, address: str, caveats: Sequence[str]) -> None:
    """Only the address on standard output, for scripts that start servers."""
    from rich.text import Text

    from evenhand.present.terminal import one_line

    console = session.err()
    for caveat in caveats:
        session.print_line(console, Text.assemble(("note  ", "yellow"), one_line(caveat)))
    if not config.judges:
        message = "no judge configured, so nothing can be compared; give --judge or --config"
        session.print_line(console, Text.assemble(("note  ", "yellow"), message))
    names = ", ".join(one_line(offer.name) for offer in config.judges) or "none"
    count = len(config.tokens)
    tokens = f"{count} token{'s' * (count > 1)}" if count else "no token needed"
    line = f"judges: {names}; {tokens}; MCP at {address}/mcp; press Ctrl-C to stop"
    session.print_line(console, Text(line))
    session.write_text(address)
