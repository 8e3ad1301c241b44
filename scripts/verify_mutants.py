"""The mutation run: break the core modules in small ways and see whether a test notices.

    python -m scripts.verify_mutants [--each 20] [--seed 1] [--only gate] [--workers 2]

Each mutant changes one expression of one module: a comparison, an operator, a number, a condition,
a returned value. The modules are imported with all their mutants in them, each behind a switch, so
that one run of the tests shows which test reaches which mutant. Then a fork of that process for
each mutant turns it on and runs the tests that reach it, until one fails. What is computed while
a module is imported has no switch: such a mutant has a process of its own and all tests of its
module. The sample is drawn by the seed. Survivors are listed; those in EQUIVALENT change nothing
that a caller could see and count for nothing. Fails below 93%. Run by `make verify`.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "src/evenhand"
KILLED_AT_LEAST = 0.93

_CLAIMS = (
    "tests/report tests/cli/test_conclusions_hold.py tests/cli/test_report_command.py "
    "tests/cli/test_run_gate.py tests/cli/test_labels_decide.py tests/cli/test_length_doubt.py "
    "tests/cli/test_growing_runs.py tests/cli/test_identical_responses.py "
    "tests/cli/test_random_orders.py tests/cli/test_topics.py tests/cli/test_family_commands.py"
)
# A module, and its tests in the order in which they are likely to notice.
CORE = {
    "judging/reconciliation.py": "tests/judging",
    "judging/ballots.py": "tests/judging",
    "judging/passes.py": "tests/judging tests/runs/test_engine.py",
    "judging/comparison.py": "tests/judging tests/analyses/test_calibrate.py tests/test_api.py",
    "judging/signals.py": "tests/judging",
    "stats/rates/win_rate.py": "tests/stats/test_win_rate.py "
    "tests/stats/test_sign_test.py tests/stats/test_score_interval.py "
    f"tests/stats/test_drawn_orders.py tests/stats/test_clusters.py {_CLAIMS}",
    "report/win_rates.py": _CLAIMS,
    "analyses/gate.py": _CLAIMS,
    "report/conclusions.py": _CLAIMS,
    "runs/budget.py": "tests/runs/test_budget.py tests/runs/test_call_cost.py "
    "tests/runs/test_engine.py tests/runs/test_limit.py",
    "store/work.py": "tests/store tests/runs/test_engine.py tests/runs/test_rank_adaptive.py",
    "trust/audit.py": "tests/trust/test_audits.py tests/trust/test_biases.py "
    "tests/cli/test_audit_command.py tests/cli/test_identical_responses.py",
}

# Mutants that no test could tell from the original: the line's text and what it became, and why.
EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {
    "judging/reconciliation.py": {
        ('return "A" if a > b else "B"', "(a >= b)"): "a == b was returned before",
        (
            'return ("A" if signed["A"] > signed["B"] else "B"), "confidence"',
            "(signed['A'] >= signed['B'])",
        ): "the two differ there",
        (
            'return ("A" if won["A"] > won["B"] else "B"), "criteria"',
            "(won['A'] >= won['B'])",
        ): "the two differ there",
        (
            'return None if a == b else "original" if a < b else "swapped"',
            "(a <= b)",
        ): "a == b was returned before",
        (
            'return min(1.0, {"A": a, "B": b, "TIE": tie}[winner]), "logprobs"',
            "(2.0)",
        ): "a rounded mean of shares up to 1 is at most 1",
        (
            "return min(1.0, sum(means) / len(means)), source",
            "(2.0)",
        ): "a rounded mean of confidences up to 1 is at most 1",
        (
            "best = max(counts.values(), default=0)",
            "(1)",
        ): "without votes there are no leaders, whatever the best is",
        (
            'return Message("unread.both_passes", reason=reasons[silent[0]])',
            "(1)",
        ): "both orders have the same reason there",
    },
    "judging/ballots.py": {
        (
            'word = long[0] if long else max(_WORD.findall(words[:300]), key=len, default="")',
            "(301)",
        ): "which word is looked for first matters to the time alone",
        (
            'return "A" if odds.a > odds.b else "B"',
            "(odds.a >= odds.b)",
        ): "odds that are equal were returned before",
    },
    "judging/passes.py": {
        (
            "if len(completion.text) <= _LONGEST_READ_AT_ONCE:",
            "(len(completion.text) < _LONGEST_READ_AT_ONCE)",
        ): "in a thread or not, the same is read",
        (
            "repairs = case.config.repairs_allowed if case.prompt else 0",
            "(1)",
        ): "without a prompt the loop ends after the first answer",
    },
    "stats/rates/win_rate.py": {
        (
            "return bool(self.totals[_FLIPPED_A : _FLIPPED_TIE + 1].any())",
            "(2)",
        ): "pairs of one order score the same, averaged or not, and the other table has none",
        (
            "return float(values @ times) / float(times.sum()) if times.sum() else 0.0",
            "(1.0)",
        ): "there are ends only where there are rows",
    },
    "analyses/gate.py": {
        (
            'if ruling == "fail" or (ruling == "undecided" and rate.rate < limit):',
            "(rate.rate <= limit)",
        ): "at the limit neither end is beyond it, and no accuracy is enough for either",
    },
    "store/work.py": {
        (
            "pass_rows = sorted([pass_values(new, now) for new in new_passes], "
            "key=lambda row: row[:4])",
            "(5)",
        ): "no two passes are the same in the first four",
        ("_AT_ONCE = 5_000", "(5001)"): "items are read in pages of any size",
        ("_WITHOUT_VERDICT = -1", "(2)"): "any number will do that is no outcome's",
    },
    "trust/audit.py": {
        (
            'yield Message("trust.one_sided_labels", side=WINNERS[int(known.labels[0])])',
            "(1)",
        ): "all labels are the same there",
    },
}

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
}


Span = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Mutant:
    module: str
    span: Span  # first line and column, last line and column (in bytes)
    text: str  # the line as it is
    replacement: str

    def __str__(self) -> str:
        return f"{self.module}:{self.span[0]}  {self.text}  →  {self.replacement}"

    @property
    def reason(self) -> str | None:
        """Why it is equivalent, where it is known to be."""
        return EQUIVALENT.get(self.module, {}).get((self.text, self.replacement))

    def apply(self, source: str) -> str:
        lines = source.encode().splitlines(keepends=True)
        first, column, last, end = self.span
        before = b"".join([*lines[: first - 1], lines[first - 1][:column]])
        after = b"".join([lines[last - 1][end:], *lines[last:]])
        return (before + self.replacement.encode() + after).decode()


def mutants_of(module: str, source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its text."""
    lines = source.splitlines()
    mutants = [
        Mutant(
            module=module,
            span=_span(node),
            text=lines[node.lineno - 1].strip(),
            replacement=changed if changed.startswith("return") else f"({changed})",
        )
        for node, changed in _changes(ast.parse(source))
    ]
    return sorted(mutants, key=lambda each: each.span)


def _span(node: ast.expr | ast.stmt) -> Span:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    for node in _running(tree):
        match node:
            case ast.Compare(ops=[op]) if type(op) in _COMPARISONS:
                other = ast.Compare(node.left, [_COMPARISONS[type(op)]()], node.comparators)
                yield node, ast.unparse(other)
            case ast.BinOp(op=op) if type(op) in _OPERATORS and not _is_text(node):
                yield node, ast.unparse(ast.BinOp(node.left, _OPERATORS[type(op)](), node.right))
            case ast.BoolOp():
                swapped = ast.Or() if isinstance(node.op, ast.And) else ast.And()
                yield node, ast.unparse(ast.BoolOp(swapped, node.values))
            case ast.UnaryOp(op=ast.Not()):
                yield node, ast.unparse(node.operand)
            case ast.IfExp():
                yield node, ast.unparse(ast.IfExp(node.test, node.orelse, node.body))
            case ast.Constant(value=bool(value)):
                yield node, repr(not value)
            case ast.Constant(value=int(value) | float(value)):
                yield node, repr(value + 1)
            case ast.Return(value=ast.expr() as value) if not _is_falsy(value):
                yield node, "return None"


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """What runs, without annotations, decorators, format specifications and zip's `strict`."""
    if isinstance(tree, ast.keyword) and tree.arg == "strict":
        return  # guards against what should not happen
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "format_spec", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child
                if not isinstance(child, ast.JoinedStr):
                    yield from _running(child)


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr | ast.List | ast.Tuple)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in sides
    )


def _is_falsy(node: ast.expr) -> bool:
    """None in the place of None or False is no change."""
    return isinstance(node, ast.Constant) and node.value in (None, False)


SWITCH = "__mutant__"  # a builtin: modules need not import it


def with_switches(source: str, mutants: Mapping[int, Mutant]) -> ast.Module:
    """The module in which `SWITCH(number)` decides whether it is the mutant of that number."""
    tree = ast.parse(source)
    _Switches(mutants).visit(tree)
    return ast.fix_missing_locations(tree)


class _Switches(ast.NodeTransformer):
    def __init__(self, mutants: Mapping[int, Mutant]) -> None:
        self._numbers = {mutant.span: number for number, mutant in mutants.items()}
        self._mutants = mutants

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.JoinedStr):
            return node
        self.generic_visit(node)
        if not isinstance(node, ast.expr | ast.Return) or _span(node) not in self._numbers:
            return node
        number = self._numbers[_span(node)]
        if isinstance(node, ast.Return):
            assert node.value is not None
            node.value = _switch(number, ast.Constant(None), node.value)
            return node
        changed = ast.parse(self._mutants[number].replacement, mode="eval").body
        return ast.copy_location(_switch(number, changed, node), node)


def _switch(number: int, changed: ast.expr, original: ast.expr) -> ast.IfExp:
    on = ast.Call(ast.Name(SWITCH, ast.Load()), [ast.Constant(number)], [])
    return ast.IfExp(on, changed, original)


class _Loader(SourceFileLoader):
    """Reads a core module with a switch for each of its mutants, or as one of them alone."""

    def __init__(self, name: str, mutants: Sequence[Mutant], alone: Mutant | None) -> None:
        super().__init__(name, str(ROOT / PACKAGE / NAMES[name]))
        self._mutants = mutants
        self._alone = alone

    def get_code(self, fullname: str) -> CodeType:
        source, module = Path(self.path).read_text("utf-8"), NAMES[fullname]
        if self._alone is not None:
            changed = self._alone.apply(source) if self._alone.module == module else source
            return compile(changed, self.path, "exec", dont_inherit=True)
        own = {n: mutant for n, mutant in enumerate(self._mutants) if mutant.module == module}
        return compile(with_switches(source, own), self.path, "exec", dont_inherit=True)


NAMES = {"evenhand." + module.removesuffix(".py").replace("/", "."): module for module in CORE}


@dataclass(frozen=True)
class _Finder(MetaPathFinder):
    mutants: Sequence[Mutant]
    alone: Mutant | None = None

    def find_spec(
        self, fullname: str, _path: object, _target: object = None, /
    ) -> ModuleSpec | None:
        if fullname not in NAMES:
            return None
        loader = _Loader(fullname, self.mutants, self.alone)
        return spec_from_file_location(fullname, loader.path, loader=loader)


HARNESS_FAILED = 70


class _Fork:
    """Some tests in a process group of their own, with their own folder for temporary files."""

    def __init__(self, work: Callable[[], int], folder: Path, *, timeout_s: float) -> None:
        self._begun = time.monotonic()
        self._ends = self._begun + timeout_s
        folder.mkdir()
        self._pid = os.fork()
        if self._pid:
            return
        status = HARNESS_FAILED
        try:
            os.setsid()
            signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
            for stream in (0, 1, 2):
                os.dup2(os.open(os.devnull, os.O_RDWR), stream)
            os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
            tempfile.tempdir = None
            status = work()
        finally:
            os._exit(status)

    def wait(self, options: int = 0) -> int | None:
        """Its exit status once it has ended; negative where a signal ended it."""
        if time.monotonic() > self._ends:
            self.kill()
            options = 0
        pid, status = os.waitpid(self._pid, options)
        if pid == 0:
            return None
        self.kill()  # what its tests left running
        self.seconds = time.monotonic() - self._begun
        return os.waitstatus_to_exitcode(status)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)


@dataclass
class MutationRun:
    """A plugin that runs the tests in forks: all of them once, then those of each mutant."""

    mutants: Sequence[Mutant]  # all that have a switch
    chosen: Sequence[int]
    workers: int
    folder: Path
    survivors: list[Mutant] = field(default_factory=list)
    on: int | None = None
    reached: set[int] = field(default_factory=set)

    @property
    def failed(self) -> Path:
        return self.folder / "failed"

    def switch(self, number: int) -> bool:
        self.reached.add(number)
        return number == self.on

    def pytest_collection(self) -> None:
        """Properties that fail need no smaller example."""
        from hypothesis import Phase, settings  # pytest wants to import it first

        settings.register_profile("mutants", phases=(Phase.explicit, Phase.generate), database=None)
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for name in NAMES:
            import_module(name)
        imported = frozenset(self.reached)
        trace = self.folder / "trace"
        _Fork(partial(self._trace, session, trace), self.folder / "t", timeout_s=7200).wait()
        tests = [(seconds, set(reached)) for seconds, reached in json.loads(trace.read_text())]
        whole_s = sum(seconds for seconds, _ in tests)
        failed = self.failed.read_text().splitlines() if self.failed.exists() else []
        for name in failed:
            print(f"left out, since it fails without a mutant: {name}")
        print(f"{len(tests)} tests take {whole_s:.0f} s", flush=True)
        kills: Counter[int] = Counter()  # those that killed before are tried first

        def start(number: int) -> _Fork:
            # Of what is computed at import, any test may depend that reaches the module.
            module = self.mutants[number].module
            all_of_it = {n for n, mutant in enumerate(self.mutants) if mutant.module == module}
            wanted = all_of_it if number in imported else {number}
            places = [place for place, (_, reached) in enumerate(tests) if reached & wanted]
            places.sort(key=lambda place: (-kills[place], tests[place][0]))
            folder = self.folder / str(number)
            work = partial(self._run, session, number, places)
            if number in imported:
                first = [session.items[place] for place in places]
                names = dict.fromkeys(item.nodeid for item in (*first, *session.items))
                names = {name: None for name in names if name not in failed}
                work = partial(_run_alone, number, list(names), folder / "tests")
            return _Fork(work, folder, timeout_s=60 + 3 * whole_s)

        waiting, running = list(reversed(self.chosen)), dict[int, _Fork]()
        try:
            while waiting or running:
                while waiting and len(running) < self.workers:
                    number = waiting.pop()
                    running[number] = start(number)
                time.sleep(0.02)
                for number, fork in list(running.items()):
                    status = fork.wait(os.WNOHANG)
                    if status is not None:
                        del running[number]
                        kills.update(self._record(number, status, fork.seconds))
        finally:
            for fork in running.values():
                fork.kill()
        return True

    def _record(self, number: int, status: int, seconds: float) -> list[int]:
        """Says what became of a mutant; which test killed it, where that is known."""
        mutant, folder = self.mutants[number], self.folder / str(number)
        if status in (HARNESS_FAILED, pytest.ExitCode.USAGE_ERROR):
            raise SystemExit(f"the tests could not run for {mutant}")
        if status == 0:
            self.survivors.append(mutant)
        print(f"{'killed' if status else 'SURVIVED':8}  {seconds:5.1f} s  {mutant}", flush=True)
        killer = folder / "killer"
        killers = [int(killer.read_text())] if killer.exists() else []
        shutil.rmtree(folder, ignore_errors=True)
        return killers

    def _trace(self, session: pytest.Session, file: Path) -> int:
        """Notes how long each test takes and what it reaches. One that fails can show nothing."""
        tests: list[tuple[float, list[int]]] = []
        values = [value for name in NAMES for value in vars(sys.modules[name]).values()]
        clears = [value.cache_clear for value in values if hasattr(value, "cache_clear")]
        for item, following in _with_next(session.items):
            begun = time.monotonic()
            self.reached.clear()
            for clear in clears:  # what one test left there, another would not reach
                clear()
            passed = _passes(item, following)
            tests.append((time.monotonic() - begun, sorted(self.reached) if passed else []))
            if not passed:
                with self.failed.open("a") as failed:
                    print(item.nodeid, file=failed)
        file.write_text(json.dumps(tests))
        return 0

    def _run(self, session: pytest.Session, number: int, places: Sequence[int]) -> int:
        self.on = number
        numbers = {session.items[place]: place for place in places}
        for item, following in _with_next(list(numbers)):
            if not _passes(item, following):
                (self.folder / str(number) / "killer").write_text(str(numbers[item]))
                return 1
        return 0


def _with_next(items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=False)


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


def _run_alone(number: int, names: list[str], file: Path) -> int:
    """In a new process, which imports the mutant, the module's tests in this order."""
    file.write_text("\n".join(names))
    arguments = [sys.executable, "-m", "scripts.verify_mutants", "--alone", str(number), str(file)]
    os.execv(sys.executable, arguments)  # noqa: S606 - nothing for a shell to read


class _InThisOrder:
    def __init__(self, names: list[str]) -> None:
        self._places = {name: place for place, name in enumerate(names)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._places]
        items.sort(key=lambda item: self._places[item.nodeid])


def _run_tests_of(number: int, names: list[str]) -> int:
    every = _all_mutants()
    sys.meta_path.insert(0, _Finder(every, every[number]))
    tests = CORE[every[number].module].split()
    return _pytest(tests, "-x", plugins=[_InThisOrder(names)])


def run_mutants(mutants: Sequence[Mutant], *, workers: int) -> list[Mutant]:
    """Those that no test noticed."""
    every = _all_mutants()
    sys.meta_path.insert(0, _Finder(every))
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # a test looks into its own as another user
        numbers = [every.index(mutant) for mutant in mutants]
        run = MutationRun(every, numbers, workers, Path(folder))
        setattr(builtins, SWITCH, run.switch)
        tests = " ".join(dict.fromkeys(CORE[mutant.module] for mutant in mutants)).split()
        status = _pytest(list(dict.fromkeys(tests)), "-s", plugins=[run])
    if status != pytest.ExitCode.OK:
        sys.exit(f"the mutation run ended with {status!r}")
    return run.survivors


def _pytest(tests: list[str], *options: str, plugins: Sequence[object] = ()) -> int:
    # Plain: pytest would import evenhand itself, which is a plugin, to rewrite its assertions.
    fixed = ["-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist"]
    fixed += ["--hypothesis-seed", "0"]
    left_out = ["-m", "not (postgres or ray or slow or embedded)"]
    return pytest.main([*fixed, *left_out, *options, *tests], plugins=plugins)


def sample(modules: list[str], *, each: int, seed: int) -> list[Mutant]:
    """So many mutants of each module. A module's sample does not depend on the other modules, and
    a smaller one is part of a larger one."""
    drawn: list[Mutant] = []
    for module in modules:
        every = [mutant for mutant in _read_mutants(module) if mutant.reason is None]
        rng = random.Random(f"{seed} {module}")  # noqa: S311 - draws a sample, protects nothing
        rng.shuffle(every)
        drawn += every[:each]
    return drawn


def _all_mutants() -> list[Mutant]:
    return [mutant for module in CORE for mutant in _read_mutants(module)]


def _read_mutants(module: str) -> list[Mutant]:
    return mutants_of(module, (ROOT / PACKAGE / module).read_text("utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=20, help="mutants of each module")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="modules whose path has this in it")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--alone", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    os.chdir(ROOT)
    if chosen.alone is not None:
        number, file = chosen.alone
        sys.exit(_run_tests_of(int(number), Path(file).read_text().splitlines()))
    modules = [module for module in CORE if chosen.only in module]
    mutants = sample(modules, each=chosen.each, seed=chosen.seed)
    survivors = run_mutants(mutants, workers=chosen.workers)
    for module in modules:
        of_module = [mutant for mutant in mutants if mutant.module == module]
        alive = sum(mutant.module == module for mutant in survivors)
        print(f"{module:28} {len(of_module) - alive:3} of {len(of_module)} killed")
    for mutant in survivors:
        print(f"survived  {mutant}")
    share = 1 - len(survivors) / len(mutants) if mutants else 0.0
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} killed ({share:.1%})")
    sys.exit(share < KILLED_AT_LEAST)


if __name__ == "__main__":
    main()
