"""Calibrations: learned from a run's labels and checked on labels they have not seen, saved with
what they were learned on, opened and applied.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract import JudgedBy
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.stats.calibration.curves import Constant
from evenhand.stats.calibration.fit import (
    FEWEST_PROMPTS,
    Calibration,
    Method,
    cross_fitted,
    fit_calibration,
)
from evenhand.stats.calibration.guarantee import Guarantee, guarantee_agreement
from evenhand.stats.calibration.reliability import CalibrationChange, calibration_change
from evenhand.stats.outcomes import confidence_level
from evenhand.store import Store
from evenhand.trust.labelled_verdicts import (
    LabelledVerdicts,
    labelled_verdicts,
)
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


ERROR_LEVEL = 0.05


class CalibrationReport(Model):
    """What was learned, and `change`: before and after.

    `tested`: by calibrations that never saw the row's prompt (`cross-fitted`), or, where half of
    the prompts were kept for the guarantee, by this very one on that half (`held out`). There
    `better_than_base_rate` is whether the Brier score is below that of the share that is right
    alone, its whole interval; None where nothing but that share was learned, or it is not known.
    """

    run: str
    store: str
    saved: str | None = None
    digest: str
    learned_on: JudgedBy
    verdicts: int
    prompts: int
    by_data: int
    by_people: int
    unlabelled: int
    inconsistent: int
    invalid: int
    signals: tuple[str, ...]
    tested: Literal["cross-fitted", "held out"]
    change: CalibrationChange
    better_than_base_rate: bool | None
    calibration: SavedCalibration
    level: float
    drawn_from: int | None = None
    notes: tuple[Sentence, ...] = ()


def sum_up_calibration(report: CalibrationReport) -> tuple[Message, ...]:
    """In sentences: whether the stated confidence can be believed, and if labels teach more."""
    before, learned = report.change.before, report.calibration.calibration
    if before is None:
        stated = Message("trust.calibration_none_stated", right=learned.right, n=learned.n)
    elif before.error is None or before.p_value is None:
        stated = Message("trust.calibration_unknown", reason=before.reason or "")
    elif report.prompts < FEWEST_PROMPTS and not before.distinguishable:
        stated = Message("trust.calibration_few", prompts=report.prompts, fewest=FEWEST_PROMPTS)
    else:
        code = "calibration_off" if before.distinguishable else "calibration_no_error"
        stated = Message(f"trust.{code}", error=before.error, n=before.n, p=before.p_value)
    if isinstance(learned.curve, Constant):
        return stated, Message("trust.calibration_constant", share=learned.curve.probability)
    better = "better" if report.better_than_base_rate else "not_better"
    return stated, Message(f"trust.calibration_{better}")


def calibrate_run(
    store: Store,
    name: str,
    *,
    judge: str | None = None,
    method: Method = "auto",
    min_agreement: float | None = None,
    error_level: float = ERROR_LEVEL,
    level: float = 0.95,
    seed: int = 0,
    most: int | None = None,
) -> CalibrationReport:
    """`min_agreement`: also find the probability above which verdicts agree with labels that
    often, on half of the prompts, which the calibration then has not seen. Of more labelled
    verdicts than `most`, so many are drawn, and `drawn_from` says of how many."""
    confidence_level(level)
    labelled = labelled_verdicts(
        store, name, judge=judge, evenly=min_agreement is not None, most=most, seed=seed
    )
    signals = _known(labelled)
    everyone = np.ones(labelled.right.size, dtype=np.bool_)
    apart = everyone if min_agreement is None else half_of_prompts(labelled.prompts, seed=seed)
    right, columns, prompts = _rows(labelled, signals, apart)
    learned = fit_calibration(right, columns, prompts=prompts, method=method)
    guarantee = None
    if min_agreement is None:
        after = cross_fitted(right, columns, prompts=prompts, method=method, seed=seed)
        tested = everyone
    else:
        tested = ~apart
        right, columns, prompts = _rows(labelled, signals, tested)
        after = learned.predict(columns)
        guarantee = guarantee_agreement(
            # A verdict that shows none of the signals abstains, so it is not promised either.
            np.where(learned.can_tell(columns), after, np.nan),
            right,
            target=min_agreement,
            error_level=error_level,
            prompts=prompts,
            level=level,
            seed=seed,
        )
    saved = SavedCalibration(
        run=labelled.run,
        learned_on=labelled.asked,
        data=labelled.data,
        judged_at=labelled.judged_at,
        calibration=learned,
        guarantee=guarantee,
    )
    change = calibration_change(
        labelled.before[tested],
        after,
        right,
        prompts=prompts,
        # Known from the same labels as the curve; those kept apart would know more.
        base_rate=None if min_agreement is None else learned.base_rate,
        level=level,
        seed=seed,
    )
    skill = change.after_all.brier_skill
    return CalibrationReport(
        run=labelled.run,
        store=store.address,
        digest=saved.digest,
        learned_on=saved.learned_on,
        verdicts=labelled.right.size,
        prompts=int(np.unique(labelled.prompts).size),
        by_data=labelled.by_data,
        by_people=labelled.by_people,
        unlabelled=labelled.unlabelled,
        inconsistent=labelled.inconsistent,
        invalid=labelled.invalid,
        signals=signals,
        tested="cross-fitted" if min_agreement is None else "held out",
        change=change,
        better_than_base_rate=None if skill.low is None or not learned.goes_by else skill.low > 0,
        calibration=saved,
        level=level,
        drawn_from=labelled.drawn_from,
        notes=tuple(_notes(labelled, saved)),
    )


def half_of_prompts(prompts: NDArray[np.int64], *, seed: int) -> NDArray[np.bool_]:
    """The rows of a random half of the prompts."""
    distinct = np.unique(prompts)
    if distinct.size < 2:
        raise InputError(Message("trust.too_few_to_part", size=distinct.size))
    drawn = np.random.default_rng(seed).permutation(distinct)[: distinct.size // 2]
    rows: NDArray[np.bool_] = np.isin(prompts, drawn)
    return rows


def _known(labelled: LabelledVerdicts) -> tuple[str, ...]:
    """The signals that some verdict has: the others are not the judge's to give."""
    known = [name for name, column in labelled.signals.items() if not np.isnan(column).all()]
    return tuple(known) or ("length",)  # missing everywhere, where there are only ties


def _rows(
    labelled: LabelledVerdicts, names: tuple[str, ...], rows: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]], NDArray[np.int64]]:
    columns = {name: labelled.signals[name][rows] for name in names}
    return labelled.right[rows], columns, labelled.prompts[rows]


def _notes(labelled: LabelledVerdicts, saved: SavedCalibration) -> list[str]:
    notes: list[str] = []
    if labelled.drawn_from is not None:
        notes.append(
            Message(
                "trust.verdicts_sampled",
                size=labelled.right.size,
                drawn_from=labelled.drawn_from,
            )
        )
    learned = saved.calibration
    if learned.reason is not None and isinstance(learned.curve, Constant):
        used = learned.curve.probability
        notes.append(Message("trust.constant_confidence", reason=learned.reason, share=used))
    if labelled.by_doubt:
        notes.append(Message("trust.labels_by_doubt", n=labelled.by_doubt))
    if labelled.unasked:
        notes.append(Message("trust.unasked_pairs", n=labelled.unasked))
    if labelled.inconsistent:
        notes.append(Message("trust.inconsistent_pairs", n=labelled.inconsistent))
    guarantee = saved.guarantee
    if guarantee is not None and guarantee.threshold is None:
        notes.append(Message("trust.all_abstain", reason=guarantee.reason))
    return notes
