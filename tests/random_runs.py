"""Random small runs, written straight to a store, with a count of what was written."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal

from evenhand.contract import Order, Outcome, Winner
from evenhand.contract.pair import DrawnOrderPair
from evenhand.data.records import BadRow, Record
from evenhand.judging.decision import CriterionDecision
from evenhand.report.conclusions import ConclusionLimits
from evenhand.store import NewJudge, NewRun, NewVerdict, Settled, Store
from scripted import make_pair
from store_values import decided, failure

Said = Literal["A", "B", "TIE", "inconsistent", "invalid", "pending"]
Models = tuple[str | None, str | None]

_OTHER: dict[Winner, Winner] = {"A": "B", "B": "A", "TIE": "TIE"}
# Of 25 runs one each in which length alone decides, and in which the interval of a claim ends
# close to one half; chance makes either once in hundreds.
_BY_LENGTH, _CLOSE = 2, 3
# Of 130 pairs, so many wins and losses that the interval ends between 0.500 and 0.505.
_CLOSE_CALLS = ((25, 12), (33, 18), (42, 25), (57, 37), (74, 51))
_SIZES = ((1, 8), (9, 30), (31, 60), (61, 130))


@dataclass(frozen=True)
class RandomRun:
    """`said` counts what the judge said of each matchup, A being as in its first row; `longer` who
    won its decided pairs: "longer", "shorter", or "equal" where neither is; "A" and "B" are how
    often these were longer there."""

    name: str
    limits: ConclusionLimits
    said: dict[Models, Counter[Said]] = field(default_factory=dict)
    longer: dict[Models, Counter[str]] = field(default_factory=dict)
    prompts_repeat: bool = False
    averaged: bool = False
    skipped: int = 0
    grown: bool = False
    labels: int = 0


@dataclass(frozen=True)
class _Judge:
    """How a run's judge decides: by merit, by place, by length, or not at all."""

    merit: float  # how often the second model is better
    place: float  # how often the first position decides
    second: float  # how often the second does
    length: float  # how often the longer response wins
    tie: float
    noise: float
    invalid: float
    pending: float
    averages: bool
    orders: Literal["both", "one", "drawn"]


def random_run(store: Store, seed: int) -> RandomRun:
    """Each has judges and texts of its own, so that one store holds many."""
    draw = Random(seed)
    calm = draw.random() < 0.6  # every fault in every run would leave few claims to check
    some = 0.0 if calm else 1.0
    judge = _Judge(
        merit=draw.choice((0.0, 0.1, 0.3, 0.5, 0.6, 0.7, 0.9, 1.0)),
        place=draw.choice((0.0, 0.0, 0.05, 0.2, 0.6 * some)),
        second=some * draw.choice((0.0, 0.0, 0.05, 0.3)),
        length=draw.choice((0.0, 0.0, 0.0, 0.6, 1.0)),
        tie=draw.choice((0.0, 0.1, 0.4, 0.9, 0.95)),
        noise=draw.choice((0.0, 0.05)),
        invalid=some * draw.choice((0.0, 0.01, 0.1, 0.3)),
        pending=some * draw.choice((0.0, 0.0, 0.1, 0.5)),
        averages=draw.random() < 0.15,
        orders=draw.choice(("both", "both", "both", "both", "one", "drawn")),
    )
    # `require_labels` has a test of its own (tests/cli/test_labels_decide.py).
    limits = ConclusionLimits(
        max_invalid=draw.choice((None, None, None, 0.05)),
        max_skipped=draw.choice((None, None, None, 0.02)),
        missing=draw.choice(("against", "against", "half")),
        allow_one_order=draw.random() < 0.3,
        allow_length=draw.random() < 0.2,
        labels_are_random=draw.random() < 0.3,
        smallest_effect=draw.choice((None, None, 0.05)),
        growing=draw.random() < 0.1,
        these_topics=draw.random() < 0.3,
    )
    size = draw.randint(*draw.choice(_SIZES[calm:]))
    models = draw.choice(
        (
            (("old", "new"),),
            (("old", "new"),),
            (("old", "new"), ("old", "next"), ("next", "new")),
            ((None, None),),
        )
    )
    repeats = draw.choice((1, 1, 1, 3))
    labelled = draw.choice((0.0, 0.0, 0.3, 0.8, 1.0))
    right = draw.choice((0.2, 0.5, 0.7, 1.0))
    topics = draw.choice((0, 0, 2, 12))
    turned = draw.random() < 0.5
    longer = draw.choice((0.5, 0.5, 0.5, 0.75, 1.0))  # how often the second model is
    people_favour_first = draw.random() < 0.2
    calls: list[_Judge] = []
    if seed % 25 in (_BY_LENGTH, _CLOSE):
        judge, limits = _calm(judge), ConclusionLimits()
        models, repeats, labelled, topics, calm = (("old", "new"),), 1, 0.0, 0, True
        size, longer = 130, 0.75
    if seed % 25 == _BY_LENGTH:
        judge = replace(judge, length=1.0, tie=0.1)
    elif seed % 25 == _CLOSE:
        longer = 0.5
        calls = _close_calls(draw, judge, size)
    run = RandomRun(f"run {seed}", limits, prompts_repeat=repeats > 1, averaged=judge.averages)
    items: list[Record] = []
    verdicts: list[Settled | None] = []
    labels = 0
    for place in range(size):
        pair_of = models[place % len(models)]
        named = pair_of[0] is not None  # else A and B are all there is
        exchanged = named and turned and place >= len(models) and draw.random() < 0.5
        lengths = draw.randint(1, 30), draw.randint(1, 30)
        second_longer = (draw.random() < longer) != exchanged
        if seed % 25 == _BY_LENGTH:
            lengths = lengths[0], lengths[0] + 1 + lengths[1]
        lengths = (min(lengths), max(lengths)) if second_longer else (max(lengths), min(lengths))
        said, settled = _verdict(draw, calls[place] if calls else judge, lengths, exchanged)
        kept = said if not exchanged else {"A": "B", "B": "A"}.get(said, said)
        run.said.setdefault(pair_of, Counter())[kept] += 1  # type: ignore[index]
        run.longer.setdefault(pair_of, Counter()).update(_longer(said, kept, lengths))
        label: Winner | None = None
        if draw.random() < labelled:
            labels += 1
            label = draw.choice(("A", "B", "TIE"))
            if said in ("A", "B"):
                agreed = draw.random() < right
                if people_favour_first:
                    agreed = kept == "A" or draw.random() < 0.5
                label = said if agreed else _OTHER[said]
        items.append(
            _item(
                f"{seed}-{place}",
                prompt=f"prompt {place // repeats} of {seed}",
                place=place,
                lengths=lengths,
                models=pair_of[::-1] if exchanged else pair_of,
                label=label,
                tags=(f"topic {draw.randrange(topics)}",) if topics else (),
                order=draw.choice(("original", "swapped")) if judge.orders == "drawn" else None,
            )
        )
        verdicts.append(settled)
    skipped = draw.choice((0, 0, 0, 1, 5 * (not calm))) if seed % 25 != _CLOSE else 0
    judge_id = store.runs.add_judge(NewJudge(f"judge {seed}", f"judge {seed}", "v1", "en"))
    grown = size >= 4 and draw.random() < 0.15 and seed % 25 not in (_BY_LENGTH, _CLOSE)
    if grown:
        _write(store, f"before {seed}", judge_id, items[: size // 2], verdicts, 0)
    _write(store, run.name, judge_id, items, verdicts, skipped)
    # An earlier run with pairs that wait is no look at its end.
    looked = grown and None not in verdicts[: size // 2]
    return replace(run, skipped=skipped, grown=looked, labels=labels)


def _calm(judge: _Judge) -> _Judge:
    """Without any fault."""
    without = {"place": 0.0, "second": 0.0, "length": 0.0, "noise": 0.0}
    missing = {"invalid": 0.0, "pending": 0.0}
    return replace(judge, **without, **missing, averages=False, orders="both")


def _close_calls(draw: Random, judge: _Judge, size: int) -> list[_Judge]:
    """How each pair is decided."""
    won, lost = draw.choice(_CLOSE_CALLS)
    better = draw.choice((0.0, 1.0))
    calls = [replace(judge, tie=0.0, merit=better)] * won
    calls += [replace(judge, tie=0.0, merit=1 - better)] * lost
    calls += [replace(judge, tie=1.0)] * (size - len(calls))
    draw.shuffle(calls)
    return calls


def _write(
    store: Store,
    name: str,
    judge_id: int,
    items: list[Record],
    verdicts: list[Settled | None],
    skipped: int,
) -> None:
    run = store.runs.create(NewRun(name, f"fingerprint of {name}", {}, ("pairs.jsonl",)))
    store.runs.set_judges(run.id, [judge_id])
    store.items.add(run.id, items)
    if skipped:
        rows = [
            BadRow("pairs.jsonl", 1000 + row, "the line is truncated") for row in range(skipped)
        ]
        store.items.add_skipped(run.id, rows)
    made = [
        NewVerdict(run.id, number, judge_id, settled)
        for number, settled in enumerate(verdicts[: len(items)], start=1)
        if settled is not None
    ]
    store.work.write([], made)
    done = len(made) == len(items)
    store.runs.update(run.id, intake_done=True, state="finished" if done else "stopped")


def _item(
    key: str,
    *,
    prompt: str,
    place: int,
    lengths: tuple[int, int],
    models: Models,
    label: Winner | None,
    tags: tuple[str, ...],
    order: Order | None,
) -> Record:
    texts = [
        f"{side} of {key} {'word ' * length}" for side, length in zip("ab", lengths, strict=True)
    ]
    pair = make_pair(prompt=prompt, response_a=texts[0], response_b=texts[1], id=key)
    if order is not None:
        fields = dict(pair) | {"swap_positions": False, "drawn_order": order}
        pair = DrawnOrderPair.model_construct(**fields)
    return Record(
        key,
        pair,
        "pairs.jsonl",
        place + 1,
        label=label,
        model_a=models[0],
        model_b=models[1],
        tags=tags,
    )


def _verdict(
    draw: Random, judge: _Judge, lengths: tuple[int, int], exchanged: bool
) -> tuple[Said, Settled | None]:
    """In the labels of the row."""
    if draw.random() < judge.pending:
        return "pending", None
    if draw.random() < judge.invalid:
        return "invalid", failure([])
    better: Winner = "B" if (draw.random() < judge.merit) != exchanged else "A"
    if draw.random() < judge.length and lengths[0] != lengths[1]:
        better = "A" if lengths[0] > lengths[1] else "B"
    if draw.random() < judge.tie:
        better = "TIE"
    first = second = better
    if draw.random() < judge.place:
        first, second = "A", "B"
    elif draw.random() < judge.second:
        first, second = "B", "A"
    elif draw.random() < judge.noise:
        first, second = draw.choice((("A", "TIE"), ("TIE", "B"), ("A", "B")))
    if judge.orders != "both":
        outcome = Outcome.TIE if first == "TIE" else Outcome.WIN
        return first, decided(outcome, first, passes=1)
    criteria = (
        CriterionDecision(
            name="accuracy",
            outcome=_outcome(first, second),
            winner=first if first == second else "TIE",
            first_pass_winner=first,
            second_pass_winner=second,
        ),
    )
    if first == second or not judge.averages:
        winner: Winner = first if first == second else "TIE"
        said: Said = winner if first == second else "inconsistent"
        return said, decided(
            _outcome(first, second), winner, first=first, second=second, criteria=criteria
        )
    winner = draw.choice((first, second))
    outcome = Outcome.TIE if winner == "TIE" else Outcome.WIN
    return winner, decided(outcome, winner, first=first, second=second, criteria=criteria)


def _longer(said: Said, kept: str, lengths: tuple[int, int]) -> tuple[str, ...]:
    """`said` is in the labels of the row, `kept` in those of its matchup."""
    if said not in ("A", "B"):
        return ()
    if lengths[0] == lengths[1]:
        return ("equal",)
    won_by_longer = (said == "A") == (lengths[0] > lengths[1])
    other = "B" if kept == "A" else "A"
    return ("longer", kept) if won_by_longer else ("shorter", other)


def _outcome(first: Winner, second: Winner) -> Outcome:
    if first != second:
        return Outcome.INCONSISTENT
    return Outcome.TIE if first == "TIE" else Outcome.WIN
