"""What may not be loaded before it is needed, seen from a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    *("aiohttp", "pydantic_ai", "openai", "anthropic", "google.genai", "xllamacpp"),
    *("numpy", "fastapi", "langchain_core", "rich", "typer", "genai_prices", "jinja2", "pydantic"),
)


def loaded_after(code: str, directory: Path) -> set[str]:
    program = (
        "import contextlib, io, json, sys\n"
        "written = io.StringIO()\n"
        "with contextlib.redirect_stdout(written), contextlib.suppress(SystemExit):\n"
        + "".join(f"    {line}\n" for line in code.splitlines())
        + f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_evenhand_loads_nothing_heavy(tmp_path: Path) -> None:
    assert loaded_after("import evenhand", tmp_path) == set()


def test_importing_the_command_loads_only_typer(tmp_path: Path) -> None:
    assert loaded_after("import evenhand.cli.main", tmp_path) <= {"typer"}


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["--version"], {"typer"}),
        (["--help"], {"typer"}),
        # typer itself reads a command's options with pydantic
        (["compare", "--help"], {"typer", "pydantic"}),
        (["models"], {"typer", "pydantic"}),
    ],
)
def test_help_loads_only_what_typer_needs(
    tmp_path: Path, arguments: list[str], needed: set[str]
) -> None:
    code = f"import sys\nsys.argv = ['evenhand', *{arguments!r}]\nimport evenhand.__main__"
    assert loaded_after(code, tmp_path) <= needed


def test_comparing_with_a_yardstick_loads_no_provider(tmp_path: Path) -> None:
    code = (
        "import evenhand\n"
        "pair = dict(prompt='p', response_a='a', response_b='bb', criteria=['c'])\n"
        "evenhand.compare_sync(pair, 'baseline:longer')"
    )
    allowed = {"pydantic"}
    assert loaded_after(code, tmp_path) <= allowed


def test_defining_tools_loads_no_framework(tmp_path: Path) -> None:
    code = "import evenhand.tools as t\nt.openai_tool(); t.anthropic_tool()"
    assert loaded_after(code, tmp_path) <= {"pydantic"}


def test_every_public_name_can_be_had() -> None:
    import evenhand

    assert sorted(dir(evenhand)) == sorted(evenhand.__all__)
    for name in evenhand.__all__:
        assert getattr(evenhand, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        evenhand.nothing  # noqa: B018
