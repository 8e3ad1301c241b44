"""`evenhand audit`: a judge against labels, and whether to trust it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.figures import number, share, value
from evenhand.cli.options import (
    JudgeChoices,
    PairRules,
    RunLimits,
    flags_given,
    grouped_showing,
    open_judge,
)
from evenhand.errors import DataError, InputError, Status
from evenhand.messages import Message
from evenhand.present.terminal import (
    one_line,
    print_table,
    table_of,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from evenhand.data.options import ReadOptions
    from evenhand.data.source import Source
    from evenhand.judges.protocol import Judge
    from evenhand.judging.config import JudgeConfig
    from evenhand.trust.audit import Audit
    from evenhand.trust.findings import Findings


@grouped_showing(
    "columns",
    "criteria",
    "against",
    "disagreements",
    "try_prepare",
    "min_accuracy",
    "min_kappa",
    "min_consistency",
    "max_unread",
)
def audit(
    *,
    context: typer.Context,
    labelled: Annotated[
        str | None,
        typer.Argument(
            metavar="LABELLED",
            help="A file of labelled pairs (judged by --judge), or a run whose pairs have "
            "labels or votes.",
        ),
    ] = None,
    judge: opt.JudgeName = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="RUN",
            help="Another run over the same pairs, e.g. with another judge or language.",
        ),
    ] = None,
    level: opt.Level = 0.95,
    shown: Annotated[
        int,
        typer.Option("--disagreements", min=0, help="How many disagreements to list."),
    ] = 20,
    min_accuracy: Annotated[
        float | None, typer.Option("--min-accuracy", help="Fail if accuracy is below this.")
    ] = None,
    min_kappa: Annotated[
        float | None, typer.Option("--min-kappa", help="Fail if Cohen's kappa is below this.")
    ] = None,
    min_consistency: Annotated[
        float | None,
        typer.Option(
            "--min-consistency", help="Fail if the two orders agree less often than this."
        ),
    ] = None,
    max_unread: Annotated[
        float | None,
        typer.Option("--max-unread", help="Fail if a larger share of pairs has no verdict."),
    ] = None,
    max_place_lean: Annotated[
        float | None,
        typer.Option(
            "--max-place-lean",
            help="Fail if position bias is above this. Without it, an alarm at 0.1.",
        ),
    ] = None,
    max_length_excess: Annotated[
        float | None,
        typer.Option(
            "--max-length-excess",
            help="Fail if the longer response wins this much more often than the labels say. "
            "Without it, an alarm at 0.1.",
        ),
    ] = None,
    columns: opt.ColumnMap = None,
    values: opt.Values = None,
    bad_rows: opt.OnBadRows = "stop",
    try_prepare: Annotated[
        bool,
        typer.Option(
            "--try-prepare",
            help="Judge the labelled pairs with and without each --prepare choice, and show "
            "what each gains and costs.",
        ),
    ] = False,
    choices: Annotated[
        list[str] | None,
        typer.Option(
            "--choice",
            metavar="KINDS[=JUDGE]",
            help="With --try-prepare: a choice to try, e.g. metrics,reference; optionally "
            "with its own judge if its answers were recorded separately. Repeatable. "
            "Default: metrics; reference; both; analysis.",
        ),
    ] = None,
    rules: PairRules,
    name: opt.RunName = None,
    limits: RunLimits,
    judging: JudgeChoices,
    as_json: opt.AsJson = False,
) -> None:
    """Measure a judge's accuracy and biases against labels.

    Exit codes: 0 it passes (or no threshold was set), 1 a threshold fails, 6 one is undecided,
    2 bad input, no labels or a store error, 3 the judge failed, 5 a cap was reached, 130
    interrupted.
    """
    from evenhand.cli.inputs import data_path, read_options
    from evenhand.cli.judging import end, judge_all
    from evenhand.cli.session import named_store, opened_store
    from evenhand.cli.try_prepare import try_choices
    from evenhand.data.source import open_source
    from evenhand.runs import JudgePlan, PairFiles
    from evenhand.stats.outcomes import confidence_level
    from evenhand.store import open_store
    from evenhand.trust.audit import audit_run
    from evenhand.trust.findings import Thresholds, assess_audit

    thresholds = Thresholds.of(
        min_accuracy=min_accuracy,
        min_kappa=min_kappa,
        min_consistency=min_consistency,
        max_unread=max_unread,
        max_place_lean=max_place_lean,
        max_length_excess=max_length_excess,
    )
    confidence_level(level)
    if choices and not try_prepare:
        raise InputError(Message("command.choice_alone"))
    if try_prepare and "prepare" in judging.values:
        raise InputError(Message("command.choice_not_prepare"))
    if try_prepare and labelled == "-":
        raise InputError(Message("command.try_prepare_needs_file"))
    data = as_data(labelled)
    if labelled is None:
        raise InputError(Message("command.nothing_to_audit"))
    run, repeated = labelled, None
    if try_prepare and data is None:
        raise InputError(Message("command.try_prepare_needs_file"))
    if data is None:
        refuse_unknown_file(named_store(limits.store), run)
        refuse_judging_options(context, run)
    else:
        config = judging.config(judge)
        reading = read_options(columns, rules, criteria_needed=config.needs_prompt, values=values)
        need_labels(data, reading, named_store(limits.store), bad_rows=bad_rows)
        if try_prepare:
            data.close()
            try_choices(
                lambda: open_source(data_path(labelled)),
                reading,
                lambda its: judging.config(its, base_url=None) if its else judging.config(judge),
                choices,
                limits.options(name, bad_rows=bad_rows),
                level=level,
                as_json=as_json,
                confirm_above=limits.asks_above,
            )
        sources = PairFiles((data,), reading)
        opened = open_judge(config)
        repeated = repetitions_note(opened, config)
        options = limits.options(name, bad_rows=bad_rows)
        with open_store(options.store) as store:
            summary = judge_all(
                sources,
                [JudgePlan(opened, config)],
                options,
                store=store,
                as_json=as_json,
                confirm_above=limits.asks_above,
            )
            if not summary.finished:
                end(summary, store, options, as_json=as_json)
        run, judge = summary.run, None
    with opened_store(limits.store) as at:
        audited = audit_run(
            at,
            run,
            judge=judge,
            level=level,
            disagreements=shown,
            against=against,
        )
    unused = vote_lists_note(data, run) if data is not None and not audited.people else None
    more = [note for note in (repeated, unused) if note]
    audited = audited.model_copy(update={"notes": (*audited.notes, *more)})
    findings = assess_audit(audited, thresholds)
    if as_json:
        whole = audited.model_dump(mode="json") | {"findings": findings.model_dump(mode="json")}
        session.write_json(whole)
    else:
        show_audit(session.out(), audited, findings)
    raise typer.Exit(_CODES[findings.ruling])


_CODES: dict[str | None, int] = {
    None: Status.OK,
    "pass": Status.OK,
    "fail": Status.GATE_FAILED,
    "undecided": Status.UNDECIDED,
}


# What `evenhand audit` was given, checked before a judge is asked anything.

# They say how pairs are judged, which a run's are already.
_OF_JUDGING = (
    *("columns", "values", "bad_rows", "criteria", "no_tie", "no_swap", "name"),
    *(each.name for each in (*RunLimits.flags, *JudgeChoices.flags) if each.name != "store"),
)


def as_data(given: str | None) -> Source | None:
    """The file that is meant, or None where a run's name is."""
    from evenhand.cli.inputs import data_path
    from evenhand.data.remote import url_in
    from evenhand.data.source import open_source

    if given is None:
        return None
    path = data_path(given)
    if path != "-" and url_in(path) is None and (not Path(path).exists() or Path(path).is_dir()):
        return None
    return open_source(path)


def refuse_judging_options(context: typer.Context, run: str) -> None:
    """Silently ignoring an option is worse than an error."""
    if given := flags_given(context, _OF_JUDGING):
        raise InputError(Message("command.run_judged_already", options=given, run=run))


def refuse_unknown_file(address: str | None, run: str) -> None:
    """A missing file must not be reported as a missing run or store."""
    from evenhand.errors import StoreError
    from evenhand.store import open_store

    if Path(run).suffix == "" and "/" not in run:
        return
    try:
        with open_store(address, create=False) as store:
            known = store.runs.find(run) is not None
    except StoreError:
        known = False
    if not known:
        raise InputError(Message("command.no_file_or_run", run=run))


def need_labels(data: Source, reading: ReadOptions, store: str | None, *, bad_rows: str) -> None:
    """Before anybody pays for judging pairs that cannot be audited."""
    from collections import Counter

    from evenhand.data.pairs import read_pairs
    from evenhand.data.records import BadRow
    from evenhand.trust.audit import refuse_one_sided

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
    if not in_one_order and bad is not None and bad_rows == "stop":
        raise DataError(bad.message)
    if not in_one_order and not _any_vote(store):
        raise DataError(Message("command.no_labels", name=data.name))


def vote_lists_note(data: Source, run: str) -> str | None:
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
            return (
                f"the column {columns['votes'][0]} may contain several people's verdicts; "
                f"import them as labels with evenhand votes import {run} {data.name}"
            )
    return None


def _any_vote(address: str | None) -> bool:
    """Whether people have voted on any pair in the store; which, is seen once pairs are in."""
    from evenhand.errors import StoreError
    from evenhand.store import open_store

    try:
        with open_store(address, create=False) as store:
            return any(store.votes.columns(run.id).pair_id for run in store.runs.all())
    except StoreError:
        return False


def repetitions_note(judge: Judge, config: JudgeConfig) -> Message | None:
    """Warn if a replayed judge was recorded more often than it is asked."""
    recorded, asked = getattr(judge, "repetitions", 1), config.samples or 1
    if recorded <= asked:
        return None
    return Message("trust.repetitions_left_out", n=recorded, samples=asked)


# An audit as a person reads it: the verdict on the judge first, then what it rests on.

_PEOPLE = "people"
_STYLES = {
    "trustworthy": "green",
    "with care": "yellow",
    "too few labels": "yellow",
    "not shown": "yellow",
    "not trustworthy": "red",
}


def show_audit(console: Console, audit: Audit, findings: Findings) -> None:
    from rich.padding import Padding
    from rich.text import Text

    head = Text(one_line(audit.judge), style="bold")
    head.append(f"  {findings.word}", style=_STYLES.get(findings.word, "dim"))
    console.print(head)
    for line in findings.lines:
        console.print(Padding(Text(line), (0, 0, 0, 2)))
    console.print()
    table = table_of("", " ", left=("", " "), header=False)
    for name, figure in _figures(audit):
        table.add_row(Text(name), Text(figure))
    print_table(console, table)
    _show_confusion(console, audit)
    _show_tags(console, audit)
    if audit.disagreements:
        console.print()
        left = audit.disagreements_in_all - len(audit.disagreements)
        more = f", {number(left)} more" if left else ""
        console.print(Text(f"disagreements{more}", style="bold"))
        for each in audit.disagreements:
            verdict = each.verdict if each.outcome in ("win", "tie") else each.outcome
            console.print(Text(f"  {one_line(each.id)}  label {each.label}, judge {verdict}"))
        session.print_line(console, _look(audit.run))
    for check in findings.checks:
        console.print(Text(check.line))
    for note in audit.notes:
        session.print_line(console, Text(f"note  {one_line(note)}", style="dim"))


def _look(run: str | None) -> Text:
    from rich.text import Text

    return Text(f"  evenhand show {one_line(run or 'RUN')} ID shows a pair in full", "dim")


def _figures(audit: Audit) -> list[tuple[str, str]]:
    lines = [
        ("labelled pairs", number(audit.n)),
        *_label_sources(audit),
        *([("rows skipped", number(audit.skipped_rows))] if audit.skipped_rows else []),
        ("accuracy", share(audit.accuracy)),
        ("  with half credit", share(audit.half_credit)),
        *((f"  {_agreeing(each.name)}", share(each.accuracy)) for each in audit.yardsticks),
        *_judge_and_person(audit),
        (f"agreement on {number(audit.agreement.of)} decided", share(audit.agreement)),
        ("  without ties", share(audit.agreement_without_ties)),
        ("Cohen's kappa", value(audit.kappa)),
        ("  without ties", value(audit.kappa_without_ties)),
        *(
            ("  people's alpha" if each.name == _PEOPLE else f"  {each.name}", value(each.kappa))
            for each in audit.yardsticks
            if each.kappa is not None
        ),
        ("inconsistent", share(audit.inconsistent)),
        ("no verdict", share(audit.unread)),
        ("both orders agree", share(audit.consistency)),
        ("first position chosen", share(audit.first_place_share)),
        ("bias to first position", value(audit.place.lean)),
        ("longer wins (judge)", share(audit.length.by_judge)),
        ("longer wins (labels)", share(audit.length.by_labels)),
        ("  more than labels say", value(audit.length.excess)),
    ]
    if audit.self_preference is not None:
        own = audit.self_preference
        lines.append((f"its own model ({one_line(own.model)}) wins", share(own.by_judge)))
        lines.append(("  more than labels say", value(own.excess)))
    if audit.retest is not None:
        lines.append(("same verdict when asked again", share(audit.retest)))
    if audit.between is not None:
        other = audit.between
        lines.append((f"agreement with {one_line(other.judge)}", share(other.agreement)))
        lines.append(("  kappa", value(other.kappa)))
    return lines


def _agreeing(yardstick: str) -> str:
    return "two people agree" if yardstick == _PEOPLE else yardstick


def _label_sources(audit: Audit) -> list[tuple[str, str]]:
    """Shown only if people voted."""
    if not audit.labels.by_people:
        return []
    lines = [("  by majority vote", number(audit.labels.by_people))]
    if audit.labels.by_data:
        lines.insert(0, ("  by data labels", number(audit.labels.by_data)))
    return lines


def _judge_and_person(audit: Audit) -> list[tuple[str, str]]:
    if audit.people is None:
        return []
    return [("  judge and one person", share(audit.people.judge_agreement))]


def _show_confusion(console: Console, audit: Audit) -> None:
    columns = ("label", "judge A", "judge B", "judge TIE", "inconsistent", "invalid")
    table = table_of(*columns, left=("label",))
    for row in (audit.confusion.a, audit.confusion.b, audit.confusion.tie):
        counts = (row.says_a, row.says_b, row.says_tie, row.inconsistent, row.invalid)
        table.add_row(row.label, *(number(count or 0) for count in counts))
    console.print()
    print_table(console, table)


def _show_tags(console: Console, audit: Audit) -> None:
    from rich.text import Text

    if not audit.by_tag:
        return
    table = table_of("tag", "pairs", "accuracy", "both orders agree", left=("tag",))
    for each in audit.by_tag:
        figures = share(each.accuracy), share(each.consistency)
        table.add_row(Text(one_line(each.tag)), number(each.n), *figures)
    console.print()
    print_table(console, table)
