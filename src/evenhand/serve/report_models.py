"""The models of figures, loaded when somebody asks for them: they bring the statistics along."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.report.conclusions import Conclusions
    from evenhand.report.ranking import RunRanking
    from evenhand.serve.report_values import AuditReport, Report


def report_model() -> type[Report]:
    from evenhand.serve.report_values import Report

    return Report


def conclusions_model() -> type[Conclusions]:
    from evenhand.report.conclusions import Conclusions

    return Conclusions


def ranking_model() -> type[RunRanking]:
    from evenhand.report.ranking import RunRanking

    return RunRanking


def audit_model() -> type[AuditReport]:
    from evenhand.serve.report_values import AuditReport

    return AuditReport
