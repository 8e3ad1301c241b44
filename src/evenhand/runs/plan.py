"""What a run consists of, the prices its calls are counted at, and the fingerprint by which the
same command finds it again.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NoReturn

from evenhand.errors import InputError
from evenhand.judges.prepared import writer_of
from evenhand.judges.prices import Price, list_price_by_model, price_known
from evenhand.judges.protocol import Judge, identity_of
from evenhand.judging.config import JudgeConfig
from evenhand.messages import Message
from evenhand.prompts.preparation import ARTEFACT_KINDS, BY_ID, artefact_version
from evenhand.runs.options import RunOptions
from evenhand.store import NewJudge, NewRun, RunRecord, Store

if TYPE_CHECKING:
    from evenhand.runs.sources import Sources
    from evenhand.store.jobs import NewJob


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """A judge and its config. If `config` names no judge, only this process has it."""

    judge: Judge
    config: JudgeConfig
    price: Price | None = None  # its own; else that of the run's options, or of the price lists

    def record(self, *, salt: str | None = None) -> NewJudge:
        """Everything that an answer depends on. Salted, it shares passes with no other run."""
        mode = self.config.mode_for(self.judge)
        reads_prompt = self.judge.traits.needs_prompt
        template = self.config.template_for(mode) if reads_prompt else None
        version = template.version if template else None
        settings = {**identity_of(self.judge), **self.config.deciding("passes")}
        if salt is not None:
            settings["fresh"] = salt
        kinds = self.config.prepares(self.judge.traits)
        if kinds:  # only then: runs from before keep their fingerprints
            settings |= {"prepare": ",".join(kinds), "writer": self.writer(salt=salt)}
        else:
            settings.pop("prepare_with", None)  # no pass depends on who rates
        locale = self.config.language if reads_prompt else None
        key = digest([self.judge.name, version, locale, mode, settings])
        if self.judge.traits.caveat:
            settings["caveat"] = self.judge.traits.caveat  # said with its verdicts, decides nothing
        # A custom template's text, for pages, which cannot get it elsewhere.
        own = template.source if template and self.config.template is not None else None
        return NewJudge(key, self.judge.name, version, locale, mode, settings, own)

    def writer(self, *, salt: str | None = None) -> str:
        """Everything that prepared texts depend on."""
        identity, language = identity_of(self.judge), self.config.language
        by = identity.get("prepare_with") or [self.judge.name, dict(identity)]
        asked = [artefact_version(kind, language) for kind in ARTEFACT_KINDS]
        named = digest([by, language, asked, *([salt] if salt else [])])
        return f"{BY_ID}{named}" if writer_of(self.judge).traits.by_id else named

    def choosing(self, options: Mapping[str, Any]) -> JudgePlan:
        """With other judging options."""
        return replace(self, config=replace(self.config, **options)) if options else self

    def deciding(self) -> dict[str, Any]:
        """What the verdict depends on besides the passes."""
        mode = self.config.mode_for(self.judge)
        calibration = self.config.calibration_for(self.judge)
        return {
            **self.config.deciding("verdicts"),
            "reconcile": self.config.reconciling(mode),
            "ask_identical": self.config.asks_identical(self.judge.traits),
            # Absent without a calibration, to keep the fingerprints of earlier runs.
            **({} if calibration is None else {"calibration": dict(calibration.identity())}),
        }

    def learned_on(self) -> dict[str, Any] | None:
        """What its calibration was learned on, which decides nothing."""
        calibration = self.config.calibration_for(self.judge)
        return None if calibration is None else dict(calibration.origin())


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What was asked for, as plain JSON: stored with the run, and compared on resume."""

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
        """In words, if a new command uses an old run's name."""
        mine = json.loads(json.dumps(self.as_json()))
        if mine["data"].get("sides") != other.get("data", {}).get("sides"):
            return Message("plan.other_sides")
        if mine["data"] != other.get("data"):
            return Message("plan.other_data")
        if mine["judge_names"] != other.get("judge_names"):
            return Message("plan.other_judges")
        if mine["judges"] != other.get("judges"):
            return Message("plan.other_settings")
        if mine["deciding"] != other.get("deciding"):
            return Message("plan.other_deciding")
        return Message("plan.other_end")


def digest(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:32]


# The prices of a judge's calls, and a note if one is assumed.


@dataclass(frozen=True, slots=True)
class AppliedPrice:
    """`price` is None if the price lists have the judge; `writing` is for prepared texts."""

    price: Price | None
    note: str | None = None
    writing: Price | None = None
    unknown: bool = False  # so that calls are capped, where cost was to be


def apply_price(plan: JudgePlan, options: RunOptions) -> AppliedPrice:
    own = plan.price or options.price
    applied = price_of(plan.judge, own, options)
    writer = writer_of(plan.judge)
    if writer is plan.judge or not plan.config.prepares(plan.judge.traits):
        return replace(applied, writing=applied.price)
    # A listed price is the writer's own; the caller's was for the judge.
    if price_known(model_of(writer), writer.traits):
        return applied
    writing = price_of(writer, own, options)
    return replace(
        applied,
        note=applied.note or writing.note,
        writing=writing.price,
        unknown=applied.unknown or writing.unknown,
    )


def price_of(
    judge: Judge, own: Price | None, options: RunOptions, *, option: str = "price"
) -> AppliedPrice:
    """The caller's price, or the list's. A cap on cost needs one."""
    model = model_of(judge)
    if own is not None or options.max_cost is None:
        return AppliedPrice(own)
    if price_known(model, judge.traits):
        return AppliedPrice(None)
    assumed = list_price_by_model(model) if model else None
    if assumed is None:
        calls, names = options.calls_unpriced, {"name": judge.name, "option": option}
        if calls is None:
            raise InputError.of("runs.price_unknown", **names)
        return AppliedPrice(None, Message("runs.calls_capped", n=calls, **names), unknown=True)
    return AppliedPrice(
        assumed,
        Message(
            "runs.price_assumed",
            judge=judge.name,
            model=model,
            price=f"{assumed.input_per_million:g}/{assumed.output_per_million:g}",
            option=option,
        ),
    )


def model_of(judge: Judge) -> str | None:
    return judge.name.partition(":")[2] or None


_NOT_IN_A_NAME = re.compile(r"[^\w.+-]+")
_LONGEST_TITLE = 60


def find_or_create(
    store: Store,
    sources: Sources,
    judges: Sequence[JudgePlan],
    options: RunOptions,
    *,
    job: NewJob | None = None,
) -> tuple[RunRecord, bool]:
    """The run, whether it is new, and, on a server, its job."""
    data = sources.describe()
    plan = RunPlan.of(data, judges, pursued=options.pursued)
    if options.fresh:
        existing = _fresh_one(store, data, judges, options)
        if existing is not None:
            return existing, False
        plan = RunPlan.of(data, judges, fresh=secrets.token_hex(4), pursued=options.pursued)
    elif options.name is None:
        existing = store.runs.of_fingerprint(plan.fingerprint)
        if existing is not None and not existing.texts_forgotten:
            return existing, False
    else:
        existing = store.runs.find(options.name)
        if existing is not None:
            if not is_run_of(existing, data, judges, options):
                _refuse(existing, plan)
            if existing.texts_forgotten:
                raise InputError.of("runs.texts_forgotten", name=existing.name)
            return existing, False
    name = _free_name(store, options.name or _title(sources, plan))
    new = NewRun(name, plan.fingerprint, plan.as_json(), tuple(sources.names))
    return store.runs.begin(new, job)


def refuse_other(
    run: RunRecord,
    judges: Sequence[JudgePlan],
    options: RunOptions,
    *,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Judges, options or data that differ from the run's."""
    salt = run.plan.get("fresh")
    plan = RunPlan.of(data or run.plan["data"], judges, fresh=salt, pursued=options.pursued)
    if plan.fingerprint != run.fingerprint:
        raise InputError.of("runs.begun_otherwise", name=run.name, plan=plan.differs_in(run.plan))


def is_run_of(
    run: RunRecord, data: Mapping[str, Any], judges: Sequence[JudgePlan], options: RunOptions
) -> bool:
    """Whether this command made the run, with or without --fresh."""
    salt = run.plan.get("fresh")
    plan = RunPlan.of(data, judges, fresh=salt, pursued=options.pursued)
    return plan.fingerprint == run.fingerprint


def _fresh_one(
    store: Store, data: Mapping[str, Any], judges: Sequence[JudgePlan], options: RunOptions
) -> RunRecord | None:
    """An interrupted fresh run resumes; a finished one only with --retry."""
    name = options.name
    for run in store.runs.all():
        named = name is None or run.name == name or run.name.startswith(f"{name}-")
        wanted = run.state != "finished" or bool(options.retry)
        if named and wanted and run.plan.get("fresh") and is_run_of(run, data, judges, options):
            return run
    return None


def _refuse(existing: RunRecord, plan: RunPlan) -> NoReturn:
    raise InputError.of("runs.name_taken", name=existing.name, plan=plan.differs_in(existing.plan))


def _free_name(store: Store, wanted: str) -> str:
    name, number = wanted, 1
    while store.runs.find(name) is not None:
        number += 1
        name = f"{wanted}-{number}"
    return name


def _title(sources: Sources, plan: RunPlan) -> str:
    """The files' names and the start of the fingerprint."""
    title = _NOT_IN_A_NAME.sub("-", sources.title)[:_LONGEST_TITLE].strip("-.") or "run"
    return f"{title}-{plan.fingerprint[:6]}"
