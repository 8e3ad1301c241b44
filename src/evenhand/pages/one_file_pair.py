"""One pair of a report in one file, with everything that its judges and people said of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evenhand.contract import Ballot, Failure, Outcome, Pass, Verdict, Winner
from evenhand.contract.verdict import PositionConsistency
from evenhand.pages.told import Told
from evenhand.pages.wording import Language
from evenhand.report.retelling import told
from evenhand.store import RunRecord, Store, WholeVerdict
from evenhand.store.verdict_search import VerdictPlace

_READ_AT_ONCE = 64
_BEGINNING = 120
# A judge that never ends its answer says nothing new in the rest of it.
_RAW_LIMIT = 8_000

DISAGREES, JUDGES_DIFFER, NOTED, ABSTAINED = 1, 2, 4, 8


@dataclass(frozen=True, slots=True)
class HeldVerdict:
    """What the table says of a verdict; `judge` is a place among the run's judges."""

    judge: int
    outcome: str
    winner: Winner | None
    confidence: float | None
    flags: int

    @property
    def kind(self) -> str:
        """A win is told by who won."""
        return self.winner or "TIE" if self.outcome == Outcome.WIN.value else self.outcome


@dataclass(frozen=True, slots=True)
class HeldPair:
    """What the table says of a pair, its verdicts, and what is packed. `cut`: a text was."""

    number: int
    id: str
    label: Winner | None
    model_a: str
    model_b: str
    tags: tuple[str, ...]
    begins: str
    length_a: int
    length_b: int
    verdicts: tuple[HeldVerdict, ...]
    whole: dict[str, Any]

    @property
    def cut(self) -> bool:
        return bool(self.whole["cut"])


class PairReader:
    """Reads pairs of a run by their numbers; no text of theirs is longer than `text_limit`."""

    def __init__(
        self, store: Store, run: RunRecord, *, text_limit: int, language: Language = "en"
    ) -> None:
        self._told = Told(language)
        self._store = store
        self._run = run
        self._text_limit = text_limit
        self._judges = {judge.id: judge for judge in store.run_judges(run.id)}
        self._place_of = {judge_id: place for place, judge_id in enumerate(self._judges)}

    @property
    def judges(self) -> list[str]:
        return [judge.name for judge in self._judges.values()]

    def read(self, numbers: Sequence[int]) -> Iterator[HeldPair]:
        for start in range(0, len(numbers), _READ_AT_ONCE):
            wanted = [
                VerdictPlace(number, judge_id)
                for number in numbers[start : start + _READ_AT_ONCE]
                for judge_id in self._judges
            ]
            by_number: dict[int, list[WholeVerdict]] = {}
            for whole in self._store.whole_verdicts_at(self._run.id, wanted):
                by_number.setdefault(whole.row.item.number, []).append(whole)
            for number in sorted(by_number):
                yield self._pair(
                    sorted(by_number[number], key=lambda each: self._place_of[each.row.judge_id])
                )

    @cached_property
    def _votes(self) -> Mapping[int, list[list[Any]]]:
        """By pair, without the names of those who voted: a report goes to anybody."""
        by_number: dict[int, list[list[Any]]] = {}
        for each in self._store.each_vote(self._run.id):
            vote = each.vote
            said = [vote.verdict, vote.both_bad, self._cut(vote.comment or "")]
            by_number.setdefault(each.number, []).append(said)
        return by_number

    def _pair(self, whole: list[WholeVerdict]) -> HeldPair:
        item, pair = whole[0].row.item, whole[0].pair
        settled = [
            told(
                each.settled,
                each.pair,
                each.passes,
                judge=self._judges[each.row.judge_id],
                run=self._run,
            )
            for each in whole
        ]
        decided = {each.row.winner for each in whole if _stands(each.row.outcome)}
        texts = {
            "prompt": pair.prompt,
            "context": pair.context,
            "reference": pair.reference,
            "a": pair.response_a,
            "b": pair.response_b,
        }
        known = {name: text for name, text in texts.items() if text is not None}
        packed: dict[str, Any] = {name: self._cut(text) for name, text in known.items()}
        packed["cut"] = {
            name: len(text) for name, text in known.items() if len(text) > self._text_limit
        }
        packed["judged"] = [
            self._judged(each, its) for each, its in zip(whole, settled, strict=True)
        ]
        if votes := self._votes.get(item.number):
            packed["votes"] = votes
        return HeldPair(
            number=item.number,
            id=self._cut(item.key),
            label=item.label,
            model_a=item.model_a or "A",
            model_b=item.model_b or "B",
            tags=item.tags,
            begins=" ".join(pair.prompt[: 2 * _BEGINNING].split())[:_BEGINNING],
            length_a=len(pair.response_a),
            length_b=len(pair.response_b),
            verdicts=tuple(
                self._verdict(each, its, differ=len(decided) > 1)
                for each, its in zip(whole, settled, strict=True)
            ),
            whole=packed,
        )

    def _verdict(
        self, own: WholeVerdict, settled: Verdict | Failure, *, differ: bool
    ) -> HeldVerdict:
        row, label = own.row, own.row.item.label
        agrees = _stands(row.outcome) and row.winner == label
        flags = (
            DISAGREES * (label is not None and not agrees)
            + JUDGES_DIFFER * differ
            + NOTED * bool(isinstance(settled, Verdict) and settled.notes)
            + ABSTAINED * row.abstained
        )
        return HeldVerdict(
            self._place_of[row.judge_id], row.outcome.value, row.winner, row.confidence, flags
        )

    def _judged(self, own: WholeVerdict, settled: Verdict | Failure) -> dict[str, Any]:
        metadata, usage = settled.metadata, settled.metadata.usage
        found: dict[str, Any] = {
            "judge": self._place_of[own.row.judge_id],
            "source": metadata.confidence_source,
            "passes": [self._pass(made) for made in metadata.passes],
            "in": _count(usage.input_tokens),
            "out": _count(usage.output_tokens),
            "cost": usage.cost_usd,
            "ms": round(sum(stored.made.time_ms for stored in own.passes)),
        }
        if isinstance(settled, Failure):
            outcomes = [[each.criterion, each.outcome.value, None] for each in metadata.criteria]
            return found | {"criteria": outcomes, "error": self._ours(settled.error.message)}
        ends = {each.criterion: each.outcome.value for each in metadata.criteria}
        found["criteria"] = [
            [each.criterion, ends.get(each.criterion, _unjudged(each.winner)), each.winner]
            for each in settled.comparison
        ]
        found |= self._said(settled)
        if settled.position_consistency is not None:
            found["orders"] = _orders(settled.position_consistency)
        if metadata.probabilities is not None:
            means = metadata.probabilities
            found["likely"] = [means.a, means.b, means.tie]
        if settled.outcome is Outcome.INCONSISTENT and settled.winner != "TIE":
            found["decided"] = settled.winner
        return found

    def _said(self, settled: Verdict) -> dict[str, Any]:
        """What stands in no pass of its own: most reasons are there already."""
        found: dict[str, Any] = {}
        in_passes = {made.ballot.reasoning for made in settled.metadata.passes if made.ballot}
        if settled.overall_reasoning and settled.overall_reasoning not in in_passes:
            found["why"] = self._cut(settled.overall_reasoning)
        if settled.notes:
            found["notes"] = [self._ours(note) for note in settled.notes]
        own = settled.differentiators
        if own.a_advantages or own.b_advantages:
            found["advantages"] = [
                [self._cut(text) for text in texts]
                for texts in (own.a_advantages, own.b_advantages)
            ]
        return found

    def _pass(self, made: Pass) -> dict[str, Any]:
        usage = made.usage
        found: dict[str, Any] = {
            "first": "A" if made.order == "original" else "B",
            "sample": made.sample,
            "ms": round(made.time_ms),
            "in": _count(usage.input_tokens),
            "out": _count(usage.output_tokens),
            "cost": usage.cost_usd,
        }
        if made.model is not None:
            found["model"] = self._cut(made.model)
        if made.ballot is not None:
            found |= self._ballot(made.ballot)
        elif made.unread is not None:
            found |= {"unread": self._ours(made.unread.reason), "raw": made.unread.raw[:_RAW_LIMIT]}
        if made.repaired:
            found["before"] = [
                [self._ours(each.reason), each.raw[:_RAW_LIMIT]] for each in made.repaired
            ]
        return found

    def _ballot(self, ballot: Ballot) -> dict[str, Any]:
        found: dict[str, Any] = {
            "winner": ballot.winner,
            "confidence": ballot.confidence,
            "why": self._cut(ballot.reasoning),
            "criteria": [
                [
                    each.criterion,
                    each.winner,
                    self._cut(each.reasoning),
                    self._cut(each.a_assessment),
                    self._cut(each.b_assessment),
                ]
                for each in ballot.criteria
            ],
        }
        if ballot.raw:
            found["raw"] = ballot.raw[:_RAW_LIMIT]
        if ballot.scores is not None:
            found["scores"] = [ballot.scores.a, ballot.scores.b]
        if ballot.probabilities is not None:
            likely = ballot.probabilities
            found["likely"] = [likely.a, likely.b, likely.tie]
        if ballot.flags:
            found["flags"] = [self._ours(flag) for flag in ballot.flags]
        return found

    def _ours(self, sentence: str) -> str:
        """In the report's language."""
        return self._cut(self._told(sentence))

    def _cut(self, text: str) -> str:
        return text[: self._text_limit]


def _count(value: int | None) -> int | None:
    """A server may claim any number of tokens; one that JSON cannot hold is not known."""
    return value if value is None or abs(value) < 2**53 else None


def _stands(outcome: Outcome) -> bool:
    return outcome in (Outcome.WIN, Outcome.TIE)


def _unjudged(winner: Winner | None) -> str:
    """Of a criterion that nobody was asked about: identical responses are a tie by themselves."""
    return (Outcome.TIE if winner == "TIE" else Outcome.INVALID).value


def _orders(position: PositionConsistency) -> list[Any]:
    return [position.first_pass_winner, position.second_pass_winner, position.consistent]
