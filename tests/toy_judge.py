"""Adds one row to the table of judges, before anything is imported that derives from it, and looks
for it wherever judges are named. Prints the places that have it; `judges/test_registry.py` runs it.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

TOY = """
    JudgeKind(("toy:RULE",), "a toy", "reasoned", "toy_judges", "rule"),
"""


def add_row() -> None:
    spec = importlib.util.find_spec("evenhand.judge_kinds")
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    before, head, after = source.partition("JUDGE_KINDS = (\n")
    assert head
    module = importlib.util.module_from_spec(spec)
    sys.modules["evenhand.judge_kinds"] = module
    added = compile(before + head + TOY + after, spec.origin, "exec")
    exec(added, vars(module))  # noqa: S102  # our own module, with one row more
    sys.modules["toy_judges"] = ModuleType("toy_judges")


def opened() -> None:
    from evenhand.judges.registry import _provider_of

    assert _provider_of("toy") is sys.modules["toy_judges"]


def helped() -> None:
    from evenhand.options import JudgingOptions

    assert "toy:RULE" in JudgingOptions.row("judge").help


def refused() -> None:
    import pytest

    from evenhand.errors import InputError
    from evenhand.judges.registry import JudgeName

    with pytest.raises(InputError, match="toy:RULE"):
        JudgeName.read(":")


def of_no_family() -> None:
    """A rule that is named like a model."""
    from evenhand.judges.families import Families

    assert Families().of("gpt-4o")
    assert not Families().of("toy:gpt-4o")


def documented() -> None:
    from scripts.reference_tables import written

    assert "| `toy:RULE` | a toy | reasoned |" in written("judges.md")


PLACES: dict[str, Callable[[], None]] = {
    "registry": opened,
    "help": helped,
    "errors": refused,
    "families": of_no_family,
    "docs": documented,
}


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent.parent)]
    add_row()
    for name, look in PLACES.items():
        look()
        sys.stdout.write(f"{name}\n")
