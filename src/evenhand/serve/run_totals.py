"""What the filters of a run's table can be set to, and how many verdicts each would show."""

from __future__ import annotations

from collections import Counter as Tallied

from evenhand.contract.model import Model
from evenhand.store import RunRecord, Store
from evenhand.store.columns import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.store.marks import ABSTAINED, DISAGREES, JUDGES_DIFFER, LABELLED, NOTED, UNREAD


class JudgeTotals(Model):
    """The four outcomes are of all its verdicts; the rest are of those that are marked so far."""

    judge: str
    wins_a: int
    wins_b: int
    ties: int
    inconsistent: int
    invalid: int
    pending: int
    abstained: int
    noted: int
    unread: int
    disagrees: int  # with labels
    labelled: int
    judges_differ: int


class Counted(Model):
    """A tag, and how many pairs have it."""

    name: str
    count: int


class CriterionTotals(Model):
    """How one criterion came out, in all judges' verdicts; `untold` were won on averaged
    probabilities, by whom only the passes tell."""

    name: str
    count: int
    wins_a: int
    wins_b: int
    ties: int
    inconsistent: int
    invalid: int
    untold: int


class RunTotals(Model):
    """`marked` of `verdicts` are in the table so far."""

    pairs: int
    verdicts: int
    marked: int
    judges: tuple[JudgeTotals, ...]
    tags: tuple[Counted, ...]  # the most frequent first, at most 1,000
    criteria: tuple[CriterionTotals, ...]  # in the order in which they first come
    models: tuple[str, ...] = ()  # by name; of the first 1,000 that meet
    # Whether A is the same model in every pair, and B is: then labels say what models would. Not
    # known before all verdicts are marked.
    one_contest: bool = False

    @property
    def whole(self) -> bool:
        return self.marked >= self.verdicts


def read_totals(store: Store, run: RunRecord) -> RunTotals:
    counted = store.count_marked(run.id)
    pairs = store.count_items(run.id)
    job = store.jobs.find(run.id)
    offered = job.judges if job else ()
    judges = []
    for place, judge in enumerate(store.run_judges(run.id)):
        ends = counted.outcomes.get(judge.id, Tallied())
        flags: Tallied[int] = Tallied()
        for (_, each), count in counted.endings.get(judge.id, Tallied()).items():
            flags[each] += count

        def with_flag(flag: int, flags: Tallied[int] = flags) -> int:
            return sum(count for each, count in flags.items() if each & flag)

        def of(outcome: str, ends: Tallied[tuple[str, str | None]] = ends) -> int:
            return sum(count for (each, _), count in ends.items() if each == outcome)

        judges.append(
            JudgeTotals(
                judge=offered[place] if place < len(offered) else judge.name,
                wins_a=ends["win", "A"],
                wins_b=ends["win", "B"],
                ties=of("tie"),
                inconsistent=of("inconsistent"),
                invalid=of("invalid"),
                pending=pairs - ends.total(),
                abstained=with_flag(ABSTAINED),
                noted=with_flag(NOTED),
                unread=with_flag(UNREAD),
                disagrees=with_flag(DISAGREES),
                labelled=with_flag(LABELLED),
                judges_differ=with_flag(JUDGES_DIFFER),
            )
        )
    verdicts = sum(ends.total() for ends in counted.outcomes.values())
    marked = sum(ends.total() for ends in counted.endings.values())
    return RunTotals(
        pairs=pairs,
        verdicts=verdicts,
        marked=marked,
        judges=tuple(judges),
        tags=tuple(Counted(name=name, count=count) for name, count in counted.tags),
        criteria=tuple(
            _criterion(name, sum(of_judges.values(), Tallied()))
            for name, of_judges in counted.criteria.items()
        ),
        models=tuple(
            sorted({name for met in counted.contests for name in met if name is not None})
        ),
        one_contest=len(counted.contests) < 2 and marked >= verdicts,
    )


def _criterion(name: str, codes: Tallied[int]) -> CriterionTotals:
    told = (WIN_A, WIN_B, TIE, INCONSISTENT, INVALID)
    return CriterionTotals(
        name=name,
        count=codes.total(),
        wins_a=codes[WIN_A],
        wins_b=codes[WIN_B],
        ties=codes[TIE],
        inconsistent=codes[INCONSISTENT],
        invalid=codes[INVALID],
        untold=codes.total() - sum(codes[each] for each in told),
    )
