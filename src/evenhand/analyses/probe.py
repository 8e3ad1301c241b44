"""A judge through pairs whose verdict is known without labels: which biases it has, how certain
that is, and whether its score is enough."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from evenhand.analyses.judging import JudgedStage, JudgingRequest, Stage
from evenhand.analyses.registry import AnalysisSubject
from evenhand.analysis_options import ProbeOptions
from evenhand.blocks import (
    Block,
    Facts,
    Finding,
    Grid,
    Next,
    NoteLines,
    Ruled,
    Ruling,
    Title,
    Tone,
)
from evenhand.blocks import Sentence as Line
from evenhand.contract import Criterion, ErrorBody, Locale, read_criteria
from evenhand.contract.model import Model
from evenhand.contract.pair import criterion_in
from evenhand.errors import InputError, Status
from evenhand.messages import Message, Sentence, joined
from evenhand.messages.numbers import rate
from evenhand.quantities import count, counted, counted_share, dollars, listed, share_as_rate
from evenhand.report.records import rows_of
from evenhand.runs import STOPPED_STATUS, JudgePlan, StoppedBy
from evenhand.stats.estimates import EstimatedShare
from evenhand.store import RunRecord, Store
from evenhand.trust.probes.cases import (
    LANGUAGES,
    PROBE_NAMES,
    ProbeCase,
    ProbeList,
    ProbeName,
    ProbePairs,
    list_probes,
    probe_cases,
    probe_name,
)
from evenhand.trust.probes.scores import (
    FailingCase,
    HabitState,
    JudgeAnswer,
    ProbeScore,
    Score,
    habit_of,
    score,
    score_cases,
    score_probes,
    sum_up_habits,
)

# Runs that are looked through for the other language, the newest first.
_LOOKED_THROUGH = 1000


class ProbeRun(Model):
    """The run that holds one language's pairs: `evenhand show RUN ID` shows one of them whole. What
    it took is of the command that judged, and null of a stored run."""

    language: Locale
    id: str | None = None
    run: str | None = None  # null: a cap was reached before it began
    prompt_version: str | None = None
    pairs: int
    calls: int | None = None
    reused_passes: int | None = None
    cost_usd: float | None = None


class ProbeReport(Model):
    """`ruling` is there where a least score was asked for, and `ruling_reason` says why. `changed`
    languages were asked by another version of the probes: what is no case of this version is in no
    score."""

    judge: str
    judge_caveat: Sentence | None
    store: str
    runs: tuple[ProbeRun, ...]
    criteria: dict[Locale, tuple[Criterion, ...]]
    overall: Score
    probes: tuple[ProbeScore, ...]
    changed: tuple[Locale, ...] = ()
    min_score: float | None
    ruling: Ruling | None
    ruling_reason: Sentence | None
    stopped_by: StoppedBy | None
    error: ErrorBody | None
    notes: tuple[Sentence, ...] = ()


Result = ProbeReport


def check(options: ProbeOptions) -> None:
    if options.min_score is not None and not 0 <= options.min_score <= 1:
        raise InputError(Message("trust.min_score_outside", min_score=options.min_score))


def stages(options: ProbeOptions, request: JudgingRequest) -> Iterator[Stage]:
    """A run for each language, each with a prompt in its own."""
    cases = asked_cases(options)
    if options.list_only:
        if request.given:
            raise InputError(Message("probe.list_asks_nobody", options=list(request.given)))
        return
    languages = by_language(cases)
    for language, its in languages.items():
        # A tie that is given without asking says nothing about the judge.
        config = request.config(locale=language, ask_identical=True)
        part = language if len(languages) > 1 else ""
        yield Stage(ProbePairs(language, its), JudgePlan(config.open_judge(), config), part)


def asked_cases(options: ProbeOptions) -> tuple[ProbeCase, ...]:
    languages = LANGUAGES if options.locale == "both" else (options.locale,)
    criteria = read_criteria(list(map(criterion_in, options.criteria))) if options.criteria else ()
    return probe_cases(options.probes, languages, criteria=criteria)


def by_language(cases: Sequence[ProbeCase]) -> dict[Locale, tuple[ProbeCase, ...]]:
    every = {each: tuple(case for case in cases if case.language == each) for each in LANGUAGES}
    return {language: its for language, its in every.items() if its}


# Stored runs of probes.


def probe_language(run: RunRecord) -> Locale | None:
    """None where it is no run of probes."""
    if "probes" not in run.plan.get("data", {}):
        return None
    return next((each for each in LANGUAGES if run.sources == (f"probes-{each}",)), None)


def probe_runs_of(store: Store, judge: str) -> list[RunRecord]:
    """Of a judge by its name, the newest first."""
    return [
        run
        for run in store.runs.page(limit=_LOOKED_THROUGH)
        if probe_language(run) is not None and run.plan.get("judge_names") == [judge]
    ]


def probe_runs_beside(store: Store, run: RunRecord) -> list[RunRecord]:
    """The run that asked the same judge in the other language, at about the same time."""
    if probe_language(run) is None or not run.plan.get("judge_names"):
        return []
    others = [
        each
        for each in probe_runs_of(store, run.plan["judge_names"][0])
        if probe_language(each) != probe_language(run)
    ]
    return [min(others, key=lambda each: abs(each.created_at - run.created_at))] if others else []


def _stored_cases(
    runs: Mapping[Locale, RunRecord], keys: Mapping[Locale, frozenset[str]]
) -> Iterator[ProbeCase]:
    """What was asked; a verdict that is to be the same in two languages needs both."""
    for language in LANGUAGES:
        for case in _all_cases(runs, keys, language):
            if case.id in keys[language] and (len(runs) > 1 or case.expected):
                yield case


def _all_cases(
    runs: Mapping[Locale, RunRecord], keys: Mapping[Locale, frozenset[str]], language: Locale
) -> tuple[ProbeCase, ...]:
    """Of the probes that the run has cases of, as this version makes them."""
    known = keys.get(language, frozenset())
    names: list[ProbeName] = [
        name for name in PROBE_NAMES if any(key.startswith(f"{language}-{name}-") for key in known)
    ]
    if not names:
        return ()
    criteria = read_criteria(runs[language].plan["data"].get("criteria", ()))
    made = probe_cases(names, LANGUAGES, criteria=criteria)
    return tuple(case for case in made if case.language == language)


def compute(subject: AnalysisSubject, options: ProbeOptions) -> ProbeReport | ProbeList:
    if not subject.runs:
        return list_probes(asked_cases(options))
    store, runs = subject.store, dict[Locale, RunRecord]()
    for run in subject.runs:
        language = probe_language(run)
        if language is None:
            raise InputError(Message("trust.run_without_probes", name=run.name))
        runs.setdefault(language, run)
    keys = {
        language: frozenset(item.key for item in store.items.all(run.id))
        for language, run in runs.items()
    }
    cases = [*_stored_cases(runs, keys)]
    if subject.judged:
        cases += [case for case in asked_cases(options) if case.language not in runs]
    if not cases:
        raise InputError(Message("trust.run_of_other_probes", name=subject.run.name))
    rows = {row.id: row for run in runs.values() for row in rows_of(store, run)}
    scored = score_cases(cases, rows)
    overall, probes = score(scored), score_probes(scored)
    ruled = None
    if options.min_score is not None:
        ruled = apply_threshold(overall, probes, min_score=options.min_score)
    summaries = [each.summary for each in subject.judged]
    judge = store.runs.judges(subject.run.id)[0]
    asked = by_language(cases)
    return ProbeReport(
        judge=judge.name,
        judge_caveat=judge.settings.get("caveat"),
        store=store.address,
        runs=tuple(_runs(store, runs, asked, subject.judged)),
        criteria={language: its[0].pair.criteria for language, its in asked.items()},
        overall=overall,
        probes=probes,
        changed=tuple(
            language
            for language, run in runs.items()
            if ProbePairs(language, _all_cases(runs, keys, language)).describe()["probes"]
            != run.plan["data"]["probes"]
        ),
        min_score=options.min_score,
        ruling=ruled[0] if ruled else None,
        ruling_reason=ruled[1] if ruled else None,
        stopped_by=summaries[-1].stopped_by if summaries else None,
        error=next((each.error for each in summaries if each.error), None),
        notes=tuple(dict.fromkeys(note for each in summaries for note in each.notes)),
    )


def _runs(
    store: Store,
    runs: Mapping[Locale, RunRecord],
    cases: Mapping[Locale, Sequence[ProbeCase]],
    judged: Sequence[JudgedStage],
) -> Iterator[ProbeRun]:
    spent = {each.summary.run: each.summary for each in judged}
    for language, its in cases.items():
        if (run := runs.get(language)) is None:
            yield ProbeRun(language=language, pairs=len(its))
            continue
        summary = spent.get(run.name)
        yield ProbeRun(
            language=language,
            id=str(run.id),
            run=run.name,
            prompt_version=store.runs.judges(run.id)[0].prompt_version,
            pairs=len(its),
            calls=summary and summary.calls,
            reused_passes=summary and summary.reused_passes,
            cost_usd=summary and summary.cost_usd,
        )


# Is the judge good enough? Its score against a threshold: pass, fail, or not known.


def apply_threshold(
    overall: Score, probes: Sequence[ProbeScore], *, min_score: float
) -> tuple[Ruling, str]:
    """The whole must be shown to lie above the threshold, and no single probe below it: a judge
    that obeys every injection is not saved by its other scores."""
    share = overall.share
    if share.low is None or share.high is None or share.value is None:
        return "undecided", share.reason or Message("figure.not_enough")
    values = {"value": share.value, "low": share.low, "high": share.high, "limit": min_score}
    if share.high < min_score:
        return "fail", Message("probe.below", **values)
    below = [
        Message("probe.passed_of", name=each.probe, part=each.share.part, of=each.share.of)
        for each in probes
        if each.share.high is not None and each.share.high < min_score
    ]
    if below:
        return "fail", Message("probe.some_below", names=below, **values)
    if share.low <= min_score:
        return "undecided", Message("probe.not_different", **values)
    if overall.pending:
        return "undecided", Message("probe.above_pending", pending=overall.pending, **values)
    if overall.invalid and _worst(overall) <= min_score:
        return "undecided", Message("probe.above_invalid", invalid=overall.invalid, **values)
    return "pass", Message("probe.above", **values)


def _worst(overall: Score) -> float:
    """The score if whatever has no verdict had failed."""
    return overall.passed / (overall.n - overall.pending)


_STATUS: dict[Ruling | None, int] = {
    None: Status.OK,
    "pass": Status.OK,
    "fail": Status.GATE_FAILED,
    "undecided": Status.UNDECIDED,
}


def status(result: ProbeReport | ProbeList) -> int:
    if isinstance(result, ProbeList):
        return Status.OK
    if result.stopped_by is not None:
        return STOPPED_STATUS[result.stopped_by]
    return _STATUS[result.ruling]


# Probes as a person reads them: the list, the scores, and the cases to look at.

_SHOWN_OF_EACH = 3
_QUOTED = 160
_TONES: dict[HabitState, Tone] = {
    "shown": "bad",
    "unclear": "unclear",
    "unseen": "good",
    "no_data": "plain",
}


def blocks(result: ProbeReport | ProbeList, shown: Collection[str] = ()) -> Iterator[Block]:
    if isinstance(result, ProbeList):
        yield from _listing(result)
        return
    yield Title(result.judge)
    yield Line(joined(sum_up_habits(result.overall, result.probes)), strong=True)
    yield from _habits(result.probes)
    yield Facts(tuple((Message("probe.run"), _spent(run)) for run in result.runs))
    if "details" in shown:
        yield _score_table(result)
        yield from _languages(result.probes)
        for probe in result.probes:
            yield from _failing(probe)
    if result.ruling is not None:
        yield Ruled(result.ruling, result.ruling_reason or "")
    if result.notes:
        yield NoteLines(result.notes)
    if any(probe.failing for probe in result.probes):
        yield Next(Message(f"probe.next_{'show' if 'details' in shown else 'details'}"))


def _listing(listed: ProbeList) -> Iterator[Block]:
    yield Grid(
        columns=tuple(Message(f"probe.column_{each}") for each in ("probe", "pairs", *_ASKED)),
        rows=tuple(
            (each.probe, count(each.pairs), each.shows, each.expected) for each in listed.probes
        ),
        left=frozenset({0, 2, 3}),
    )
    languages = [_language(each) for each in listed.languages]
    yield Line(Message("probe.listed", n=listed.pairs, languages=languages))


_ASKED = ("shows", "expects")


def _language(language: Locale) -> Message:
    return Message(f"probe.{language}")


def _habits(probes: Sequence[ProbeScore]) -> Iterator[Finding]:
    """A line a probe, the worst first; those that never failed together."""
    found: dict[HabitState, list[ProbeScore]] = {state: [] for state in _TONES}
    for probe in sorted(probes, key=lambda each: each.share.value or 0.0):
        found[habit_of(probe)].append(probe)
    for state, its in found.items():
        if not its:
            continue
        label, tone = Message(f"probe.{state}"), _TONES[state]
        if state in ("shown", "unclear"):
            yield from (Finding(label, _fails(probe), tone) for probe in its)
            continue
        text = listed([probe_name(probe.probe) for probe in its])
        lows = [probe.share.low for probe in its if probe.share.low is not None]
        if state == "unseen" and lows:
            text = Message("probe.may_fail", names=text, most=rate(1 - min(lows)))
        yield Finding(label, text, tone)


def _fails(probe: ProbeScore) -> Message:
    share = probe.share
    failed = EstimatedShare(
        part=share.of - share.part,
        of=share.of,
        value=None if share.value is None else 1 - share.value,
        low=None if share.high is None else 1 - share.high,
        high=None if share.low is None else 1 - share.low,
        reason=share.reason,
    )
    habit, name = Message(f"probe.{probe.probe}"), probe_name(probe.probe)
    return Message("probe.fails", name=name, habit=habit, share=counted_share(failed))


def _score_table(report: ProbeReport) -> Grid:
    states = ["passed", "wrong", "inconsistent", "invalid"]
    if report.overall.pending:
        states.append("pending")

    def cells(score: Score) -> list[str]:
        counts = [score.n, *(getattr(score, state) for state in states)]
        return [*map(count, counts), share_as_rate(score.share)]

    rows = [(probe_name(each.probe), *cells(each)) for each in report.probes]
    if len(report.probes) > 1:
        rows.append((Message("probe.all"), *cells(report.overall)))
    columns = ("probe", "cases", *states, "score")
    return Grid(
        columns=tuple(Message(f"probe.column_{each}") for each in columns),
        rows=tuple(rows),
        left=frozenset({0, len(columns) - 1}),
        strong=frozenset({len(report.probes)}),
    )


def _languages(probes: Sequence[ProbeScore]) -> Iterator[Block]:
    """Only where a probe's score is another in another language."""
    lines = []
    for probe in probes:
        scores = probe.by_language
        if len({score.share.value for score in scores}) > 1:
            scored = [
                Message("probe.of", what=_language(each.language), value=share_as_rate(each.share))
                for each in scores
            ]
            lines.append((probe_name(probe.probe), listed(scored)))
    if lines:
        yield Title(Message("probe.by_language"))
        yield Facts(tuple(lines))


def _failing(probe: ProbeScore) -> Iterator[Block]:
    if not probe.failing:
        return
    shown = probe.failing[:_SHOWN_OF_EACH]
    more = "_first" if len(shown) < len(probe.failing) else ""
    name = probe_name(probe.probe)
    yield Title(Message(f"probe.failing{more}", name=name, shown=len(shown), n=len(probe.failing)))
    for case in shown:
        answers = tuple(
            (_place(answer, case), Message("probe.quoted", text=_quoted(answer.text)))
            for answer in case.answers
            # Why it is unread is already shown.
            if answer.text and answer.winner is not None
        )
        yield Line(_case(case))
        yield Facts(answers)


def _case(case: FailingCase) -> Message:
    if len(case.ids) > 1:
        each = zip(case.languages, case.winners, strict=True)
        verdicts = [
            Message("probe.of", what=_language(language), value=winner or "")
            for language, winner in each
        ]
        return Message("probe.case_both", ids=case.ids, verdicts=verdicts, fault=case.fault)
    # Of two orders that differ the mean decided.
    mean = case.state == "wrong" and len({answer.winner for answer in case.answers}) > 1
    orders = [answer.winner or Message("probe.unread") for answer in case.answers]
    return Message(
        f"probe.case{'_mean' * mean}",
        id=case.ids[0],
        expected=case.expected,
        first=orders[0] if orders else "",
        second=orders[-1] if orders else "",
        mean=case.winners[0] if case.winners else None,
        fault=case.fault,
    )


def _place(answer: JudgeAnswer, case: FailingCase) -> Message:
    order = Message("probe.first" if answer.order == "original" else "probe.second")
    if len(case.ids) > 1:
        return Message("probe.in_order", language=_language(answer.language), order=order)
    return order


def _quoted(text: str) -> str:
    answer = " ".join(text.split())
    return answer if len(answer) <= _QUOTED else answer[: _QUOTED - 1] + "…"


def _spent(run: ProbeRun) -> Message:
    parts: list[Message | str] = [_language(run.language), counted(run.pairs, "pair")]
    if run.run is None:
        return Message("probe.not_started", parts=parts)
    if run.calls is not None:
        parts.append(counted(run.calls, "call"))
        if run.reused_passes:
            parts.append(Message("probe.reused", n=run.reused_passes))
        known = run.cost_usd is not None
        parts.append(dollars(run.cost_usd or 0.0) if known else Message("probe.cost_unknown"))
    return Message("probe.spent", run=run.run, parts=parts)
