"""The mutation run finds what tests notice, and what they do not."""

from __future__ import annotations

import ast
from pathlib import Path
from types import CodeType
from typing import Any

from scripts.verify_mutants import (
    CORE,
    EQUIVALENT,
    PACKAGE,
    ROOT,
    SWITCH,
    mutants_of,
    sample,
    with_switches,
)

SOURCE = """
def limit(n: int = 3) -> bool:
    \"\"\"Whether 5 is too many.\"\"\"
    if n < 5 and not n == 2:
        return True
    return False
"""


def test_each_expression_that_runs_is_changed_once() -> None:
    changed = [mutant.apply(SOURCE) for mutant in mutants_of("m.py", SOURCE)]
    for each in (
        "n: int = (4)",
        "if (n < 5 or not n == 2):",
        "if (n <= 5) and",
        "n < (6) and",
        "and (n == 2):",
        "not (n != 2):",
        "n == (3):",
        "return (False)",
        "return None",
        "return (True)",
    ):
        assert sum(each in text for text in changed) == 1, each
    assert len(changed) == 10  # the docstring and the annotations are left alone


def test_a_switch_makes_the_module_its_mutant_and_no_switch_leaves_it() -> None:
    mutants = dict(enumerate(mutants_of("m.py", SOURCE)))
    switches = compile(with_switches(SOURCE, mutants), "m.py", "exec")

    def answers(code: CodeType, on: int | None) -> list[bool]:
        names: dict[str, Any] = {SWITCH: lambda number: number == on}
        exec(code, names)  # noqa: S102 - a text of ours
        return [names["limit"](), *map(names["limit"], range(8))]

    assert answers(switches, None) == answers(compile(SOURCE, "m.py", "exec"), None)
    for number, mutant in mutants.items():
        alone = compile(mutant.apply(SOURCE), "m.py", "exec")
        assert answers(switches, number) == answers(alone, None), mutant


def test_every_mutant_of_the_core_modules_is_python() -> None:
    for module in CORE:
        source = (ROOT / PACKAGE / module).read_text("utf-8")
        mutants = mutants_of(module, source)
        assert len(mutants) > 20
        for mutant in mutants[::7]:
            ast.parse(mutant.apply(source))
            assert mutant.apply(source) != source


def test_the_tests_of_core_modules_exist() -> None:
    for tests in CORE.values():
        for path in tests.split():
            assert Path(ROOT, path).exists(), path


def test_a_seed_draws_the_same_mutants_whatever_else_is_drawn() -> None:
    modules = list(CORE)[:3]
    together = sample(modules, each=5, seed=3)
    assert len(together) == 15
    assert together[5:10] == sample(modules[1:2], each=5, seed=3)
    assert together != sample(modules, each=5, seed=4)
    assert together[:4] == sample(modules[:1], each=4, seed=3)


def test_each_equivalent_mutant_is_one_of_its_module() -> None:
    """A line that was changed since may be equivalent no more."""
    for module, equivalent in EQUIVALENT.items():
        every = mutants_of(module, (ROOT / PACKAGE / module).read_text("utf-8"))
        assert set(equivalent) <= {(mutant.text, mutant.replacement) for mutant in every}
