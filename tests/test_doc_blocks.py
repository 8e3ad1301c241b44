"""Every code block in the documentation runs as pasted, on the sample that is shipped.

The judge is on this machine and answers as the sample's recorded judge does. A block whose output
has changed is written anew by `EVENHAND_WRITE_DOCS=1 pytest tests/test_doc_blocks.py`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pytest
import typer

from command_line import environment
from doc_blocks import Block, Shell, blocks_of, looks_like, steps_of
from evenhand.cli.main import app
from forked import write_command
from scripted import answer_json
from servers import JudgeServer, Reply, SeenRequest, chat_reply

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "examples" / "sample"
PAGES = ["README.md", "CONTRIBUTING.md"]
PAGES += sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md"))
KINDS = {"sh", "console", "python", "json", "toml", "text"}
# These begin where a clone is; the others in the sample, with a run of it in the store.
FROM_THE_ROOT = {"README.md", "docs/quickstart.md"}
RIGHT = re.compile(r"\b56\b|Canberra")


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SAMPLE / name).read_text("utf-8").splitlines()]


RECORDED = {(row["id"], row["pass"]): row["raw"] for row in rows("judge.jsonl")}
ANSWERS = {
    row["prompt"]: (row["id"], row["response"], new["response"])
    for row, new in zip(rows("old.jsonl"), rows("new.jsonl"), strict=True)
}


def sections(prompt: str) -> dict[str, str]:
    return dict(re.findall(r"<<<\w+ ([^>]+)>>>\n(.*?)\n<<<(?:end|结束)", prompt, re.DOTALL))


def sample_judge(request: SeenRequest) -> Reply:
    """As recorded for the sample; elsewhere the answer that is right, or that is one, wins. Asked
    for an answer itself, it gives the new one, or by a small model's name the old one."""
    if request.prompt in ANSWERS:
        _, old, new = ANSWERS[request.prompt]
        return chat_reply(old if request.json["model"].endswith("-mini") else new, usage=USAGE)
    shown = sections(request.prompt)
    if not any(name.endswith(" A") for name in shown):  # to be written before the judging
        return chat_reply("1. Is it right?", usage=USAGE)
    first, second = (
        next(text for name, text in shown.items() if name.endswith(f" {label}")) for label in "AB"
    )
    asked = next((text for text in shown.values() if text in ANSWERS), "")
    pair, old, new = ANSWERS.get(asked, ("", "", ""))
    for order, texts in {"original": (old, new), "swapped": (new, old)}.items():
        if pair and texts == (first, second):
            return chat_reply(RECORDED[pair, order], usage=USAGE)
    good = [bool(RIGHT.search(text)) or text in (old, new) for text in (first, second)]
    winner = "TIE" if good[0] == good[1] else "A" if good[0] else "B"
    names = re.findall(r"^\d+\. ([^:：\n]+)", "\n".join(shown.values()), re.MULTILINE)
    answer = answer_json(winner, confidence=0.9, criteria=[(name, winner) for name in names])
    return chat_reply(answer, usage=USAGE)


USAGE = {"prompt_tokens": 900, "completion_tokens": 250}


def surroundings(directory: Path, server: JudgeServer) -> dict[str, str]:
    (directory / "bin").mkdir(exist_ok=True)
    write_command(directory / "bin")
    path = os.pathsep.join(
        (str(directory / "bin"), str(Path(sys.executable).parent), os.environ["PATH"])
    )
    more = {
        "PATH": path,
        "COLUMNS": "100",
        "XDG_DATA_HOME": str(directory / "data"),
        "OPENAI_BASE_URL": server.url,
        "OPENAI_API_KEY": "sk-loopback",
        "EVENHAND_JUDGE": "openai:gpt-5-mini",
    }
    if "PYTHONPATH" in os.environ:
        more["PYTHONPATH"] = os.environ["PYTHONPATH"]
    return environment(directory, **more)


@pytest.fixture(scope="module")
def server() -> Iterator[JudgeServer]:
    with JudgeServer(sample_judge) as started:
        yield started


@pytest.fixture(scope="module")
def judged(server: JudgeServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample, with runs of it in the store: `sample`, and `league` with a third model."""
    directory = tmp_path_factory.mktemp("sample")
    shutil.copytree(SAMPLE, directory, dirs_exist_ok=True)
    shell = Shell(directory, surroundings(directory, server))
    run = "evenhand run -c correctness -c clarity --price 0.25/2.00"
    for command in (
        f"{run} --a old.jsonl --b new.jsonl --name sample",
        f"{run} --outputs old.jsonl --outputs new.jsonl --outputs tiny.jsonl --name league",
        "evenhand votes import sample votes.csv",
    ):
        code, printed = shell.run(command)
        assert code == 0, printed
    return directory


@pytest.fixture
def shell(
    request: pytest.FixtureRequest, judged: Path, server: JudgeServer, tmp_path: Path
) -> Iterator[Shell]:
    if request.node.callspec.params["page"] in FROM_THE_ROOT:
        shutil.copytree(SAMPLE, tmp_path / "examples" / "sample")
    else:
        shutil.copytree(judged, tmp_path, dirs_exist_ok=True)
    opened = Shell(tmp_path, surroundings(tmp_path, server))
    yield opened
    opened.close()


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_what_it_is(page: str) -> None:
    for block in blocks_of((ROOT / page).read_text("utf-8")):
        assert block.kind in KINDS, f"{page}:{block.line}: a block of kind {block.kind!r}"


@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs_as_pasted(page: str, shell: Shell) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks_of((ROOT / page).read_text("utf-8")):
        place = f"{page}:{block.line}"
        if block.kind == "json" and not block.excerpt:
            json.loads(block.text)
        elif block.kind == "toml" and not block.excerpt:
            tomllib.loads(block.text)
        elif block.kind == "python":
            code = compile(block.text, place, "exec")
            if not block.excerpt:
                with shell.entered():
                    exec(code, names)  # noqa: S102 - our own documentation
        elif block.kind in ("sh", "console"):
            for step in steps_of(block):
                if block.excerpt:
                    check_options(place, step.command)
                    continue
                status, printed = shell.run(step.command)
                if step.shown is None:
                    assert status == 0, f"{place}: {step.command}\n{printed}"
                elif not looks_like(step.shown, printed):
                    write_anew(page, block, step.shown, printed)
                    pytest.fail(f"{place}: {step.command}\nprinted\n{printed}")


def reworded(shown: str, printed: str) -> str:
    """What is shown with each line that changed as it is printed now; else all that is printed."""
    now = printed.splitlines()
    lines = [
        line
        if "…" in line or line in now
        else next(iter(get_close_matches(line, now, n=1, cutoff=0.5)), line)
        for line in shown.splitlines()
    ]
    kept = "".join(line.rstrip() + "\n" for line in lines)
    return kept if looks_like(kept, printed) else printed.rstrip("\n") + "\n"


def write_anew(page: str, block: Block, shown: str, printed: str) -> None:
    if os.environ.get("EVENHAND_WRITE_DOCS"):
        path = ROOT / page
        text = path.read_text("utf-8")
        mended = block.text.replace(shown, reworded(shown, printed), 1)
        path.write_text(text.replace(block.text, mended, 1), "utf-8")


TREE: Any = typer.main.get_command(app)


def check_options(place: str, command: str) -> None:
    """Each `evenhand …` of a line that is not run names a command and options that are there."""
    for part in re.split(r"\||&&|;", command):
        words = shlex.split(part, comments=True)
        while words and re.match(r"[A-Z_]+=", words[0]):
            words.pop(0)
        if not words or words[0] != "evenhand" or len(words) == 1:
            continue
        node, rest = TREE, words[1:]
        while rest and rest[0] in getattr(node, "commands", {}):
            node = node.commands[rest.pop(0)]
        known = {
            option for each in node.params for option in (*each.opts, *each.secondary_opts)
        } | {"--help", "--version"}
        for word in rest:
            if word.startswith("-") and word != "-":
                assert word.partition("=")[0] in known, f"{place}: {word}"


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_the_prose_names_are_there(page: str) -> None:
    prose = re.sub(
        r"^```.*?^```$", "", (ROOT / page).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    for code in re.findall(r"`((?:[A-Z_]+=\S+ )?evenhand [a-z][^`]*)`", prose):
        check_options(page, code.replace("…", ""))


def test_changed_output_is_reworded_line_by_line() -> None:
    shown = "kept in …\nwins 3, told\n…\n"
    assert reworded(shown, "kept in /x\nwins 3, shown\nmore\n") == "kept in …\nwins 3, shown\n…\n"
    assert reworded("a\n", "b\nc\n") == "b\nc\n"


def test_ellipsis_stands_for_anything_and_nothing_else_does() -> None:
    assert looks_like("a … c\n…\nd\n", "a b c\nx\ny\nd\n")
    assert not looks_like("a\n", "a\nb\n")
    assert not looks_like("a.c\n", "abc\n")
