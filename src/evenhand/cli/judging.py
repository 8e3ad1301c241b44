"""Pairs through judges, watched on the terminal: what every command that judges many pairs does, in
one stage or in several (`--escalate`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from evenhand.analyses.registry import GATE, status_of
from evenhand.cli import session
from evenhand.cli.figures import counted
from evenhand.errors import Status
from evenhand.messages import Message
from evenhand.messages.numbers import dollars, duration, number, short
from evenhand.present.terminal import (
    one_line,
    print_table,
    show_facts,
    show_notes,
    table_of,
)
from evenhand.quantities import share

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.analyses.gate import GateReport
    from evenhand.cli.analyses import GateChoices
    from evenhand.contract import AnswerProtocol, Pair
    from evenhand.report.abstentions import Abstentions
    from evenhand.runs import JudgePlan, RunOptions, RunSummary, Sources
    from evenhand.runs.preview import Preview
    from evenhand.store import Store
    from evenhand.trust.cascades import CascadeReport


T = TypeVar("T")


def judge_all(
    sources: Sources,
    plans: list[JudgePlan],
    options: RunOptions,
    *,
    store: Store,
    as_json: bool,
    confirm_above: float | None,
) -> RunSummary:
    async def work() -> RunSummary:
        return await watched(
            sources, plans, options, store=store, as_json=as_json, confirm_above=confirm_above
        )

    return run_to_the_end(work, sources, plans)


async def watched(
    sources: Sources,
    plans: Sequence[JudgePlan],
    options: RunOptions,
    *,
    store: Store,
    as_json: bool,
    confirm_above: float | None,
) -> RunSummary:
    from evenhand.cli.progress import watching
    from evenhand.runs import judge_pairs

    judges = [plan.judge for plan in plans]
    watch = watching(
        judges, as_json=as_json, confirm_above=confirm_above, by_the_batch=options.batch
    )
    with watch as (view, stop):
        summary = await judge_pairs(sources, plans, options, store=store, stop=stop, observer=view)
        if all(plan.judge.traits.by_id and plan.config.protocol is None for plan in plans):
            for each in unread_notes(store, summary.run):
                view.say(each)
        return summary


# On so many unread answers the protocol is chosen, the most special of those that read as many;
# all are counted by it.
_CHOSEN_ON = 200
_BY_SPECIALITY: tuple[AnswerProtocol, ...] = (
    *("llmbar", "three-class", "scores"),
    *("mt-bench", "arena-hard", "evenhand"),
)


def unread_notes(store: Store, run: str) -> Iterator[Message]:
    """How many recorded answers were not read, and how many of them a named protocol reads: a
    replay cannot ask again."""
    from evenhand.contract import Unread
    from evenhand.judging.ballots import quoted_from, read_ballot
    from evenhand.judging.decision import PassBallot
    from evenhand.report.lookup import find_run

    def unread() -> Iterator[tuple[Unread, Pair]]:
        for whole in store.verdicts.each_whole(find_run(store, run).id):
            if whole.row.outcome == "invalid":
                for each in whole.passes:
                    reading = getattr(each.made, "reading", None)
                    if isinstance(reading, Unread) and reading.raw:
                        yield reading, whole.pair

    def reads(each: tuple[Unread, Pair], protocol: AnswerProtocol) -> bool:
        answer, pair = each
        again = read_ballot(
            answer.raw,
            protocol=protocol,
            allow_tie=pair.allow_tie,
            truncated=answer.kind == "truncated",
            quoted=quoted_from(pair),
        )
        return isinstance(again, PassBallot)

    first = list(islice(unread(), _CHOSEN_ON))
    if not first:
        return
    found = {name: sum(reads(each, name) for each in first) for name in _BY_SPECIALITY}
    best = max(_BY_SPECIALITY, key=lambda name: found[name])
    if not found[best]:
        yield Message("runs.replay_unread", n=sum(1 for _ in unread()))
        return
    every = [reads(each, best) for each in unread()]
    yield Message("runs.replay_unread_protocol", n=len(every), protocol=best, m=sum(every))


def run_to_the_end(
    work: Callable[[], Coroutine[Any, Any, T]], sources: Sources, plans: Sequence[JudgePlan]
) -> T:
    """The work in an event loop; then whatever was opened for it is closed there."""

    async def closed_after() -> T:
        try:
            return await work()
        finally:
            sources.close()
            for plan in plans:
                await plan.judge.close()

    return run_loaded(closed_after())


def run_loaded(work: Coroutine[Any, Any, T]) -> T:
    """What is loaded by now stays: looking through it again and again takes an eighth of a run."""
    import gc

    gc.freeze()
    return session.run_async(work)


def end(
    summary: RunSummary,
    store: Store,
    options: RunOptions,
    *,
    as_json: bool,
    abstentions: Sequence[Abstentions] | None = None,
    gating: GateChoices | None = None,
) -> NoReturn:
    """A run's outcome, and its exit code or its gate's; what abstained, where a calibration may
    say so."""
    from evenhand.cli.progress import show_errors, show_summary

    code = exit_code_of(summary)
    gated = Gated.of(summary.run, code, gating, store)
    if as_json:
        whole = json.loads(summary.model_dump_json())
        whole["conclusions"] = conclusions_of(summary, store)
        if abstentions is not None:
            whole["abstentions"] = [each.model_dump(mode="json") for each in abstentions]
        session.write_json(whole | gated.as_json)
        show_errors(session.err(), summary, options.store)
    else:
        show_summary(session.out(), session.err(), summary, options.store)
        if abstentions:
            from evenhand.analyses.report import abstention_blocks
            from evenhand.present.blocks import show_blocks

            session.out().print()
            show_blocks(session.out(), session.err(), abstention_blocks(abstentions))
        if gated.report is None:
            show_conclusions(summary, conclusions_of(summary, store), options.store)
        gated.show(options.store)
    session.leave(gated.code)


@dataclass(frozen=True, slots=True)
class Gated:
    """The gate of what was just judged, where --gate asked for one, and the exit code."""

    code: int
    report: GateReport | None = None

    @classmethod
    def of(cls, run: str, code: int, choices: GateChoices | None, store: Store) -> Gated:
        """`code` is the run's, it stays if the run is not finished."""
        from evenhand.cli.analyses import gate_judged

        if choices is None:
            return cls(code)
        report = gate_judged(store, run, choices, finished=code == Status.OK)
        return cls(code or status_of(GATE, report), report)

    @property
    def as_json(self) -> dict[str, Any]:
        return {} if self.report is None else {"gate": json.loads(self.report.model_dump_json())}

    def show(self, store: str | Path | None) -> None:
        from evenhand.cli.analyses import show

        if self.report is not None:
            show(GATE, self.report)
            show_next("report", self.report.run, store)


def conclusions_of(summary: RunSummary, store: Store) -> list[str]:
    """What the run says, in a sentence for each judge and each two models."""
    judged = summary.valid
    if summary.stopped_by == "interrupt" or not judged:
        return []
    from evenhand.report.conclusions import conclude
    from evenhand.settings import load_settings

    report = conclude(store, summary.run, parts=False, families=load_settings().families)
    several = len(report.judges) > 1
    return [
        f"{each.judge}: {each.sentence}" if several else each.sentence
        for each in report.conclusions
    ]


def show_conclusions(
    summary: RunSummary, sentences: Sequence[str], store: str | Path | None
) -> None:
    from rich.text import Text

    if not sentences:
        return
    ranks = len(sentences) > len(summary.judges)  # more than two models met
    for sentence in () if ranks else sentences:
        session.print_line(session.out(), Text(one_line(sentence), "bold"))
    show_next("rank" if ranks else "report", summary.run, store)


def show_next(command: str, run: str, store: str | Path | None) -> None:
    from rich.text import Text

    session.err().print(Text(f"next  {session.pasted(command, run, store=store)}"), soft_wrap=True)


def show_preview(console: Console, preview: Preview) -> None:
    """What would be asked, and what it would take."""
    from rich.text import Text

    from evenhand.present.terminal import clean

    for request in preview.requests:
        for message in request.messages:
            order = f" · {request.order} pass" if request.order else ""
            order = f" · {request.artefact}" if request.artefact else order
            heading = f"──── to {one_line(request.to)}{order} · {message.role} ────"
            console.print(Text(heading), soft_wrap=True)
            console.print(Text(clean(message.content)), soft_wrap=True)
            console.print()
    skipped = f", {counted(preview.skipped_rows, 'row')} skipped" if preview.skipped_rows else ""
    if preview.first_skipped:
        skipped += f" (first: {one_line(preview.first_skipped)})"
    cost = "unknown (set --price)"
    if preview.cost_usd is not None:
        low, high = preview.cost_usd
        cost = f"{dollars(low)} to {dollars(high)}" if high else "none"
    took = " to ".join(duration(each) for each in preview.seconds)
    facts = (
        ("pairs", f"{number(preview.pairs)}{skipped}"),
        ("calls", f"at most about {number(preview.calls)}"),
        ("tokens", f"{_range(preview.input_tokens)} in, {_range(preview.output_tokens)} out"),
        ("cost", cost),
        ("time", f"{took}, typical for hosted models"),
    )
    show_facts(console, facts, width=8)
    session.err().print("nothing was asked; run the command without --dry-run to judge")


def _range(ends: tuple[float, float]) -> str:
    return " to ".join(map(short, ends))


def abstentions_of(
    summary: RunSummary, plans: list[JudgePlan], store: Store
) -> Sequence[Abstentions] | None:
    """None where no judge has a calibration, which is when NumPy is not needed either."""
    if all(plan.config.calibration is None for plan in plans):
        return None
    from evenhand.report.abstentions import count_abstentions
    from evenhand.report.lookup import find_run

    return tuple(count_abstentions(store, find_run(store, summary.run)))


def exit_code_of(summary: RunSummary) -> int:
    from evenhand.runs import STOPPED_STATUS

    return Status.OK if summary.stopped_by is None else STOPPED_STATUS[summary.stopped_by]


# Stage after stage on the terminal: what `evenhand run --escalate` does.


def judge_in_stages(
    sources: Sources,
    plans: Sequence[JudgePlan],
    options: RunOptions,
    *,
    store: Store,
    as_json: bool,
    confirm_above: float | None,
    people: Path | None,
) -> NoReturn:
    from evenhand.trust.cascades import report_cascade, run_cascade

    async def stage(sources: Sources, plan: JudgePlan, options: RunOptions) -> RunSummary:
        return await watched(
            sources, [plan], options, store=store, as_json=as_json, confirm_above=confirm_above
        )

    async def work() -> list[RunSummary]:
        return await run_cascade(sources, plans, options, store=store, stage=stage)

    summaries = run_to_the_end(work, sources, plans)
    report = report_cascade(store, summaries, planned=len(plans))
    if people is not None:
        _write(store, summaries[-1].run, people)
    if as_json:
        session.write_json(report)
    else:
        show_cascade(session.out(), report, people)
    code = exit_code_of(summaries[-1])
    session.leave(code if code or report.finished else Status.CAP_REACHED)


def _write(store: Store, run: str, path: Path) -> None:
    from evenhand.report.files import atomic_file
    from evenhand.trust.cascades import for_people

    with atomic_file(path.expanduser(), overwrite=True) as stream:
        for row in for_people(store, run):
            stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def show_cascade(console: Console, report: CascadeReport, people: Path | None) -> None:
    from rich.text import Text

    columns = ("judge", "asked", "stand", "abstained", "inconsistent", "invalid", "passes", "cost")
    table = table_of(*columns, left=("judge",))
    for stage in report.stages:
        counts = (stage.asked, stage.kept, stage.abstained, stage.inconsistent, stage.invalid)
        cells = [number(count) for count in (*counts, stage.passes)]
        table.add_row(Text(one_line(stage.judge)), *cells, _cost(stage.cost_usd))
    print_table(console, table)
    console.print()
    facts = (
        *((f"run {place}", stage.run) for place, stage in enumerate(report.stages, start=1)),
        (
            "coverage",
            f"{number(report.kept)} of {counted(report.pairs, 'pair')}, {share(report.coverage)}",
        ),
        (
            "agreement",
            f"with labels, of the verdicts that stand: {share(report.agreement)}",
        ),
        *(
            ("", f"of {one_line(stage.judge)}: {share(stage.agreement)}")
            for stage in report.stages
            if len(report.stages) > 1
        ),
        (
            "spent",
            f"{counted(report.passes, 'pass', 'passes')}, "
            f"{counted(report.calls, 'call')} in these runs, {_cost(report.cost_usd)}",
        ),
        ("people", _people(report, people)),
    )
    show_facts(console, ((name, one_line(fact)) for name, fact in facts), width=10)
    show_notes(console, report.notes)


def _people(report: CascadeReport, people: Path | None) -> str:
    left = f"{counted(report.left, 'pair')} left for people"
    if not report.left:
        return left
    run = report.stages[-1].run
    where = f", in {people}" if people is not None else ""
    return f"{left}{where}; vote with evenhand label {run} --only abstained"


def _cost(amount: float | None) -> str:
    return "unknown" if amount is None else dollars(amount)
