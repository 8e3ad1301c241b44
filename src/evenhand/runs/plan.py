"""What a run is made of, and the fingerprint by which the same command finds it again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from evenhand.judges import Judge
from evenhand.judges.prices import Price
from evenhand.judges.protocol import identity_of
from evenhand.procedure import Procedure
from evenhand.runs.recipe import JudgeRecipe
from evenhand.store import NewJudge


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """A judge and how it is asked."""

    judge: Judge
    procedure: Procedure
    price: Price | None = None  # its own; else that of the run's options, or of the price lists
    recipe: JudgeRecipe | None = None  # None: only this process has the judge

    def record(self, *, salt: str | None = None) -> NewJudge:
        """Everything that an answer depends on. Salted, it shares passes with no other run."""
        mode = self.procedure.mode_for(self.judge)
        reads_prompt = self.judge.traits.needs_prompt
        version = self.procedure.template_for(mode).version if reads_prompt else None
        settings = {
            **identity_of(self.judge),
            "confidence": self.procedure.confidence,
            "protocol": self.procedure.protocol,
            "repairs": self.procedure.repairs,
        }
        if salt is not None:
            settings["fresh"] = salt
        locale = self.procedure.locale if reads_prompt else None
        key = digest([self.judge.name, version, locale, mode, settings])
        if self.judge.traits.caveat:
            settings["caveat"] = self.judge.traits.caveat  # said with its verdicts, decides nothing
        return NewJudge(key, self.judge.name, version, locale, mode, settings)

    def deciding(self) -> dict[str, Any]:
        """What the verdict depends on beside the passes."""
        mode = self.procedure.mode_for(self.judge)
        calibration = self.procedure.calibration_for(self.judge)
        return {
            "locale": self.procedure.locale,
            "samples": self.procedure.samples,
            "reconcile": self.procedure.reconciling(mode),
            "ask_identical": self.procedure.ask_identical,
            # Only where there is one: runs from before calibrations keep their fingerprints.
            **({} if calibration is None else {"calibration": dict(calibration.told())}),
        }

    def learned_on(self) -> dict[str, Any] | None:
        """What its calibration was learned on, which decides nothing."""
        calibration = self.procedure.calibration_for(self.judge)
        return None if calibration is None else dict(calibration.origin())


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What was asked for, as plain JSON: kept with the run, and compared when it is resumed."""

    data: Mapping[str, Any]  # the sources by their digests, and how rows become pairs
    judges: tuple[str, ...]  # keys
    names: tuple[str, ...]
    deciding: tuple[Mapping[str, Any], ...]
    fresh: str | None = None
    pursued: Mapping[str, Any] = field(default_factory=dict)  # where it ends by itself
    learned_on: tuple[Mapping[str, Any] | None, ...] = ()  # the judges' calibrations

    @classmethod
    def of(
        cls,
        data: Mapping[str, Any],
        judges: Sequence[JudgePlan],
        *,
        fresh: str | None = None,
        pursued: Mapping[str, Any] | None = None,
    ) -> RunPlan:
        return cls(
            data=data,
            judges=tuple(plan.record(salt=fresh).key for plan in judges),
            names=tuple(plan.judge.name for plan in judges),
            deciding=tuple(plan.deciding() for plan in judges),
            fresh=fresh,
            pursued=pursued or {},
            learned_on=tuple(plan.learned_on() for plan in judges),
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "data": dict(self.data),
            "judges": list(self.judges),
            "judge_names": list(self.names),
            "deciding": [dict(each) for each in self.deciding],
            "fresh": self.fresh,
            **({"learned_on": list(self.learned_on)} if any(self.learned_on) else {}),
            **self.pursued,
        }

    @property
    def fingerprint(self) -> str:
        named_by = self.as_json()
        named_by.pop("learned_on", None)
        return digest(named_by)

    def differs_in(self, other: Mapping[str, Any]) -> str:
        """In words, for somebody who gave a new command an old run's name."""
        mine = json.loads(json.dumps(self.as_json()))
        if mine["data"] != other.get("data"):
            return "other data, or other criteria"
        if mine["judge_names"] != other.get("judge_names"):
            return "other judges"
        if mine["judges"] != other.get("judges"):
            return "another prompt, or other settings of the judge"
        if mine["deciding"] != other.get("deciding"):
            return "another way to decide (--samples, --reconcile, --calibration)"
        return "another end (--until-decided, --rank-adaptive, --alpha, --certainty, --seed)"


def digest(value: Any) -> str:
    told = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:32]
