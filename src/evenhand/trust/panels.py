"""Several judges on the same pairs: their verdicts side by side, saved juries, how a jury votes,
and whose verdicts a win rate is corrected from.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.analysis_options import JuryOptions, Weights
from evenhand.contract import Locale
from evenhand.contract.codes import INCONSISTENT, INVALID, NO_WINNER, TIE, winner_code
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.judges.families import Families, OwnFamilies, shared_notes
from evenhand.messages import Message, Sentence
from evenhand.report.abstentions import Promise, stands
from evenhand.report.families import judge_families
from evenhand.report.lookup import chosen_judge
from evenhand.report.votes import fair_labels
from evenhand.stats.juries.accuracy import LEARNED, MAJORITY, PLURALITY, choose_jury, usual_quorum
from evenhand.stats.juries.jury import Jury, learn_jury, make_jury
from evenhand.stats.juries.votes import NO_VOTE, JuryVerdicts, split_votes, whole_votes
from evenhand.store import JudgeRecord, OutcomeColumns, RunItem, RunRecord, Store
from evenhand.trust.saved_files import SavedFiles

Codes = NDArray[np.int8]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

NOT_JUDGED = -1


class Juror(Model):
    """A judge as a jury knows it: the same model with another prompt is another judge."""

    judge: str
    prompt_version: str | None
    locale: Locale | None


@dataclass(frozen=True, slots=True)
class Panel:
    """A row for each pair of the first run that at least one judge has judged.

    `outcomes` has a column a judge, with the codes of `store.columns`, and -1 where the judge has
    not judged the pair; `splits` has its half votes where it was inconsistent; `abstained` says
    which wins and ties its calibration does not vouch for, `recused` on which pairs one of the two
    contestants is of its family, where these take its vote.
    `by_rule` marks ties of identical responses that no judge was asked about: they count in rates,
    but as nobody's opinion.
    `labels` are the data's own, and the majority of people's votes where the data have none; -1 is
    none, also where no judge was asked.
    """

    run: RunRecord
    runs: tuple[str, ...]
    jurors: tuple[Juror, ...]
    titles: tuple[str, ...]
    items: tuple[RunItem, ...]
    prompts: Integers
    outcomes: Codes
    splits: Codes
    abstained: Mask
    recused: Mask
    by_rule: Mask
    labels: Codes
    by_people: int
    planned: bool  # every run is whole, and none ended by looking at its verdicts
    notes: tuple[Sentence, ...]

    @property
    def ballots(self) -> Codes:
        """0 A, 1 B, 2 TIE; 3 to 5 a half vote for each of two, where the orders differ; -1 none.

        The one place where a judge's vote on a pair is taken out: it abstained, is recused, or
        was not asked, since the pair is a tie by rule.
        """
        given = np.where(self.outcomes <= TIE, self.outcomes, self.splits)
        out = self.abstained | self.recused | self.by_rule[:, np.newaxis]
        ballots: Codes = np.where(out, NO_VOTE, given).astype(np.int8)
        return ballots

    @property
    def votes(self) -> Codes:
        """0 A, 1 B, 2 TIE; -1 where the judge has no verdict that stands: it was inconsistent,
        could not be read, abstained, is recused, or was not asked."""
        return whole_votes(self.ballots)

    def columns(self, outcomes: Codes) -> OutcomeColumns:
        """As a judge's own, for what reads those."""
        names = {each: None for item in self.items for each in (item.model_a, item.model_b)}
        models = tuple(name for name in names if name is not None)
        code: dict[str | None, int] = {name: place for place, name in enumerate(models)}
        code[None] = -1
        return OutcomeColumns(
            models=models,
            tag_sets=(),
            number=array("q", [item.number for item in self.items]),
            prompt_key=array("q", self.prompts.tobytes()),
            outcome=array("b", outcomes.astype(np.int8).tobytes()),
            model_a=array("i", [code[item.model_a] for item in self.items]),
            model_b=array("i", [code[item.model_b] for item in self.items]),
        )


@dataclass(frozen=True, slots=True)
class _JurorVerdicts:
    """A judge's verdicts by the numbers of the first run's items, ascending."""

    record: JudgeRecord
    kin: frozenset[str]  # its families
    run: str
    numbers: Integers
    prompts: Integers
    outcomes: Codes
    splits: Codes
    abstained: Mask
    by_rule: Mask


def read_panel(
    store: Store,
    runs: Sequence[RunRecord],
    *,
    recuse_family: bool = False,
    families: OwnFamilies = (),
) -> Panel:
    """All judges of the runs, on the pairs of the first; `families` are the caller's own entries,
    as the settings have them."""
    runs = list({run.id: run for run in runs}.values())
    columns: list[_JurorVerdicts] = []
    notes: list[str] = []
    planned = True
    known, every = Families(families), store.items.all(runs[0].id)
    models = list(dict.fromkeys(name for item in every for name in (item.model_a, item.model_b)))
    for run in runs:
        tally = store.verdicts.tally(run.id)
        planned &= run.intake_done and tally.pending == 0 and not run.plan.get("until_decided")
        if tally.pending:
            notes.append(Message("jury.pending", run=run.name, n=tally.pending))
        if run.drawn_orders is not None:
            notes.append(Message("trust.panel_drawn_orders", run=run.name))
        for record in store.runs.judges(run.id):
            if any(column.record.id == record.id for column in columns):
                notes.append(Message("jury.counted_once", judge=record.name, run=run.name))
                continue
            kin = judge_families(store, run, [record], models, known)[record.id]
            columns.append(_juror_verdicts(store, runs[0], run, record, kin))
    if not any(column.numbers.size for column in columns):
        raise InputError(Message("trust.nothing_judged_for_jury", name=runs[0].name))
    numbers = np.unique(np.concatenate([column.numbers for column in columns]))
    prompts = np.zeros(numbers.size, dtype=np.int64)
    outcomes = np.full((numbers.size, len(columns)), NOT_JUDGED, dtype=np.int8)
    splits = np.full_like(outcomes, NO_VOTE)
    abstained, unasked = (np.zeros(outcomes.shape, dtype=np.bool_) for _ in range(2))
    for place, column in enumerate(columns):
        rows = np.searchsorted(numbers, column.numbers)
        prompts[rows] = column.prompts
        outcomes[rows, place] = column.outcomes
        splits[rows, place] = column.splits
        abstained[rows, place] = column.abstained
        unasked[rows, place] = column.by_rule
    by_rule: Mask = (unasked | (outcomes == NOT_JUDGED)).all(axis=1)
    outcomes[unasked & ~by_rule[:, np.newaxis]] = NOT_JUDGED  # another judge was asked
    if by_rule.any():
        notes.append(Message("trust.panel_ties_by_rule", n=int(by_rule.sum())))
    judged = set(numbers.tolist())
    items = tuple(item for item in every if item.number in judged)
    recused = np.zeros(outcomes.shape, dtype=np.bool_)
    for place, column in enumerate(columns if recuse_family else ()):
        recused[:, place] = _recused(column.kin, items, known)
    titles = _titles(columns)
    if not recuse_family:
        sitting = zip(titles, (column.kin for column in columns), strict=True)
        notes += shared_notes(sitting, models, known, code="trust.juror_same_family")
    own = [winner_code(item.label) for item in items]
    labels = fair_labels(store, runs[0].id, numbers, of_data=own)
    return Panel(
        run=runs[0],
        runs=tuple(run.name for run in runs),
        jurors=tuple(juror_of(column.record) for column in columns),
        titles=titles,
        items=items,
        prompts=prompts,
        outcomes=outcomes,
        splits=splits,
        abstained=abstained,
        recused=recused,
        by_rule=by_rule,
        labels=np.where(by_rule, NO_WINNER, labels.winners),
        by_people=int((labels.by_people & ~by_rule).sum()),
        planned=planned,
        notes=tuple(notes),
    )


def _recused(kin: frozenset[str], items: Sequence[RunItem], families: Families) -> Mask:
    """Where exactly one contestant is of the judge's family. Where both are, favouring the family
    favours neither."""
    return np.array(
        [
            bool(kin & families.of(item.model_a)) != bool(kin & families.of(item.model_b))
            for item in items
        ],
        dtype=np.bool_,
    )


def juror_of(record: JudgeRecord) -> Juror:
    return Juror(judge=record.name, prompt_version=record.prompt_version, locale=record.locale)


def _juror_verdicts(
    store: Store, first: RunRecord, run: RunRecord, record: JudgeRecord, kin: frozenset[str]
) -> _JurorVerdicts:
    columns = store.columns.outcomes(run.id, record.id)
    numbers = np.asarray(columns.number, dtype=np.int64)
    rows: NDArray[Any] = np.arange(numbers.size)
    shared = numbers
    if run.id != first.id:
        ours, theirs = store.items.shared(first.id, run.id)
        if not ours:
            raise InputError(Message("trust.runs_share_no_pair", name=first.name, name2=run.name))
        place = np.searchsorted(numbers, theirs)
        judged = place < numbers.size
        judged[judged] = numbers[place[judged]] == np.asarray(theirs)[judged]
        rows = place[judged]
        shared = np.asarray(ours, dtype=np.int64)[judged]
    outcomes = np.asarray(columns.outcome, dtype=np.int8)
    by_order = split_votes(np.asarray(columns.first_winner), np.asarray(columns.second_winner))
    splits = np.where(outcomes == INCONSISTENT, by_order, NO_VOTE).astype(np.int8)
    return _JurorVerdicts(
        record=record,
        kin=kin,
        run=run.name,
        numbers=shared,
        prompts=np.asarray(columns.prompt_key, dtype=np.int64)[rows],
        outcomes=outcomes[rows],
        splits=splits[rows],
        abstained=_abstained(store, run, record, numbers, outcomes)[rows],
        by_rule=np.asarray(columns.by_rule, dtype=np.bool_)[rows],
    )


def _abstained(
    store: Store, run: RunRecord, record: JudgeRecord, numbers: Integers, outcomes: Codes
) -> Mask:
    """The wins and ties that a calibration with a promise does not keep."""
    promise = Promise.of(record, run)
    if promise is None:
        return np.zeros(numbers.size, dtype=np.bool_)
    verdicts = store.verdicts.each(run.id, judge_id=record.id)
    kept = [row.item.number for row in verdicts if stands(row, promise)]
    abstained: Mask = (outcomes <= TIE) & ~np.isin(numbers, kept)
    return abstained


def _titles(columns: Sequence[_JurorVerdicts]) -> tuple[str, ...]:
    """By name; with its language, then its prompt and its run, where that is not enough."""
    titles = [column.record.name for column in columns]
    details: tuple[list[Any], ...] = (
        [column.record.locale for column in columns],
        [column.record.prompt_version for column in columns],
        [column.run for column in columns],
        [str(place) for place in range(1, len(columns) + 1)],
    )
    for detail in details:
        known: dict[str, set[str | None]] = {}
        for title, more in zip(titles, detail, strict=True):
            known.setdefault(title, set()).add(more)
        titles = [
            f"{title} [{more}]" if len(known[title]) > 1 and more else title
            for title, more in zip(titles, detail, strict=True)
        ]
    return tuple(titles)


class SavedJury(Model):
    """`runs` are those whose judges and labels it was made of; they need not be there any more.

    `quorum` is how many whole votes a verdict takes; 0 where half votes may decide. Judges have no
    vote on pairs with one contestant of their family where `recuse_family` says so. Format 1 has no
    method by plurality or by a member, and reads as it did.
    """

    format: Literal["evenhand jury 1", "evenhand jury 2"] = "evenhand jury 2"
    runs: tuple[str, ...]
    jurors: tuple[Juror, ...]
    quorum: int
    recuse_family: bool = False
    jury: Jury

    def learned_on(self, runs: Sequence[str]) -> bool:
        """Whether labels of one of these runs have taught its weights or chosen its rule."""
        return self.jury.labels > 0 and bool(set(self.runs) & set(runs))


_FILES = SavedFiles(SavedJury, "jury", "juries", make="saved.make_jury")


def save_jury(saved: SavedJury, name: str | Path, *, overwrite: bool = False) -> Path:
    return _FILES.save(saved, name, overwrite=overwrite)


def open_jury(name: str | Path) -> SavedJury:
    """By the name it was saved under, or a path that ends in .json."""
    saved = _FILES.open(name)
    _check(saved, _FILES.path(name))
    return saved


def seats_of(saved: SavedJury, jurors: Sequence[Juror], *, forced: bool) -> list[int | None]:
    """Whose votes stand on each seat of the jury, as places in `jurors`.

    `forced`: a judge of the same name takes the seat whatever its prompt; else the next that has
    none; and a seat for which nobody is left has no votes.
    """
    free = list(range(len(jurors)))
    taken: list[int | None] = [None] * len(saved.jurors)

    def fill(place: int, fitting: Sequence[int]) -> None:
        if taken[place] is None and fitting:
            taken[place] = fitting[0]
            free.remove(fitting[0])

    for place, wanted in enumerate(saved.jurors):
        fill(place, [each for each in free if jurors[each] == wanted])
    if None in taken and not forced:
        missing = saved.jurors[taken.index(None)]
        raise InputError(
            Message(
                "trust.jury_judge_missing",
                missing=_described(missing),
                told=", ".join(map(_described, jurors)),
            )
        )
    for place, wanted in enumerate(saved.jurors):
        fill(place, [each for each in free if jurors[each].judge == wanted.judge])
    for place in range(len(taken)):
        fill(place, free[:1])
    return taken


def _check(saved: SavedJury, path: Path) -> None:
    jury, seats = saved.jury, len(saved.jurors)
    weights = [each for each in (jury.weights, jury.tie_weights) if each is not None]
    fits = len(jury.judges) == seats and all(len(each) == seats for each in weights)
    fits &= (jury.member is None) != (jury.method == "member")
    fits &= jury.member is None or 0 <= jury.member < seats
    if not fits or not 0 <= saved.quorum <= seats or not seats:
        raise InputError(Message("trust.jury_malformed", path=path, make=Message(_FILES.make)))


def _described(juror: Juror) -> str:
    details = [each for each in (juror.prompt_version, juror.locale) if each is not None]
    return f"{juror.judge} [{', '.join(details)}]" if details else juror.judge


# A jury's own outcomes on the codes of a judge's: in a rate a hung jury counts as a pair on which
# one judge contradicts itself does, and one that lacks votes as a pair without a verdict.
HUNG, NO_QUORUM = INCONSISTENT, INVALID


@dataclass(frozen=True, slots=True)
class JuryPoll:
    panel: Panel
    saved: SavedJury
    verdicts: JuryVerdicts
    outcomes: Codes  # WIN_A, WIN_B, TIE, HUNG or NO_QUORUM


def poll_jury(
    store: Store,
    runs: Sequence[RunRecord],
    options: JuryOptions,
    *,
    use: SavedJury | None = None,
    families: OwnFamilies = (),
) -> JuryPoll:
    """All judges of the runs on the pairs of the first; or a saved jury, and its judges, who recuse
    themselves where they did when it was made."""
    quorum = options.quorum
    recuse_family = options.recuse_family or (use is not None and use.recuse_family)
    panel = read_panel(store, runs, recuse_family=recuse_family, families=families)
    if use is None:
        saved = _new_jury(panel, options.weights or "auto", quorum)
        saved = saved.model_copy(update={"recuse_family": recuse_family})
    else:
        panel = _seated(panel, use, seats_of(use, panel.jurors, forced=options.force))
        saved = use if quorum is None else use.model_copy(update={"quorum": quorum})
    if quorum is not None and not 1 <= quorum <= len(saved.jurors):
        raise InputError(Message("trust.quorum_outside", quorum=quorum, seats=len(saved.jurors)))
    verdicts = saved.jury.predict(panel.ballots)
    outcomes: Codes = np.where(panel.by_rule, TIE, _outcomes(verdicts, saved.quorum))
    return JuryPoll(panel, saved, verdicts, outcomes)


def _new_jury(panel: Panel, weights: Weights, quorum: int | None) -> SavedJury:
    if weights == "auto" and quorum is not None:
        weights = MAJORITY  # the rule that has always had a quorum
    if weights == "auto":
        jury = choose_jury(panel.ballots, panel.labels, judges=panel.titles, prompts=panel.prompts)
    elif weights == LEARNED:
        jury = learn_jury(panel.votes, panel.labels, judges=panel.titles, prompts=panel.prompts)
        if jury.reason is not None:
            raise InputError(Message("trust.weights_not_learned", reason=jury.reason))
    else:
        jury = make_jury(panel.titles, method=weights)
    return SavedJury(
        runs=panel.runs,
        jurors=panel.jurors,
        quorum=usual_quorum(jury.method, len(panel.jurors)) if quorum is None else quorum,
        jury=jury,
    )


def _seated(panel: Panel, saved: SavedJury, seats: Sequence[int | None]) -> Panel:
    """The panel with a column for each seat of the jury, in its order."""
    outcomes = np.full((panel.outcomes.shape[0], len(seats)), NOT_JUDGED, dtype=np.int8)
    splits = np.full_like(outcomes, NO_VOTE)
    abstained, recused = (np.zeros(outcomes.shape, dtype=np.bool_) for _ in range(2))
    jurors, titles = list(saved.jurors), [seat.judge for seat in saved.jurors]
    notes = list(panel.notes)
    for place, taken in enumerate(seats):
        if taken is None:
            notes.append(Message("jury.seat_empty", judge=titles[place]))
            continue
        if jurors[place] != panel.jurors[taken]:
            names = {"judge": panel.titles[taken], "wanted": saved.jury.judges[place]}
            notes.append(Message("jury.seat_forced", **names))
        outcomes[:, place] = panel.outcomes[:, taken]
        splits[:, place] = panel.splits[:, taken]
        abstained[:, place] = panel.abstained[:, taken]
        recused[:, place] = panel.recused[:, taken]
        jurors[place], titles[place] = panel.jurors[taken], panel.titles[taken]
    left = [title for place, title in enumerate(panel.titles) if place not in seats]
    if left:
        notes.append(Message("jury.no_seat", names=left))
    return replace(
        panel,
        jurors=tuple(jurors),
        titles=tuple(titles),
        outcomes=outcomes,
        splits=splits,
        abstained=abstained,
        recused=recused,
        notes=tuple(notes),
    )


def _outcomes(verdicts: JuryVerdicts, quorum: int) -> Codes:
    # Winners' codes are those of the outcomes: 0 A, 1 B, 2 tie.
    decided = np.where(verdicts.hung, HUNG, verdicts.winners)
    short = (verdicts.voters < quorum) | (decided == NO_VOTE)
    outcomes: Codes = np.where(short, NO_QUORUM, decided).astype(np.int8)
    return outcomes


@dataclass(frozen=True, slots=True)
class Predictions:
    """One verdict a pair, as columns of a judge; `label` in them is the data's own."""

    judge: str
    prompt_version: str | None
    locale: Locale | None
    columns: OutcomeColumns
    pending: int


def predictions_of(
    store: Store, run: RunRecord, *, judge: str | None = None, jury: str | None = None
) -> Predictions:
    """`jury` is "plurality" or "majority", or the name or file of a saved one; else the run's
    judge."""
    if jury is not None:
        if judge is not None:
            raise InputError(Message("trust.judge_and_jury", judge=judge, jury=jury))
        return _of_jury(store, run, jury)
    record = chosen_judge(store.runs.judges(run.id), run.name, judge)
    columns = store.columns.outcomes(run.id, record.id)
    if not columns.number:
        raise InputError(Message("trust.nothing_judged_for_jury", name=run.name))
    return Predictions(
        judge=record.name,
        prompt_version=record.prompt_version,
        locale=record.locale,
        columns=columns,
        pending=store.verdicts.tally(run.id, record.id).pending,
    )


def _of_jury(store: Store, run: RunRecord, jury: str) -> Predictions:
    rules: tuple[Weights, ...] = (PLURALITY, MAJORITY)
    rule = next((each for each in rules if each == jury), None)
    use = open_jury(jury) if rule is None else None
    if use is not None and use.learned_on([run.name]):
        raise InputError(Message("trust.jury_learned_on_these_labels", jury=jury, name=run.name))
    voted = poll_jury(store, [run], JuryOptions(weights=rule), use=use)
    jurors, method = len(voted.saved.jurors), voted.saved.jury.method
    return Predictions(
        judge=Message("trust.jury_as_judge", n=jurors, rule=Message(f"trust.by_{method}")),
        prompt_version=None,
        locale=None,
        columns=_jury_columns(voted),
        pending=store.verdicts.tally(run.id).pending,
    )


def _jury_columns(voted: JuryPoll) -> OutcomeColumns:
    """How sure a jury is: its probability where labels have taught it one, else the share of the
    votes that the largest group has."""
    verdicts, panel = voted.verdicts, voted.panel
    sure = 1.0 - verdicts.dissent if verdicts.probability is None else verdicts.probability
    confidence = np.where((voted.outcomes <= TIE) & ~panel.by_rule, sure, np.nan)
    return replace(
        panel.columns(voted.outcomes),
        confidence=array("d", confidence.tolist()),
        label=array("b", [winner_code(item.label) for item in panel.items]),
    )
