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
    from evenhand.api import audit as audit
    from evenhand.api import calibrate as calibrate
    from evenhand.api import compare as compare
    from evenhand.api import compare_sync as compare_sync
    from evenhand.api import conclude as conclude
    from evenhand.api import correct as correct
    from evenhand.api import gate as gate
    from evenhand.api import open_judge as open_judge
    from evenhand.api import rank as rank
    from evenhand.api import rank_responses as rank_responses
    from evenhand.api import run as run
    from evenhand.api import run_sync as run_sync
    from evenhand.contract import Ballot as Ballot
    from evenhand.contract import Criterion as Criterion
    from evenhand.contract import Failure as Failure
    from evenhand.contract import Outcome as Outcome
    from evenhand.contract import Pair as Pair
    from evenhand.contract import Unread as Unread
    from evenhand.contract import Verdict as Verdict
    from evenhand.contract import read_pair as read_pair
    from evenhand.errors import EvenhandError as EvenhandError
    from evenhand.errors import InputError as InputError
    from evenhand.errors import JudgeError as JudgeError
    from evenhand.errors import NoVerdict as NoVerdict
    from evenhand.judges import Judge as Judge
    from evenhand.judges import RetryPolicy as RetryPolicy
    from evenhand.judges.prices import Price as Price
    from evenhand.judging.config import JudgeConfig as JudgeConfig
    from evenhand.prompts import open_template as open_template
    from evenhand.report.ranking import RankOptions as RankOptions
    from evenhand.runs import Progress as Progress
    from evenhand.runs import RankAdaptive as RankAdaptive
    from evenhand.runs import RunOptions as RunOptions
    from evenhand.runs import RunSummary as RunSummary
    from evenhand.runs import UntilDecided as UntilDecided
    from evenhand.trust.calibration import open_calibration as open_calibration

__version__ = "0.1.0"

_HOME = {
    "Ballot": "evenhand.contract",
    "Criterion": "evenhand.contract",
    "EvenhandError": "evenhand.errors",
    "Failure": "evenhand.contract",
    "InputError": "evenhand.errors",
    "Judge": "evenhand.judges",
    "JudgeError": "evenhand.errors",
    "NoVerdict": "evenhand.errors",
    "Outcome": "evenhand.contract",
    "Pair": "evenhand.contract",
    "JudgeConfig": "evenhand.judging.config",
    "Price": "evenhand.judges.prices",
    "Progress": "evenhand.runs",
    "RankOptions": "evenhand.report.ranking",
    "RankAdaptive": "evenhand.runs",
    "RetryPolicy": "evenhand.judges",
    "RunOptions": "evenhand.runs",
    "RunSummary": "evenhand.runs",
    "UntilDecided": "evenhand.runs",
    "Unread": "evenhand.contract",
    "Verdict": "evenhand.contract",
    "audit": "evenhand.api",
    "calibrate": "evenhand.api",
    "compare": "evenhand.api",
    "compare_sync": "evenhand.api",
    "conclude": "evenhand.api",
    "correct": "evenhand.api",
    "gate": "evenhand.api",
    "open_calibration": "evenhand.trust.calibration",
    "open_judge": "evenhand.api",
    "open_template": "evenhand.prompts",
    "rank": "evenhand.api",
    "rank_responses": "evenhand.api",
    "read_pair": "evenhand.contract",
    "run": "evenhand.api",
    "run_sync": "evenhand.api",
}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name == "stats":  # a room of its own, `evenhand.stats.rank_battles`
        return import_module("evenhand.stats")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'evenhand' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
