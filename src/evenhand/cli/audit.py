"""`evenhand audit`: a judge against labels, and whether to trust it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.figures import number, share, value
from evenhand.cli.options import JudgeChoices, PairRules, RunLimits, grouped, open_judge
from evenhand.cli.terminal import (
    one_line,
    print_table,
    table_of,
)
from evenhand.errors import DataError, InputError, Status
from evenhand.messages import Message

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from evenhand.data import ReadOptions, Source
    from evenhand.judges import Judge
    from evenhand.judging.config import JudgeConfig
    from evenhand.trust.audit import Audit
    from evenhand.trust.biases import PositionBiasReport
    from evenhand.trust.findings import Findings, Thresholds
    from evenhand.trust.published_rules import RuleFigures, RuleName


@grouped
def audit(
    *,
    context: typer.Context,
    labelled: Annotated[
        str | None,
        typer.Argument(
            metavar="LABELLED",
            help="A file of pairs with labels (then --judge judges them), or a run whose pairs "
            "have labels or people's votes.",
        ),
    ] = None,
    judge: opt.JudgeName = None,
    rule: Annotated[
        Literal["judgebench", "llmbar", "pandalm", "position-bias", "qlora"] | None,
        typer.Option(
            "--rule",
            help="Other authors' rule over a replayed judge, beside our own figures.",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="RUN",
            help="Another run over the same pairs: another judge, or the other language.",
        ),
    ] = None,
    level: opt.Level = 0.95,
    shown: Annotated[
        int,
        typer.Option("--disagreements", min=0, help="How many disagreements to list."),
    ] = 20,
    min_accuracy: Annotated[
        float | None, typer.Option("--min-accuracy", help="Fail where accuracy is below this.")
    ] = None,
    min_kappa: Annotated[
        float | None, typer.Option("--min-kappa", help="Fail where Cohen's kappa is below this.")
    ] = None,
    min_consistency: Annotated[
        float | None,
        typer.Option("--min-consistency", help="Fail where the two orders agree less often."),
    ] = None,
    max_unread: Annotated[
        float | None,
        typer.Option("--max-unread", help="Fail where more pairs than this have no verdict."),
    ] = None,
    max_place_lean: Annotated[
        float | None,
        typer.Option(
            "--max-place-lean",
            help="Fail where more pairs than this follow their place. Without it, an alarm at 0.1.",
        ),
    ] = None,
    max_length_excess: Annotated[
        float | None,
        typer.Option(
            "--max-length-excess",
            help="Fail where the longer wins so much oftener than it should. Without it, an alarm "
            "at 0.1.",
        ),
    ] = None,
    columns: opt.ColumnMap = None,
    values: opt.Values = None,
    bad_rows: opt.OnBadRows = "stop",
    try_prepare: Annotated[
        bool,
        typer.Option(
            "--try-prepare",
            help="Judge the labelled pairs with each choice of --prepare and without any, and say "
            "what each gains, harms and costs.",
        ),
    ] = False,
    choices: Annotated[
        list[str] | None,
        typer.Option(
            "--choice",
            metavar="KINDS[=JUDGE]",
            help="With --try-prepare: a choice to try, e.g. metrics,reference; with a judge of its "
            "own where its answers were recorded apart. Repeatable. Default: metrics; reference; "
            "both; analysis.",
        ),
    ] = None,
    rules: PairRules,
    base_url: opt.BaseUrl = None,
    name: opt.RunName = None,
    limits: RunLimits,
    locale: opt.LocaleName = None,
    judging: JudgeChoices,
    as_json: opt.AsJson = False,
) -> None:
    """Audit a judge: how often it is right by labels, and its biases.

    Exit codes: 0 it passes (or no threshold was set), 1 a threshold fails, 6 one is undecided,
    2 bad input, no labels, or the store failed, 3 the judge failed, 5 a cap stopped it,
    130 interrupted.
    """
    from evenhand.cli.inputs import data_path, read_options
    from evenhand.cli.judging import end, judge_all
    from evenhand.cli.session import named_store, opened_store
    from evenhand.cli.try_prepare import try_choices
    from evenhand.data import open_source
    from evenhand.runs import JudgePlan, PairFiles
    from evenhand.stats.outcomes import confidence_level
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
    if try_prepare and judging.prepare is not None:
        raise InputError(Message("command.choice_not_prepare"))
    if try_prepare and labelled == "-":
        raise InputError(Message("command.try_prepare_needs_file"))
    data = as_data(labelled)
    by_rule = None
    if rule is not None:
        by_rule = figures_by_rule(
            rule, data, judge, columns, values=values, bad_rows=bad_rows, level=level
        )
        if by_rule.position is not None:  # there are no labels to count against
            end_without_labels(by_rule, by_rule.position, thresholds, as_json=as_json)
    if labelled is None:
        raise InputError(Message("command.nothing_to_audit"))
    run, repeated = labelled, None
    if try_prepare and data is None:
        raise InputError(Message("command.try_prepare_needs_file"))
    if data is None:
        refuse_unknown_file(named_store(limits.store), run)
        refuse_judging_options(context, run)
    else:
        config = judging.config(judge, base_url=base_url, locale=locale)
        one_order = rules.no_swap or rule in _ONE_ORDER
        reading = read_options(
            columns,
            replace(rules, no_swap=one_order),
            criteria_needed=config.needs_prompt,
            values=values,
        )
        need_labels(data, reading, named_store(limits.store), bad_rows=bad_rows)
        if try_prepare:
            data.close()
            try_choices(
                lambda: open_source(data_path(labelled)),
                reading,
                lambda its: judging.config(
                    its or judge, base_url=None if its else base_url, locale=locale
                ),
                choices,
                limits.options(name, bad_rows=bad_rows),
                level=level,
                as_json=as_json,
                confirm_above=limits.asks_above,
            )
        sources = PairFiles((data,), reading)
        opened = open_judge(config)
        repeated = repetitions_note(opened, config)
        summary = judge_all(
            sources,
            [JudgePlan(opened, config)],
            limits.options(name, bad_rows=bad_rows),
            as_json=as_json,
            confirm_above=limits.asks_above,
        )
        if not summary.finished:
            end(summary, as_json=as_json)
        run, judge = summary.run, None
    with opened_store(limits.store) as at:
        audited = audit_run(
            at,
            run,
            judge=judge,
            level=level,
            disagreements=shown,
            against=against,
            rule=by_rule.figures if by_rule else None,
        )
    unused = vote_lists_note(data, run) if data is not None and not audited.people else None
    more = [note for note in (by_rule.note if by_rule else None, repeated, unused) if note]
    audited = audited.model_copy(update={"notes": (*audited.notes, *more)})
    findings = assess_audit(audited, thresholds)
    if as_json:
        whole = audited.model_dump(mode="json") | {"findings": findings.model_dump(mode="json")}
        session.write_json(whole)
    else:
        show_audit(session.out(), audited, findings)
    raise typer.Exit(_CODES[findings.ruling])


# Recorded in one order; asked for the other, every pair would be invalid.
_ONE_ORDER = frozenset({"pandalm"})
_CODES: dict[str | None, int] = {
    None: Status.OK,
    "pass": Status.OK,
    "fail": Status.GATE_FAILED,
    "undecided": Status.UNDECIDED,
}


# What `evenhand audit` was given, checked before a judge is asked anything.

# They say how pairs are judged, which a run's are already.
_OF_JUDGING = (
    *("base_url", "columns", "values", "bad_rows", "criteria", "no_tie", "no_swap", "name"),
    "concurrency",
    *("rpm", "tpm", "max_calls", "max_cost", "price", "confirm_above", "yes", "fresh", "retry"),
    "keep_going_unread",
    *("locale", "mode", "samples", "reconcile", "confidence", "template", "protocol", "timeout"),
    *("max_tokens", "temperature", "retries", "repairs"),
)


def as_data(given: str | None) -> Source | None:
    """The file that is meant, or None where a run's name is."""
    from evenhand.cli.inputs import data_path
    from evenhand.data import open_source
    from evenhand.data.remote import url_in

    if given is None:
        return None
    path = data_path(given)
    if path != "-" and url_in(path) is None and (not Path(path).exists() or Path(path).is_dir()):
        return None
    return open_source(path)


def refuse_judging_options(context: typer.Context, run: str) -> None:
    """Silently doing without what somebody asked for is worse than an error."""
    given = [
        name
        for name in _OF_JUDGING
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    ]
    if given:
        options = {param.name: param.opts[0] for param in context.command.params}
        named = [options[name] for name in given]
        raise InputError(Message("command.run_judged_already", options=named, run=run))


def refuse_unknown_file(address: str | None, run: str) -> None:
    """A file that is not there should not be told as a run, or a store, that is not there."""
    from evenhand.errors import StoreError
    from evenhand.store import open_store

    if Path(run).suffix == "" and "/" not in run:
        return
    try:
        with open_store(address, create=False) as store:
            known = store.find_run(run) is not None
    except StoreError:
        known = False
    if not known:
        raise InputError(Message("command.no_file_or_run", run=run))


def need_labels(data: Source, reading: ReadOptions, store: str | None, *, bad_rows: str) -> None:
    """Before anybody pays for judging pairs that cannot be audited."""
    from collections import Counter

    from evenhand.data import BadRow, read_pairs
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


def has_labels(data: Source, reading: ReadOptions) -> bool:
    from evenhand.data import BadRow, read_pairs

    return any(
        not isinstance(row, BadRow) and row.label is not None for row in read_pairs([data], reading)
    )


def vote_lists_note(data: Source, run: str) -> str | None:
    """Where a file's rows hold several people's verdicts, which are votes once imported."""
    from itertools import islice

    from evenhand.data.columns import Columns
    from evenhand.data.formats import open_table
    from evenhand.data.votes import VOTE_FIELDS

    known = Columns({"votes": VOTE_FIELDS["votes"]}, {})
    table = open_table(data.files[0], wanted=known.wanted)
    for _, row in islice(table.rows, 1):
        columns = known.find(tuple(row)) if not isinstance(row, str) else {}
        if "votes" in columns:
            return (
                f"the column {columns['votes'][0]} may hold several people's verdicts; evenhand "
                f"votes import {run} {data.name} makes them a yardstick"
            )
    return None


def _any_vote(address: str | None) -> bool:
    """Whether people have voted on any pair in the store; which, is seen once pairs are in."""
    from evenhand.errors import StoreError
    from evenhand.store import open_store

    try:
        with open_store(address, create=False) as store:
            return any(store.vote_columns(run.id).pair_id for run in store.list_runs())
    except StoreError:
        return False


@dataclass(frozen=True, slots=True)
class FiguresByRule:
    """`note` says what the rule counts and what we do; `position` is there where labels are not."""

    figures: RuleFigures
    note: Message
    position: PositionBiasReport | None


def figures_by_rule(
    rule: RuleName,
    data: Source | None,
    judge: str | None,
    columns: list[str] | None,
    *,
    values: list[str] | None,
    bad_rows: str,
    level: float,
) -> FiguresByRule:
    """The authors' figures over what a replayed judge was recorded to say."""
    from evenhand.cli.inputs import mapped_columns, meant_values
    from evenhand.data import ReadOptions
    from evenhand.trust import published_rules as published

    if judge is None or not judge.strip().startswith("replay:"):
        raise InputError(Message("command.rule_needs_recordings", rule=rule))
    labels = None
    if data is not None:
        reading = ReadOptions(
            columns=mapped_columns(columns), criteria_needed=False, values=meant_values(values)
        )
        if rule in published.NEEDS_LABELS or has_labels(data, reading):
            labels = published.labels_of(data, reading, skip_bad_rows=bad_rows == "skip")
    recordings = published.recordings_of(judge)
    figures = published.apply_rule(rule, recordings, labels, level=level)
    position = None
    if labels is None:
        reader = published.authors_reader(rule)
        position = published.position_of(recordings, reader=reader, level=level)
    return FiguresByRule(figures, Message(f"trust.rule_{rule}"), position)


def end_without_labels(
    found: FiguresByRule, position: PositionBiasReport, thresholds: Thresholds, *, as_json: bool
) -> NoReturn:
    """Position bias needs no labels; whether the judge is right cannot be said without any."""
    from rich.text import Text

    from evenhand.trust.findings import assess_position

    figures = found.figures
    repeated = (figures.pairs, len(figures.by_repetition)) if figures.by_repetition else None
    findings = assess_position(position, thresholds, repeated=repeated)
    if as_json:
        session.write_json(
            {
                "n": found.figures.n,
                "rule": found.figures.model_dump(mode="json"),
                "place": position.model_dump(mode="json"),
                "findings": findings.model_dump(mode="json"),
                "notes": [found.note],
            }
        )
        raise typer.Exit(_CODES[findings.ruling])
    console = session.out()
    for line in findings.lines:
        style = "bold red" if findings.place_alarm else ""
        session.print_line(console, Text(line, style))
    show_rule(console, found.figures)
    for check in findings.checks:
        console.print(Text(check.line))
    session.print_line(console, Text(f"note  {found.note}", style="dim"))
    raise typer.Exit(_CODES[findings.ruling])


def repetitions_note(judge: Judge, config: JudgeConfig) -> Message | None:
    """Where a replayed judge was recorded oftener than it is asked."""
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
            said = each.verdict if each.outcome in ("win", "tie") else each.outcome
            console.print(Text(f"  {one_line(each.id)}  label {each.label}, judge {said}"))
        session.print_line(console, _look(audit.run))
    if audit.rule is not None:
        console.print()
        show_rule(console, audit.rule)
    for check in findings.checks:
        console.print(Text(check.line))
    for note in audit.notes:
        session.print_line(console, Text(f"note  {one_line(note)}", style="dim"))


def _look(run: str | None) -> Text:
    from rich.text import Text

    return Text(f"  evenhand show {one_line(run or 'RUN')} ID shows a pair in full", "dim")


def show_rule(console: Console, figures: RuleFigures) -> None:
    from rich.text import Text

    head = f"by the rule {figures.name} (the authors' own), n {figures.n:,}"
    if figures.by_repetition:
        head += f" ({figures.pairs:,} pairs in {len(figures.by_repetition)} repetitions)"
    console.print(Text(head, "bold"))
    if not figures.figures:
        session.print_line(console, Text(f"  {Message('trust.no_pair_in_both_orders')}"))
    for name, figure in figures.figures.items():
        console.print(Text(f"  {name} {figure:.2f}"))
    for each in figures.by_repetition:
        shown = ", ".join(f"{name} {figure:.2f}" for name, figure in each.figures.items())
        shown = shown or "the other order is missing"
        console.print(Text(f"  repetition {each.repetition}: {shown}"))
    if figures.retest is not None:
        console.print(Text(f"  the same when asked again {share(figures.retest)}"))


def _rated(audit: Audit) -> list[tuple[str, str]]:
    """How far the ratings of inconsistent pairs can be trusted, which nothing else counts."""
    if audit.by_rating is None:
        return []
    rated = audit.by_rating
    return [(f"  scored alone ({number(rated.pairs)} pairs), right", share(rated.right))]


def _figures(audit: Audit) -> list[tuple[str, str]]:
    lines = [
        ("labelled pairs", number(audit.n)),
        *_label_sources(audit),
        *([("rows skipped", number(audit.skipped_rows))] if audit.skipped_rows else []),
        ("accuracy", share(audit.accuracy)),
        ("  with half credit", share(audit.half_credit)),
        *((f"  {_agreeing(each.name)}", share(each.accuracy)) for each in audit.yardsticks),
        *_judge_and_person(audit),
        (f"agreement on the {number(audit.agreement.of)} decided", share(audit.agreement)),
        ("  without ties", share(audit.agreement_without_ties)),
        ("Cohen's kappa", value(audit.kappa)),
        ("  without ties", value(audit.kappa_without_ties)),
        *(
            ("  people's alpha" if each.name == _PEOPLE else f"  {each.name}", value(each.kappa))
            for each in audit.yardsticks
            if each.kappa is not None
        ),
        ("inconsistent", share(audit.inconsistent)),
        *_rated(audit),
        ("no verdict", share(audit.unread)),
        ("both orders agree", share(audit.consistency)),
        ("first place taken", share(audit.first_place_share)),
        ("lean to the first place", value(audit.place.lean)),
        ("longer wins, by the judge", share(audit.length.by_judge)),
        ("longer wins, by the labels", share(audit.length.by_labels)),
        ("  oftener than it should", value(audit.length.excess)),
    ]
    if audit.self_preference is not None:
        own = audit.self_preference
        lines.append((f"its own model ({one_line(own.model)}) wins", share(own.by_judge)))
        lines.append(("  oftener than it should", value(own.excess)))
    if audit.retest is not None:
        lines.append(("the same when asked again", share(audit.retest)))
    if audit.between is not None:
        other = audit.between
        lines.append((f"agreement with {one_line(other.judge)}", share(other.agreement)))
        lines.append(("  kappa", value(other.kappa)))
    return lines


def _agreeing(yardstick: str) -> str:
    return "two people agree" if yardstick == _PEOPLE else yardstick


def _label_sources(audit: Audit) -> list[tuple[str, str]]:
    """Told only where people had a part in it."""
    if not audit.labels.by_people:
        return []
    lines = [("  by people's majority", number(audit.labels.by_people))]
    if audit.labels.by_data:
        lines.insert(0, ("  by the data", number(audit.labels.by_data)))
    return lines


def _judge_and_person(audit: Audit) -> list[tuple[str, str]]:
    if audit.people is None:
        return []
    return [("  judge and one of them", share(audit.people.judge_agreement))]


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
