"""Write the reference tables of the docs that derive from the code.

    python -m scripts.reference_tables

A test fails where a table is not as this writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from pydantic.alias_generators import to_camel

from evenhand.analyses.registry import OURS, AnalysisEntry
from evenhand.formats import FORMATS
from evenhand.judge_kinds import JUDGE_KINDS
from evenhand.options import GeneratingOptions, JudgingOptions, Row, RunningOptions
from evenhand.serve.fields import SIDES, client_rows, request_for

DOCS = Path(__file__).resolve().parent.parent / "docs"
_FILES = {"any": "any", "yours": "yours only", "none": ""}


def _table(heads: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    rows = [heads, ["---"] * len(tuple(heads)), *lines]
    return "\n".join(f"| {' | '.join(each)} |" for each in rows).replace("| --- ", "|---")


def options_table() -> str:
    """Every option of judging and running, and where it can be set."""
    heads = ("option", "flag", "config file", "environment", "server file", "clients", "meaning")
    judging, running = JudgingOptions.rows(), RunningOptions.rows()
    lines = [_where(row, served=row.option.served) for row in judging]
    return _table(heads, [*lines, *(_where(row, served=False) for row in running)])


def _where(row: Row, *, served: bool) -> tuple[str, ...]:
    option = row.option
    return (
        f"`{row.name}`",
        f"`{row.flag}`" + (f", `{option.short}`" if option.short else ""),
        _FILES[option.files],
        f"`{option.variable}`" if option.variable else "",
        "yes" if served else "",
        "yes" if option.clients else "",
        _meaning(row, row.help),
    )


def sides_table() -> str:
    """The options of each side of an A/B test."""
    return _table(
        ("option", "flags", "clients", "meaning"),
        (
            (
                f"`{row.name}`",
                ", ".join(f"`{row.flag_of(side)}`" for side in SIDES),
                "yes" if row.option.clients else "",
                _meaning(row, row.help),
            )
            for row in GeneratingOptions.rows()
        ),
    )


def compare_table() -> str:
    """The options of judging that a client may set."""
    lines = [_sent(row, default="as offered") for row in client_rows(JudgingOptions)]
    return _table(("query", "meaning", "takes", "default"), lines)


def run_table() -> str:
    """The options of a run that a client may set."""
    judging = [_sent(row, default="as offered") for row in client_rows(JudgingOptions)]
    running = [_sent(row, default=_default(row)) for row in client_rows(RunningOptions)]
    sides = [
        _sent(row, default="", side=side)
        for row in client_rows(GeneratingOptions)
        for side in SIDES
    ]
    return _table(("query", "meaning", "takes", "default"), [*judging, *running, *sides])


def analysis_table(analysis: AnalysisEntry) -> str:
    """The query of a registered analysis: the runs that its address does not name, its options."""
    sent = client_rows(analysis.options)
    own = {row.name for row in sent}
    runs = [
        (
            f"`{name}`",
            str(field.description),
            "repeatable" if name == "runs" else "text",
            "required" if field.is_required() else "",
        )
        for name, field in request_for(analysis).model_fields.items()
        if name in ("run", "runs", "against") and name not in own
    ]
    lines = [*runs, *(_sent(row, default=_default(row)) for row in sent)]
    return _table(("query", "meaning", "takes", "default"), lines)


def _sent(row: Row, *, default: str, side: str | None = None) -> tuple[str, ...]:
    name = f"{row.name}_{side}" if side else row.name
    meaning = row.option.help
    return f"`{to_camel(name)}`", _meaning(row, meaning), _takes(row), default


def _default(row: Row) -> str:
    return "`false`" if row.default is False else row.option.default or ""


def _takes(row: Row) -> str:
    option = row.option
    if row.kind == "flag":
        return "`true`, `false`"
    if row.kind in ("choice", "choices"):
        listed = ", ".join(f"`{each}`" for each in row.choices)
        return f"{listed}, with commas" if row.kind == "choices" else listed
    if row.kind not in ("whole", "number"):
        return "text, repeatable" if row.kind == "texts" else "text"
    if option.least is None and option.above is None:
        return "a number"
    if option.least is None:
        most = "" if option.most is None else f", up to {option.most:,.15g}"
        return f"above {option.above:g}{most}"
    most = "" if option.most is None else f" to {option.most:,.15g}"
    return f"from {option.least:g}{most}"


def judges_table() -> str:
    """Every kind of judge."""
    lines = [(", ".join(f"`{n}`" for n in k.names), k.about, k.modes) for k in JUDGE_KINDS]
    return _table(("judge", "what it is", "modes"), lines)


def _meaning(row: Row, text: str) -> str:
    text = text.replace("|", "\\|")
    return f"{text} [More]({row.option.more})" if row.option.more else text


def formats_table() -> str:
    """What files of data may be."""
    lines = [
        (each.label, ", ".join(f"`{ending}`" for ending in each.endings), each.row, each.number)
        for each in FORMATS
    ]
    return _table(("format", "endings", "a row is", "row number"), lines)


TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "data.md": {"formats": formats_table},
    "settings.md": {"options": options_table, "sides": sides_table},
    "judges.md": {"judges": judges_table},
    "http.md": {
        "compare options": compare_table,
        "run options": run_table,
        **{each.name: partial(analysis_table, each) for each in OURS.values() if each.served},
    },
}


def written(page: str) -> str:
    """The page with its tables as they should be."""
    text = (DOCS / page).read_text("utf-8")
    for name, table in TABLES[page].items():
        before, begin, rest = text.partition(f"<!-- {name}: generated -->\n")
        _, end, after = rest.partition("<!-- end -->\n")
        if not begin or not end:
            raise SystemExit(f"docs/{page} has no place for the table {name}")
        text = f"{before}{begin}\n{table()}\n\n{end}{after}"
    return text


if __name__ == "__main__":
    for page in TABLES:
        (DOCS / page).write_text(written(page), encoding="utf-8")
