"""Reports and audits as clients get them.

Apart from the other values, since their parts bring the statistics along, which a server needs
only once somebody asks for figures.
"""

from __future__ import annotations

from evenhand.contract.model import Model
from evenhand.report.conclusions import Conclusions
from evenhand.report.run import RunReport
from evenhand.trust.audit import Audit
from evenhand.trust.findings import Findings


class Report(Model):
    """What a run came to and took, and what can be concluded from it."""

    run: RunReport
    conclusions: Conclusions


class AuditReport(Model):
    audit: Audit
    findings: Findings
