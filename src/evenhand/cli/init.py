"""`evenhand init`: a commented config file and a small sample, to begin with."""

from __future__ import annotations

import json
import re
import textwrap
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import session
from evenhand.errors import InputError
from evenhand.judge_kinds import takes_address
from evenhand.messages import Message
from evenhand.options import JudgingOptions, Row, RunningOptions
from evenhand.present.terminal import one_line
from evenhand.settings import LOCAL_FILE, check_local, load_settings

_JUDGE = "openai:gpt-5-mini"
_OLD, _NEW = "openai:gpt-5-mini", "openai:gpt-5"  # an example, as it can be pasted
_PAIRS, _PROMPTS = "pairs.jsonl", "prompts.jsonl"
_FILES = (LOCAL_FILE, _PAIRS, _PROMPTS)


def init(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="[FOLDER]", help="Where to write.", show_default="the current folder"
        ),
    ] = Path(),
    judge: Annotated[
        str, typer.Option("--judge", "-j", help="The judge to write to the config file.")
    ] = _JUDGE,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
) -> None:
    """Write a commented evenhand.toml and sample data.

    Existing files are not replaced unless --force is given.
    """
    from evenhand.report.files import atomic_file

    folder = folder.expanduser()
    there = [name for name in _FILES if (folder / name).exists()]
    if there and not force:
        raise InputError(Message("command.init_there", files=there, folder=str(folder)))
    texts = {LOCAL_FILE: _config(judge.strip())}
    texts |= {name: _starter(name) for name in (_PAIRS, _PROMPTS)}
    for name, text in texts.items():
        with atomic_file(folder / name, overwrite=force, make_folder=True) as stream:
            stream.write(text.encode())
    _show(folder, judge)


def _starter(name: str) -> str:
    return files("evenhand.cli").joinpath("starter", name).read_text("utf-8")


def _config(judge: str) -> str:
    from evenhand.judges.prices import list_price_by_model

    text = _starter(LOCAL_FILE)
    if list_price_by_model(judge.partition(":")[2]) is None:
        # A cap that cannot be kept is refused, and a server of one's own is on no price list.
        text = text.replace("max_cost = ", "# max_cost = ", 1)
    written = re.findall(r"^(?:# )?(\w+) = ", text, re.MULTILINE)
    rows = (
        row
        for row in (*JudgingOptions.rows(), *RunningOptions.rows())
        if row.option.files == "any" and row.name not in written
    )
    text = text.replace("{options}", "\n\n".join(map(_commented, rows)), 1)
    # A text in JSON, escaped throughout, is one in TOML.
    text = text.replace("{judge}", json.dumps(judge), 1)
    check_local(text)
    return text


def _commented(row: Row) -> str:
    about = textwrap.wrap(row.help, 98)
    return "\n".join(f"# {line}" for line in (*about, f"{row.name} = {json.dumps(row.example)}"))


def _show(folder: Path, judge: str) -> None:
    within = "" if folder == Path() else f"cd {one_line(str(folder))} && "
    session.write_text(f"{LOCAL_FILE}  the judge, criteria, caps and gate limits: edit it")
    session.write_text(f"{_PAIRS}    6 prompts with two responses each")
    session.write_text(f"{_PROMPTS}  the same prompts only")
    set_up = load_settings()
    if takes_address(judge) and not (set_up.api_key or set_up.base_url):
        session.write_text("\nOPENAI_API_KEY is not set; without it, try --judge baseline:longer,")
        session.write_text("a simple rule instead of a real judge")
    session.write_text(f"\nnext  {within}evenhand run {_PAIRS}")
    session.write_text(f"or    {within}evenhand ab {_PROMPTS} --a {_OLD} --b {_NEW}")
