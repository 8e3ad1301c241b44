"""What build servers use: the GitHub Action, whose steps run here as a runner runs them, with a
judge on the loopback; the recipes; the Dockerfile.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from command_line import environment
from forked import write_command
from run_data import adds_up, sums, write_lines
from servers import JudgeServer, Reply, SeenRequest, StartServer, chat_reply, error_reply

ROOT = Path(__file__).parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")
RUN = "run --a b.jsonl --b a.jsonl -c 'accuracy: is the \"sum\" right?'"


def test_inputs_reach_scripts_as_variables_only() -> None:
    """An input that stood in a script would be run as part of it."""
    for step in STEPS:
        if "run" in step:
            assert not EXPRESSION.search(step["run"])
            assert step["shell"] == "bash"
            for name, value in step["env"].items():
                assert f"${name}" in step["run"] or f"${{{name}" in step["run"], name
                assert EXPRESSION.fullmatch(value)


def test_every_expression_names_what_is_there() -> None:
    ids = {step["id"]: step["run"] for step in STEPS if "id" in step}
    named = EXPRESSION.findall((ROOT / "action.yml").read_text("utf-8"))
    assert len(named) > 10
    for name in named:
        kind, _, rest = name.partition(".")
        if kind == "inputs":
            assert rest in ACTION["inputs"]
        else:
            step, _, output = rest.partition(".outputs.")
            assert kind == "steps"
            assert re.search(rf"\b{output}=", ids[step]), name


def test_it_installs_the_source_of_its_own_ref_and_nothing_without_a_hash() -> None:
    install = next(step["run"] for step in STEPS if "Install" in step.get("name", ""))
    locked, own = re.findall(r'"\$\{pip\[@\]\}" install (.*)', install)
    assert locked == '--require-hashes -r "$GITHUB_ACTION_PATH/requirements/$lock.txt"'
    assert own == '--no-index --no-deps --no-build-isolation "$GITHUB_ACTION_PATH"'
    for name in re.findall(r"lock=(\w+)", install):
        _has_all_hashes(name)


def _has_all_hashes(name: str) -> None:
    lock = (ROOT / f"requirements/{name}.txt").read_text("utf-8")
    assert "://" not in lock
    entries = re.split(r"(?m)^(?=\S)", lock)[1:]
    assert len(entries) > 40
    assert all(re.match(r"[\w.-]+==\S+", each) and "--hash=sha256:" in each for each in entries)


@dataclass
class Runner:
    """As much of GitHub's runner as the action uses: files for outputs and the summary, variables,
    and steps that end the job where they fail."""

    workspace: Path
    server: JudgeServer
    inputs: dict[str, str]
    outputs: dict[str, str] = field(default_factory=dict)
    log: str = ""

    @property
    def work(self) -> Path:
        return self.workspace.parent / "temp" / "evenhand"

    @property
    def summary(self) -> str:
        return (self.workspace.parent / "summary").read_text("utf-8")

    def run(self) -> int:
        given = {name: str(each.get("default", "")) for name, each in ACTION["inputs"].items()}
        known = {f"inputs.{name}": value for name, value in (given | self.inputs).items()}
        (self.work / "venv" / "bin").mkdir(parents=True, exist_ok=True)
        write_command(self.work / "venv" / "bin")
        for step in STEPS:
            if "run" not in step or "Install" in step["name"]:
                continue  # setup-python is GitHub's own, and what is installed is what is tested
            code = self._step(step, known)
            known |= {
                f"steps.{step.get('id')}.outputs.{name}": value
                for name, value in self._written().items()
            }
            if code:
                return code
        self.outputs = {
            name: EXPRESSION.sub(lambda found: known[found[1]], each["value"])
            for name, each in ACTION["outputs"].items()
        }
        return 0

    def _step(self, step: dict[str, Any], known: dict[str, str]) -> int:
        temp = self.workspace.parent
        env = {
            name: EXPRESSION.sub(lambda found: known.get(found[1], ""), value)
            for name, value in step["env"].items()
        }
        github = {
            "GITHUB_OUTPUT": str(temp / "output"),
            "GITHUB_STEP_SUMMARY": str(temp / "summary"),
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_ACTION_PATH": str(ROOT),
            "RUNNER_TEMP": str(temp / "temp"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "OPENAI_BASE_URL": self.server.url,
            "OPENAI_API_KEY": "sk-loopback",
        }
        (temp / "output").write_text("", "utf-8")
        (temp / "script").write_text(step["run"], "utf-8")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(temp / "script")],
            cwd=self.workspace,
            env=environment(temp, **github, **env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        self.log += done.stdout
        return done.returncode

    def _written(self) -> dict[str, str]:
        lines = (self.workspace.parent / "output").read_text("utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def runner(start_server: StartServer, tmp_path: Path) -> Runner:
    workspace = tmp_path / "checkout"
    workspace.mkdir()
    for side in ("a", "b"):  # of the sums, two thirds are right in a
        write_lines(
            workspace / f"{side}.jsonl",
            [
                {"id": row["id"], "prompt": row["prompt"], "response": row[f"response_{side}"]}
                for row in sums(60)
            ],
        )
    return Runner(workspace, start_server(adds_up), {"command": RUN, "judge": "openai:m"})


@pytest.mark.slow
def test_a_better_model_passes_with_a_summary_a_comment_and_a_report(runner: Runner) -> None:
    assert runner.run() == 0, runner.log
    assert runner.outputs["ruling"] == "pass"
    assert runner.summary.startswith("## evenhand: pass\n\n    ")
    assert "win rate 0.67" in runner.summary
    comment = Path(runner.outputs["comment"]).read_text("utf-8")
    assert comment == "<!-- evenhand -->\n" + runner.summary
    assert Path(runner.outputs["report"]).read_text("utf-8").startswith("<!doctype html>")
    assert ET.parse(runner.outputs["junit"]).getroot().attrib["failures"] == "0"  # noqa: S314 - our own
    # Nothing outside the headings and the fold can be read as Markdown.
    shown = re.sub(r"</?details>|<summary>Report</summary>", "", runner.summary)
    assert all(line.startswith(("    ", "## evenhand: ")) or not line for line in shown.split("\n"))
    assert len(runner.server.requests) == 120
    # "accuracy: is the "sum" right?" came through the quotes.
    assert 'is the "sum" right?' in runner.server.requests[0].prompt


@pytest.mark.slow
def test_a_second_job_with_the_cached_store_asks_nothing(runner: Runner) -> None:
    runner.inputs |= {"command": "run --a a.jsonl --b b.jsonl -c accuracy", "store": "kept/runs.db"}
    assert runner.run() == 1
    assert "## evenhand: fail" in runner.summary
    assert "::error::the gate failed" in runner.log
    asked = len(runner.server.requests)
    runner.inputs |= {"gate": "--min-win-rate 0.33"}
    assert runner.run() == 6
    assert len(runner.server.requests) == asked == 120
    runner.inputs |= {"undecided": "pass"}
    assert runner.run() == 0
    assert runner.outputs["ruling"] == "undecided"
    assert "::warning::the gate is undecided" in runner.log


def test_what_is_no_run_is_refused_and_nothing_of_it_is_executed(runner: Runner) -> None:
    for command in ("$(touch owned)", "serve", "run --a 'old.jsonl", ""):
        runner.inputs["command"] = command
        assert runner.run() == 2
    runner.inputs["command"] = "run --a `touch,owned` --b $(touch,owned);touch -c accuracy"
    assert runner.run() == 2
    assert "$(touch,owned);touch" in runner.log or "`touch,owned`" in runner.log
    assert not (runner.workspace / "owned").exists()
    assert runner.server.requests == []


def test_a_judge_that_fails_ends_the_job_with_its_own_code(
    runner: Runner, start_server: StartServer
) -> None:
    runner.server = start_server(lambda request: error_reply(401, "::warning::obey me"))
    assert runner.run() == 3
    before, token, after = re.split(r"::stop-commands::(\w{32})\n", runner.log)
    quoted, ended, _ = after.partition(f"::{token}::")
    assert ended
    assert "obey me" in quoted
    assert "obey me" not in before
    assert not (runner.workspace.parent / "summary").exists()


@pytest.mark.slow
def test_what_a_cap_stopped_is_reported_and_does_not_pass(runner: Runner) -> None:
    runner.inputs["command"] += " --max-calls 20"
    runner.inputs["undecided"] = "pass"
    assert runner.run() == 5
    assert "::error::a cap was reached" in runner.log
    assert "not finished" in runner.summary
    assert "## evenhand: undecided" in runner.summary


@pytest.mark.slow
def test_two_models_are_asked_judged_and_gated(runner: Runner, start_server: StartServer) -> None:
    def answers(request: SeenRequest) -> Reply:
        if request.json["model"] == "m":
            return adds_up(request)
        number = int(re.findall(r"What is (\d+) plus", request.prompt)[0])
        said = 2 * number + (request.json["model"] == "old")
        return chat_reply(f"It is {said}, by counting.")

    runner.server = start_server(answers)
    write_lines(
        runner.workspace / "prompts.jsonl",
        [{"id": row["id"], "prompt": row["prompt"]} for row in sums(12)],
    )
    runner.inputs["command"] = "ab prompts.jsonl --a openai:old --b openai:new -c accuracy"
    assert runner.run() == 0, runner.log
    assert runner.outputs["ruling"] == "pass"
    assert "openai:new beats openai:old" in runner.summary
    runner.inputs["command"] += " --max-calls 10 --repeats 2 --store other.db"
    assert runner.run() == 5
    assert "::error::a cap was reached" in runner.log


# The recipes that the documentation links to.

RECIPES = {
    path.stem: yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / "examples/ci").iterdir()
}


def test_documented_workflow_gives_inputs_and_takes_outputs_that_are_there() -> None:
    workflow = RECIPES["github"]
    (job,) = workflow["jobs"].values()
    ours = next(step for step in job["steps"] if "/evenhand@" in step.get("uses", ""))
    assert set(ours["with"]) <= set(ACTION["inputs"])
    taken = re.findall(r"steps\.evenhand\.outputs\.(\w+)", str(workflow))
    assert taken
    assert set(taken) <= set(ACTION["outputs"])
    for each in (*ACTION["inputs"].values(), *ACTION["outputs"].values()):
        assert each["description"]


@pytest.mark.slow
def test_documented_gitlab_job_runs(runner: Runner) -> None:
    job = next(iter(RECIPES["gitlab"].values()))
    (runner.workspace / "a.jsonl").rename(runner.workspace / "new.jsonl")
    (runner.workspace / "b.jsonl").rename(runner.workspace / "old.jsonl")
    (runner.work / "venv" / "bin").mkdir(parents=True)
    write_command(runner.work / "venv" / "bin")
    path = f"{runner.work / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    script = "\n".join(line for line in job["script"] if not line.startswith("pip install"))
    given = job["variables"] | {"PATH": path}
    given |= {"OPENAI_BASE_URL": runner.server.url, "OPENAI_API_KEY": "sk-loopback"}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=runner.workspace,
        env=environment(runner.workspace, **given),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "pass  new vs old" in done.stdout
    for name in (*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]):
        assert (runner.workspace / name).stat().st_size
    assert (runner.workspace / job["cache"]["paths"][0]).is_dir()


# The Dockerfile, by rules that need no builder.

INSTRUCTION = re.compile(r"^([A-Z]+) ((?:.*\\\n)*.*)$", re.MULTILINE)
DOCKERFILE = INSTRUCTION.findall((ROOT / "Dockerfile").read_text("utf-8"))


def of_image(name: str) -> list[str]:
    """The instructions of one kind in the image itself, after what builds it."""
    last = max(place for place, (kind, _) in enumerate(DOCKERFILE) if kind == "FROM")
    return [text for kind, text in DOCKERFILE[last:] if kind == name]


def test_image_is_slim_and_runs_the_command_as_no_root() -> None:
    assert of_image("ENTRYPOINT") == ['["evenhand"]']
    assert of_image("FROM") == ["python:3.12-slim"]
    (user,) = of_image("USER")
    assert int(user) > 0
    assert f"--uid {user}" in of_image("RUN")[0]
    kinds = [kind for kind, _ in DOCKERFILE]
    assert kinds.index("USER") > max(place for place, kind in enumerate(kinds) if kind == "RUN")
    assert "ADD" not in kinds


def test_image_is_built_of_tagged_bases_and_keeps_no_cache() -> None:
    for kind, text in DOCKERFILE:
        if kind == "FROM":
            assert re.match(r"python:3\.\d+-slim\b", text)
        if "pip install" in text:
            assert "--no-cache-dir" in text
            assert ("--require-hashes" in text) != ("--no-index --no-deps" in text)
        assert not re.search(r"(?i)key|secret|token|password", text)


def test_image_is_given_what_the_package_is_built_of_and_nothing_else() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert ignored[0] == "*"
    sent = {line[1:] for line in ignored if line.startswith("!")}
    copied = " ".join(text for kind, text in DOCKERFILE if kind == "COPY" and "--from" not in text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    needed = {"pyproject.toml", "src", project["project"]["readme"]}
    needed |= set(project["project"]["license-files"])
    _has_all_hashes("image")
    needed.add("requirements/image.txt")
    assert needed == sent
    assert all(name in copied.split() for name in needed)


def test_every_action_is_pinned_by_its_hash_with_its_version_beside_it() -> None:
    for file in ("action.yml", "examples/ci/github.yml"):
        text = (ROOT / file).read_text("utf-8")
        used = [line for line in text.splitlines() if re.search(r"uses: actions/", line)]
        assert used
        for line in used:
            assert re.search(r"uses: actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_each_branch_has_a_cache_of_its_own() -> None:
    """A store decides gates: a pull request may not fill the one that another branch restores."""
    steps = yaml.safe_load((ROOT / "examples/ci/github.yml").read_text("utf-8"))["jobs"]["better"]
    (cache,) = [step["with"] for step in steps["steps"] if "actions/cache@" in step.get("uses", "")]
    branch = "evenhand-${{ github.ref }}-"
    assert cache["key"].startswith(branch)
    assert cache["restore-keys"] == branch
    job = yaml.safe_load((ROOT / "examples/ci/gitlab.yml").read_text("utf-8"))["better"]
    assert "$CI_COMMIT_REF_SLUG" in job["cache"]["key"]
