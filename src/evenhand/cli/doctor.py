"""`evenhand doctor`: what is set up, what is not, and whether the judge answers."""

from __future__ import annotations

import json
import os
from dataclasses import asdict

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.errors import EvenhandError

_MARK = {"ok": ("✓", "green"), "missing": ("–", "dim"), "wrong": ("✗", "bold red")}


def doctor(
    judge: opt.JudgeName = None,
    base_url: opt.BaseUrl = None,
    timeout: opt.TimeoutS = None,
    as_json: opt.AsJson = False,
) -> None:
    """Check the set-up and the judge, and say what is wrong.

    Exit codes: 0 nothing is wrong (what is merely not there is no fault), 2 the set-up is wrong,
    3 the judge failed, 4 no valid verdict.
    """
    from rich.text import Text

    from evenhand.checkup import check_judge, check_set_up
    from evenhand.cli.terminal import one_line
    from evenhand.settings import load_settings

    try:
        settings = opt.with_judge_options(load_settings(), judge=judge, timeout_s=timeout)
        checks = list(check_set_up(settings, dict(os.environ)))
        checks.append(session.run_async(check_judge(settings, base_url=base_url)))
    except EvenhandError as error:
        session.fail(error, as_json=as_json)
    code = max(check.exit_code for check in checks)
    if as_json:
        shown = [{k: v for k, v in asdict(c).items() if k != "exit_code"} for c in checks]
        session.write_json(json.dumps({"ok": code == 0, "checks": shown}, indent=2))
    else:
        console = session.out()
        for check in checks:
            mark, style = _MARK[check.state]
            console.print(
                Text.assemble(
                    (f"{mark} ", style), f"{one_line(check.name):<18} ", one_line(check.found)
                ),
                soft_wrap=True,
            )
    raise typer.Exit(code)
