"""Calibrations: saved with what they were learned on, opened and applied. `analyses/calibrate.py`
learns them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from evenhand.contract import JudgedBy
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.stats.calibration.fit import Calibration
from evenhand.stats.calibration.guarantee import Guarantee
from evenhand.trust.saved_files import SavedFiles

_KNOWN_BY = {
    "judge": "known.judge",
    "locale": "known.locale",
    "mode": "known.mode",
    "prompt_version": "known.prompt_version",
    "reconcile": "known.reconcile",
    "samples": "known.samples",
}


class SavedCalibration(Model):
    """`guarantee` is there where a least agreement was asked for; its threshold may be None."""

    format: Literal["evenhand calibration 2"] = "evenhand calibration 2"
    run: str
    learned_on: JudgedBy  # whose verdicts taught it; it knows nothing of other judges
    data: tuple[str, ...] = ()  # the run's own sources; none in files of earlier versions
    judged_at: date | None = None
    calibration: Calibration
    guarantee: Guarantee | None = None

    @property
    def digest(self) -> str:
        """Of everything that decides; where it was learned does not."""
        decisive = self.model_dump(mode="json", include={"learned_on", "calibration"})
        limits = None
        if self.guarantee is not None:
            limits = [self.guarantee.target, self.guarantee.error_level, self.guarantee.threshold]
        text = json.dumps([decisive, limits], sort_keys=True, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class AppliedCalibration:
    """What a config takes. `forced`: on judges that it was not learned on, too."""

    saved: SavedCalibration
    forced: bool = False
    name: str | None = None

    def identity(self) -> dict[str, Any]:
        guarantee = self.saved.guarantee
        identity: dict[str, Any] = {"digest": self.saved.digest}
        if guarantee is not None:
            identity |= {"min_agreement": guarantee.target, "threshold": guarantee.threshold}
        return identity

    def origin(self) -> dict[str, Any]:
        saved, guarantee = self.saved, self.saved.guarantee
        learned = guarantee or saved.calibration
        measured = None if guarantee is None else guarantee.agreement
        return {
            "calibration": self.name,
            "run": saved.run,
            "data": list(saved.data),
            "judged_at": None if saved.judged_at is None else saved.judged_at.isoformat(),
            "labels": learned.n,
            "prompts": learned.prompts,
            "agreement": None if measured is None else measured.model_dump(mode="json"),
        }

    def check(self, asked: JudgedBy) -> None:
        if self.forced:
            return
        learned = self.saved.learned_on
        for field, code in _KNOWN_BY.items():
            known, wanted = getattr(learned, field), getattr(asked, field)
            if known != wanted:
                raise InputError(
                    Message(
                        "trust.calibration_of_another_judge",
                        what=Message(code),
                        known=_shown(known),
                        wanted=_shown(wanted),
                    )
                )

    def probability(self, signals: Mapping[str, float | None]) -> float | None:
        """None if the verdict has none of the signals that the curve uses."""
        used = self.saved.calibration.goes_by
        if used and all(signals.get(name) is None for name in used):
            return None
        columns: Mapping[str, list[float | None]] = {
            name: [value] for name, value in signals.items()
        }
        return float(self.saved.calibration.predict(columns)[0])

    def abstains(self, probability: float | None) -> bool:
        guarantee = self.saved.guarantee
        return guarantee is not None and not guarantee.keeps([probability])[0]


CALIBRATION_FILES = SavedFiles(
    SavedCalibration,
    "calibration",
    "calibrations",
    make="saved.make_calibration",
    folder_variable="EVENHAND_CALIBRATIONS",
)


def open_calibration(name: str | Path, *, forced: bool = False) -> AppliedCalibration:
    """Open a calibration by its saved name, or by a path that ends in .json."""
    saved = CALIBRATION_FILES.open(name)
    return AppliedCalibration(saved, forced, name=CALIBRATION_FILES.path(name).stem)


def save_calibration(saved: SavedCalibration, name: str | Path, *, overwrite: bool = False) -> Path:
    return CALIBRATION_FILES.save(saved, name, overwrite=overwrite)


def _shown(value: object) -> str:
    return "none" if value is None else str(value)
