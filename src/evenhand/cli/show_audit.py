"""An audit as a person reads it: the verdict on the judge first, then what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.cli.amounts import number
from evenhand.cli.terminal import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from evenhand.stats.estimated_share import EstimatedShare
    from evenhand.stats.estimated_value import EstimatedValue
    from evenhand.trust.audit import Audit
    from evenhand.trust.biases import Lean
    from evenhand.trust.findings import Findings
    from evenhand.trust.rules import RuleFigures

_PEOPLE = "people"
_STYLES = {
    "trustworthy": "green",
    "with care": "yellow",
    "not shown": "yellow",
    "not trustworthy": "red",
}


def show_audit(console: Console, audit: Audit, findings: Findings) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    head = Text(one_line(audit.judge), style="bold")
    head.append(f"  {findings.word}", style=_STYLES.get(findings.word, "dim"))
    console.print(head)
    for line in findings.lines:
        console.print(Padding(Text(line), (0, 0, 0, 2)))
    console.print()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for name, told in _figures(audit):
        table.add_row(Text(name), Text(told))
    console.print(table)
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
        console.print(_look(audit.run), soft_wrap=True)
    if audit.rule is not None:
        console.print()
        show_rule(console, audit.rule)
    for check in findings.checks:
        console.print(Text(check.line))
    for note in audit.notes:
        console.print(Text(f"note  {one_line(note)}", style="dim"), soft_wrap=True)


def _look(run: str | None) -> Text:
    from rich.text import Text

    return Text(f"  evenhand show {one_line(run or 'RUN')} ID tells a pair whole", "dim")


def show_rule(console: Console, figures: RuleFigures) -> None:
    from rich.text import Text

    console.print(Text(f"by the rule {figures.name} (the authors' own), n {figures.n:,}", "bold"))
    for name, value in figures.figures.items():
        console.print(Text(f"  {name} {value:.2f}"))


def _figures(audit: Audit) -> list[tuple[str, str]]:
    told = [
        ("labelled pairs", number(audit.n)),
        *_label_sources(audit),
        ("accuracy", share(audit.accuracy)),
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
        told.append((f"its own model ({one_line(own.model)}) wins", share(own.by_judge)))
        told.append(("  oftener than it should", value(own.excess)))
    if audit.retest is not None:
        told.append(("the same when asked again", share(audit.retest)))
    if audit.between is not None:
        other = audit.between
        told.append((f"agreement with {one_line(other.judge)}", share(other.agreement)))
        told.append(("  kappa", value(other.kappa)))
    return told


def _agreeing(yardstick: str) -> str:
    return "two people agree" if yardstick == _PEOPLE else yardstick


def _label_sources(audit: Audit) -> list[tuple[str, str]]:
    """Told only where people had a part in it."""
    if not audit.labels.by_people:
        return []
    told = [("  by people's majority", number(audit.labels.by_people))]
    if audit.labels.by_data:
        told.insert(0, ("  by the data", number(audit.labels.by_data)))
    return told


def _judge_and_person(audit: Audit) -> list[tuple[str, str]]:
    if audit.people is None:
        return []
    return [("  judge and one of them", share(audit.people.judge_agreement))]


def _show_confusion(console: Console, audit: Audit) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("label")
    for column in ("judge A", "judge B", "judge TIE", "none"):
        table.add_column(column, justify="right")
    for row in (audit.confusion.a, audit.confusion.b, audit.confusion.tie):
        counts = (row.says_a, row.says_b, row.says_tie, row.none)
        table.add_row(row.label, *(number(count) for count in counts))
    console.print()
    console.print(table)


def _show_tags(console: Console, audit: Audit) -> None:
    from rich.table import Table
    from rich.text import Text

    if not audit.by_tag:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("tag", "pairs", "accuracy", "both orders agree"):
        table.add_column(column, justify="left" if column == "tag" else "right")
    for each in audit.by_tag:
        figures = share(each.accuracy), share(each.consistency)
        table.add_row(Text(one_line(each.tag)), number(each.n), *figures)
    console.print()
    console.print(table)


def share(part: EstimatedShare) -> str:
    if part.value is None or part.low is None or part.high is None:
        return part.reason or "not enough data"
    return f"{100 * part.value:.1f} % ({100 * part.low:.1f} to {100 * part.high:.1f})"


def value(figure: EstimatedValue | Lean) -> str:
    if figure.value is None:
        return figure.reason or "not enough data"
    if figure.low is None or figure.high is None:
        return f"{_plain(figure.value)} ({figure.reason})"
    return f"{_plain(figure.value)} ({_plain(figure.low)} to {_plain(figure.high)})"


def _plain(figure: float) -> str:
    """Without the sign of a nothing that rounding leaves."""
    return f"{round(figure, 3) + 0.0:.3f}"
