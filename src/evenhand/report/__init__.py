"""What is stored, as plain values, then the forms they are given. Values: `lookup`, `run`,
`records`, `win_rates`, `abstentions`, `conclusions`, `gate`, `ranked_verdicts`, `ranking`.
Forms: `files`, `export`, `charts`; text and HTML are made in `cli` and `serve`.
"""

from evenhand.report.export import FORMATS, Exported, Format, export_run, format_for
from evenhand.report.lookup import find_item, find_run
from evenhand.report.records import (
    CriterionResult,
    JudgedPair,
    PairReport,
    RunRow,
    StoredAnswer,
    read_run,
    report_pair,
)
from evenhand.report.run import JudgeReport, RunLine, RunReport, list_runs, look_over, report_run
from evenhand.stats.proportions import Share

__all__ = [
    "FORMATS",
    "CriterionResult",
    "Exported",
    "Format",
    "JudgeReport",
    "JudgedPair",
    "PairReport",
    "RunLine",
    "RunReport",
    "RunRow",
    "Share",
    "StoredAnswer",
    "export_run",
    "find_item",
    "find_run",
    "format_for",
    "list_runs",
    "look_over",
    "read_run",
    "report_pair",
    "report_run",
]
