"""evenhand: an even-handed LLM judge.

    import evenhand

    verdict = evenhand.compare_sync(
        {"prompt": "…", "responseA": "…", "responseB": "…", "criteria": ["accuracy"]},
        judge="openai:gpt-4o",
    )
    print(verdict.winner, verdict.confidence)

Names are loaded when first used, so that `import evenhand` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand import stats as stats
    from evenhand import tools as tools
    from evenhand.analysis_options import AuditOptions as AuditOptions
    from evenhand.analysis_options import CalibrateOptions as CalibrateOptions
    from evenhand.analysis_options import CorrectOptions as CorrectOptions
    from evenhand.analysis_options import DiffOptions as DiffOptions
    from evenhand.analysis_options import GateOptions as GateOptions
    from evenhand.analysis_options import RankOptions as RankOptions
    from evenhand.analysis_options import ReportOptions as ReportOptions
    from evenhand.api import compare as compare
    from evenhand.api import compare_many as compare_many
    from evenhand.api import compare_many_sync as compare_many_sync
    from evenhand.api import compare_sync as compare_sync
    from evenhand.api import open_judge as open_judge
    from evenhand.api import rank_responses as rank_responses
    from evenhand.api_runs import ab as ab
    from evenhand.api_runs import ab_sync as ab_sync
    from evenhand.api_runs import audit as audit
    from evenhand.api_runs import calibrate as calibrate
    from evenhand.api_runs import conclude as conclude
    from evenhand.api_runs import correct as correct
    from evenhand.api_runs import diff as diff
    from evenhand.api_runs import flag as flag
    from evenhand.api_runs import gate as gate
    from evenhand.api_runs import rank as rank
    from evenhand.api_runs import run as run
    from evenhand.api_runs import run_sync as run_sync
    from evenhand.api_runs import suggest_criteria as suggest_criteria
    from evenhand.api_runs import suggest_criteria_sync as suggest_criteria_sync
    from evenhand.contract import Ballot as Ballot
    from evenhand.contract import Criterion as Criterion
    from evenhand.contract import Failure as Failure
    from evenhand.contract import Outcome as Outcome
    from evenhand.contract import Pair as Pair
    from evenhand.contract import Unread as Unread
    from evenhand.contract import Usage as Usage
    from evenhand.contract import Verdict as Verdict
    from evenhand.contract import read_pair as read_pair
    from evenhand.data.orders import OrderDraw as OrderDraw
    from evenhand.errors import EvenhandError as EvenhandError
    from evenhand.errors import InputError as InputError
    from evenhand.errors import JudgeAuthentication as JudgeAuthentication
    from evenhand.errors import JudgeConnectionLost as JudgeConnectionLost
    from evenhand.errors import JudgeError as JudgeError
    from evenhand.errors import JudgeGarbled as JudgeGarbled
    from evenhand.errors import JudgeQuotaExceeded as JudgeQuotaExceeded
    from evenhand.errors import JudgeRateLimited as JudgeRateLimited
    from evenhand.errors import JudgeRejected as JudgeRejected
    from evenhand.errors import JudgeServerError as JudgeServerError
    from evenhand.errors import JudgeTimeout as JudgeTimeout
    from evenhand.errors import JudgeUnreachable as JudgeUnreachable
    from evenhand.errors import NoVerdict as NoVerdict
    from evenhand.judges.function import judge as judge
    from evenhand.judges.prices import Price as Price
    from evenhand.judges.protocol import ChatMessage as ChatMessage
    from evenhand.judges.protocol import Completion as Completion
    from evenhand.judges.protocol import Judge as Judge
    from evenhand.judges.protocol import JudgeCall as JudgeCall
    from evenhand.judges.protocol import OpenJudge as OpenJudge
    from evenhand.judges.protocol import TokenLogprob as TokenLogprob
    from evenhand.judges.protocol import Traits as Traits
    from evenhand.judges.registry import JudgeName as JudgeName
    from evenhand.judges.registry import JudgeOptions as JudgeOptions
    from evenhand.judges.retry import RetryPolicy as RetryPolicy
    from evenhand.judging.config import JudgeConfig as JudgeConfig
    from evenhand.prompts import open_template as open_template
    from evenhand.runs import Progress as Progress
    from evenhand.runs import RankAdaptive as RankAdaptive
    from evenhand.runs import RunOptions as RunOptions
    from evenhand.runs import RunSummary as RunSummary
    from evenhand.runs import UntilDecided as UntilDecided
    from evenhand.runs.ab import AbSummary as AbSummary
    from evenhand.runs.ab import SideChoice as SideChoice
    from evenhand.trust.calibration import open_calibration as open_calibration

__version__ = "0.1.0"

_HOME = {
    "AbSummary": "evenhand.runs.ab",
    "SideChoice": "evenhand.runs.ab",
    "ab": "evenhand.api_runs",
    "ab_sync": "evenhand.api_runs",
    "audit": "evenhand.api_runs",
    "Ballot": "evenhand.contract",
    "calibrate": "evenhand.api_runs",
    "ChatMessage": "evenhand.judges.protocol",
    "compare": "evenhand.api",
    "compare_many": "evenhand.api",
    "compare_many_sync": "evenhand.api",
    "compare_sync": "evenhand.api",
    "Completion": "evenhand.judges.protocol",
    "conclude": "evenhand.api_runs",
    "correct": "evenhand.api_runs",
    "Criterion": "evenhand.contract",
    "diff": "evenhand.api_runs",
    "DiffOptions": "evenhand.analysis_options",
    "EvenhandError": "evenhand.errors",
    "Failure": "evenhand.contract",
    "flag": "evenhand.api_runs",
    "gate": "evenhand.api_runs",
    "GateOptions": "evenhand.analysis_options",
    "AuditOptions": "evenhand.analysis_options",
    "CalibrateOptions": "evenhand.analysis_options",
    "CorrectOptions": "evenhand.analysis_options",
    "InputError": "evenhand.errors",
    "Judge": "evenhand.judges.protocol",
    "judge": "evenhand.judges.function",
    "JudgeAuthentication": "evenhand.errors",
    "JudgeCall": "evenhand.judges.protocol",
    "JudgeConfig": "evenhand.judging.config",
    "JudgeConnectionLost": "evenhand.errors",
    "JudgeError": "evenhand.errors",
    "JudgeGarbled": "evenhand.errors",
    "JudgeName": "evenhand.judges.registry",
    "JudgeOptions": "evenhand.judges.registry",
    "JudgeQuotaExceeded": "evenhand.errors",
    "JudgeRateLimited": "evenhand.errors",
    "JudgeRejected": "evenhand.errors",
    "JudgeServerError": "evenhand.errors",
    "JudgeTimeout": "evenhand.errors",
    "JudgeUnreachable": "evenhand.errors",
    "NoVerdict": "evenhand.errors",
    "open_calibration": "evenhand.trust.calibration",
    "open_judge": "evenhand.api",
    "open_template": "evenhand.prompts",
    "OpenJudge": "evenhand.judges.protocol",
    "OrderDraw": "evenhand.data.orders",
    "Outcome": "evenhand.contract",
    "Pair": "evenhand.contract",
    "Price": "evenhand.judges.prices",
    "Progress": "evenhand.runs",
    "rank": "evenhand.api_runs",
    "rank_responses": "evenhand.api",
    "RankAdaptive": "evenhand.runs",
    "RankOptions": "evenhand.analysis_options",
    "read_pair": "evenhand.contract",
    "ReportOptions": "evenhand.analysis_options",
    "RetryPolicy": "evenhand.judges.retry",
    "run": "evenhand.api_runs",
    "run_sync": "evenhand.api_runs",
    "RunOptions": "evenhand.runs",
    "RunSummary": "evenhand.runs",
    "suggest_criteria": "evenhand.api_runs",
    "suggest_criteria_sync": "evenhand.api_runs",
    "TokenLogprob": "evenhand.judges.protocol",
    "Traits": "evenhand.judges.protocol",
    "Unread": "evenhand.contract",
    "UntilDecided": "evenhand.runs",
    "Usage": "evenhand.contract",
    "Verdict": "evenhand.contract",
}

_MODULES = ("stats", "tools")  # `import evenhand` is enough for `evenhand.tools.run_tool`

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"evenhand.{name}")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'evenhand' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
