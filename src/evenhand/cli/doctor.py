"""`evenhand doctor`: what is set up, what is not, and whether the judge answers."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.errors import EvenhandError

if TYPE_CHECKING:
    from evenhand.checkup import Check

_MARK = {
    "ok": ("✓", "green"),
    "missing": ("–", "dim"),
    "warning": ("!", "yellow"),
    "wrong": ("✗", "bold red"),
}
_LEAST_WIDTH = 18


def doctor(
    judge: opt.JudgeName = None,
    base_url: opt.BaseUrl = None,
    timeout: opt.TimeoutS = None,
    as_json: opt.AsJson = False,
) -> None:
    """Check the set-up and the judge, and say what is wrong.

    Exit codes: 0 nothing is wrong (what is merely not there is no fault, nor is a warning),
    2 the set-up is wrong, 3 the judge failed, 4 no valid verdict.
    """
    from evenhand.checkup import check_judges, check_set_up, settings_and_fault

    try:
        found, fault = settings_and_fault(os.environ)
        settings = opt.with_judge_options(found, judge=judge, timeout_s=timeout)
        checks = list(check_set_up(settings, os.environ, fault))
        checks += session.run_async(check_judges(settings, base_url=base_url))
    except EvenhandError as error:
        session.fail(error, as_json=as_json)
    code = max(check.exit_code for check in checks)
    if as_json:
        shown = [{k: v for k, v in asdict(c).items() if k != "exit_code"} for c in checks]
        session.write_json(json.dumps({"ok": code == 0, "checks": shown}, indent=2))
    else:
        _show(checks)
    raise typer.Exit(code)


def _show(checks: list[Check]) -> None:
    from rich.cells import cell_len
    from rich.text import Text

    from evenhand.cli.terminal import one_line

    console = session.out()
    names = [one_line(check.name) for check in checks]
    width = max(_LEAST_WIDTH, *(cell_len(name) for name in names))
    for name, check in zip(names, checks, strict=True):
        gap = " " * (width - cell_len(name) + 1)
        line = Text.assemble(_MARK[check.state], " ", name, gap, one_line(check.found))
        console.print(line, soft_wrap=True)
