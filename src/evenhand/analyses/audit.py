"""A judge against labels: how often it is right, its biases, and whether to trust it. Of a stored
run, or of labelled pairs that are judged first, once or with each preparation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from evenhand.analyses.judging import JudgedStage, JudgingRequest, Stage
from evenhand.analyses.registry import AnalysisSubject
from evenhand.analysis_options import AuditOptions
from evenhand.blocks import Block, Facts, Grid, NoteLines, Remark, Title
from evenhand.blocks import Sentence as Line
from evenhand.contract import ArtefactKind
from evenhand.data.options import ReadOptions
from evenhand.data.pairs import read_pairs
from evenhand.data.records import BadRow
from evenhand.data.source import Source
from evenhand.errors import DataError, InputError, Status, StoreError
from evenhand.judges.protocol import Judge
from evenhand.judging.config import JudgeConfig
from evenhand.messages import Message
from evenhand.options import JudgingOptions
from evenhand.quantities import count, counted, dollars, share, value
from evenhand.runs import JudgePlan, PairFiles, RunOptions
from evenhand.stats.estimates import EstimatedShare
from evenhand.stats.outcomes import confidence_level
from evenhand.store import open_store
from evenhand.trust.audit import Audit, audit_run, refuse_one_sided
from evenhand.trust.findings import Findings, Thresholds, assess_audit
from evenhand.trust.preparation_trials import (
    CHOICES,
    PreparationTrial,
    TriedChoice,
    TriedRun,
    compare_choices,
)


class AuditReport(Audit):
    """The audit, and what follows from it."""

    findings: Findings


Result = AuditReport


def check(options: AuditOptions) -> None:
    _thresholds(options)
    confidence_level(options.level)
    if options.choices and not options.try_prepare:
        raise InputError(Message("command.choice_alone"))
    read_choices(options)


def _thresholds(options: AuditOptions) -> Thresholds:
    return Thresholds.of(**{name: getattr(options, name) for name in Thresholds.model_fields})


# What is judged first.


@dataclass(frozen=True, slots=True)
class Choice:
    """What to prepare; a judge of its own where its answers were recorded apart."""

    prepare: tuple[ArtefactKind, ...]
    judge: str | None = None

    @property
    def name(self) -> str:
        return "-".join(self.prepare) or "none"


def read_choices(options: AuditOptions) -> list[Choice]:
    """`metrics,reference`, or `metrics,reference=replay:FILE`."""
    if not options.choices:
        return [Choice(kinds) for kinds in CHOICES]
    choices = []
    for text in options.choices:
        kinds, equals, judge = text.partition("=")
        read = JudgingOptions.row("prepare").check(options.row("choices").flag, kinds)
        if not read:
            raise InputError(Message("command.choice_prepares_nothing", text=text))
        choices.append(Choice(read, judge if equals else None))
    if len({choice.prepare for choice in choices}) < len(choices):
        raise InputError(Message("command.choice_twice"))
    return choices


@dataclass(frozen=True, slots=True)
class _AuditStage(Stage):
    """With what is known of the recording and the file before anything is judged."""

    repeated: Message | None = None
    votes_in: tuple[str, str] | None = None  # a column that may hold votes, and its file


def stages(options: AuditOptions, request: JudgingRequest) -> Iterator[Stage]:
    """One run; with each choice of preparation another."""
    if options.try_prepare and JudgingOptions.row("prepare").flag in request.given:
        raise InputError(Message("command.choice_not_prepare"))
    if options.try_prepare and request.named == "-":
        raise InputError(Message("command.try_prepare_needs_file"))
    config = request.config()
    data, reading = request.open_data(), request.reading(config)
    _need_labels(data, reading, request.options)
    if not options.try_prepare:
        judge = config.open_judge()
        yield _AuditStage(
            PairFiles((data,), reading),
            JudgePlan(judge, config),
            repeated=_repetitions_left_out(judge, config),
            votes_in=_votes_in(data),
        )
        return
    data.close()
    for choice in [Choice(()), *read_choices(options)]:
        # A judge of its own is resolved anew: another provider is not sent the judge's key.
        elsewhere: dict[str, Any] = {"base_url": None} if choice.judge else {}
        own = replace(request.config(choice.judge, **elsewhere), prepare=choice.prepare)
        sources = PairFiles((request.open_data(),), reading)
        yield Stage(sources, JudgePlan(own.open_judge(), own), choice.name)


def _need_labels(data: Source, reading: ReadOptions, options: RunOptions) -> None:
    """Before anybody pays for judging pairs that cannot be audited."""
    in_one_order: Counter[int] = Counter()
    bad = None
    for row in read_pairs([data], reading):
        if isinstance(row, BadRow):
            bad = bad or row
            continue
        if row.label is None:
            continue
        if row.pair.swap_positions:
            return
        in_one_order[("A", "B", "TIE").index(row.label)] += 1
        if len(in_one_order) > 1:
            return
    refuse_one_sided(data.name, in_one_order)
    if not in_one_order and bad is not None and options.bad_rows == "stop":
        raise DataError(bad.message)
    if not in_one_order and not _any_vote(options):
        raise DataError(Message("command.no_labels", name=data.name))


def _any_vote(options: RunOptions) -> bool:
    """Whether people have voted on any pair in the store; which, is seen once pairs are in."""
    try:
        with open_store(options.store, create=False) as store:
            return any(store.votes.columns(run.id).pair_id for run in store.runs.all())
    except StoreError:
        return False


def _votes_in(data: Source) -> tuple[str, str] | None:
    """Where a file's rows hold several people's verdicts, which are votes once imported."""
    from itertools import islice

    from evenhand.data.columns import Columns
    from evenhand.data.tables import open_table
    from evenhand.data.votes import VOTE_FIELDS

    known = Columns({"votes": VOTE_FIELDS["votes"]}, {})
    table = open_table(data.files[0], wanted=known.wanted)
    for _, row in islice(table.rows, 1):
        columns = known.find(tuple(row)) if not isinstance(row, str) else {}
        if "votes" in columns:
            return columns["votes"][0], data.name
    return None


def _repetitions_left_out(judge: Judge, config: JudgeConfig) -> Message | None:
    """Where a replayed judge was recorded more often than it is asked."""
    recorded, asked = getattr(judge, "repetitions", 1), config.samples or 1
    if recorded <= asked:
        return None
    return Message("trust.repetitions_left_out", n=recorded, samples=asked)


# What labels say of it.


def compute(subject: AnalysisSubject, options: AuditOptions) -> AuditReport | PreparationTrial:
    store, judged = subject.store, subject.judged
    if options.try_prepare:
        tried = [
            TriedRun(each.stage.plan.config.prepare or (), each.summary.run) for each in judged
        ]
        if not tried:
            raise InputError(Message("command.try_prepare_needs_file"))
        return compare_choices(store, tried, level=options.level)
    audited = audit_run(
        store,
        subject.run.name,
        judge=None if judged else options.judge,
        level=options.level,
        disagreements=options.disagreements,
        against=None if options.against is None else subject.runs[-1].name,
    )
    more = (note for each in judged for note in _judging_notes(each, audited))
    audited = audited.model_copy(update={"notes": (*audited.notes, *more)})
    return AuditReport.of_parts(audited, findings=assess_audit(audited, _thresholds(options)))


def _judging_notes(judged: JudgedStage, audited: Audit) -> Iterator[Message]:
    stage = judged.stage
    if not isinstance(stage, _AuditStage):
        return
    if stage.repeated:
        yield stage.repeated
    if stage.votes_in and not audited.people:
        column, file = stage.votes_in
        yield Message("audit.votes_in_column", column=column, run=judged.summary.run, file=file)


def status(result: AuditReport | PreparationTrial) -> int:
    if isinstance(result, PreparationTrial):
        return Status.OK
    failed: dict[str | None, int] = {
        "fail": Status.GATE_FAILED,
        "undecided": Status.UNDECIDED,
    }
    return failed.get(result.findings.ruling, Status.OK)


# An audit as a person reads it: the verdict on the judge first, then what it rests on.

_PEOPLE = "people"


def blocks(result: AuditReport | PreparationTrial) -> Iterator[Block]:
    if isinstance(result, PreparationTrial):
        yield from _trial(result)
        return
    findings = result.findings
    word = Message(f"audit.{findings.word.replace(' ', '_')}")
    yield Line(Message("audit.judge_is", judge=result.judge, word=word), strong=True)
    yield from (Line(line) for line in findings.lines)
    yield Title(Message("audit.figures"))
    yield Facts(tuple(_figures(result)))
    yield _confusion(result)
    if result.by_tag:
        yield _tags(result)
    if result.disagreements:
        yield from _disagreements(result)
    yield from (Line(check.line) for check in findings.checks)
    if result.notes:
        yield NoteLines(result.notes)


def _figures(audit: Audit) -> Iterator[tuple[str, str]]:
    def figure(code: str, shown: str, **values: Any) -> tuple[str, str]:
        return Message(f"audit.{code}", **values), shown

    yield figure("labelled_pairs", count(audit.n))
    if audit.labels.by_people:  # else all are the data's
        if audit.labels.by_data:
            yield figure("by_data", count(audit.labels.by_data))
        yield figure("by_people", count(audit.labels.by_people))
    if audit.skipped_rows:
        yield figure("rows_skipped", count(audit.skipped_rows))
    yield figure("accuracy", share(audit.accuracy))
    yield figure("half_credit", share(audit.half_credit))
    for each in audit.yardsticks:
        name = Message("audit.two_people") if each.name == _PEOPLE else each.name
        yield figure("accuracy_of", share(each.accuracy), name=name)
    if audit.people is not None:
        yield figure("judge_and_person", share(audit.people.judge_agreement))
    yield figure("agreement", share(audit.agreement), n=audit.agreement.of)
    yield figure("agreement_without_ties", share(audit.agreement_without_ties))
    yield figure("kappa", value(audit.kappa))
    yield figure("kappa_without_ties", value(audit.kappa_without_ties))
    for each in audit.yardsticks:
        if each.kappa is not None:
            people = each.name == _PEOPLE
            name = Message("audit.people_alpha") if people else each.name
            yield figure("kappa_of", value(each.kappa), name=name)
    yield figure("inconsistent", share(audit.inconsistent))
    yield figure("unread", share(audit.unread))
    yield figure("consistency", share(audit.consistency))
    yield figure("first_place", share(audit.first_place_share))
    yield figure("place_lean", value(audit.place.lean))
    yield figure("longer_by_judge", share(audit.length.by_judge))
    yield figure("longer_by_labels", share(audit.length.by_labels))
    yield figure("length_excess", value(audit.length.excess))
    if (own := audit.self_preference) is not None:
        yield figure("own_model", share(own.by_judge), model=own.model)
        yield figure("own_excess", value(own.excess))
    if audit.retest is not None:
        yield figure("retest", share(audit.retest))
    if (other := audit.between) is not None:
        yield figure("between", share(other.agreement), judge=other.judge)
        yield figure("between_kappa", value(other.kappa))


def _confusion(audit: Audit) -> Grid:
    counts = ("says_a", "says_b", "says_tie", "inconsistent", "invalid")
    return Grid(
        columns=tuple(Message(f"audit.column_{each}") for each in ("label", *counts)),
        rows=tuple(
            (row.label, *(count(getattr(row, each) or 0) for each in counts))
            for row in (audit.confusion.a, audit.confusion.b, audit.confusion.tie)
        ),
    )


def _tags(audit: Audit) -> Grid:
    return Grid(
        columns=tuple(
            Message(f"audit.column_{each}") for each in ("tag", "pairs", "right", "agree")
        ),
        rows=tuple(
            (each.tag, count(each.n), share(each.accuracy), share(each.consistency))
            for each in audit.by_tag
        ),
    )


def _disagreements(audit: Audit) -> Iterator[Block]:
    more = audit.disagreements_in_all - len(audit.disagreements)
    yield Title(Message(f"audit.disagreements{'_more' * bool(more)}", n=more))
    yield Facts(
        tuple(
            (
                each.id,
                Message(
                    "audit.disagreement",
                    label=each.label,
                    verdict=each.verdict
                    if each.outcome in ("win", "tie")
                    else Message(f"audit.column_{each.outcome}"),
                ),
            )
            for each in audit.disagreements
        )
    )
    yield Remark(Message("audit.look", run=audit.run))


# Preparation that was tried.


def _trial(trial: PreparationTrial) -> Iterator[Block]:
    yield Line(trial.sentence, strong=True)
    columns = ("prepare", "right_percent", "gain", "changed", "calls")
    yield Grid(
        columns=tuple(Message(f"audit.column_{each}") for each in columns),
        rows=tuple(map(_tried, trial.tried)),
    )
    together = "_together" if len(trial.tried) > 2 else ""
    pairs = counted(trial.pairs, "labelled_pair")
    yield Remark(Message(f"audit.trial{together}", pairs=pairs, level=trial.level))
    if trial.left_out:
        yield Remark(Message("audit.trial_left_out", n=trial.left_out))
    for each in trial.tried:
        if each.unused:
            texts = {"unused": each.unused, "written": each.written}
            yield Remark(Message("audit.trial_unused", name=_name(each), **texts))
        if each.cost_a_pair_usd:
            cost = dollars(each.cost_a_pair_usd)
            yield Remark(Message("audit.trial_cost", name=_name(each), cost=cost))


def _tried(each: TriedChoice) -> tuple[str, ...]:
    def part(share: EstimatedShare | None) -> int:
        return 0 if share is None else share.part

    changed = "" if each.gain is None else f"{part(each.mended)}/{part(each.harmed)}"
    return (_name(each), share(each.accuracy), _points(each), changed, f"{each.calls_a_pair:.1f}")


def _name(tried: TriedChoice) -> str:
    return ",".join(tried.prepare) or "none"


def _points(tried: TriedChoice) -> str:
    gain = tried.gain
    if gain is None:
        return ""
    if gain.value is None or gain.low is None or gain.high is None:
        return gain.reason or Message("figure.not_enough")
    shown = {name: 100 * getattr(gain, name) for name in ("value", "low", "high")}
    return Message("audit.points", **shown)
