"""The pairs that a one-file report holds: which ones, each with all that was said of it, packed for
the browser, and a table to sort and filter them.
"""

from __future__ import annotations

import base64
import multiprocessing
import os
import random
import signal
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from evenhand.contract import Outcome, Winner
from evenhand.contract.codes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.judges.addresses import AddressRedactor
from evenhand.messages import Language
from evenhand.present.html.rendering import (
    FigureFormat,
    PageTranslator,
    Wording,
    environment,
)
from evenhand.present.html.texts import ShownPair, ShownText, show_pair_texts
from evenhand.present.reasons import reason_of
from evenhand.report.lookup import find_run
from evenhand.report.records import PairReport, StoredAnswer, whole_pair
from evenhand.store import (
    ItemVote,
    ItemWhole,
    JudgedItem,
    RunRecord,
    Store,
    WholeVerdict,
    open_store,
)
from evenhand.store.verdict_table import VerdictMarks
from evenhand.store.verdicts import VerdictPlace

MOST_PAIRS = 20_000
# What texts may come to before they are packed, and what one text is cut to for that.
_MOST_CHARACTERS = 250_000_000
_TEXT_LIMITS = (50_000, 20_000, 8_000, 3_000)
# A browser opens a packed part whole for one pair of it; a page of them is little to wait for.
_PAIRS_IN_A_PART = 50
_PART_CHARACTERS = 1_000_000
# The same pairs whenever the report is made anew.
_SEED = 20_260_101


@dataclass(frozen=True, slots=True)
class PairSelection:
    """Which pairs are in the file: all, or so many by lot. Texts are cut at `text_limit`; `lengths`
    are of each pair's two responses together. The rest is of all judged pairs: which models meet
    as A and B, tags by how often, and whether any has a label."""

    numbers: Sequence[int]
    of: int
    text_limit: int
    lengths: Sequence[int]
    contests: frozenset[tuple[str | None, str | None]]
    tags: Counter[str]
    labelled: bool

    @property
    def all(self) -> bool:
        return len(self.numbers) == self.of

    def parts(self) -> Iterator[tuple[int, ...]]:
        """The numbers of the pairs that are packed together."""
        part: list[int] = []
        characters = 0
        for number, length in zip(self.numbers, self.lengths, strict=True):
            part.append(number)
            characters += min(length, 2 * self.text_limit)
            if len(part) >= _PAIRS_IN_A_PART or characters >= _PART_CHARACTERS:
                yield tuple(part)
                part, characters = [], 0
        if part:
            yield tuple(part)


def select_pairs(store: Store, run: RunRecord, *, at_most: int) -> PairSelection:
    """Each judged pair has the same chance, whatever came of it: what is in the file looks like
    what is not. By lot and not every tenth, since data often come in turns."""
    judged: dict[int, int] = {}
    contests: set[tuple[str | None, str | None]] = set()
    tags: Counter[str] = Counter()
    labelled = False
    for judge in store.runs.judges(run.id):
        columns = store.columns.outcomes(run.id, judge.id)
        for number, a, b in zip(columns.number, columns.length_a, columns.length_b, strict=True):
            judged[int(number)] = int(a) + int(b)
        names = (*columns.models, None)  # none is -1
        met = set(zip(columns.model_a, columns.model_b, strict=True))
        contests |= {(names[a], names[b]) for a, b in met}
        for code, count in Counter(columns.tags).items():
            tags.update(dict.fromkeys(columns.tag_sets[code], count))
        labelled = labelled or any(label >= 0 for label in columns.label)
    numbers = sorted(judged)
    if len(numbers) > at_most:
        drawn = random.Random(_SEED).sample(numbers, at_most)  # noqa: S311 - no secret
        numbers = sorted(drawn)
    lengths = [judged[number] for number in numbers]
    limit = _text_limit(lengths)
    return PairSelection(numbers, len(judged), limit, lengths, frozenset(contests), tags, labelled)


def _text_limit(lengths: Sequence[int]) -> int:
    for limit in _TEXT_LIMITS:
        if sum(min(length, 2 * limit) for length in lengths) <= _MOST_CHARACTERS:
            return limit
    return _TEXT_LIMITS[-1]


_READ_AT_ONCE = 64
_BEGINNING = 120
# A judge that never ends its answer says nothing new in the rest of it.
_RAW_LIMIT = 8_000
_REASON = 160
# As bits of one number, by the names that filters have.
_MARKS = {
    "judgesDiffer": "judges_differ",
    "noted": "noted",
    "unread": "unread",
    "abstained": "abstained",
    "byRule": "by_rule",
}
_FLAGS = {name: 1 << place for place, name in enumerate(_MARKS)}
_ORDERS = ("agree", "first", "second", "split")
# Every outcome with every winner that it can have; a row holds a place here.
_ENDINGS: tuple[tuple[str, Winner | None], ...] = (
    ("win", "A"),
    ("win", "B"),
    ("tie", "TIE"),
    ("inconsistent", "TIE"),
    ("inconsistent", "A"),
    ("inconsistent", "B"),
    ("invalid", None),
)
_ENDS = {WIN_A: "A", WIN_B: "B", TIE: "TIE", INCONSISTENT: "inconsistent", INVALID: "invalid"}


@dataclass(frozen=True, slots=True)
class ReportVerdict:
    """What the table says of a verdict; `judge` is a place among the run's judges."""

    judge: int
    outcome: str
    winner: Winner | None
    confidence: float | None
    marks: VerdictMarks
    reason: str

    @property
    def kind(self) -> str:
        """A win is told by who won."""
        return self.winner or "TIE" if self.outcome == Outcome.WIN.value else self.outcome


@dataclass(frozen=True, slots=True)
class ReportPair:
    """What the table says of a pair, its verdicts, and what is packed. `cut`: a text was."""

    number: int
    id: str
    label: Winner | None
    voted: Winner | None  # by most people, where the data has no label
    model_a: str | None
    model_b: str | None
    tags: tuple[str, ...]
    begins: str
    length_a: int
    length_b: int
    flag: str | None  # what somebody noted, which may be nothing; None: it is not flagged
    verdicts: tuple[ReportVerdict, ...]
    texts: dict[str, str]  # as far as they are in the file, for the search and to be read raw
    shown: ShownPair | None  # None once it is packed
    cut: bool


class PairReader:
    """Reads pairs of a run by their numbers; no text of theirs is longer than `text_limit`."""

    def __init__(
        self, store: Store, run: RunRecord, *, text_limit: int, language: Language = "en"
    ) -> None:
        self._language: Language = language
        self._store = store
        self._run = run
        self._text_limit = text_limit
        self._judges = {judge.id: judge for judge in store.runs.judges(run.id)}
        self._hide = {
            each.id: AddressRedactor.of_record(each.settings) for each in self._judges.values()
        }
        self._place_of = {judge_id: place for place, judge_id in enumerate(self._judges)}

    @property
    def judges(self) -> list[str]:
        return [judge.name for judge in self._judges.values()]

    @cached_property
    def _template(self) -> PairTemplate:
        return PairTemplate(self._language, self.judges)

    def written(self, pairs: Sequence[ReportPair]) -> bytes:
        """As the file holds them: the texts, and what is shown. A browser builds that element by
        element, so that nothing that anybody wrote is ever read as markup there."""
        return orjson.dumps(
            [
                {"texts": pair.texts, "html": self._template.html(pair.shown)}
                for pair in pairs
                if pair.shown is not None
            ]
        )

    def read(self, numbers: Sequence[int]) -> Iterator[ReportPair]:
        for start in range(0, len(numbers), _READ_AT_ONCE):
            some = numbers[start : start + _READ_AT_ONCE]
            marks = self._store.table.marks(self._run.id, some)
            voted = self._store.votes.labels(self._run.id, some)
            wanted = [
                VerdictPlace(number, judge_id) for number in some for judge_id in self._judges
            ]
            by_number: dict[int, list[WholeVerdict]] = {}
            for whole in self._store.verdicts.whole_at(self._run.id, wanted):
                by_number.setdefault(whole.row.item.number, []).append(whole)
            for number, found in sorted(by_number.items()):
                found.sort(key=lambda each: self._place_of[each.row.judge_id])
                yield self._pair(found, marks, voted.get(number))

    @cached_property
    def _votes(self) -> Mapping[int, list[ItemVote]]:
        """By pair, without the names of those who voted: a report goes to anybody."""
        by_number: dict[int, list[ItemVote]] = {}
        for each in self._store.votes.each(self._run.id):
            comment = None if each.vote.comment is None else self._cut(each.vote.comment)
            vote = replace(each.vote, who="", comment=comment)
            by_number.setdefault(each.number, []).append(each._replace(vote=vote))
        return by_number

    def _pair(
        self,
        whole: list[WholeVerdict],
        marks: Mapping[tuple[int, int], VerdictMarks],
        voted: Winner | None,
    ) -> ReportPair:
        item, pair = whole[0].row.item, whole[0].pair
        judged = tuple(
            JudgedItem(self._judges[each.row.judge_id], each.settled, each.passes, ())
            for each in whole
        )
        flag = whole[0].flag
        comment = None if flag is None else self._cut(flag.comment or "")
        report = whole_pair(self._run, ItemWhole(item, pair, judged, flag))
        given = {
            "prompt": pair.prompt,
            "a": pair.response_a,
            "b": pair.response_b,
            "context": pair.context,
            "reference": pair.reference,
        }
        texts = {name: text for name, text in given.items() if text is not None}
        shown = show_pair_texts(self._in_bounds(report), self._votes.get(item.number, ()))
        return ReportPair(
            number=item.number,
            id=self._cut(item.key),
            label=item.label,
            voted=voted,
            model_a=item.model_a,
            model_b=item.model_b,
            tags=item.tags,
            begins=" ".join(pair.prompt[: 2 * _BEGINNING].split())[:_BEGINNING],
            length_a=len(pair.response_a),
            length_b=len(pair.response_b),
            flag=comment,
            verdicts=tuple(
                self._verdict(each, marks[item.number, each.row.judge_id]) for each in whole
            ),
            texts={name: self._cut(text) for name, text in texts.items()},
            shown=_as_long_as(shown, texts),
            cut=any(len(text) > self._text_limit for text in texts.values()),
        )

    def _in_bounds(self, report: PairReport) -> PairReport:
        """No text of it is longer than the file takes."""
        pair = report.pair
        bounded = {
            name: self._cut(text)
            for name in ("prompt", "response_a", "response_b", "context", "reference")
            if (text := getattr(pair, name)) is not None
        }
        judges = tuple(
            judged.model_copy(update={"passes": tuple(map(self._bounded_pass, judged.passes))})
            for judged in report.judges
        )
        return report.model_copy(update={"pair": pair.model_copy(update=bounded), "judges": judges})

    def _bounded_pass(self, made: StoredAnswer) -> StoredAnswer:
        changes: dict[str, Any] = {
            "repaired": tuple(
                each.model_copy(update={"raw": each.raw[:_RAW_LIMIT]}) for each in made.repaired
            )
        }
        if made.unread is not None:
            changes["unread"] = made.unread.model_copy(update={"raw": made.unread.raw[:_RAW_LIMIT]})
        if made.ballot is not None:
            criteria = tuple(
                each.model_copy(
                    update={
                        name: self._cut(getattr(each, name))
                        for name in ("reasoning", "a_assessment", "b_assessment")
                    }
                )
                for each in made.ballot.criteria
            )
            changes["ballot"] = made.ballot.model_copy(
                update={
                    "raw": made.ballot.raw[:_RAW_LIMIT],
                    "reasoning": self._cut(made.ballot.reasoning),
                    "criteria": criteria,
                }
            )
        return made.model_copy(update=changes)

    def _verdict(self, own: WholeVerdict, marks: VerdictMarks) -> ReportVerdict:
        row = own.row
        reason = reason_of(own, self._language, self._hide[row.judge_id])[:_REASON]
        place = self._place_of[row.judge_id]
        return ReportVerdict(place, row.outcome.value, row.winner, row.confidence, marks, reason)

    def _cut(self, text: str) -> str:
        return text[: self._text_limit]


def _as_long_as(shown: ShownPair, texts: Mapping[str, str]) -> ShownPair:
    """With the lengths that the texts have, and what of each is left out."""

    def own(name: str, part: ShownText) -> ShownText:
        return replace(part, length=len(texts[name]), cut=part.cut + len(texts[name]) - part.length)

    responses = shown.responses
    return replace(
        shown,
        prompt=own("prompt", shown.prompt),
        context=shown.context and own("context", shown.context),
        reference=shown.reference and own("reference", shown.reference),
        responses=replace(responses, a=own("a", responses.a), b=own("b", responses.b)),
    )


class PairTemplate:
    """In one language; what a server's page shows of a pair, of the same template."""

    def __init__(self, language: Language, judges: Sequence[str]) -> None:
        say = Wording(language)
        self._judges = list(judges)
        template = environment().get_template("one_file_pair.html")
        self._macros: Any = template.make_module(
            {
                "say": say,
                "told": PageTranslator(language),
                "figure": FigureFormat(say),
                "language": language,
            }
        )

    def html(self, shown: ShownPair) -> str:
        return str(self._macros.whole_pair(shown, self._judges))


# A process takes a second to come up: fewer parts are packed sooner without.
_PARTS_FOR_PROCESSES = 40
_MOST_PROCESSES = 8


@dataclass(frozen=True, slots=True)
class PackedPairs:
    """`packed`: gzip in base64, in which no sign means anything to HTML. The pairs are those in it,
    for the table alone."""

    packed: str
    pairs: tuple[ReportPair, ...]


def usable_processes() -> int:
    """As many as this process may use processors."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def _in_turn(reader: PairReader, parts: Sequence[Sequence[int]]) -> Iterator[PackedPairs]:
    """One is packed while the next is read: packing leaves Python to others."""
    with ThreadPoolExecutor(max_workers=1) as packer:
        waiting = None
        for numbers in parts:
            pairs = tuple(reader.read(numbers))
            following = (packer.submit(_packed, reader.written(pairs)), pairs)
            if waiting is not None:
                yield _part(waiting[0].result(), waiting[1])
            waiting = following
        if waiting is not None:
            yield _part(waiting[0].result(), waiting[1])


def _packed(written: bytes) -> str:
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return base64.b64encode(packer.compress(written) + packer.flush()).decode()


def _part(packed: str, pairs: Sequence[ReportPair]) -> PackedPairs:
    """Without the texts, which are packed."""
    return PackedPairs(packed, tuple(replace(pair, texts={}, shown=None) for pair in pairs))


_reader: PairReader | None = None


def _begin(address: str, run: str, text_limit: int, language: Language) -> None:
    global _reader
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asked is told, and ends this
    store = open_store(Path(address), create=False)
    _reader = PairReader(store, find_run(store, run), text_limit=text_limit, language=language)


def _made(numbers: Sequence[int]) -> PackedPairs:
    assert _reader is not None  # noqa: S101 - _begin came first
    pairs = tuple(_reader.read(numbers))
    return _part(_packed(_reader.written(pairs)), pairs)


@dataclass(slots=True)
class _Names:
    """What many rows share, by its place in a list."""

    places: dict[Any, int] = field(default_factory=dict)

    def place(self, name: Any) -> int:
        return self.places.setdefault(name, len(self.places))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.places)


class PairData:
    """Parts come first, as they are read; the table is known once all of them are. Other
    processes, where there are any, begin at once."""

    def __init__(
        self,
        store: Store,
        run: RunRecord,
        choice: PairSelection,
        *,
        language: Language = "en",
        processes: int = 1,
    ) -> None:
        self._numbers = choice.numbers
        self._reader = PairReader(store, run, text_limit=choice.text_limit, language=language)
        self._pool: ProcessPoolExecutor | None = None
        parts = list(choice.parts())
        count = min(processes, _MOST_PROCESSES)
        # A store that is a file can be read by several processes.
        if count > 1 and len(parts) >= _PARTS_FOR_PROCESSES and Path(store.address).is_file():
            context = multiprocessing.get_context("spawn")
            begun = (store.address, run.name, choice.text_limit, language)
            self._pool = ProcessPoolExecutor(count, context, _begin, begun)
            self._parts = self._pool.map(_made, parts, chunksize=4)
        else:
            self._parts = _in_turn(self._reader, parts)
        self._names, self._tags, self._criteria, self._breakdowns = (_Names() for _ in range(4))
        self._pairs: list[list[Any]] = []
        self._rows: list[list[Any]] = []
        self.cut = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            # What is still waiting is of no use to anybody once this ends early.
            self._pool.shutdown(cancel_futures=True)

    @property
    def judges(self) -> list[str]:
        return self._reader.judges

    def first(self, count: int) -> list[ReportPair]:
        return list(self._reader.read(self._numbers[:count]))

    def parts(self) -> Iterator[str]:
        for number, part in enumerate(self._parts):
            for place, pair in enumerate(part.pairs):
                self._add(pair, number, place)
            yield part.packed

    def table(self) -> str:
        return inert_json(
            {
                "judges": self.judges,
                "names": list(self._names),
                "tags": list(self._tags),
                "criteria": list(self._criteria),
                "breakdowns": list(self._breakdowns),
                "endings": _ENDINGS,
                "flags": _FLAGS,
                "orders": _ORDERS,
                "pairs": self._pairs,
                "rows": self._rows,
            }
        )

    def _add(self, pair: ReportPair, part: int, place: int) -> None:
        self.cut += pair.cut
        a, b = (
            -1 if name is None else self._names.place(name) for name in (pair.model_a, pair.model_b)
        )
        for each in pair.verdicts:
            breakdown = tuple(
                (self._criteria.place(name), _ENDS[code]) for name, code in each.marks.criteria
            )
            self._rows.append(
                [
                    len(self._pairs),
                    each.judge,
                    _ENDINGS.index((each.outcome, each.winner)),
                    each.confidence,
                    sum(_FLAGS[flag] for flag, name in _MARKS.items() if getattr(each.marks, name)),
                    -1 if each.marks.orders is None else _ORDERS.index(each.marks.orders),
                    self._breakdowns.place(breakdown),
                    each.reason,
                ]
            )
        self._pairs.append(
            [
                pair.number,
                pair.id,
                pair.label,
                pair.voted,
                a,
                b,
                [self._tags.place(tag) for tag in pair.tags],
                pair.begins,
                pair.length_a,
                pair.length_b,
                pair.flag,
                part,
                place,
            ]
        )


def inert_json(value: Any) -> str:
    """JSON that ends no element and no line, wherever HTML holds it."""
    text = orjson.dumps(value).decode()
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
