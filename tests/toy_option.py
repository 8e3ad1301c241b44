"""Adds one row to the table of options, before anything is imported that derives from it, and looks
for it on every face. Prints the faces that have it; `test_options.py` runs it.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TOY = """
    tone: Annotated[
        Literal["plain", "formal"] | None,
        Option(
            help="How a toy speaks.",
            variable="EVENHAND_TONE",
            clients=True,
            decides="verdicts",
            implied="plain",
        ),
    ] = None
"""


def add_row() -> None:
    spec = importlib.util.find_spec("evenhand.options")
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    before, head, after = source.partition(
        '    """Which judge is asked, and how it judges a pair."""\n'
    )
    assert head
    module = importlib.util.module_from_spec(spec)
    sys.modules["evenhand.options"] = module
    added = compile(before + head + TOY + after, spec.origin, "exec")
    exec(added, vars(module))  # noqa: S102  # our own module, with one row more


def main() -> None:
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
    add_row()
    from scripts.reference_tables import written

    import test_options as tests
    from evenhand.cli.init import _config
    from evenhand.options import JudgingOptions

    row, here = JudgingOptions.row("tone"), Path.cwd()
    compare: Any = tests.COMMANDS

    def of_row(test: Any, **more: Any) -> None:
        test.__wrapped__(row=row, **more)

    def helped() -> None:
        flags = {flag for each in compare.commands["compare"].params for flag in each.opts}
        assert "--tone" in flags

    def started() -> None:
        assert '# How a toy speaks.\n# tone = "plain"\n' in _config("openai:m")

    def documented() -> None:
        for page in ("settings.md", "http.md"):
            assert "How a toy speaks." in written(page)

    faces: dict[str, Callable[[], None]] = {
        "help": helped,
        "flag": lambda: of_row(tests.test_flag_arrives_in_the_config),
        "config file": lambda: of_row(tests.test_key_of_a_config_file_arrives, tmp_path=here),
        "starter file": started,
        "variable": lambda: of_row(tests.test_variable_arrives, tmp_path=here),
        "server file": lambda: of_row(tests.test_key_of_the_servers_file_arrives, tmp_path=here),
        "fingerprint": lambda: of_row(
            tests.test_what_decides_makes_another_run_and_nothing_else_does
        ),
        "manifest and explanations": lambda: of_row(
            tests.test_what_decides_is_kept_with_the_run_and_explains_its_verdicts, tmp_path=here
        ),
        "HTTP": lambda: of_row(tests.test_field_of_a_client_arrives, face=tests.asked_over_http),
        "MCP": lambda: of_row(tests.test_field_of_a_client_arrives, face=tests.asked_over_mcp),
        "descriptions": lambda: of_row(tests.test_field_of_a_client_is_described_as_its_option),
        "docs": documented,
    }
    for name, look in faces.items():
        look()
        sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main()
