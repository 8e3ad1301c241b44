"""What may not be loaded before it is needed, seen from a fresh interpreter."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

HEAVY = (
    *("aiohttp", "pydantic_ai", "openai", "anthropic", "google.genai", "xllamacpp"),
    *(
        "numpy",
        "scipy",
        "fastapi",
        "langchain_core",
        "rich",
        "typer",
        "genai_prices",
        "jinja2",
        "pydantic",
    ),
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


# More pairs than an interval by the exact binomial needs, some of them won by each side.
_MANY = [
    {"prompt": f"p{number}", "response_a": "a" * (number % 7), "response_b": "b" * (number % 5)}
    for number in range(80)
]


def test_judging_and_reporting_load_no_scipy(tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text("\n".join(json.dumps(pair) for pair in _MANY))
    store = ["--store", str(tmp_path / "runs.sqlite")]
    for arguments in (
        ["run", "pairs.jsonl", "-c", "c", "-j", "baseline:longer", "--name", "many", "--yes"],
        ["report", "many"],
        ["gate", "many", "--min-win-rate", "0.4"],
    ):
        code = f"import sys\nsys.argv = ['evenhand', *{[*arguments, *store]!r}]\n"
        loaded = loaded_after(f"{code}import evenhand.__main__", tmp_path)
        assert "numpy" in loaded
        assert "scipy" not in loaded


def test_defining_tools_loads_no_framework(tmp_path: Path) -> None:
    code = "import evenhand.tools as t\nt.openai_tool(); t.anthropic_tool()"
    assert loaded_after(code, tmp_path) <= {"pydantic"}


def test_the_modules_of_tools_and_statistics_come_by_attribute(tmp_path: Path) -> None:
    code = "import evenhand\nevenhand.tools.openai_tool(); evenhand.stats"
    assert loaded_after(code, tmp_path) <= {"pydantic", "numpy"}


def test_every_public_name_can_be_had() -> None:
    import evenhand

    assert sorted(dir(evenhand)) == sorted(evenhand.__all__)
    for name in evenhand.__all__:
        assert getattr(evenhand, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        evenhand.nothing  # noqa: B018


ROOT = Path(__file__).parents[1]


def imported(source: str) -> Iterator[str]:
    """The top of every module that a file imports, in whichever way."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            named = node.args[0]
            if isinstance(named, ast.Constant) and isinstance(named.value, str):
                yield named.value.partition(".")[0]


def declared() -> dict[str, Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    wanted = [Requirement(each) for group in groups for each in group]
    return {re.sub(r"[-_.]+", "-", each.name).lower(): each for each in wanted}


@pytest.mark.agents  # a package that is not here cannot be looked up
def test_every_distribution_that_is_imported_is_declared() -> None:
    # pytest itself loads the plugin, so that it is there.
    own = {*sys.stdlib_module_names, "evenhand", "pytest"}
    places: dict[str, str] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for name in imported(path.read_text()):
            if name not in own:
                places.setdefault(name, str(path.relative_to(ROOT)))
    assert {"aiohttp", "pyarrow", "starlette"} <= places.keys()
    known, distributions = declared(), packages_distributions()
    missing = {
        name: place
        for name, place in places.items()
        if not {
            re.sub(r"[-_.]+", "-", each).lower() for each in distributions.get(name, [name])
        }.intersection(known)
    }
    assert missing == {}


def test_what_is_declared_admits_what_is_installed_and_locked() -> None:
    locked = dict(
        re.findall(r"(?m)^([\w.-]+)==([^ ;\\\s]+)", (ROOT / "requirements/test.txt").read_text())
    )
    assert len(locked) > 100
    for name, wanted in declared().items():
        if name in locked:
            assert wanted.specifier.contains(locked[name], prereleases=True), (wanted, locked[name])
            assert wanted.specifier.contains(version(name), prereleases=True), wanted
