"""Which column of the data holds the topic of a pair, and what its topics do to a claim."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import INVALID
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.report.win_rates import ConclusionLimits, Matchup, OutcomeGroup
from evenhand.stats.rates.topics import FEWEST_TOPICS, TopicSpread, topic_spread
from evenhand.store import OutcomeColumns, RunRecord

_SCORES = np.array([1.0, 0.0, 0.5, 0.5])
_NONE = -1  # rows without a topic are one topic


class Topics(TopicSpread):
    """The topics of a matchup. A claim `generalises` by the interval over topics where the caller
    named their column, and otherwise where they differ by more than chance; it is about `these`
    topics alone where the caller says so."""

    column: str | None
    named: bool
    these: bool

    @property
    def matter(self) -> bool:
        return self.named or self.overdispersed

    def over_topics(self, rate: float, low: float, high: float) -> tuple[float, float]:
        """The interval that speaks for other topics too."""
        if self.widening is None:
            return 0.0, 1.0
        below, above = self.widening * (rate - low), self.widening * (high - rate)
        return max(0.0, rate - below), min(1.0, rate + above)


@dataclass(frozen=True, slots=True)
class TopicColumn:
    name: str | None
    named: bool
    these: bool
    of_row: NDArray[np.intp]

    @classmethod
    def of(
        cls, columns: OutcomeColumns, run: RunRecord, *, limits: ConclusionLimits
    ) -> TopicColumn | None:
        """The one that the caller names, or the only one that gave tags."""
        known = run.tag_columns
        if limits.topic is not None:
            if limits.topic not in known:
                raise _unknown(limits.topic, known)
            others = (tags for column, tags in known.items() if column != limits.topic)
            shared = sorted(known[limits.topic].intersection(*[frozenset().union(*others)]))
            if shared:
                raise InputError(Message("report.topic_shared", topic=limits.topic, tag=shared[0]))
            return cls(
                limits.topic, True, limits.these_topics, _coded(columns, known[limits.topic])
            )
        if len(known) > 1 or any(len(tags) > 1 for tags in columns.tag_sets):
            return None
        name = next(iter(known), None)
        return cls(name, False, limits.these_topics, _coded(columns, None))

    def spread(self, group: Matchup | OutcomeGroup, *, level: float) -> Topics | None:
        valid = group.outcomes != INVALID
        topics = self.of_row[group.rows[valid]]
        if not self.named and np.unique(topics).size < FEWEST_TOPICS:
            return None  # these are groups to look at one by one, and no sample of topics
        found = topic_spread(
            _SCORES[group.outcomes[valid]],
            prompts=group.prompts[valid],
            topics=topics,
            level=level,
        )
        return Topics.of_parts(found, column=self.name, named=self.named, these=self.these)


def _coded(columns: OutcomeColumns, tags: frozenset[str] | None) -> NDArray[np.intp]:
    names: dict[str, int] = {}
    of_set = []
    for each in columns.tag_sets:
        own = [tag for tag in each if tags is None or tag in tags]
        of_set.append(names.setdefault(own[0], len(names)) if own else _NONE)
    return np.array([*of_set, _NONE], dtype=np.intp)[np.asarray(columns.tags, dtype=np.intp)]


def _unknown(topic: str, known: dict[str, frozenset[str]]) -> InputError:
    if not known:
        return InputError(Message("report.topic_none", topic=topic))
    return InputError(Message("report.topic_unknown", topic=topic, columns=sorted(known)))
