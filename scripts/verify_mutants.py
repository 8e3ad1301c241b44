"""The mutation run: break the core modules in small ways and see whether a test notices.

    python -m scripts.verify_mutants [--each 14] [--seed 1] [--only gate] [--workers 2]

Each mutant changes one expression of one module (a comparison, an operator, a number, a condition,
a returned value) in a copy of the project and runs that module's tests there. The sample is drawn
by the seed. Survivors are listed; those in EQUIVALENT change nothing that a caller could see and
count for nothing. Fails below 93%. Run by `make verify`.
"""

from __future__ import annotations

import argparse
import ast
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "src/evenhand"
KILLED_AT_LEAST = 0.93

# A module, and its tests in the order in which they are likely to notice.
CORE = {
    "judging/reconciliation.py": "tests/judging",
    "judging/decision.py": "tests/judging",
    "judging/ballots.py": "tests/judging",
    "judging/passes.py": "tests/judging tests/runs/test_engine.py",
    "judging/comparison.py": "tests/judging tests/test_compare_many.py tests/test_api.py",
    "judging/signals.py": "tests/judging",
    "stats/rates/win_rate.py": "tests/stats/test_win_rate.py tests/stats/test_win_limits.py "
    "tests/stats/test_sign_test.py tests/stats/test_score_interval.py "
    "tests/stats/test_drawn_orders.py tests/stats/test_clusters.py tests/report",
    "report/win_rates.py": "tests/report tests/cli/test_conclusions_hold.py "
    "tests/cli/test_report_command.py",
    "report/gate.py": "tests/report/test_report_gate.py tests/cli/test_conclusions_hold.py "
    "tests/cli/test_report_command.py",
    "report/conclusions.py": "tests/report tests/cli/test_conclusions_hold.py "
    "tests/cli/test_report_command.py",
    "runs/budget.py": "tests/runs/test_budget.py tests/runs/test_call_cost.py "
    "tests/runs/test_engine.py tests/runs/test_limit.py",
    "store/work.py": "tests/store tests/runs/test_engine.py tests/runs/test_rank_adaptive.py",
    "trust/audit.py": "tests/trust/test_audits.py tests/trust/test_biases.py "
    "tests/cli/test_audit_command.py",
}

# Mutants that no test could tell from the original: module, the line's text, what it became.
EQUIVALENT: dict[tuple[str, str, str], str] = {}

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


@dataclass(frozen=True, slots=True)
class Mutant:
    module: str
    line: int
    text: str  # the line as it is
    start: int
    end: int
    replacement: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line}  {self.text}  →  {self.replacement}"

    @property
    def reason(self) -> str | None:
        """Why it is equivalent, where it is known to be."""
        return EQUIVALENT.get((self.module, self.text, self.replacement))

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.replacement.encode() + source[self.end :]


def mutants_of(module: str, source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its text."""
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    mutants = []
    for node, changed in _changes(ast.parse(source)):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        mutants.append(
            Mutant(
                module=module,
                line=node.lineno,
                text=lines[node.lineno - 1].decode().strip(),
                start=starts[node.lineno - 1] + node.col_offset,
                end=starts[node.end_lineno - 1] + node.end_col_offset,
                replacement=changed if changed.startswith("return") else f"({changed})",
            )
        )
    return sorted(mutants, key=lambda each: (each.start, each.end, each.replacement))


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
    """What runs, without annotations, decorators and format specifications."""
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


def copy_project(folder: Path) -> Path:
    """A copy to break, with what the tests look for beside it."""
    copy = folder / "project"
    copy.mkdir(parents=True)
    for entry in ROOT.iterdir():
        if entry.name in ("src", "tests"):
            shutil.copytree(entry, copy / entry.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif entry.name != ".git":
            (copy / entry.name).symlink_to(entry)
    shared = ROOT.parent / "shared"
    if shared.exists():
        (folder / "shared").symlink_to(shared)
    return copy


def passes(project: Path, tests: str, *, timeout_s: float) -> bool:
    """Whether the tests of a project pass; tests that hang do not."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    command += ["--hypothesis-seed", "0", "-m", "not (postgres or ray or slow or embedded)"]
    environment = os.environ | {
        "PYTHONPATH": str(project / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        run = subprocess.run(
            [*command, *tests.split()],
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0


def run_mutants(mutants: list[Mutant], *, workers: int) -> list[Mutant]:
    """Those that no test noticed."""
    with tempfile.TemporaryDirectory(prefix="evenhand-mutants-") as folder:
        projects: queue.Queue[Path] = queue.Queue()
        for number in range(workers):
            projects.put(copy_project(Path(folder) / str(number)))

        def limit(module: str) -> float:
            project = projects.get()
            begun = time.monotonic()
            if not passes(project, CORE[module], timeout_s=1200):
                raise SystemExit(f"the tests of {module} fail without any mutant")
            projects.put(project)
            return 30 + 3 * (time.monotonic() - begun)

        def survives(mutant: Mutant) -> bool:
            project = projects.get()
            path = project / PACKAGE / mutant.module
            original = path.read_bytes()
            path.write_bytes(mutant.apply(original))
            begun = time.monotonic()
            survived = passes(project, CORE[mutant.module], timeout_s=limits[mutant.module])
            path.write_bytes(original)
            projects.put(project)
            outcome = "SURVIVED" if survived else "killed"
            print(f"{outcome:8}  {time.monotonic() - begun:5.0f} s  {mutant}", flush=True)
            return survived

        with ThreadPoolExecutor(workers) as pool:
            modules = list(dict.fromkeys(mutant.module for mutant in mutants))
            limits = dict(zip(modules, pool.map(limit, modules), strict=True))
            survived = list(pool.map(survives, mutants))
    return [mutant for mutant, alive in zip(mutants, survived, strict=True) if alive]


def sample(modules: list[str], *, each: int, seed: int) -> list[Mutant]:
    """So many mutants of each module. A module's sample does not depend on the other modules."""
    drawn: list[Mutant] = []
    for module in modules:
        every = mutants_of(module, (ROOT / PACKAGE / module).read_text("utf-8"))
        every = [mutant for mutant in every if mutant.reason is None]
        rng = random.Random(f"{seed} {module}")  # noqa: S311 - draws a sample, protects nothing
        drawn += rng.sample(every, min(each, len(every)))
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=14, help="mutants of each module")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="modules whose path has this in it")
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
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
