"""How models rank by the verdicts of stored runs, or by a plain file of battles; what that says."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields, replace
from typing import Literal

import numpy as np

from evenhand.analyses.registry import AnalysisSubject
from evenhand.analysis_options import RankOptions
from evenhand.blocks import Block, Facts, Grid, NoteLines, Remark, Title
from evenhand.blocks import Sentence as Line
from evenhand.contract.codes import INCONSISTENT, TIE, WIN_A, WIN_B, OutcomeCounts
from evenhand.contract.model import Model
from evenhand.data.battles import BattleFile
from evenhand.errors import DataError, InputError
from evenhand.judge_kinds import is_replayed
from evenhand.judges.families import Families, OwnFamilies, shared_notes
from evenhand.messages import Message, Sentence, joined
from evenhand.messages.numbers import number
from evenhand.quantities import counted, listed
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
from evenhand.stats.ranking.result import RankedModel, Ranking, RankingOptions
from evenhand.store import RunState, Store

# What each outcome is worth to A; an invalid verdict is left out before.
_PREFERENCE = np.array([1.0, 0.0, 0.5, 0.5, np.nan])
# The share of verdicts that changed with the order from which a ranking says what it does.
_MANY_FLIPPED = 0.05
_ELO_STEP = 16.0

Inconsistent = Literal["half", "excluded"]


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

    ranking: Ranking | None = None
    elo: EloRatings | None = None
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
    notes: tuple[Sentence, ...] = ()


Result = RunRanking

_FITTED = ("ties", "intervals", "level", "scale", "prior")
_DRAWN = ("replicates", "seed")


def check(options: RankOptions) -> None:
    """Refuse what does not go together, or is no option of a fit."""
    for names, belong, code in (
        (_FITTED, not options.elo, "command.belongs_to_fit"),
        (_DRAWN, options.intervals == "bootstrap", "command.belongs_to_bootstrap"),
        (("k",), options.elo, "command.belongs_to_elo"),
    ):
        for name in names:
            if not belong and getattr(options, name) is not None:
                raise InputError(Message(code, option=name))
    fit_options(options)


def fit_options(options: RankOptions) -> RankingOptions:
    """For what is not given the defaults hold."""
    names = (each.name for each in fields(RankingOptions))
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    if options.intervals == "none":
        given["intervals"] = None
    return RankingOptions(**given)


def compute(subject: AnalysisSubject, options: RankOptions) -> RunRanking:
    if subject.battles is not None:
        return rank_file(subject.battles, options)
    names = [run.name for run in subject.runs]
    return rank_runs(subject.store, names, options, families=subject.settings.families)


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
    families: OwnFamilies = (),
) -> RunRanking:
    """One or several runs together; every judge's verdict counts, unless one is named."""
    options = options or RankOptions()
    judge, tag = options.judge, options.tag
    inconsistent: Inconsistent = options.inconsistent or "half"
    judged_runs = _judged_runs(store, names, judge)
    pairs = [store.items.count(judged.run.id) for judged in judged_runs]
    if tag is not None:
        read, total = read_tagged(store, judged_runs, tag)
    else:
        by_count = options.intervals == "none" and not options.elo
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
        compared, options = everything, replace(options, intervals="none")
    counts = OutcomeCounts.of_codes(compared.outcomes())
    if not counts.valid:
        raise InputError(_nothing_to_rank(read, judged_runs, tag=tag, pending=pending))
    valid = compared.valid()
    flipped, one_order = int(valid.flipped.sum()), int(valid.one_order.sum())
    if inconsistent == "excluded":
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
        inconsistent=inconsistent,
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
            *_note_on_flips(flipped, counts.valid, inconsistent),
            *_same_family(store, judged_runs, compared, Families(families)),
        ),
    )


def rank_file(read: BattleFile, options: RankOptions | None = None) -> RunRanking:
    options = options or RankOptions()
    if not len(read):
        message = read.bad_rows[0].message
        raise DataError(Message("report.no_battles", name=read.name, message=message))
    battles = RankedBattles.of(read, options.tag)
    ranked = _rank_battles(battles, options)
    losses, ties, wins = battles.outcomes()
    return RunRanking(
        ranking=ranked if isinstance(ranked, Ranking) else None,
        elo=ranked if isinstance(ranked, EloRatings) else None,
        file=read.name,
        tag=options.tag,
        counts=OutcomeCounts.of_codes((wins, losses, ties, 0, 0)),
        graded=len(battles.preference) - (wins + losses + ties),
        bad_rows=read.bad_row_count,
    )


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
    if verdicts.count is None:
        battles = RankedBattles(models, a, b, _PREFERENCE[outcome], verdicts.prompt)
        return _rank_battles(battles, options)
    won, lost, halves = (
        verdicts.count * np.isin(outcome, kinds)
        for kinds in ((WIN_A,), (WIN_B,), (TIE, INCONSISTENT))
    )
    tally = tally_counts(models, a, b, wins_a=won, wins_b=lost, halves=halves)
    return rank_tally(tally, fit_options(options), by_prompt=False)


def _rank_battles(battles: RankedBattles, options: RankOptions) -> Ranking | EloRatings:
    a, b, preference = battles.model_a, battles.model_b, battles.preference
    models, weight = battles.models, battles.weight
    if options.elo:
        return rate_elo(a, b, preference, weight=weight, models=models, k=options.k or _ELO_STEP)
    tally = tally_battles(
        a,
        b,
        preference,
        prompt=battles.prompt,
        weight=weight,
        models=models,
        keep_rows=options.intervals == "bootstrap",
    )
    return rank_tally(tally, fit_options(options), by_prompt=battles.prompt is not None)


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


# A ranking as a person reads it: a leaderboard, what it was made from, and what to mind.

_SHOWN_AT_MOST = 15


def blocks(result: RunRanking, shown: Collection[str] = ()) -> Iterator[Block]:
    ranking, elo = result.ranking, result.elo
    if ranking is None and "matrix" in shown:
        raise InputError(Message("command.belongs_to_fit", option="matrix"))
    if ranking is not None:
        yield Line(joined(sum_up_ranking(result)), strong=True)
    yield Line(_title(result), strong=ranking is None)
    yield Facts(tuple(_made_from(result, details="details" in shown)))
    if ranking is not None:
        most = len(ranking.models) if "details" in shown else _SHOWN_AT_MOST
        yield _leaderboard(ranking, at_most=most)
        if (more := len(ranking.models) - most) > 0:
            yield Remark(Message("rank.more", n=more))
        if "matrix" in shown:
            yield Title(Message("rank.matrix"))
            yield _matrix(ranking)
    elif elo is not None:
        yield Grid(
            _columns("rank", "model", "rating", "games"),
            tuple(
                (str(row.rank), row.model, f"{row.rating:,.0f}", number(row.games))
                for row in elo.models
            ),
            left=frozenset({1}),
        )
    notes = (*result.notes, *(ranking.notes if ranking else ()))
    if ranking is not None and ranking.reason:
        notes = (*notes, ranking.reason)
    if notes:
        yield NoteLines(notes)


def _columns(*names: str, **values: object) -> tuple[Message, ...]:
    return tuple(Message(f"rank.column_{name}", **values) for name in names)


def _title(result: RunRanking) -> Message:
    ranks = result.ranking or result.elo
    models = counted(len(ranks.models) if ranks else 0, "model")
    if result.file is not None:
        return Message("rank.of_file", models=models, file=result.file)
    runs = [each.run for each in result.runs]
    return Message("rank.of_runs", models=models, n=len(runs), runs=runs)


def _made_from(result: RunRanking, *, details: bool) -> Iterator[tuple[str, str]]:
    ranking, elo = result.ranking, result.elo
    if result.judges:
        yield Message("rank.judges", n=len(result.judges)), listed(result.judges)
    if result.tag is not None:
        yield Message("rank.tag"), result.tag
    battles = "battles" if result.file is not None else "verdicts"
    yield Message(f"rank.{battles}"), listed(tuple(_counts(result)))
    if ranking is not None and details:
        ties = {"parameter": ranking.tie_parameter, "anchor": ranking.anchor}
        yield Message("rank.scores"), Message(f"rank.scores_{ranking.ties}", **ties)
        if ranking.intervals is not None and not ranking.reason:
            over = Message(f"rank.clusters_{ranking.clusters}", n=ranking.cluster_count)
            drawn = {"replicates": ranking.replicates, "seed": ranking.seed, "over": over}
            how = Message(f"rank.intervals_{ranking.intervals}", **drawn)
            yield (
                Message("rank.intervals"),
                Message("rank.intervals_hold", level=ranking.level, how=how),
            )
    elif elo is not None:
        yield Message("rank.ratings"), Message("rank.ratings_elo", k=elo.k, start=elo.start)


def _counts(result: RunRanking) -> Iterator[Message]:
    def number(kind: str, n: int, fate: str | None = None) -> Message:
        counts = Message(f"rank.{kind}", n=n)
        return Message(f"rank.{fate}", counts=counts) if fate and n else counts

    counts = result.counts
    yield number("won", counts.wins_a + counts.wins_b)
    yield number("ties", counts.ties)
    if result.file is not None:
        if result.graded:
            yield number("graded", result.graded)
        if result.bad_rows:
            yield number("bad_rows", result.bad_rows, "left_out")
        return
    excluded = result.inconsistent == "excluded"
    yield number("inconsistent", counts.inconsistent, "left_out" if excluded else "as_half")
    if averaged := result.flipped - counts.inconsistent:
        yield number("averaged", averaged, "left_out" if excluded else None)
    yield number("invalid", counts.invalid, "left_out")
    yield number("pending", result.pending)


def _leaderboard(ranking: Ranking, *, at_most: int) -> Grid:
    """Rank ranges, intervals and neighbours where they are known; notes where there are any."""
    sure = ranking.indistinguishable is not None
    noted = any(row.note for row in ranking.models)
    alike = _alike(ranking)
    names = ("rank", *(("range",) if sure else ()), "model", "score")
    names += ("interval", "games", "neighbours") if sure else ("games",)
    names += ("note",) if noted else ()

    def cells(row: RankedModel) -> Iterator[str]:
        yield str(row.rank)
        if sure:
            low, high = row.rank_low, row.rank_high
            yield f"{low}" if low == high else f"{low}–{high}"
        yield row.model
        yield _score(row.score, ranking)
        if sure:
            yield _interval(row, ranking)
        yield number(row.games)
        if sure:
            yield ", ".join(map(str, alike[row.rank]))
        if noted:
            yield row.note or ""

    return Grid(
        _columns(*names, level=ranking.level),
        tuple(tuple(cells(row)) for row in ranking.models[:at_most]),
        left=frozenset(place for place, name in enumerate(names) if name in ("model", "note")),
    )


def _alike(ranking: Ranking) -> dict[int, list[int]]:
    """For each rank the ranks next to it that are not significantly different."""
    ranks = {row.model: row.rank for row in ranking.models}
    alike: dict[int, list[int]] = {rank: [] for rank in ranks.values()}
    for each in ranking.indistinguishable or ():
        alike[ranks[each.better]].append(ranks[each.worse])
        alike[ranks[each.worse]].append(ranks[each.better])
    return alike


def _score(score: float, ranking: Ranking) -> str:
    return f"{score:,.0f}" if ranking.scale == "elo" else f"{score:.2f}"


def _interval(row: RankedModel, ranking: Ranking) -> Message:
    if row.low is None and row.high is None:
        return Message("rank.interval_unknown")
    low, high = ("…" if limit is None else _score(limit, ranking) for limit in (row.low, row.high))
    return Message("figure.interval", low=low, high=high)


def _matrix(ranking: Ranking) -> Grid:
    def cells(row: RankedModel, scores: Sequence[float]) -> Iterator[str]:
        yield from (str(row.rank), row.model)
        yield from (
            "·" if place == row.rank else f"{100 * score:.0f}"
            for place, score in enumerate(scores, 1)
        )

    ranks = (str(row.rank) for row in ranking.models)
    rows = zip(ranking.models, ranking.win_matrix, strict=True)
    return Grid(
        (*_columns("rank", "model"), *ranks),
        tuple(tuple(cells(row, scores)) for row, scores in rows),
        left=frozenset({1}),
    )
