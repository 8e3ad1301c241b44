"""A learned calibration with what it was learned on: saved, opened again, and put to use."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from evenhand.contract import Locale, Mode, Pair, Reconciling, Vote
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.procedure import JudgedBy, Rating
from evenhand.reconcile import Decision, Reading
from evenhand.report.whole_file import written_whole
from evenhand.stats.calibration import Calibration
from evenhand.stats.guarantee import Guarantee
from evenhand.trust.verdict_signals import SignalValues, signals_of

FOLDER_VARIABLE = "EVENHAND_CALIBRATIONS"
_NAME = re.compile(r"[\w][\w.+-]{0,99}")
_KNOWN_BY = {
    "judge": "the judge",
    "locale": "the language",
    "mode": "the mode",
    "prompt_version": "the prompt version",
    "reconcile": "--reconcile",
    "samples": "--samples",
}


class LearnedOn(Model):
    """Whose verdicts taught it. It knows nothing of other judges, nor of other ways to ask."""

    judge: str
    prompt_version: str | None
    locale: Locale | None
    mode: Mode
    reconcile: Reconciling
    samples: int

    @classmethod
    def of(cls, asked: JudgedBy) -> LearnedOn:
        return cls(**asked._asdict())


class SavedCalibration(Model):
    """`guarantee` is there where a least agreement was asked for; its threshold may be None."""

    format: Literal["evenhand calibration 1"] = "evenhand calibration 1"
    run: str
    learned_on: LearnedOn
    data: tuple[str, ...] = ()  # the run's own sources; none in files of earlier versions
    judged_at: date | None = None
    calibration: Calibration
    guarantee: Guarantee | None = None

    @property
    def digest(self) -> str:
        """Of all that decides; where it was learned is no part of that."""
        told = self.model_dump(mode="json", include={"learned_on", "calibration"})
        limits = None
        if self.guarantee is not None:
            limits = [self.guarantee.target, self.guarantee.error_level, self.guarantee.threshold]
        text = json.dumps([told, limits], sort_keys=True, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class AppliedCalibration:
    """What a procedure takes. `forced`: on judges that it was not learned on, too."""

    saved: SavedCalibration
    forced: bool = False
    name: str | None = None

    def told(self) -> dict[str, Any]:
        guarantee = self.saved.guarantee
        told: dict[str, Any] = {"digest": self.saved.digest}
        if guarantee is not None:
            told |= {"min_agreement": guarantee.target, "threshold": guarantee.threshold}
        return told

    def origin(self) -> dict[str, Any]:
        saved, learned = self.saved, self.saved.guarantee or self.saved.calibration
        return {
            "calibration": self.name,
            "run": saved.run,
            "data": list(saved.data),
            "judged_at": None if saved.judged_at is None else saved.judged_at.isoformat(),
            "labels": learned.n,
            "prompts": learned.prompts,
        }

    def check(self, asked: JudgedBy) -> None:
        if self.forced:
            return
        learned = self.saved.learned_on
        for field, what in _KNOWN_BY.items():
            known, wanted = getattr(learned, field), getattr(asked, field)
            if known != wanted:
                raise InputError(
                    f"the calibration was learned on another judge: {what} was "
                    f"{_shown(known)} and is {_shown(wanted)}; learn one on this judge with "
                    "evenhand calibrate, or give --force-calibration"
                )

    def rate(self, pair: Pair, readings: Sequence[Reading | Vote], decision: Decision) -> Rating:
        """A verdict that shows none of the signals keeps its confidence, and so does an
        inconsistent one, whose outcome says enough; the former cannot be vouched for."""
        signals = signals_of(pair, readings, decision)
        if signals is None:
            return Rating(decision.confidence, decision.confidence_source, abstained=False)
        probability = self.probability(signals)
        if probability is None:
            return Rating(
                decision.confidence, decision.confidence_source, abstained=self.abstains_unasked
            )
        below = not keeps(self.saved.guarantee, probability)
        return Rating(probability, "calibration", abstained=below)

    def probability(self, signals: SignalValues) -> float | None:
        """None where the verdict has none of the signals that the curve goes by."""
        used = self.saved.calibration.goes_by
        if used and all(signals.get(name) is None for name in used):
            return None
        columns: Mapping[str, list[float | None]] = {
            name: [value] for name, value in signals.items()
        }
        return float(self.saved.calibration.predict(columns)[0])

    @property
    def abstains_unasked(self) -> bool:
        return self.saved.guarantee is not None


def keeps(guarantee: Guarantee | None, probability: float) -> bool:
    if guarantee is None:
        return True
    return guarantee.threshold is not None and probability >= guarantee.threshold


def open_calibration(name: str | Path, *, forced: bool = False) -> AppliedCalibration:
    """By the name it was saved under, or a path that ends in .json."""
    path = calibration_path(name)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(_not_there(name, path)) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    try:
        saved = SavedCalibration.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise InputError(
            f"{path} is no calibration ({where}: {first['msg']}); "
            "make one with evenhand calibrate RUN --save NAME"
        ) from None
    return AppliedCalibration(saved, forced, name=path.stem)


def save_calibration(saved: SavedCalibration, name: str | Path, *, overwrite: bool = False) -> Path:
    path = calibration_path(name)
    with written_whole(path, overwrite=overwrite, make_folder=_is_named(name)) as stream:
        stream.write(saved.model_dump_json(indent=2).encode() + b"\n")
    return path


def calibration_path(name: str | Path) -> Path:
    if not _is_named(name):
        return Path(name).expanduser()
    if not _NAME.fullmatch(str(name)):
        raise InputError(
            f"{str(name)!r} is no name for a calibration; use letters, digits, . + - and _, "
            "or a path that ends in .json"
        )
    return calibration_folder() / f"{name}.json"


def calibration_folder() -> Path:
    """EVENHAND_CALIBRATIONS, or a folder in the user's data directory."""
    named = os.environ.get(FOLDER_VARIABLE, "").strip()
    if named:
        return Path(named).expanduser()
    from platformdirs import user_data_dir

    return Path(user_data_dir("evenhand")) / "calibrations"


def _is_named(name: str | Path) -> bool:
    return not str(name).endswith(".json")


def _shown(value: object) -> str:
    return "none" if value is None else str(value)


def _not_there(name: str | Path, path: Path) -> str:
    known = sorted(each.stem for each in path.parent.glob("*.json")) if _is_named(name) else []
    there = f"there are {', '.join(known[:5])}" if known else f"{path} does not exist"
    return (
        f"there is no calibration {str(name)!r} ({there}); "
        "make it with evenhand calibrate RUN --save NAME"
    )
