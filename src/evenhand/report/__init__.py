"""What is stored, as plain values: tables of runs, one run in numbers, one pair whole, exports."""

from evenhand.report.export import FORMATS, Exported, Format, export_run, format_for
from evenhand.report.lookup import find_item, find_run
from evenhand.report.overview import RunLine, list_runs, look_over
from evenhand.report.pair import JudgedPair, PairReport, StoredAnswer, report_pair
from evenhand.report.records import CriterionResult, RunRow, read_run
from evenhand.report.run import JudgeReport, RunReport, report_run
from evenhand.stats.share import Share

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
