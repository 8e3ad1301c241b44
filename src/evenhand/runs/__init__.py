"""Many pairs through one or more judges: paced, within a budget, resumable.

In the order in which a run meets them: `options` and `plan` (what is to be done, and which
stored run that is), `sources` (rows become items), `estimate` and `budget` (what it takes and
what it may), `stop_rules` and `stop` (when it ends), `executor` with `local`, `batch` and `ray`
(who judges; `pacing`, `supply`, `writer` and `telemetry` serve them), `progress` and `summary`
(what it shows and returns). `engine` runs through all of them. `criteria` reads the data that
criteria are suggested from.
"""

from __future__ import annotations

from evenhand.runs.engine import judge_pairs, judge_stored
from evenhand.runs.estimate import Estimate, Range
from evenhand.runs.options import RankAdaptive, RunOptions, UntilDecided
from evenhand.runs.plan import JudgePlan
from evenhand.runs.progress import Observer, Progress
from evenhand.runs.sources import (
    ModelOutputs,
    PairFiles,
    Sources,
    given_outputs,
    given_pairs,
)
from evenhand.runs.stop import STOPPED_STATUS, Stop, StoppedBy
from evenhand.runs.summary import RunSummary

__all__ = [
    "STOPPED_STATUS",
    "Estimate",
    "JudgePlan",
    "ModelOutputs",
    "Observer",
    "PairFiles",
    "Progress",
    "Range",
    "RankAdaptive",
    "RunOptions",
    "RunSummary",
    "Sources",
    "Stop",
    "StoppedBy",
    "UntilDecided",
    "given_outputs",
    "given_pairs",
    "judge_pairs",
    "judge_stored",
]
