"""What `auditJudge` gives back; it brings the statistics along."""

from __future__ import annotations

from evenhand.serve.report_values import AuditReport
from evenhand.serve.values import RunStatus


class ToolAudit(AuditReport):
    """The audit, and the run that it is of."""

    run: RunStatus
