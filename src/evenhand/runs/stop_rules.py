"""When a run may end: after every pair, once a winner is decided, or once a ranking is certain. A
rule also orders the pairs.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from evenhand.contract import Outcome
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.runs.options import RankAdaptive, UntilDecided
from evenhand.runs.stop import StoppedBy
from evenhand.runs.supply import InOrder, InRandomOrder, Supply
from evenhand.stats.stopping.sequential import SequentialDecision
from evenhand.store import QUEUE_START, BattleCount, Contest, Queued, QueuePlace, Store, WorkItem

if TYPE_CHECKING:
    from evenhand.runs.settled_prefix import SettledPrefix
    from evenhand.stats.ranking.adaptive import PairChoice, PairCounts


class RankProgress(Model):
    """How certain the models' order is. Probabilities are those of the fitted strengths."""

    models: tuple[str, ...]  # best first
    expected_tau: float
    least_neighbour: float  # how probably the least certain two neighbours stand right
    asked: int
    budget: int


class StopResult(Model):
    """The result of a stop rule; nulls for other rules."""

    decision: SequentialDecision | None = None
    ranking: RankProgress | None = None


class StopRule:
    """Asks every pair, by number. Its methods read the store, so they are called off the event
    loop."""

    may_stop = False  # before every pair has a verdict, so that it looks meanwhile

    def __init__(self, store: Store, run_id: int) -> None:
        self._store = store
        self._run_id = run_id

    def begin(self) -> StoppedBy | None:
        """Called once all items are stored; the result is set if nothing is left to ask."""
        return None

    def look(self, done: int) -> StoppedBy | None:
        """Whether the stored verdicts, of this number, are enough."""
        return None

    def result(self) -> StopResult:
        return StopResult()

    def announcement(self) -> str | None:
        """What it will do, announced before the start."""
        return None

    def account(self) -> str | None:
        """Its result, for the summary."""
        return None

    def most_pairs(self, pending: int) -> int:
        """How many of the pending pairs will be asked at most."""
        return pending

    def supply(self, judge_id: int) -> Supply:
        return InOrder(self._store, self._run_id, judge_id)


# Prompts go out in random order, and a look uses the settled prefix of that order: what is answered
# fast is not a random sample.


class DecisionRule(StopRule):
    may_stop = True

    def __init__(
        self,
        store: Store,
        run_id: int,
        judge_id: int,
        wanted: UntilDecided,
        *,
        careful: bool,
    ) -> None:
        """`careful`: keeps few pairs in flight, since those at the end are wasted."""
        super().__init__(store, run_id)
        self._judge_id = judge_id
        self._wanted = wanted
        self._careful = careful
        self._looked_at = 0
        self._prefix: SettledPrefix | None = None

    def begin(self) -> StoppedBy | None:
        from evenhand.runs.settled_prefix import SettledPrefix

        survey = self._store.runs.survey(self._run_id)
        if len(survey.models) > 1:
            first, second = (f"{a} against {b}" for a, b, _ in survey.models[:2])
            raise InputError.of("runs.decided_two_models_only", first=first, second=second)
        self._store.work.fill_queue(self._run_id, seed=self._wanted.seed)
        self._prefix = SettledPrefix.of(
            self._store,
            self._run_id,
            self._judge_id,
            alpha=self._wanted.alpha,
            seed=self._wanted.seed,
        )
        return self._look()

    def look(self, done: int) -> StoppedBy | None:
        reason = self._look()
        self._looked_at = done
        return reason

    def _look(self) -> StoppedBy | None:
        self._settled.look()
        return "decided" if self._settled.decides else None

    def result(self) -> StopResult:
        return StopResult(decision=self._settled.conclusion() if self._prefix else None)

    def announcement(self) -> str | None:
        return self._settled.test.plan.announcement()

    def account(self) -> str | None:
        return self._settled.account() if self._prefix else None

    def supply(self, judge_id: int) -> Supply:
        looked_at = (lambda: self._looked_at) if self._careful else None
        return InRandomOrder(self._store, self._run_id, judge_id, looked_at=looked_at)

    @property
    def _settled(self) -> SettledPrefix:
        assert self._prefix is not None  # noqa: S101 - begin() comes first
        return self._prefix


# Ranks many models by asking the pairs most likely to settle an order. Pairs chosen by earlier
# verdicts give no valid intervals: a model that loses early is asked about less, so its bad luck
# stays. So a uniform share of the budget is drawn beforehand and asked first. Scores and rank
# ranges rest on it alone, and the run does not end before it is complete.

# With two thirds, rank ranges are about 1.2 times as wide as with the whole budget spent uniformly,
# and the order is nearly as good as with all of it chosen (scripts/verify_adaptive).
UNIFORM_SHARE = 2, 3
# A pair chosen long before it is asked is chosen blindly.
_FEWEST_OPEN, _OPEN_SHARE = 8, 0.05
_SHARE = 0  # where the queue keeps the uniform share


class RankingRule(StopRule):
    may_stop = True

    def __init__(self, store: Store, run_id: int, judge_id: int, wanted: RankAdaptive) -> None:
        super().__init__(store, run_id)
        self._judge_id = judge_id
        self._wanted = wanted
        self._league: list[Contest] = []  # as it stood when this command began
        self._first: dict[int, int] = {}  # verdicts by contest when this command began
        self._sent: Counter[int] = Counter()  # pairs by contest that it gave out since
        self._after: dict[int, QueuePlace] = {}
        self._evenly = True  # pairs of the uniform share are left
        self._choice: PairChoice | None = None
        self._nearly_done = False  # the last choice found nothing more to ask

    def begin(self) -> StoppedBy | None:
        models = {
            name for a, b, _ in self._store.runs.survey(self._run_id).models for name in (a, b)
        }
        if None in models or len(models) < 2:
            raise InputError.of("runs.adaptive_needs_models")
        seed = self._wanted.seed
        self._store.work.fill_queue(self._run_id, seed=seed, by_models=True)
        budget = min(self._wanted.budget, self._store.items.count(self._run_id))
        self._store.work.draw_uniform_share(
            self._run_id, self._judge_id, number=uniform_pairs(budget), seed=seed
        )
        contests = self._contests()
        self._first = {each.contest: _judged(each) for each in contests}
        self._evenly = bool(self._queued(_SHARE, limit=1))
        return self._end(contests)

    def look(self, done: int) -> StoppedBy | None:
        """Looks whenever it chooses, and ends with nothing in flight: later results may undo the
        certainty, and a stop would leave pairs without their second pass."""
        if not self._nearly_done:
            return None
        contests = self._contests()
        return None if any(map(self._in_flight, contests)) else self._end(contests)

    def result(self) -> StopResult:
        if self._choice is None:
            return StopResult()
        # Called at the end: pairs sent without a verdict were interrupted.
        self._sent.clear()
        choice = self._chosen(self._contests(), batch=1)
        certainty = choice.certainty
        return StopResult(
            ranking=RankProgress(
                models=certainty.models,
                expected_tau=certainty.expected_tau,
                least_neighbour=certainty.least_neighbour,
                asked=choice.asked,
                budget=self._wanted.budget,
            )
        )

    def announcement(self) -> str | None:
        wanted = self._wanted
        even = uniform_pairs(wanted.budget)
        return Message(
            "runs.adaptive_announced",
            budget=wanted.budget,
            even=even,
            chosen=wanted.budget - even,
            certainty=wanted.certainty,
            seed=wanted.seed,
        )

    def account(self) -> str | None:
        progress = self.result().ranking
        if progress is None:
            return None
        return Message(
            "runs.adaptive_outcome",
            asked=progress.asked,
            budget=progress.budget,
            expected_tau=progress.expected_tau,
            least_neighbour=progress.least_neighbour,
        )

    def most_pairs(self, pending: int) -> int:
        left = self._wanted.budget - sum(self._first.values())
        return max(0, min(pending, left))

    def supply(self, judge_id: int) -> Supply:
        return _ChosenSupply(self)

    def take(self, batch: int) -> list[WorkItem]:
        contests = self._contests()
        numbers = {frozenset[str | None](each.models): each.contest for each in contests}
        allowed = min(batch, self._wanted.budget - self._count_asked(contests))
        if self._evenly and allowed > 0:
            if queued := self._queued(_SHARE, limit=allowed):
                return self._send(_SHARE, queued, numbers)
            self._evenly = False
        choice = self._chosen(contests, batch=batch)
        self._nearly_done = choice.stop is not None
        wanted = Counter(numbers[frozenset(pair)] for pair in choice.pairs)
        works = []
        for contest, count in wanted.items():
            works += self._send(contest, self._queued(contest, limit=count), numbers)
        return works

    def _queued(self, contest: int, *, limit: int) -> list[Queued]:
        after = self._after.get(contest, QUEUE_START)
        return self._store.work.queued(
            self._run_id, self._judge_id, contest=contest, after=after, limit=limit
        )

    def _send(
        self, contest: int, queued: list[Queued], numbers: Mapping[frozenset[str | None], int]
    ) -> list[WorkItem]:
        if queued:
            self._after[contest] = queued[-1].at
        self._sent.update(numbers[frozenset(each.models)] for each in queued)
        return [each.work for each in queued]

    def open_at_most(self, limit: int) -> int:
        return max(_FEWEST_OPEN, min(limit, round(self._wanted.budget * _OPEN_SHARE)))

    def _contests(self) -> list[Contest]:
        """Items do not change, so they are counted once; verdicts are few in comparison."""
        if not self._league:
            self._league = self._store.work.contests(self._run_id, self._judge_id)
            return self._league
        counts = self._store.columns.battle_counts([self._run_id], judge_ids=[self._judge_id])
        return _recounted(self._league, counts)

    def _chosen(self, contests: list[Contest], *, batch: int) -> PairChoice:
        from evenhand.stats.ranking.adaptive import choose_pairs

        in_flight = {each.contest: self._in_flight(each) for each in contests}
        asked = self._count_asked(contests)
        self._choice = choose_pairs(
            _counted(contests, in_flight),
            batch=batch,
            budget=max(self._wanted.budget, asked),
            asked=asked,
            certain_at=None if self._evenly else self._wanted.certainty,
            seed=self._wanted.seed,
        )
        return self._choice

    def _count_asked(self, contests: list[Contest]) -> int:
        return sum(_judged(each) + self._in_flight(each) for each in contests)

    def _in_flight(self, contest: Contest) -> int:
        since = _judged(contest) - self._first.get(contest.contest, _judged(contest))
        return max(0, min(self._sent[contest.contest] - since, contest.pending))

    def _end(self, contests: list[Contest]) -> StoppedBy | None:
        stop = self._chosen(contests, batch=1).stop
        return stop if stop in ("certain", "budget") else None


class _ChosenSupply(Supply):
    def __init__(self, stop_rule: RankingRule) -> None:
        self._stop_rule = stop_rule

    async def take(self, *, limit: int) -> list[WorkItem]:
        batch = max(1, self._stop_rule.open_at_most(limit) // 2)
        return await asyncio.to_thread(self._stop_rule.take, batch)

    def open_at_most(self, limit: int, *, done: int) -> int:
        return self._stop_rule.open_at_most(limit)


def uniform_pairs(budget: int) -> int:
    part, whole = UNIFORM_SHARE
    return budget * part // whole


def _judged(contest: Contest) -> int:
    return sum(contest.wins) + contest.ties + contest.inconsistent + contest.invalid


def _recounted(league: list[Contest], counts: list[BattleCount]) -> list[Contest]:
    """The same contests with current verdicts."""
    by_models: defaultdict[frozenset[str | None], Counter[tuple[str, str | None]]] = defaultdict(
        Counter
    )
    for each in counts:
        won = each.model_a if each.winner == "A" else each.model_b
        kind = ("won", won) if each.outcome is Outcome.WIN else (each.outcome, None)
        by_models[frozenset((each.model_a, each.model_b))][kind] += each.verdicts
    contests = []
    for contest in league:
        by_kind = by_models[frozenset(contest.models)]
        first, second = (by_kind["won", model] for model in contest.models)
        contests.append(
            replace(
                contest,
                pending=contest.pending + _judged(contest) - by_kind.total(),
                wins=(first, second),
                ties=by_kind[Outcome.TIE, None],
                inconsistent=by_kind[Outcome.INCONSISTENT, None],
                invalid=by_kind[Outcome.INVALID, None],
            )
        )
    return contests


def _counted(contests: list[Contest], in_flight: dict[int, int]) -> PairCounts:
    from evenhand.stats.ranking.adaptive import count_pairs

    models = sorted({name for each in contests for name in each.models})
    place = {name: index for index, name in enumerate(models)}
    scores, unasked, flying, ties = ([[0.0] * len(models) for _ in models] for _ in range(4))
    for each in contests:
        first, second = (place[name] for name in each.models)
        # An inconsistent pair counts as half for each, as a tie does.
        halves = each.ties + each.inconsistent
        for one, other, wins in ((first, second, each.wins[0]), (second, first, each.wins[1])):
            scores[one][other] += wins + halves / 2
            ties[one][other] += halves
            flying[one][other] += in_flight[each.contest]
            unasked[one][other] += each.pending - in_flight[each.contest]
    return count_pairs(models, scores, unasked=unasked, in_flight=flying, ties=ties)
