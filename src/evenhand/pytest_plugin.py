"""A pytest plugin: `evenhand_better(…)` and `assert_better(…)` claim that b is better than a.

A claim holds, is wrong, or is undecided. A session's claims share a budget and a store, so that
nothing is asked twice.
"""

from __future__ import annotations

import secrets
import shlex
import shutil
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args
from weakref import WeakSet

import pytest

if TYPE_CHECKING:  # nothing is loaded in the sessions of those who claim nothing
    from evenhand.api import Pairs
    from evenhand.api_runs import Outputs
    from evenhand.judges.protocol import Judge
    from evenhand.judging.config import JudgeConfig
    from evenhand.runs import RunSummary

Result = Literal["better", "worse", "undecided"]
OnUndecided = Literal["fail", "xfail", "skip"]

_INI = {
    "evenhand_judge": "the judge, e.g. openai:gpt-5-mini",
    "evenhand_store": "where its answers are stored; default: EVENHAND_STORE, or pytest's cache",
    "evenhand_max_calls": "maximum judge calls per session",
    "evenhand_max_cost": "maximum cost per session, in dollars",
    "evenhand_price": "the judge's price, INPUT/OUTPUT in dollars per million tokens",
    "evenhand_undecided": "how an undecided claim ends its test: fail, xfail or skip",
}
_LEDGER = "evenhand_ledger"  # of the workers' input
_BUSY_S = 0.1


class NotBetter(AssertionError):
    """The claim is wrong: a is better."""


class Undecided(AssertionError):
    """Neither is shown to be better."""


@dataclass(frozen=True, slots=True)
class Better:
    """The evidence of a claim that holds."""

    run: str
    store: str
    line: str


class _Session:
    def __init__(self, config: pytest.Config, ledger: Path, *, shared: bool) -> None:
        self._config = config
        self.ledger = _Ledger(ledger)
        self.shared = shared  # with other processes
        # Claims that could not be tested: no judge, no key, no such file. They say nothing about b.
        self.unmade: WeakSet[BaseException] = WeakSet()

    def setting(self, name: str) -> str | None:
        return str(self._config.getini(f"evenhand_{name}")).strip() or None

    def cap(self, name: str, kind: Callable[[str], Any]) -> Any:
        """The session's cap: pytest's own setting, else evenhand's."""
        from evenhand.errors import InputError
        from evenhand.settings import load_settings

        given = self.setting(name)
        try:
            return getattr(load_settings(), name) if given is None else kind(given)
        except ValueError:
            raise InputError.of("better.no_number", name=name, given=given) from None

    @property
    def on_undecided(self) -> str:
        return self.setting("undecided") or "fail"

    def store(self) -> str | Path | None:
        from evenhand.settings import load_settings

        named = self.setting("store")
        if named is not None:
            return named if "://" in named else self._config.rootpath / Path(named).expanduser()
        cache = getattr(self._config, "cache", None)  # None where its plugin is turned off
        return load_settings().store or (cache and cache.mkdir("evenhand") / "evenhand.db")

    @property
    def capped(self) -> bool:
        return self.cap("max_calls", int) is not None or self.cap("max_cost", float) is not None

    def options(self, spent: _Spent) -> Any:
        """The rest of the budget; stored answers count even if nothing is left."""
        from evenhand.judges.prices import read_price
        from evenhand.runs import RunOptions

        max_calls = self.cap("max_calls", int)
        max_cost = self.cap("max_cost", float)
        if max_calls is not None:
            max_calls = max(0, max_calls - spent.calls)
        if max_cost is not None:
            left = max_cost - (spent.cost_usd or 0.0)
            # A call that might exceed it does not begin; a call's cost is the mean so far.
            if left <= 0 or left < (spent.cost_usd or 0.0) / max(1, spent.calls):
                max_calls = 0
            else:
                max_cost = left
        price = self.setting("price")
        return RunOptions(
            store=self.store(),
            max_calls=max_calls,
            max_cost=max_cost,
            price=None if price is None else read_price(price, where="evenhand_price"),
            retry=("failed",),
        )


@dataclass(frozen=True, slots=True)
class _Spent:
    calls: int
    cost_usd: float | None  # None where it is not known of every claim
    results: Mapping[str, int]


class _Ledger:
    """The session's spending, in a file shared by its worker processes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def entry(self, *, alone: bool) -> Iterator[Callable[[Result, RunSummary], None]]:
        """`alone`: no concurrent claim, which might spend the same budget."""
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        ledger = sqlite3.connect(self.path, timeout=86_400, isolation_level=None)
        try:
            ledger.execute("CREATE TABLE IF NOT EXISTS claims (result, calls, cost_usd)")
            if alone:
                ledger.execute("BEGIN IMMEDIATE")

            def enter(result: Result, summary: RunSummary) -> None:
                entry = (result, summary.calls, summary.cost_usd)
                ledger.execute("INSERT INTO claims VALUES (?, ?, ?)", entry)

            yield enter
            if alone:
                ledger.execute("COMMIT")
        finally:
            ledger.close()

    def spent(self) -> _Spent:
        if not self.path.exists():
            return _Spent(0, 0.0, {})
        ledger = sqlite3.connect(self.path, timeout=86_400)
        try:
            claims = ledger.execute("SELECT result, calls, cost_usd FROM claims").fetchall()
        finally:
            ledger.close()
        costs = [cost for _, _, cost in claims]
        return _Spent(
            sum(calls for _, calls, _ in claims),
            None if None in costs else sum(costs),
            Counter(result for result, _, _ in claims),
        )


_sessions: list[_Session] = []  # a test of plugins has a session of its own within this one


def assert_better(
    pairs: Pairs | None = None,
    *,
    prompt: str | None = None,
    a: Outputs | None = None,
    b: Outputs | None = None,
    criteria: Sequence[Any] = (),
    context: str | None = None,
    reference: str | None = None,
    judge: str | Judge | None = None,
    config: JudgeConfig | None = None,
    columns: Mapping[str, str] | None = None,
    min_win_rate: float | None = None,
    alpha: float | None = None,
    undecided: OnUndecided | None = None,
) -> Better:
    """Claim that b is better than a.

    With `prompt`, a and b are two responses to it, and one verdict decides. Without, they are two
    models' outputs, or `pairs` is a data set, and the claim is that of `evenhand gate`.
    """
    __tracebackhide__ = True
    from evenhand.errors import EvenhandError, InputError, visible

    if not _sessions:
        raise InputError.of("better.no_session")
    session = _sessions[-1]
    then = undecided or session.on_undecided
    if then not in get_args(OnUndecided):
        raise InputError.of("better.undecided_unknown", given=then)
    if prompt is not None:
        fields = {"prompt": prompt, "responseA": a, "responseB": b, "context": context}
        fields |= {"reference": reference, "criteria": list(criteria) or None}
        given = [{name: value for name, value in fields.items() if value is not None}]
        data: dict[str, Any] = {"pairs": given}
    else:
        data = {"pairs": pairs, "a": a, "b": b, "criteria": criteria, "columns": columns}
    try:
        with session.ledger.entry(alone=session.capped) as enter:
            summary = _judged(session, data, judge or session.setting("judge"), config)
            if prompt is not None:
                result, line = _of_one(summary)
            else:
                result, line = _of_many(summary, session, min_win_rate, alpha)
            enter(result, summary)
    except EvenhandError as error:
        session.unmade.add(error)
        raise
    line = visible(line)  # it quotes the judge, who has read anything, to a terminal
    if result == "worse":
        raise NotBetter(line)
    if result == "better":
        return Better(summary.run, summary.store, line)
    if then == "skip":
        pytest.skip(line)
    if then == "xfail":
        pytest.xfail(line)
    raise Undecided(line)


def _judged(
    session: _Session, data: dict[str, Any], judge: str | Judge | None, config: JudgeConfig | None
) -> RunSummary:
    from evenhand.api_runs import run_sync
    from evenhand.errors import StoreBusy

    options = session.options(session.ledger.spent())
    while True:
        try:
            return run_sync(judge=judge, config=config, options=options, **data)
        except StoreBusy:  # another worker makes the same claim; what it hears is stored
            if not session.shared:
                raise
            time.sleep(_BUSY_S)


def _of_one(summary: RunSummary) -> tuple[Result, str]:
    from evenhand.contract import Outcome, Verdict
    from evenhand.data.records import shortened
    from evenhand.errors import JudgeError, NoVerdict
    from evenhand.messages import Message

    look = shlex.join(["evenhand", "show", summary.run, "1", "--store", summary.store])
    for verdict in summary.verdicts():
        if not isinstance(verdict, Verdict):
            if verdict.error.kind != NoVerdict.kind:
                raise JudgeError(verdict.error.message)
            return "undecided", Message("better.invalid", reason=verdict.error.message, look=look)
        if verdict.outcome is Outcome.WIN:
            code = "b_better" if verdict.winner == "B" else "a_better"
            reason = " ".join(verdict.overall_reasoning.split())
            line = Message(f"better.{code}", reason=shortened(reason, to=500) or "-", look=look)
            return ("better" if verdict.winner == "B" else "worse"), line
        code = "tie" if verdict.outcome is Outcome.TIE else "inconsistent"
        return "undecided", Message(f"better.{code}", look=look)
    return "undecided", Message("better.budget")


def _of_many(
    summary: RunSummary, session: _Session, min_win_rate: float | None, alpha: float | None
) -> tuple[Result, str]:
    from evenhand.analysis_options import GateOptions
    from evenhand.api_runs import gate
    from evenhand.messages import Message, chained

    asked = GateOptions(min_win_rate=min_win_rate, alpha=alpha)
    report = gate(summary.run, asked, store=session.store())
    results: dict[str, Result] = {"pass": "better", "fail": "worse", "undecided": "undecided"}
    result = results[report.ruling]
    why = [check.line for check in report.checks if check.ruling == report.ruling]
    line = Message(
        f"better.set_{result}",
        why="; ".join(why) or report.reason or "-",
        look=shlex.join(["evenhand", "report", summary.run, "--store", summary.store]),
    )
    if result == "undecided" and summary.stopped_by in ("max-calls", "max-cost"):
        line = chained([line, Message("better.budget")])
    return result, line


@pytest.fixture
def evenhand_better(request: pytest.FixtureRequest) -> Callable[..., Better]:
    """`evenhand_better(prompt=…, a=…, b=…, criteria=[…])`: claim that b is better than a."""
    marker = request.node.get_closest_marker("evenhand")
    chosen: dict[str, Any] = dict(marker.kwargs) if marker else {}

    def better(*given: Any, **named: Any) -> Better:
        __tracebackhide__ = True
        return assert_better(*given, **(chosen | named))

    return better


def pytest_addoption(parser: pytest.Parser) -> None:
    for name, description in _INI.items():
        parser.addini(name, description, default="")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "evenhand(undecided): how an undecided claim ends the test")
    workers = getattr(config, "workerinput", None)
    if workers is None:
        folder = Path(tempfile.gettempdir()) / f"evenhand-{secrets.token_hex(8)}"
        ledger = folder / "ledger.db"  # made by the first claim
    else:
        ledger = Path(workers[_LEDGER])
    _sessions.append(_Session(config, ledger, shared=workers is not None))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """pytest-xdist: every worker writes into the controller's ledger."""
    if _sessions:
        node.workerinput[_LEDGER] = str(_sessions[-1].ledger.path)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _sessions:
        session = _sessions.pop()
        if not hasattr(config, "workerinput"):
            shutil.rmtree(session.ledger.path.parent, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.excinfo is not None and call.excinfo.errisinstance(Undecided):
        report.evenhand = "undecided"  # type: ignore[attr-defined]  # travels with the report
    elif call.excinfo is not None and _sessions and call.excinfo.value in _sessions[-1].unmade:
        report.evenhand = "error"  # type: ignore[attr-defined]
        report.when = "setup"  # JUnit XML calls only what fails outside of the call an <error>
        report.longrepr = _one_line(item, call.excinfo)
    return report


def _one_line(item: pytest.Item, raised: pytest.ExceptionInfo[BaseException]) -> str:
    """The place in the test and the error, without evenhand's traceback."""
    from evenhand.errors import visible

    own = [entry for entry in raised.traceback if Path(entry.path) == item.path]
    where = f"{item.path.name}:{own[-1].lineno + 1}: " if own else ""
    return f"{where}{visible(str(raised.value))}"


def pytest_report_teststatus(report: pytest.TestReport) -> Any:
    result = getattr(report, "evenhand", None) if report.failed else None
    if result == "undecided":
        return "undecided", "U", ("UNDECIDED", {"yellow": True})
    if result == "error":
        return "error", "E", ("ERROR", {"red": True})
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    undecided = terminalreporter.stats.get("undecided", [])
    if undecided:
        terminalreporter.section("UNDECIDED")
        for report in undecided:
            terminalreporter.write_sep("_", report.nodeid)
            terminalreporter.line(report.longreprtext)
    spent = _sessions[-1].ledger.spent() if _sessions else None
    if spent is None or not spent.results:
        return
    from evenhand.messages import Message

    counts = {each: spent.results.get(each, 0) for each in get_args(Result)}
    if spent.cost_usd is None:
        line = Message("better.spent_calls", calls=spent.calls, **counts)
    else:
        line = Message("better.spent", calls=spent.calls, cost=spent.cost_usd, **counts)
    terminalreporter.section("evenhand")
    terminalreporter.line(line)
