"""A pair before its judge, with everything decided that can be before asking."""

from __future__ import annotations

import time
from dataclasses import dataclass

from evenhand.contract import Mode, Order, Pair, Reconciling
from evenhand.judges import Judge
from evenhand.procedure import Procedure
from evenhand.prompts import Prompt, response_digests


@dataclass(frozen=True, slots=True)
class Case:
    pair: Pair
    judge: Judge
    procedure: Procedure
    mode: Mode
    how: Reconciling
    prompt: Prompt | None
    started: float

    @classmethod
    def of(cls, pair: Pair, judge: Judge, procedure: Procedure) -> Case:
        mode = procedure.mode_for(judge)
        prompt = None
        if judge.traits.needs_prompt:
            prompt = Prompt.of(pair, procedure.template_for(mode))
        how = procedure.reconciling(mode)
        procedure.calibration_for(judge)
        return cls(pair, judge, procedure, mode, how, prompt, time.perf_counter())

    @property
    def first_order(self) -> Order | None:
        """The order whose first-shown response has the smaller hash; None where they are the same.

        The one property of an order that does not depend on what the caller calls A.
        """
        a, b = self.prompt.responses if self.prompt else response_digests(self.pair)
        if a == b:
            return None
        return "original" if a < b else "swapped"


def milliseconds_since(begun: float) -> float:
    return round((time.perf_counter() - begun) * 1000, 3)
