"""Many pairs through one or more judges: paced, within a budget, resumable."""

from __future__ import annotations

from evenhand.runs.engine import judge_pairs, judge_stored
from evenhand.runs.estimate import Estimate, Range
from evenhand.runs.observer import Observer
from evenhand.runs.options import RunOptions
from evenhand.runs.plan import JudgePlan
from evenhand.runs.progress import Progress
from evenhand.runs.rank_adaptive import RankAdaptive
from evenhand.runs.sources import ModelOutputs, PairFiles, Sources, given_pairs
from evenhand.runs.stop import STOPPED_STATUS, Stop, StoppedBy
from evenhand.runs.summary import JudgeSummary, RunSummary, Spent
from evenhand.runs.until_decided import UntilDecided

__all__ = [
    "STOPPED_STATUS",
    "Estimate",
    "JudgePlan",
    "JudgeSummary",
    "ModelOutputs",
    "Observer",
    "PairFiles",
    "Progress",
    "Range",
    "RankAdaptive",
    "RunOptions",
    "RunSummary",
    "Sources",
    "Spent",
    "Stop",
    "StoppedBy",
    "UntilDecided",
    "given_pairs",
    "judge_pairs",
    "judge_stored",
]
