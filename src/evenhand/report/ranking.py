"""How models rank by the verdicts of stored runs, or by a plain file of battles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from evenhand.contract.codes import INCONSISTENT, TIE, WIN_A, WIN_B, OutcomeCounts
from evenhand.contract.model import Model
from evenhand.data.battles import read_battles
from evenhand.data.records import BadRow
from evenhand.data.source import Source
from evenhand.errors import DataError, InputError
from evenhand.judge_kinds import is_replayed
from evenhand.judges.families import Families, OwnFamilies, shared_notes
from evenhand.messages import Message, Sentence
from evenhand.report.families import judge_families
from evenhand.report.leaders import lead_objection
from evenhand.report.lookup import find_run, nearest
from evenhand.report.ranked_verdicts import (
    JudgedRun,
    RankedBattles,
    RankedVerdicts,
    chose_pairs,
    count_verdicts,
    read_tagged,
    read_verdicts,
)
from evenhand.report.win_rates import LabelRecord
from evenhand.stats.ranking.battles import tally_battles, tally_counts
from evenhand.stats.ranking.elo import EloRatings, rate_elo
from evenhand.stats.ranking.leaderboard import rank_tally
from evenhand.stats.ranking.result import Ranking, RankingOptions
from evenhand.store import RunState, Store

# What each outcome is worth to A; an invalid verdict is left out before.
_PREFERENCE = np.array([1.0, 0.0, 0.5, 0.5, np.nan])
# The share of verdicts that changed with the order from which a ranking says what it does.
_MANY_FLIPPED = 0.05

Inconsistent = Literal["half", "excluded"]


@dataclass(frozen=True, slots=True)
class RankOptions(RankingOptions):
    """With `elo_k`, Elo ratings; of the other options only `inconsistent` applies to them.

    `inconsistent` "excluded" leaves out every verdict that flipped with the order, even if
    averaging gave it a winner; a file of battles has none.
    """

    elo_k: float | None = None
    inconsistent: Inconsistent = "half"


class RankedRun(Model):
    run: str
    state: RunState
    stopped_by: str | None
    pairs: int
    judges: tuple[str, ...]


class AdaptiveOrder(Model):
    """The likely order by all verdicts, where earlier ones chose what to ask (`rank_adaptive`).

    Scores, intervals and rank ranges rest on the `planned` of them alone, which were drawn
    beforehand; the others are no random sample. Where none is planned there are no ranges.
    """

    models: tuple[str, ...]  # best first
    expected_tau: float  # Kendall's, of this order with the true one
    verdicts: int
    planned: int


class RunRanking(Model):
    """A ranking, and what it was made from: runs of a store, or a file of battles.

    Exactly one of `ranking` and `elo` is there. `counts` are the verdicts between two models that
    have names; of these the invalid ones are left out, and the inconsistent count as half, or are
    left out with all others of the `flipped`, as `inconsistent` says.
    """

    ranking: Ranking | None
    elo: EloRatings | None
    adaptive: AdaptiveOrder | None = None
    store: str | None = None
    runs: tuple[RankedRun, ...] = ()
    file: str | None = None
    judges: tuple[str, ...] = ()
    tag: str | None = None
    counts: OutcomeCounts
    graded: int = 0  # preferences other than 0, ½ and 1, which only a file can hold
    pending: int = 0  # pairs of the runs without a verdict by a judge that counts
    unnamed: int = 0  # verdicts on pairs without two names
    against_itself: int = 0
    bad_rows: int = 0
    inconsistent: Inconsistent = "half"
    flipped: int = 0  # valid verdicts that changed with the order, inconsistent or averaged
    one_order: int = 0  # valid verdicts asked in one order that nobody drew
    left_out: int = 0  # pairs of which one model gave no answer, by --prompts common
    labels: LabelRecord | None = None  # of all judges together
    objection: Message | None = None  # what the store knows that speaks against the first's place
    notes: tuple[Sentence, ...]


_NAMED_AT_MOST = 3
_ORDERED_AT_MOST = 8


def sum_up_ranking(ranked: RunRanking) -> tuple[Message, ...]:
    """Who leads and how sure that is, by the rank ranges, which hold for all models together; or
    what speaks against it. Then how far the order decided. Nothing of Elo ratings."""
    ranking = ranked.ranking
    if ranking is None:
        return ()
    claim, trust = ranked.objection or _leader(ranking), list[Message]()
    if ranked.objection is not None:
        trust.append(Message("ranking.judge_alone"))
    if ranked.left_out:
        trust.append(Message("ranking.common_prompts", left=ranked.left_out))
    flipped = ranked.flipped
    if flipped and claim.code not in ("no_conclusion.flips", "no_conclusion.position"):
        trust.append(Message("ranking.flips", flipped=flipped, n=ranked.counts.valid))
    if ranked.labels is not None and ranked.labels.is_open:
        trust.append(Message("trust.labels_open", **ranked.labels.values))
    return (claim, *trust)


def _leader(ranking: Ranking) -> Message:
    first, *rest = ranking.models
    told = {"model": first.model, "n": len(ranking.models), "level": ranking.level}
    if ranking.indistinguishable is None or first.rank_high is None:
        return Message("ranking.leads_unsure", model=first.model, n=len(ranking.models))
    told["games"] = ranking.games
    if all(each.score == first.score for each in rest):
        del told["model"]
        return Message("ranking.all_equal", **told)
    if first.rank_high == 1:
        if len(rest) == 1:
            del told["n"]
            return Message("ranking.leads_two", other=rest[0].model, **told)
        return Message("ranking.leads", **told)
    rivals: list[str] = [each.model for each in rest if each.rank_low == 1]
    others = rivals[:_NAMED_AT_MOST]
    if len(rivals) > _NAMED_AT_MOST:
        others.append(Message("ranking.more_models", n=len(rivals) - _NAMED_AT_MOST))
    return Message("ranking.leads_shared", others=others, **told)


def rank_runs(
    store: Store,
    names: Sequence[str],
    options: RankOptions | None = None,
    *,
    judge: str | None = None,
    tag: str | None = None,
    families: OwnFamilies = (),
) -> RunRanking:
    """One or several runs together; every judge's verdict counts, unless one is named."""
    options = options or RankOptions()
    judged_runs = _judged_runs(store, names, judge)
    pairs = [store.items.count(judged.run.id) for judged in judged_runs]
    if tag is not None:
        read, total = read_tagged(store, judged_runs, tag)
    else:
        by_count = options.intervals is None and options.elo_k is None
        by_count = by_count and not any(chose_pairs(store, judged.run) for judged in judged_runs)
        read = (count_verdicts if by_count else read_verdicts)(store, judged_runs)
        total = read.total
    pending = (
        sum(n * len(judged.judges) for n, judged in zip(pairs, judged_runs, strict=True)) - total
    )
    everything = read.between_models()
    compared = everything.planned_only()
    planned = compared.valid().total
    if not planned and everything.total:
        # Nothing but what earlier verdicts chose: scores of these have no valid interval.
        compared, options = everything, replace(options, intervals=None)
    counts = OutcomeCounts.of_codes(compared.outcomes())
    if not counts.valid:
        raise InputError(_nothing_to_rank(read, judged_runs, tag=tag, pending=pending))
    valid = compared.valid()
    flipped, one_order = int(valid.flipped.sum()), int(valid.one_order.sum())
    if options.inconsistent == "excluded":
        valid = valid.consistent()
        if not valid.total:
            raise InputError(Message("report.all_inconsistent", seats=_name_runs(judged_runs)))
    ranked = _ranked(valid, options)
    adaptive = None
    if compared.total < everything.total or not planned:
        adaptive = _order_by_all(everything.valid(), planned=planned)
    return RunRanking(
        ranking=ranked if isinstance(ranked, Ranking) else None,
        elo=ranked if isinstance(ranked, EloRatings) else None,
        adaptive=adaptive,
        store=store.address,
        runs=tuple(
            RankedRun(
                run=judged.run.name,
                state=judged.run.state,
                stopped_by=judged.run.stopped_by,
                pairs=count,
                judges=tuple(each.name for each in judged.judges),
            )
            for judged, count in zip(judged_runs, pairs, strict=True)
        ),
        judges=tuple(dict.fromkeys(each.name for judged in judged_runs for each in judged.judges)),
        tag=tag,
        counts=counts,
        pending=pending,
        unnamed=read.unnamed,
        against_itself=read.against_itself,
        inconsistent=options.inconsistent,
        flipped=flipped,
        one_order=one_order,
        left_out=sum(
            each.prompts
            for judged in judged_runs
            if judged.run.on_common_prompts
            for each in judged.run.without_partner
        ),
        labels=LabelRecord.of(
            store,
            (each for judged in judged_runs for each in judged.judges),
            (judged.run for judged in judged_runs),
        ),
        objection=lead_objection(store, judged_runs, ranked, tag=tag)
        if isinstance(ranked, Ranking)
        else None,
        notes=(
            *_notes(judged_runs, read, judge=judge),
            *(_notes_on_choice(store, judged_runs, adaptive) if adaptive else ()),
            *((Message("report.ranked_in_one_order", n=one_order),) if one_order else ()),
            *_note_on_flips(flipped, counts.valid, options.inconsistent),
            *_same_family(store, judged_runs, compared, Families(families)),
        ),
    )


def rank_file(
    path: Source | Path | str,
    options: RankOptions | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    tag: str | None = None,
    skip_bad_rows: bool = False,
) -> RunRanking:
    """An invalid row stops the ranking, or is skipped and counted."""
    options = options or RankOptions()
    read = read_battles(path, columns=columns, on_bad_row=None if skip_bad_rows else _refuse)
    name = path.name if isinstance(path, Source) else str(path)
    if not len(read):
        raise DataError(Message("report.no_battles", name=name, message=read.bad_rows[0].message))
    battles = RankedBattles.of(read, tag)
    ranked = _ranked_file(battles, options)
    losses, ties, wins = battles.outcomes()
    return RunRanking(
        ranking=ranked if isinstance(ranked, Ranking) else None,
        elo=ranked if isinstance(ranked, EloRatings) else None,
        file=name,
        tag=tag,
        counts=OutcomeCounts.of_codes((wins, losses, ties, 0, 0)),
        graded=len(battles.preference) - (wins + losses + ties),
        bad_rows=read.bad_row_count,
        notes=(),
    )


def _refuse(row: BadRow) -> None:
    raise DataError(Message("report.skip_bad_rows", message=row.message))


def _judged_runs(store: Store, names: Sequence[str], judge: str | None) -> list[JudgedRun]:
    runs = [find_run(store, name) for name in dict.fromkeys(names)]
    judged_runs = [JudgedRun(run, tuple(store.runs.judges(run.id))) for run in runs]
    if judge is None:
        return judged_runs
    there = list(dict.fromkeys(each.name for judged in judged_runs for each in judged.judges))
    if judge not in there:
        near = nearest(judge, there) or there
        values = {"judge": judge, "seats": _name_runs(judged_runs)}
        if near:
            near_names = " or ".join(near)
            raise InputError(Message("report.judge_unknown_near", near=near_names, **values))
        raise InputError(Message("report.no_judge_at_all", **values))
    return [
        JudgedRun(judged.run, tuple(each for each in judged.judges if each.name == judge))
        for judged in judged_runs
    ]


def _name_runs(judged_runs: Sequence[JudgedRun]) -> str:
    names = ", ".join(repr(judged.run.name) for judged in judged_runs)
    return f"run {names}" if len(judged_runs) == 1 else f"the runs {names}"


def _ranked(verdicts: RankedVerdicts, options: RankOptions) -> Ranking | EloRatings:
    models, a, b, outcome = verdicts.models, verdicts.model_a, verdicts.model_b, verdicts.outcome
    if options.elo_k is not None:
        return rate_elo(a, b, _PREFERENCE[outcome], models=models, k=options.elo_k)
    if verdicts.count is None:
        tally = tally_battles(
            a,
            b,
            _PREFERENCE[outcome],
            prompt=verdicts.prompt,
            models=models,
            keep_rows=options.intervals == "bootstrap",
        )
        return rank_tally(tally, options, by_prompt=verdicts.prompt is not None)
    won, lost, halves = (
        verdicts.count * np.isin(outcome, kinds)
        for kinds in ((WIN_A,), (WIN_B,), (TIE, INCONSISTENT))
    )
    tally = tally_counts(models, a, b, wins_a=won, wins_b=lost, halves=halves)
    return rank_tally(tally, options, by_prompt=False)


def _ranked_file(battles: RankedBattles, options: RankOptions) -> Ranking | EloRatings:
    a, b, preference = battles.model_a, battles.model_b, battles.preference
    models, weight = battles.models, battles.weight
    if options.elo_k is not None:
        return rate_elo(a, b, preference, weight=weight, models=models, k=options.elo_k)
    tally = tally_battles(
        a,
        b,
        preference,
        prompt=battles.prompt,
        weight=weight,
        models=models,
        keep_rows=options.intervals == "bootstrap",
    )
    return rank_tally(tally, options, by_prompt=battles.prompt is not None)


def _nothing_to_rank(
    read: RankedVerdicts, judged_runs: Sequence[JudgedRun], *, tag: str | None, pending: int
) -> str:
    of = _name_runs(judged_runs) + (f" with the tag {tag!r}" if tag is not None else "")
    if not read.total:
        if pending:
            return Message("report.no_verdicts_pending", of=of, pending=pending)
        return Message("report.no_verdicts", of=of)
    if read.unnamed == read.total:
        return Message("report.models_unnamed", of=of)
    if read.unnamed + read.against_itself == read.total:
        return Message("report.one_model", of=of)
    judges = [judge.name for each in judged_runs for judge in each.judges]
    replayed = all(map(is_replayed, judges))
    return Message("report.all_invalid_replayed" if replayed else "report.all_invalid", of=of)


def _notes(
    judged_runs: Sequence[JudgedRun], read: RankedVerdicts, *, judge: str | None
) -> Iterator[str]:
    ids = {each.id: each.name for judged in judged_runs for each in judged.judges}
    names = list(dict.fromkeys(ids.values()))
    if len(names) > 1:
        yield (Message("report.several_judges", n=len(names), names=", ".join(names)))
    for name in names:
        ways = sum(each == name for each in ids.values())
        if ways > 1:
            yield Message("report.asked_in_ways", judge=name, ways=ways)
    yield from dict.fromkeys(
        f"{each.name}: {each.settings['caveat']}"
        for judged in judged_runs
        for each in judged.judges
        if each.settings.get("caveat")
    )
    for judged in judged_runs:
        run = judged.run
        if judge is not None and not judged.judges:
            yield Message("report.run_without_judge", run=run.name, judge=judge)
        if run.state == "reading":
            yield Message("report.data_not_read", name=run.name)
        if run.plan.get("until_decided") and run.stopped_by == "decided":
            yield (Message("report.ended_once_decided", name=run.name))
    if read.unnamed:
        yield Message("report.models_not_named", n=read.unnamed)
    if read.against_itself:
        yield Message("report.against_itself", n=read.against_itself)


def _notes_on_choice(
    store: Store, judged_runs: Sequence[JudgedRun], adaptive: AdaptiveOrder
) -> Iterator[Message]:
    """How much of what the runs hold the ranges rest on, next to them."""
    names = ", ".join(judged.run.name for judged in judged_runs if chose_pairs(store, judged.run))
    if not adaptive.planned:
        yield Message("report.no_uniform_share", name=names)
        return
    shown = list(adaptive.models[:_ORDERED_AT_MOST])
    if len(shown) < len(adaptive.models):
        shown.append("…")
    yield Message(
        "report.ranked_by_uniform_share",
        name=names,
        planned=adaptive.planned,
        n=adaptive.verdicts,
        order=" > ".join(shown),
        tau=adaptive.expected_tau,
    )


def _order_by_all(verdicts: RankedVerdicts, *, planned: int) -> AdaptiveOrder:
    from evenhand.stats.ranking.adaptive import count_pairs, know_strengths
    from evenhand.stats.ranking.posterior import describe_certainty

    size = len(verdicts.models)
    scores, ties = np.zeros((size, size)), np.zeros((size, size))
    preference = _PREFERENCE[verdicts.outcome]
    for one, other, score in (
        (verdicts.model_a, verdicts.model_b, preference),
        (verdicts.model_b, verdicts.model_a, 1 - preference),
    ):
        np.add.at(scores, (one, other), score)
        np.add.at(ties, (one, other), preference == 0.5)
    league = count_pairs(verdicts.models, scores, unasked=np.zeros_like(scores), ties=ties)
    certainty = describe_certainty(league.models, know_strengths(league))
    return AdaptiveOrder(
        models=certainty.models,
        expected_tau=certainty.expected_tau,
        verdicts=verdicts.total,
        planned=planned,
    )


def _same_family(
    store: Store, judged_runs: Sequence[JudgedRun], compared: RankedVerdicts, families: Families
) -> Iterator[Message]:
    models, judges = compared.models, []
    for judged in judged_runs:
        kin = judge_families(store, judged.run, judged.judges, models, families)
        judges += [(judge.name, kin[judge.id]) for judge in judged.judges]
    return shared_notes(judges, models, families)


def _note_on_flips(flipped: int, valid: int, inconsistent: Inconsistent) -> Iterator[str]:
    share = flipped / valid
    values = {"flipped": flipped, "valid": valid, "percent": 100 * share}
    if inconsistent == "excluded":
        if flipped:
            yield Message("report.flips_left_out", **values)
    elif share >= _MANY_FLIPPED:
        yield Message("report.flips_counted", **values)
