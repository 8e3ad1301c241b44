"""Learn a calibration from a run's labels, and say what it is worth on labels it has not seen."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.stats.calibration import cross_fitted, fit_calibration
from evenhand.stats.calibration_change import CalibrationChange, calibration_change
from evenhand.stats.calibration_choice import Method
from evenhand.stats.guarantee import guarantee_agreement
from evenhand.stats.outcomes import confidence_level
from evenhand.store import Store
from evenhand.trust.calibrations import LearnedOn, SavedCalibration
from evenhand.trust.labelled_verdicts import LabelledVerdicts, labelled_verdicts

ERROR_LEVEL = 0.05


class CalibrationReport(Model):
    """What was learned, and `change`: before and after.

    `tested`: by calibrations that never saw the row's prompt (`cross-fitted`), or, where half of
    the prompts were kept for the guarantee, by this very one on that half (`held out`).
    """

    run: str
    store: str
    saved: str | None = None
    digest: str
    learned_on: LearnedOn
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
    calibration: SavedCalibration
    level: float
    drawn_from: int | None = None
    notes: tuple[str, ...] = ()


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
    found = labelled_verdicts(
        store, name, judge=judge, evenly=min_agreement is not None, most=most, seed=seed
    )
    signals = _known(found)
    everyone = np.ones(found.right.size, dtype=np.bool_)
    apart = everyone if min_agreement is None else half_of_prompts(found.prompts, seed=seed)
    right, columns, prompts = _rows(found, signals, apart)
    learned = fit_calibration(right, columns, prompts=prompts, method=method, seed=seed)
    guarantee = None
    if min_agreement is None:
        after = cross_fitted(right, columns, prompts=prompts, method=method, seed=seed)
        tested = everyone
    else:
        tested = ~apart
        right, columns, prompts = _rows(found, signals, tested)
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
        run=found.run,
        learned_on=LearnedOn.of(found.asked),
        data=found.data,
        judged_at=found.judged_at,
        calibration=learned,
        guarantee=guarantee,
    )
    return CalibrationReport(
        run=found.run,
        store=store.address,
        digest=saved.digest,
        learned_on=saved.learned_on,
        verdicts=found.right.size,
        prompts=int(np.unique(found.prompts).size),
        by_data=found.by_data,
        by_people=found.by_people,
        unlabelled=found.unlabelled,
        inconsistent=found.inconsistent,
        invalid=found.invalid,
        signals=signals,
        tested="cross-fitted" if min_agreement is None else "held out",
        change=calibration_change(
            found.before[tested],
            after,
            right,
            prompts=prompts,
            # Known from the same labels as the curve; those kept apart would know more.
            base_rate=None if min_agreement is None else learned.base_rate,
            level=level,
            seed=seed,
        ),
        calibration=saved,
        level=level,
        drawn_from=found.drawn_from,
        notes=tuple(_notes(found, saved)),
    )


def half_of_prompts(prompts: NDArray[np.int64], *, seed: int) -> NDArray[np.bool_]:
    """The rows of a random half of the prompts."""
    distinct = np.unique(prompts)
    if distinct.size < 2:
        raise InputError(
            f"{distinct.size} labelled prompt cannot be parted into one to learn from and one for "
            "the guarantee; label more"
        )
    drawn = np.random.default_rng(seed).permutation(distinct)[: distinct.size // 2]
    rows: NDArray[np.bool_] = np.isin(prompts, drawn)
    return rows


def _known(found: LabelledVerdicts) -> tuple[str, ...]:
    """The signals that some verdict has: the others are not the judge's to give."""
    known = [name for name, column in found.signals.items() if not np.isnan(column).all()]
    return tuple(known) or ("length",)  # missing everywhere, where there are only ties


def _rows(
    found: LabelledVerdicts, names: tuple[str, ...], rows: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]], NDArray[np.int64]]:
    columns = {name: found.signals[name][rows] for name in names}
    return found.right[rows], columns, found.prompts[rows]


def _notes(found: LabelledVerdicts, saved: SavedCalibration) -> list[str]:
    notes = []
    if found.drawn_from is not None:
        notes.append(
            f"{found.right.size:,} of {found.drawn_from:,} labelled verdicts were drawn at random, "
            "by whole prompts, and everything here is of these; evenhand calibrate takes all"
        )
    if saved.calibration.reason is not None:
        notes.append(
            f"{saved.calibration.reason}; every verdict gets the share that is right, "
            f"{saved.calibration.base_rate:.3f}"
        )
    if found.by_doubt:
        labels = "1 label is" if found.by_doubt == 1 else f"{found.by_doubt:,} labels are"
        notes.append(
            f"{labels} of a draw that prefers doubtful pairs: the curve holds where its signals "
            "tell the doubt, and over all pairs more verdicts are likely to be right than here"
        )
    if found.unasked:
        notes.append(
            f"{found.unasked:,} labelled pairs are ties of identical responses that no judge was "
            "asked about: nothing is learned from them"
        )
    if found.inconsistent:
        notes.append(
            f"{found.inconsistent:,} labelled pairs are inconsistent: they keep 0.5 by rule, and "
            "nothing is learned from them"
        )
    guarantee = saved.guarantee
    if guarantee is not None and guarantee.threshold is None:
        notes.append(f"{guarantee.reason}; with this calibration every verdict abstains")
    return notes
