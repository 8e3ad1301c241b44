"""What a run's labels teach of its judge's confidence: learned, and checked on labels that were not
learned from; before and after, and from where on verdicts can be relied on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.analyses.registry import AnalysisSubject
from evenhand.analysis_options import CalibrateOptions
from evenhand.blocks import Block, Facts, Grid, Next, NoteLines, Rate, Rates, Remark
from evenhand.blocks import Sentence as Line
from evenhand.contract import JudgedBy
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence, chained
from evenhand.messages.numbers import rate
from evenhand.quantities import counted, counted_share, listed
from evenhand.stats.calibration.curves import Constant
from evenhand.stats.calibration.fit import (
    FEWEST_PROMPTS,
    Calibration,
    cross_fitted,
    fit_calibration,
)
from evenhand.stats.calibration.guarantee import Guarantee, guarantee_agreement
from evenhand.stats.calibration.reliability import (
    CalibrationChange,
    CalibrationError,
    calibration_change,
)
from evenhand.stats.outcomes import confidence_level
from evenhand.trust.calibration import CALIBRATION_FILES, SavedCalibration, save_calibration
from evenhand.trust.labelled_verdicts import LabelledVerdicts, labelled_verdicts

_ERROR_LEVEL = 0.05


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


Result = CalibrationReport


def check(options: CalibrateOptions) -> None:
    if options.error_level is not None and options.min_agreement is None:
        raise InputError(Message("calibration.error_level_alone"))
    save = options.save
    if save is not None and not options.force and CALIBRATION_FILES.path(save).exists():
        raise InputError(Message("calibration.already_there", save=save))


def compute(subject: AnalysisSubject, options: CalibrateOptions) -> CalibrationReport:
    """With a least agreement, half of the prompts are kept for finding the probability above which
    verdicts agree with labels that often; the calibration has not seen them."""
    store, level, seed = subject.store, options.level, options.seed
    method, min_agreement = options.method, options.min_agreement
    confidence_level(level)
    labelled = labelled_verdicts(
        store,
        subject.run.name,
        judge=options.judge,
        evenly=min_agreement is not None,
        most=subject.most,
        seed=seed,
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
            error_level=_ERROR_LEVEL if options.error_level is None else options.error_level,
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


def finish(result: CalibrationReport, options: CalibrateOptions) -> CalibrationReport:
    if options.save is None:
        return result
    path = save_calibration(result.calibration, options.save, overwrite=options.force)
    return result.model_copy(update={"saved": str(path)})


# As a person reads it.


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


def blocks(result: CalibrationReport) -> Iterator[Block]:
    yield Line(Message("calibration.of", judge=result.learned_on.judge), strong=True)
    names = ("labels", "signals", "learned", "tested")
    learned = result.calibration.calibration
    facts = (_labels(result), listed(result.signals), _learned(learned), _tested(result))
    rows = zip((Message(f"calibration.{name}") for name in names), facts, strict=True)
    yield Facts(tuple(rows))
    yield from _errors(result)
    yield _bins(result.change)
    if result.calibration.guarantee is not None:
        yield Facts(tuple(_guaranteed(result.calibration, result.calibration.guarantee)))
    if result.notes:
        yield NoteLines(result.notes)
    if result.saved is None:
        yield Next(Message("calibration.save"))
    else:
        path = Path(result.saved)
        name = path.stem if path.parent == CALIBRATION_FILES.folder() else result.saved
        yield Line(Message("calibration.saved", path=path, name=name))


def _labels(result: CalibrationReport) -> Message:
    verdicts, prompts = counted(result.verdicts, "verdict"), counted(result.prompts, "prompt")
    parts = [Message("calibration.verdicts_of", verdicts=verdicts, prompts=prompts)]
    if result.by_people:
        parts.append(Message("calibration.by_votes", n=result.by_people))
    left_out = [
        Message(f"calibration.left_{name}", n=count)
        for name in ("inconsistent", "invalid", "unlabelled")
        if (count := getattr(result, name))
    ]
    if left_out:
        parts.append(Message("calibration.left_out", each=left_out))
    return chained(parts)


def _learned(learned: Calibration) -> Message:
    if isinstance(learned.curve, Constant):
        curve = Message("calibration.constant")
    else:
        curve = Message("calibration.logistic", names=learned.goes_by)
    factor = learned.log_bayes_factor
    if factor is not None and factor > math.log(1000):
        curve = Message("calibration.surely", curve=curve)
    elif factor is not None:
        curve = Message("calibration.by_factor", curve=curve, factor=math.exp(factor))
    return Message(
        "calibration.learned_from",
        curve=curve,
        verdicts=counted(learned.n, "verdict"),
        prompts=counted(learned.prompts, "prompt"),
        right=100 * learned.base_rate,
    )


def _tested(result: CalibrationReport) -> Message:
    how = "crossed" if result.tested == "cross-fitted" else "held_out"
    verdicts = counted(result.change.after_all.n, "verdict")
    return Message(f"calibration.tested_{how}", verdicts=verdicts)


def _errors(result: CalibrationReport) -> Iterator[Block]:
    change = result.change
    before, after = change.before, change.after_all
    rows = (
        ("error", *map(_error, (before, after)), ""),
        ("differs", *map(_differs, (before, after)), ""),
        ("brier", _brier(before), _brier(after), _digits(after.base_brier)),
        ("log_loss", _log_loss(before), _log_loss(after), _digits(after.base_log_loss)),
    )
    yield Grid(
        columns=("", *(Message(f"calibration.{name}") for name in ("before", "after", "base"))),
        rows=tuple((Message(f"calibration.{name}"), *cells) for name, *cells in rows),
    )
    yield Line(_beside_base_rate(result))
    drop = change.brier_change
    if drop is not None and drop.value is not None:
        shown = Message("calibration.brier_change", change=drop.value)
        if drop.low is not None and drop.high is not None:
            ends = {"low": drop.low, "high": drop.high}
            shown = Message("calibration.brier_change_known", change=drop.value, **ends)
        yield Remark(shown)
    if change.without:
        verdicts = counted(change.without, "verdict")
        yield Remark(Message("calibration.without", verdicts=verdicts))


def _beside_base_rate(result: CalibrationReport) -> Message:
    better, skill = result.better_than_base_rate, result.change.after_all.brier_skill
    if not result.calibration.calibration.goes_by:
        return Message("calibration.nothing_learned")
    if better is None or skill.value is None or skill.low is None or skill.high is None:
        return Message("calibration.not_tested")
    shares = {"value": 100 * skill.value, "low": 100 * skill.low, "high": 100 * skill.high}
    lowers = Message("calibration.lowers", **shares)
    return Message(f"calibration.{'better' if better else 'not_better'}", lowers=lowers)


def _error(errors: CalibrationError | None) -> str:
    if errors is None:
        return Message("calibration.none")
    shown = _digits(errors.error)
    # Less the noise, and cut at 0: no error was measured, which is not that there is none.
    cut = shown == "0.000" and not errors.distinguishable
    return Message("calibration.like_zero") if cut else shown


def _differs(errors: CalibrationError | None) -> str:
    if errors is None or errors.p_value is None:
        return ""
    code = "differs_yes" if errors.distinguishable else "differs_no"
    return Message(f"calibration.{code}", p=errors.p_value)


def _brier(errors: CalibrationError | None) -> str:
    return Message("calibration.none") if errors is None else _digits(errors.brier.value)


def _log_loss(errors: CalibrationError | None) -> str:
    return Message("calibration.none") if errors is None else _digits(errors.log_loss.value)


def _digits(value: float | None) -> str:
    return Message("calibration.unknown") if value is None else f"{value:.3f}"


def _bins(change: CalibrationChange) -> Rates:
    """How often verdicts are right beside what their confidence says, from low to high."""
    rows = []
    for name, errors in (("before", change.before), ("after", change.after_all)):
        if errors is None:
            continue
        rows.append(Rate((Message(f"calibration.{name}"),)))
        for each in errors.bins:
            share, stated = each.share_right, each.mean_probability
            low, high = share.low, share.high
            off = low is not None and high is not None and not low <= stated <= high
            rows.append(
                Rate(
                    names=(Message("calibration.bin", low=each.low, high=each.high), rate(stated)),
                    rate=share.value,
                    low=low,
                    high=high,
                    tone="bad" if off else "plain",
                    text=share.reason or "",
                    counts=(each.n,),
                )
            )
    return Rates(
        titles=(Message("calibration.confidence"), Message("calibration.stated")),
        value=Message("calibration.right"),
        counted=(Message("calibration.verdicts"),),
        rows=tuple(rows),
    )


def _guaranteed(saved: SavedCalibration, given: Guarantee) -> Iterator[tuple[str, str]]:
    name, target = Message("calibration.guarantee"), given.target
    if given.threshold is None or given.agreement is None:
        yield name, Message("calibration.no_guarantee", target=target)
        return
    agreement = counted_share(given.agreement)
    values = {"threshold": given.threshold, "target": target, "agreement": agreement}
    if given.coverage is None or given.coverage.value is None:
        yield name, Message("calibration.from_on", **values)
    else:
        covered = 100 * given.coverage.value
        yield name, Message("calibration.from_on_covered", covered=covered, **values)
    yield "", Message("calibration.fails", error_level=given.error_level)
    code = "data_named" if saved.data else "data"
    yield "", Message(f"calibration.{code}", run=saved.run, names=saved.data)
