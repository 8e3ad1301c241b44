"""What people's votes on a run come to: who voted, how far they agree, what the majority says."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evenhand.analyses.registry import AnalysisSubject
from evenhand.analysis_options import VotesOptions
from evenhand.blocks import Block, Facts, Grid, Next, Remark, Sentence
from evenhand.contract.model import Model
from evenhand.messages import Message
from evenhand.messages.numbers import number
from evenhand.quantities import counted, counted_share, listed
from evenhand.report.votes import (
    CLASSES,
    Codes,
    Floats,
    Integers,
    ItemVotes,
    item_votes,
    majority_labels,
)
from evenhand.stats.agreement.raters import Krippendorff, RaterAgreement, agreement_among
from evenhand.stats.estimates import EstimatedShare, estimate_share
from evenhand.store import DRAWS, ORIGINS

_PEOPLE_AT_MOST = 20


class VerdictCounts(Model):
    """How many pairs came to each verdict; `none` are those that are equally divided."""

    a: int
    b: int
    tie: int
    none: int


class PersonSummary(Model):
    """One person, and how often others who voted on the same pairs say the same."""

    who: str
    votes: int
    skipped: int
    agreement: EstimatedShare


class VotesSummary(Model):
    """The votes on a run's pairs. Rows of the same pair count once.

    `agreement` is over every two people who voted on the same pair. `with_label` is how often the
    majority says what the data file's own label says. `by_origin` and `by_draw` count votes; a
    draw that nobody knows is `unknown`.
    """

    run: str
    pairs: int
    voted_pairs: int
    people: tuple[PersonSummary, ...]
    votes: int
    skipped: int
    people_a_pair: tuple[int, ...]  # how many pairs have one person's vote, two people's, …
    majority: VerdictCounts
    agreement: RaterAgreement
    with_label: EstimatedShare
    by_origin: dict[str, int]
    by_draw: dict[str, int]
    level: float
    seed: int


Result = VotesSummary


def compute(subject: AnalysisSubject, options: VotesOptions) -> VotesSummary:
    store, run, level = subject.store, subject.run, options.level
    firsts: dict[int, int] = {}
    for item in store.items.all(run.id):
        firsts.setdefault(item.pair_id, item.number)
    numbers = np.array(sorted(firsts.values()), dtype=np.int64)
    votes = item_votes(store, run.id, numbers)
    labels = majority_labels(votes, numbers)
    given = votes.decided
    agreement = agreement_among(
        votes.pair[given],
        votes.verdict[given],
        prompts=votes.prompt[given],
        level=level,
        seed=options.seed,
    )
    decided = labels.majority[labels.people > 0]
    spread = np.bincount(labels.people)[1:]
    return VotesSummary(
        run=run.name,
        pairs=numbers.size,
        voted_pairs=int((labels.people > 0).sum()),
        people=_each_person(votes, level=level),
        votes=int(given.sum()),
        skipped=int((~given).sum()),
        people_a_pair=tuple(int(count) for count in spread),
        majority=VerdictCounts(
            a=int((decided == 0).sum()),
            b=int((decided == 1).sum()),
            tie=int((decided == 2).sum()),
            none=int((decided == -1).sum()),
        ),
        agreement=agreement,
        with_label=_with_label(votes, labels.majority, level=level),
        by_origin=_counted(votes.origin, ORIGINS),
        by_draw=_counted(votes.draw, (*DRAWS, "unknown")),
        level=level,
        seed=options.seed,
    )


def _counted(codes: Codes, names: tuple[str, ...]) -> dict[str, int]:
    """By name, where there are any; -1 is the last of the names."""
    counts = np.bincount(codes % len(names), minlength=len(names))
    return {name: int(count) for name, count in zip(names, counts, strict=True) if count}


def _with_label(votes: ItemVotes, majority: Codes, *, level: float) -> EstimatedShare:
    """Over pairs that have both a label and a majority."""
    rows, firsts = np.unique(votes.row, return_index=True)
    label, prompt = votes.label[firsts], votes.prompt[firsts]
    both = (label >= 0) & (majority[rows] >= 0)
    same = (label == majority[rows])[both].astype(np.float64)
    return _share(same, np.ones(same.size), prompt[both], level=level, unit="labelled pair")


def _each_person(votes: ItemVotes, *, level: float) -> tuple[PersonSummary, ...]:
    decided = votes.decided
    rows = int(votes.row.max(initial=-1)) + 1
    counts = np.bincount(
        votes.row[decided] * CLASSES + votes.verdict[decided], minlength=rows * CLASSES
    ).reshape(-1, CLASSES)
    voters = counts.sum(axis=1)
    people = []
    for place, who in enumerate(votes.people):
        own = votes.who == place
        mine = own & decided
        others = (voters[votes.row[mine]] - 1).astype(np.float64)
        same = (counts[votes.row[mine], votes.verdict[mine]] - 1).astype(np.float64)
        shared = others > 0
        people.append(
            PersonSummary(
                who=who,
                votes=int(mine.sum()),
                skipped=int((own & ~decided).sum()),
                agreement=_share(
                    same[shared],
                    others[shared],
                    votes.prompt[mine][shared],
                    level=level,
                    unit="shared vote",
                ),
            )
        )
    people.sort(key=lambda person: (-person.votes, person.who))
    return tuple(people)


def _share(
    part: Floats, of: Floats, prompts: Integers, *, level: float, unit: str
) -> EstimatedShare:
    """Rows of one prompt are no more independent than several people's votes on one pair."""
    cluster = np.unique(prompts, return_inverse=True)[1]
    groups = int(cluster.max(initial=-1)) + 1
    whole: Floats = np.bincount(cluster, weights=of, minlength=groups).astype(np.float64)
    own: Floats = np.bincount(cluster, weights=part, minlength=groups).astype(np.float64)
    return estimate_share(
        own, whole - own, independent=bool((whole <= 1).all()), level=level, unit=unit
    )


# As a person reads them.


def sum_up_votes(summary: VotesSummary) -> Message:
    """In a sentence: who voted on how much, and how far they agree."""
    counts = {"people": len(summary.people), "n": summary.voted_pairs, "pairs": summary.pairs}
    share = summary.agreement.agreement
    if not summary.votes:
        return Message("trust.votes_none")
    if share.value is None or share.low is None or share.high is None:
        return Message("trust.votes_unknown", reason=share.reason or "", **counts)
    ends = {"low": share.low, "high": share.high}
    return Message("trust.votes_agree", share=share.value, **ends, **counts)


def blocks(result: VotesSummary) -> Iterator[Block]:
    yield Sentence(sum_up_votes(result), strong=True)
    if not result.people:
        yield Next(Message("votes.next", pairs=counted(result.pairs, "pair")))
        return
    yield Facts(
        tuple((Message(f"votes.{name}") if name else "", fact) for name, fact in _facts(result))
    )
    yield Grid(
        columns=tuple(Message(f"votes.{name}") for name in ("who", "cast", "skipped", "same")),
        rows=tuple(
            (
                person.who,
                number(person.votes),
                number(person.skipped),
                counted_share(person.agreement) if person.agreement.of else "",
            )
            for person in result.people[:_PEOPLE_AT_MOST]
        ),
        left=frozenset({0, 3}),
    )
    if len(result.people) > _PEOPLE_AT_MOST:
        yield Remark(Message("figure.more", n=len(result.people) - _PEOPLE_AT_MOST))


def _facts(result: VotesSummary) -> Iterator[tuple[str, str]]:
    agreement, majority = result.agreement, result.majority
    yield (
        "cast",
        Message(
            "votes.counts",
            n=result.votes,
            people=counted(len(result.people), "person"),
            pairs=counted(result.voted_pairs, "pair"),
            skipped=result.skipped,
        ),
    )
    if len(result.people_a_pair) > 1:
        spread = listed(
            Message("votes.pairs_by", pairs=pairs, people=people)
            for people, pairs in enumerate(result.people_a_pair, 1)
            if pairs
        )
        yield "people", Message("votes.spread", each=spread)
    yield "majority", Message("votes.majorities", **majority.model_dump(by_alias=False))
    if result.with_label.of:
        yield "label", Message("votes.with_label", share=counted_share(result.with_label))
    yield "agreement", Message("votes.two_agree", share=counted_share(agreement.agreement))
    if agreement.units:
        yield "", Message("votes.all_agree", share=counted_share(agreement.unanimous))
    yield "alpha", _alpha(agreement.alpha)
    yield "origin", _parts({f"votes.origin_{each}": n for each, n in result.by_origin.items()})
    yield "draw", _parts({f"votes.draw_{each}": n for each, n in result.by_draw.items()})


def _parts(counts: dict[str, int]) -> Message:
    return listed(Message("votes.part", name=Message(code), n=n) for code, n in counts.items())


def _alpha(alpha: Krippendorff) -> str:
    if alpha.alpha is None:
        return alpha.reason or Message("figure.not_enough")
    if alpha.low is None or alpha.high is None:
        reason = alpha.reason or Message("figure.not_enough")
        return Message("votes.krippendorff_alone", alpha=alpha.alpha, reason=reason)
    pairs = counted(alpha.units, "pair")
    ends = {"low": alpha.low, "high": alpha.high, "level": alpha.level}
    return Message("votes.krippendorff", alpha=alpha.alpha, pairs=pairs, **ends)
