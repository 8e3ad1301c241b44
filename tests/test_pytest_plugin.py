"""The plugin in real pytest runs of their own process, against a judge on the loopback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

import pytest

from evenhand import pytest_plugin as plugin
from evenhand.errors import InputError
from run_data import adds_up, sums, write_lines
from scripted import answer_json
from servers import JudgeServer, Reply, SeenRequest, StartServer, chat_reply, error_reply

CLAIMS = """
import pytest

def asks(better, n, a, b):
    return better(prompt=f"What is {n} plus {n}?", a=f"It is {a}, by counting.",
                  b=f"It is {b}, by counting.", criteria=["accuracy"])

def test_better(evenhand_better):
    found = asks(evenhand_better, 1, a=3, b=2)
    assert found.line.startswith("better: ")

def test_worse(evenhand_better):
    asks(evenhand_better, 2, a=4, b=5)

def test_undecided(evenhand_better):
    evenhand_better(prompt="Tea or coffee?", a="Tea.", b="Coffee.", criteria=["taste"])
"""


def taste_is_open(request: SeenRequest) -> Reply:
    """Adds up; of tea and coffee it takes whatever comes first."""
    if "Tea or coffee?" in request.prompt:
        return chat_reply(answer_json("A", criteria=[("taste", "A")]))
    return adds_up(request)


@dataclass
class Project:
    """A folder with tests, and an interpreter to which the plugin is installed."""

    folder: Path
    environment: dict[str, str]
    server: JudgeServer

    def write(self, tests: str, ini: str = "") -> None:
        (self.folder / "test_claims.py").write_text(tests, "utf-8")
        (self.folder / "pytest.ini").write_text(f"[pytest]\n{ini}\n", "utf-8")

    def run(self, *options: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "evenhand", "-rA", *options],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert not done.stderr.strip(), done.stderr
        return done.returncode, done.stdout

    @property
    def asked(self) -> int:
        return len(self.server.requests)


@pytest.fixture
def project(start_server: StartServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Project:
    """Installed as pip does it: by the entry point in the package's metadata."""
    server = start_server(taste_is_open)
    for name in list(os.environ):
        if name.startswith(("EVENHAND_", "OPENAI_", "PYTEST_")):
            monkeypatch.delenv(name)
    site = tmp_path / "site"
    metadata = site / "evenhand_plugin-0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: evenhand-plugin\nVersion: 0\n", "utf-8"
    )
    (metadata / "entry_points.txt").write_text(
        "[pytest11]\nevenhand = evenhand.pytest_plugin\n", "utf-8"
    )
    folder = tmp_path / "project"
    folder.mkdir()
    path = [str(site), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        # Other packages' plugins take seconds; `-p evenhand` still goes by the entry point.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "OPENAI_BASE_URL": server.url,
        "OPENAI_API_KEY": "sk-loopback",
        "EVENHAND_JUDGE": "openai:m",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }
    return Project(folder, environment, server)


def outcomes(shown: str) -> dict[str, int]:
    """Of pytest's last line."""
    last = shown.strip().splitlines()[-1]
    return {
        kind: int(count) for count, kind in re.findall(r"(\d+) (\w+)", last.partition(" in ")[0])
    }


@pytest.mark.slow
def test_better_worse_and_undecided_are_three_results_and_a_second_run_asks_nothing(
    project: Project,
) -> None:
    project.write(CLAIMS)
    code, shown = project.run("--junitxml=junit.xml")
    assert code == 1
    assert outcomes(shown) == {"failed": 1, "passed": 1, "undecided": 1}
    assert "worse: the judge prefers a in both orders" in shown
    assert "undecided: the judge's choice changed with the order of a and b" in shown
    assert "1 better, 1 worse, 1 undecided; 6 calls" in shown
    assert project.asked == 6  # three pairs in both orders
    failures = {
        case.attrib["name"]: failure.attrib["message"].partition(": ")[2].partition(":")[0]
        for case in ET.parse(project.folder / "junit.xml").iter("testcase")  # noqa: S314 - our own
        for failure in case.iter("failure")
    }
    assert failures == {"test_worse": "worse", "test_undecided": "undecided"}
    code, again = project.run()
    assert (code, outcomes(again)) == (1, outcomes(shown))
    assert "1 better, 1 worse, 1 undecided; 0 calls" in again
    assert project.asked == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ini", "mark", "counted", "code"),
    [
        ("evenhand_undecided = xfail", "", "xfailed", 0),
        ("evenhand_undecided = skip", "", "skipped", 0),
        ("", "@pytest.mark.evenhand(undecided='skip')", "skipped", 0),
        ("evenhand_undecided = skip", "@pytest.mark.evenhand(undecided='fail')", "undecided", 1),
        ("evenhand_undecided = shrug", "", "failed", 1),
    ],
)
def test_what_an_undecided_claim_makes_of_its_test_is_chosen(
    project: Project, ini: str, mark: str, counted: str, code: int
) -> None:
    claims = CLAIMS.replace("def test_undecided", f"{mark}\ndef test_undecided")
    project.write(claims, f"{ini}\naddopts = --strict-markers")
    status, shown = project.run("-k", "undecided")
    assert (status, outcomes(shown)) == (code, {counted: 1, "deselected": 2})


@pytest.mark.slow
def test_budget_is_the_sessions_and_what_is_stored_needs_none(project: Project) -> None:
    project.write(CLAIMS, "evenhand_max_calls = 3")
    _, shown = project.run()
    # Two calls for the first claim, one of the second, and none is left for the third.
    assert project.asked == 3
    assert outcomes(shown) == {"passed": 1, "undecided": 2}
    assert "the session's budget is spent; raise evenhand_max_calls" in shown
    _, shown = project.run()
    assert project.asked == 6  # what the first run has paid for is not paid for again
    assert outcomes(shown) == {"failed": 1, "passed": 1, "undecided": 1}


@pytest.mark.slow
def test_workers_of_xdist_share_the_store_and_the_budget(project: Project) -> None:
    many = "\n".join(
        f"def test_{n}(evenhand_better):\n    asks(evenhand_better, {n % 4}, a={2 * (n % 4) + 1}, "
        f"b={2 * (n % 4)})\n"
        for n in range(8)
    )
    project.write(CLAIMS.partition("def test_better")[0] + many)
    code, shown = project.run("-n", "3", "-p", "xdist")
    assert (code, outcomes(shown)) == (0, {"passed": 8})
    assert "8 better, 0 worse, 0 undecided; 8 calls" in shown
    assert project.asked == 8  # four different pairs in both orders
    project.write(CLAIMS, "evenhand_max_calls = 3\nevenhand_store = other.db")
    _, shown = project.run("-n", "3", "-p", "xdist")
    assert project.asked == 8 + 3
    assert "the session's budget is spent" in shown


@pytest.mark.slow
def test_data_sets_are_claimed_by_the_gate(project: Project) -> None:
    rows = sums(60)
    for side in ("a", "b"):
        outputs = [
            {"id": row["id"], "prompt": row["prompt"], "response": row[f"response_{side}"]}
            for row in rows
        ]
        write_lines(project.folder / f"{side}.jsonl", outputs)
    # Two thirds of run_data's sums are right in a.
    project.write(
        """
from evenhand.pytest_plugin import assert_better

def test_worse():
    assert_better(a="a.jsonl", b="b.jsonl", criteria=["accuracy"])

def test_better():
    assert_better(a="b.jsonl", b="a.jsonl", criteria=["accuracy"])

def test_much_better():
    assert_better(a="b.jsonl", b="a.jsonl", criteria=["accuracy"], min_win_rate=0.65)
"""
    )
    code, shown = project.run()
    assert (code, outcomes(shown)) == (1, {"failed": 1, "passed": 1, "undecided": 1})
    assert re.search(r"worse: b vs a: win rate 0\.33 .* is below 0\.5", shown)
    assert "is not significantly different from 0.65" in shown
    assert "evenhand report" in shown


def test_failing_judge_is_an_error_in_one_line_and_no_result(
    project: Project, start_server: StartServer
) -> None:
    refusing = start_server(lambda request: error_reply(401, "no such key"))
    project.environment["OPENAI_BASE_URL"] = refusing.url
    project.write(CLAIMS)
    code, shown = project.run("-k", "better", "--junitxml=junit.xml")
    assert (code, outcomes(shown)) == (1, {"error": 1, "deselected": 2})
    (suite,) = ET.parse(project.folder / "junit.xml").iter("testsuite")  # noqa: S314 - our own
    assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
    assert "no such key" in ET.tostring(suite, encoding="unicode")
    # Where CI is set, pytest's summary quotes the message once more.
    told = [each for each in shown.splitlines() if "no such key" in each]
    (line,) = [each for each in told if not each.startswith("ERROR ")]
    assert re.match(r"test_claims\.py:\d+: .*401", line)
    assert "worse: " not in shown
    assert "pytest_plugin.py" not in shown  # no traceback
    assert "FAILED" not in shown
    del project.environment["EVENHAND_JUDGE"], project.environment["OPENAI_BASE_URL"]
    code, shown = project.run("-k", "better")
    assert (code, outcomes(shown)) == (1, {"error": 1, "deselected": 2})
    assert "no judge" in shown
    assert "pytest_plugin.py" not in shown
    project.environment["EVENHAND_JUDGE"] = "openai:loopback"
    project.environment["OPENAI_BASE_URL"] = project.server.url
    code, shown = project.run("-k", "better")
    assert (code, outcomes(shown)) == (0, {"passed": 1, "deselected": 2})


def test_sessions_without_claims_pay_nothing_for_the_plugin(project: Project) -> None:
    project.write(
        """
import sys

def test_nothing():
    heavy = {"pydantic", "numpy", "aiohttp", "sqlalchemy", "evenhand.api"}
    assert not heavy & set(sys.modules)
"""
    )
    code, shown = project.run("-p", "no:cacheprovider")
    assert (code, outcomes(shown)) == (0, {"passed": 1})
    assert "evenhand" not in shown.partition("short test summary")[2]


def test_assertion_outside_of_pytest_says_where_it_belongs() -> None:
    code = "from evenhand.pytest_plugin import assert_better\nassert_better(prompt='p', a='', b='')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "there is no pytest session; run it with pytest" in done.stderr


# The same claims in this process, which takes no second.


class Ini(dict[str, str]):
    """A pytest config of which nothing but its settings is known."""

    rootpath = Path()

    def getini(self, name: str) -> str:
        return self.get(name, "")


@pytest.fixture
def claims(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unconfigured: None
) -> tuple[Ini, JudgeServer]:
    server = start_server(taste_is_open)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    ini = Ini(evenhand_judge="openai:m", evenhand_store=str(tmp_path / "claims.db"))
    session = plugin._Session(cast("pytest.Config", ini), tmp_path / "ledger.db", shared=False)
    monkeypatch.setattr(plugin, "_sessions", [session])
    return ini, server


def add(n: int, **right: int) -> plugin.Better:
    a, b = (f"It is {right[side]}, by counting." for side in "ab")
    return plugin.assert_better(prompt=f"What is {n} plus {n}?", a=a, b=b, criteria=["accuracy"])


def taste(**named: Any) -> plugin.Better:
    return plugin.assert_better(
        prompt="Tea or coffee?", a="Tea.", b="Coffee.", criteria=["taste"], **named
    )


def test_claims_hold_are_wrong_or_undecided_and_are_asked_once(
    claims: tuple[Ini, JudgeServer],
) -> None:
    _, server = claims
    assert add(1, a=3, b=2).line.startswith("better: the judge prefers b in both orders")
    with pytest.raises(plugin.NotBetter, match="worse: the judge prefers a in both orders"):
        add(2, a=4, b=5)
    with pytest.raises(plugin.Undecided, match="choice changed with the order"):
        taste()
    with pytest.raises(pytest.skip.Exception, match="undecided: "):
        taste(undecided="skip")
    with pytest.raises(pytest.xfail.Exception, match="undecided: "):
        taste(undecided="xfail")
    assert len(server.requests) == 6


def test_what_a_judge_says_cannot_speak_to_the_terminal(
    claims: tuple[Ini, JudgeServer], start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shouting(request: SeenRequest) -> Reply:
        winner = "A" if request.prompt.index("Tea.") < request.prompt.index("Coffee.") else "B"
        said = "\x1b[2J\u202egone\r\n::error::" + "x" * 9999
        return chat_reply(answer_json(winner, reasoning=said, criteria=[("taste", winner)]))

    monkeypatch.setenv("OPENAI_BASE_URL", start_server(shouting).url)
    with pytest.raises(plugin.NotBetter, match="worse: ") as raised:
        taste()
    told = str(raised.value)
    assert r"\u001b[2J\u202egone" in told
    assert told.isprintable()
    assert len(told) < 1000


def test_caps_are_those_of_all_claims_together(claims: tuple[Ini, JudgeServer]) -> None:
    ini, server = claims
    ini["evenhand_max_calls"] = "3"
    assert add(1, a=3, b=2).run
    for _ in range(2):
        with pytest.raises(plugin.Undecided, match="budget is spent"):
            add(2, a=4, b=5)
    assert add(1, a=3, b=2).run  # needs no call
    assert len(server.requests) == 3


def test_cap_on_cost_is_that_of_all_claims_together(claims: tuple[Ini, JudgeServer]) -> None:
    ini, server = claims
    # 11 and 7 tokens a call at 1 and 1 dollars a million: 0.000018, of which three fit.
    ini |= {"evenhand_max_cost": "0.00006", "evenhand_price": "1/1"}
    assert add(1, a=3, b=2).run
    for n in (2, 3, 4):
        with pytest.raises(plugin.Undecided, match="budget is spent"):
            add(n, a=2 * n, b=2 * n + 1)
    assert len(server.requests) == 3


def test_settings_of_evenhand_hold_where_pytest_has_none(
    claims: tuple[Ini, JudgeServer], tmp_path: Path
) -> None:
    _, server = claims
    (tmp_path / "evenhand.toml").write_text('criteria = ["accuracy"]\nmax_calls = 3\n', "utf-8")
    texts: dict[str, Any] = {"a": "It is 3, by counting.", "b": "It is 2, by counting."}
    assert plugin.assert_better(prompt="What is 1 plus 1?", **texts).run
    with pytest.raises(plugin.Undecided, match="budget is spent"):
        add(2, a=4, b=5)
    assert len(server.requests) == 3


def test_settings_of_the_plugin_are_checked(claims: tuple[Ini, JudgeServer]) -> None:
    ini, server = claims
    ini["evenhand_max_calls"] = "few"
    with pytest.raises(InputError, match="evenhand_max_calls is 'few'; give a number"):
        add(1, a=3, b=2)
    with pytest.raises(InputError, match="undecided is 'shrug'; give fail, xfail or skip"):
        taste(undecided="shrug")
    assert server.requests == []
