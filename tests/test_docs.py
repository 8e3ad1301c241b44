"""What a user can give or meet is documented; these fail when something is not."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import typer
from scripts.reference_tables import TABLES, written

import evenhand
from cases import each_case
from evenhand import errors
from evenhand.cli.main import app
from evenhand.contract import PROTOCOLS, Metadata, Pair, UnreadKind, Verdict, read_pair
from evenhand.judge_kinds import JUDGE_NAMES
from evenhand.judges.registry import JudgeOptions
from evenhand.prompts import Prompt
from evenhand.prompts.template import KNOWN
from evenhand.settings import Settings

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def commands(command: Any, path: str = "evenhand") -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, sub in getattr(command, "commands", {}).items():
        yield from commands(sub, f"{path} {name}")


TREE = dict(commands(typer.main.get_command(app)))
OPTIONS = sorted(
    {
        option
        for command in TREE.values()
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("-")
    }
)


@each_case("path", [path for path in TREE if path != "evenhand"])
def test_every_command_is_documented(path: str) -> None:
    assert path in text("docs/cli.md")


@each_case("option", OPTIONS)
def test_every_option_is_documented(option: str) -> None:
    # Those of the table are in the table; of the rest, cli.md has all.
    pages = text("docs/cli.md") + text("docs/settings.md")
    assert re.search(rf"`[^`\n]*(?<![\w-]){re.escape(option)}(?![\w-])", pages)


def test_no_option_is_documented_that_is_not_there() -> None:
    written = set(re.findall(r"`(--[a-z-]+)`", text("docs/cli.md")))
    assert written <= {*OPTIONS, "--help", "--version"}


def error_kinds(kind: type[errors.EvenhandError]) -> Iterator[type[errors.EvenhandError]]:
    yield kind
    for sub in kind.__subclasses__():
        yield from error_kinds(sub)


@each_case("error", list(error_kinds(errors.EvenhandError)), ids=lambda e: e.kind)
def test_every_error_is_documented_with_its_exit_code(error: type[errors.EvenhandError]) -> None:
    example = error("x", "y") if error is errors.MissingExtra else error("x")
    retryable = "yes" if error.retryable else "no"
    row = rf"^\| `{error.kind}` \| {errors.exit_code(example)} \| {retryable} \|"
    assert re.search(row, text("docs/errors.md"), re.MULTILINE)


def test_every_error_stands_in_the_trees_own_docstring() -> None:
    for error in error_kinds(errors.EvenhandError):
        assert error.__name__ in (errors.__doc__ or "")


@each_case("kind", get_args(UnreadKind))
def test_every_reason_for_an_unread_is_documented(kind: str) -> None:
    assert f"`{kind}`" in text("docs/errors.md")


@each_case("model", [Pair, Verdict, Metadata])
def test_every_field_is_documented(model: Any) -> None:
    for field in model.model_fields.values():
        assert f"`{field.alias}`" in text("docs/contract.md"), field.alias


@each_case("slot", KNOWN)
def test_every_slot_is_documented(slot: str) -> None:
    assert f"`{slot}`" in text("docs/prompts.md")


@each_case("protocol", [p for p in PROTOCOLS if p != "evenhand"])
def test_every_protocol_is_documented(protocol: str) -> None:
    assert f"`{protocol}`" in text("docs/reading.md")


@each_case("judge", JUDGE_NAMES)
def test_every_judge_is_documented(judge: str) -> None:
    assert f"`{judge}`" in text("docs/judges.md")


@each_case("name", evenhand.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    assert re.search(rf"`{re.escape(name)}[`(]", text("docs/python.md"))


@each_case("name", JudgeOptions.__dataclass_fields__)
def test_every_option_of_a_judge_is_documented(name: str) -> None:
    assert f"| `{name}` |" in text("docs/python.md") + text("docs/settings.md")


@each_case("page", TABLES)
def test_table_that_derives_from_the_code_is_as_the_code_says(page: str) -> None:
    assert text(f"docs/{page}") == written(page), "run: python -m scripts.reference_tables"


@each_case("option", [o for p in TREE["evenhand prompt"].params for o in p.opts])
def test_every_option_of_prompt_stands_in_its_own_section(option: str) -> None:
    section = text("docs/cli.md").partition("## evenhand prompt")[2].partition("\n## ")[0]
    assert not option.startswith("--") or f"`{option}`" in section or option == "--help-all"


def test_example_of_a_template_takes_everything_that_a_pair_may_have(tmp_path: Path) -> None:
    _fence, example = re.findall(r"```text\n(.*?)```", text("docs/prompts.md"), re.DOTALL)
    assert example.count("\n") == 10
    path = tmp_path / "mine.txt"
    path.write_text(example, encoding="utf-8")
    fields = {"prompt": "p?", "responseA": "one", "responseB": "two", "criteria": ["tone"]}
    more = {"context": "around", "reference": "known", "allowTie": False}
    for given in (fields, fields | more):
        pair = read_pair(given)
        prompt = Prompt.of(pair, evenhand.open_template(path))
        (message,) = prompt.messages("original")
        for held in (pair.prompt, "one", "two", "1. tone", pair.context, pair.reference):
            assert held is None or f">>>\n{held}\n<<<end {prompt.marker}>>>" in message.text
        assert not any(f"{{{slot}}}" in message.text for slot in KNOWN)
        assert "\n\n" not in message.text  # what is absent takes its line with it


def test_every_setting_and_variable_is_documented() -> None:
    described = text("docs/settings.md")
    for name in Settings.__dataclass_fields__:
        if name not in ("api_key", "cache_dir", "sources"):
            assert f"`{name}`" in described
    used = set()
    for path in (ROOT / "src").rglob("*.py"):
        used |= set(re.findall(r"\bEVENHAND_[A-Z_]+\b", path.read_text("utf-8")))
    assert {name for name in used if f"`{name}`" not in described} == set()


def test_links_between_documents_lead_somewhere() -> None:
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text("utf-8")):
            if not target.startswith("http"):
                assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_nothing_of_a_machine_stands_in_the_repository() -> None:
    """No absolute paths and no package registries: also not in the pinned requirements."""
    suspicious = re.compile(
        r"(?<![\w.])/(?:root|work|home/\w+)/|index-url|files\.pythonhosted|pypi\.org"
    )
    for path in (ROOT / "requirements").iterdir():
        assert not suspicious.search(path.read_text("utf-8")), path.name
    for path in (*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "Makefile"):
        assert not re.search(r"(?<![\w.])/(?:root|work)/|pypi\.org", path.read_text("utf-8")), path


def test_no_placeholder_is_left_in_a_document() -> None:
    for path in (ROOT / "README.md", *DOCS.rglob("*.md")):
        left = re.search(
            r"\b[A-Z]+_(?:TABLE|TOTAL|FIGURE)\b|being written|TODO", path.read_text("utf-8")
        )
        assert left is None, f"{path.name}: {left}"


def test_licence_is_declared_and_shipped() -> None:
    metadata = tomllib.loads(text("pyproject.toml"))
    assert metadata["project"]["license"] == "Apache-2.0"
    assert metadata["project"]["license-files"] == ["LICENSE"]
    assert "LICENSE" in metadata["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert text("LICENSE").split()[:4] == ["Apache", "License", "Version", "2.0,"]


def anchors(page: str) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"```.*?```", "", page, flags=re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings}


def test_links_lead_to_headings_that_are_there() -> None:
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")):
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", path.read_text("utf-8")):
            if not target.startswith("http"):
                page = (path.parent / target) if target else path
                assert anchor in anchors(page.read_text("utf-8")), f"{path.name}: {target}#{anchor}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        for target in re.findall(r"\]\(([^)#]+\.md)", path.read_text("utf-8")):
            page = (path.parent / target).resolve()
            if not target.startswith("http") and page not in reached:
                reached.add(page)
                waiting.append(page)
    unreached = {path for path in DOCS.glob("*.md") if path.resolve() not in reached}
    assert unreached == set()


def test_nothing_is_installed_from_an_index_that_does_not_have_it() -> None:
    """Before a release, only a clone can be installed."""
    root = Path(__file__).parent.parent
    pages = [root / "README.md", *(root / "docs").glob("*.md"), *(root / "examples").glob("*.py")]
    catalogues = (root / "src" / "evenhand" / "messages").glob("*.toml")
    for path in (*pages, *catalogues):
        assert not re.search(r"pip install '?evenhand\b", path.read_text("utf-8")), path.name


def test_pairs_of_the_sample_are_its_two_outputs() -> None:
    sample = ROOT / "examples" / "sample"

    def rows(name: str) -> dict[str, dict[str, str]]:
        read = map(json.loads, (sample / name).read_text("utf-8").splitlines())
        return {row["id"]: row for row in read}

    old, new = rows("old.jsonl"), rows("new.jsonl")
    for name in ("pairs.jsonl", "labelled.jsonl"):
        pairs = rows(name)
        assert pairs.keys() == old.keys()
        for key, row in pairs.items():
            assert row["response_a"] == old[key]["response"], key
            assert row["response_b"] == new[key]["response"], key
