"""Files of model outputs, one a model, joined into pairs: all against all, or with a baseline."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any

from evenhand.contract import Pair
from evenhand.data.answers import (
    AnswerRows,
    ModelAnswer,
    PromptTurns,
    Scratch,
    Stored,
    conversation,
    read_question,
    scratch,
)
from evenhand.data.columns import OUTPUT_FIELDS, Columns, FieldValues
from evenhand.data.options import ReadOptions
from evenhand.data.pairs import make_pair
from evenhand.data.records import BadRow, Record, Side, Table, Unpaired, Wanted, shortened
from evenhand.data.source import Source, source_of
from evenhand.data.tables import open_tables
from evenhand.errors import DataError, InputError
from evenhand.messages import Message


class RowPlaces:
    """Numbers rows on from file to file, so that each number is unique."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._begins: list[int] = []  # how many numbers were given before each file
        self._last = 0

    def tables(self, wanted: Wanted) -> Iterator[tuple[Source, Table]]:
        for file, table in open_tables(self._source, wanted=wanted):
            self._begins.append(self._last)
            yield file, table

    def number(self, row: int) -> int:
        self._last = self._begins[-1] + row
        return self._last

    def place(self, number: int) -> tuple[str, int]:
        file = bisect_left(self._begins, number) - 1
        return self._source.files[file].name, number - self._begins[file]


_CHAT_COLUMNS = ("choices", "messages", "turns")


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A model's answers. Without `model` the rows name it, else the file."""

    path: Source | Path | str
    model: str | None = None


def read_outputs(
    files: Sequence[OutputFile],
    reading: ReadOptions,
    *,
    baseline: str | None = None,
    questions: Source | Path | str | None = None,
) -> Iterator[Record | BadRow]:
    """Pairs of answers to the same prompt, in the order of the first file.

    With two files, A is the first; with a `baseline` (a model or file name), A is the baseline.
    """
    if len(files) < 2:
        raise DataError.of("data.one_file_of_outputs", n=len(files))
    with scratch() as store:
        sources = [source_of(file.path) for file in files]
        places = [RowPlaces(source) for source in sources]
        named: list[str | None] = [file.model for file in files]
        if questions is not None:
            yield from _take_questions(source_of(questions), store, reading)
        for number, source in enumerate(sources):
            yield from _take_answers(number, source.name, places[number], store, reading, named)
        store.finish()
        models = _distinct_names(sources, named)
        join = _Join(store, places, models, reading, _baseline(baseline, sources, models))
        for group in store.groups():
            yield from join.pairs(group)


def _take_answers(
    number: int,
    name: str,
    places: RowPlaces,
    store: Scratch,
    reading: ReadOptions,
    named: list[str | None],
) -> Iterator[BadRow]:
    rows = AnswerRows(reading.columns)
    given, empty = named[number] is not None, True
    for file, table in places.tables(_wanted(reading)):
        if table.columns is not None:
            rows.check(file.name, table.columns)
        for row_number, row in table.rows:
            empty = False
            counted = places.number(row_number)
            if isinstance(row, str):
                yield BadRow(file.name, row_number, row)
                continue
            try:
                answers = rows.read(row)
                model = answers[0].model
                if not given and model is not None:
                    if named[number] not in (None, model):
                        raise DataError.of(
                            "data.two_models_in_file", model=model, named=named[number]
                        )
                    named[number] = model
                for answer in answers:
                    if answer.id is None and answer.prompt is None:
                        raise DataError.of("data.answer_unjoinable")
                    store.add(Stored(number, counted, answer))
            except InputError as error:
                yield BadRow(file.name, row_number, error.message)
    if empty:
        raise DataError.of("data.file_without_rows", name=name)


def _take_questions(source: Source, store: Scratch, reading: ReadOptions) -> Iterator[BadRow]:
    fields = FieldValues(OUTPUT_FIELDS, reading.columns, required=())
    empty = True
    for file, table in open_tables(source, wanted=_wanted(reading)):
        for number, row in table.rows:
            empty = False
            try:
                if isinstance(row, str):
                    raise DataError(row)
                question = read_question(row, fields)
                if not store.add_question(question):
                    raise DataError.of("data.question_twice", id=question.id)
            except InputError as error:
                yield BadRow(file.name, number, error.message)
    if empty:
        raise DataError.of("data.file_without_rows", name=source.name)


def _wanted(reading: ReadOptions) -> Wanted:
    columns = Columns(OUTPUT_FIELDS, reading.columns)
    return lambda name: columns.wanted(name) or name in _CHAT_COLUMNS


def _distinct_names(sources: Sequence[Source], named: Sequence[str | None]) -> list[str]:
    """The models' names, or the files' if two models share a name."""
    models = [name or source.stem for source, name in zip(sources, named, strict=True)]
    for fallback in ([source.stem for source in sources], [source.name for source in sources]):
        if len(set(models)) == len(models):
            break
        models = [
            fallback[place] if models.count(model) > 1 else model
            for place, model in enumerate(models)
        ]
    for place, model in enumerate(models):
        if model in models[:place]:
            raise DataError.of("data.model_twice", model=model)
    return models


def _baseline(baseline: str | None, sources: Sequence[Source], models: Sequence[str]) -> int | None:
    if baseline is None:
        return None
    for names in (models, [source.stem for source in sources], [source.name for source in sources]):
        if baseline in names:
            return list(names).index(baseline)
    raise DataError.of("data.baseline_without_outputs", baseline=baseline, models=", ".join(models))


@dataclass(frozen=True, slots=True)
class _Join:
    store: Scratch
    places: Sequence[RowPlaces]
    models: Sequence[str]
    reading: ReadOptions
    baseline: int | None

    def pairs(self, group: Iterator[Stored]) -> Iterator[Record | BadRow]:
        """The records for one question, and what is missing for others."""
        first = next(group)
        by_file: dict[int, Stored] = {}
        refused: set[int] = set()
        question = self._question(first.answer)
        prompt = _prompt_of(question, first.answer.turn)
        agreed_at: str = Message("data.questions_file")
        for stored in chain((first,), group):
            own = stored.answer.prompt
            if stored.file in by_file:
                earlier = self._beside(by_file[stored.file], stored)
                yield self._bad(stored, Message("data.answer_twice", first=earlier))
            elif prompt is not None and own is not None and own != prompt:
                refused.add(stored.file)
                yield self._bad(stored, Message("data.another_prompt", other=agreed_at))
            else:
                by_file[stored.file] = stored
                if prompt is None and own is not None:
                    prompt, agreed_at = own, _row_of(*self._place(stored))
        if prompt is None:
            yield self._bad(first, Message("data.answer_without_prompt"))
        elif by_file:
            yield from self._missing(by_file, refused)
            for left, right in self._matches(by_file):
                yield self._record(prompt, question, left, right)

    def _missing(self, by_file: dict[int, Stored], refused: set[int]) -> Iterator[BadRow]:
        """One row a prompt, with the pairs that it lacks; a prompt that neither of two models
        answered is not theirs."""
        missing = [file for file in range(len(self.models)) if file not in {*by_file, *refused}]
        lost = [match for match in product(by_file, missing) if self._is_match(*match)]
        if lost:
            names = list(dict.fromkeys(self.models[lacking] for _, lacking in lost))
            bad = self._bad(by_file[lost[0][0]], Message("data.no_partner", models=names))
            turn = by_file[lost[0][0]].answer.turn
            sides = tuple([self._lost(*match) for match in lost])
            yield Unpaired(bad.source, bad.row, bad.reason, turn, sides)

    def _is_match(self, file: int, other: int) -> bool:
        return self.baseline is None or self.baseline in (file, other)

    def _lost(self, file: int, lacking: int) -> tuple[str, str, Side]:
        is_a = file == self.baseline if self.baseline is not None else file < lacking
        first, second = (file, lacking) if is_a else (lacking, file)
        return self.models[first], self.models[second], "A" if is_a else "B"

    def _matches(self, by_file: dict[int, Stored]) -> Iterator[tuple[Stored, Stored]]:
        files = sorted(by_file)
        if self.baseline is not None:
            base = by_file.get(self.baseline)
            if base is not None:
                yield from ((base, by_file[file]) for file in files if file != self.baseline)
            return
        for place, file in enumerate(files):
            yield from ((by_file[file], by_file[other]) for other in files[place + 1 :])

    def _record(
        self, prompt: str, question: PromptTurns | None, left: Stored, right: Stored
    ) -> Record | BadRow:
        one, two = left.answer, right.answer
        name_a, name_b = self.models[left.file], self.models[right.file]
        key = one.id if self.store.joined_by_id and one.id is not None else f"#{left.row}"
        if max(one.turns, two.turns) > 1:
            key = f"{key}:{one.turn}"
        if len(self.models) > 2:
            key = f"{key}:{name_a}:{name_b}"
        tags = (*one.tags, *two.tags, *(question.tags if question else ()))
        try:
            pair = self._pair(key, prompt, question, one, two)
        except InputError as error:
            return BadRow(*self._place(left), error.message)
        return Record(
            key,
            pair,
            *self._place(left),
            None,
            name_a,
            name_b,
            tuple(dict.fromkeys(tags)),
            self._cluster(question, one, two),
        )

    def _cluster(
        self, question: PromptTurns | None, one: ModelAnswer, two: ModelAnswer
    ) -> str | None:
        """The turns of a conversation are one question, asked once."""
        named = one.cluster or two.cluster
        if named is not None or max(one.turns, two.turns) == 1:
            return named
        return question.prompts[0] if question else one.id

    def _pair(
        self,
        key: str,
        prompt: str,
        question: PromptTurns | None,
        one: ModelAnswer,
        two: ModelAnswer,
    ) -> Pair:
        fields: dict[str, Any] = {
            "id": key,
            "prompt": prompt,
            "response_a": one.response,
            "response_b": two.response,
        }
        asked = _reference_of(question, one.turn)
        for name, choices in (
            ("context", (one.context, two.context)),
            ("reference", (asked, one.reference, two.reference)),
        ):
            known = next((text for text in choices if text), None)
            if known is not None:
                fields[name] = known
        return make_pair(fields, self.reading.criteria, self.reading)

    def _question(self, answer: ModelAnswer) -> PromptTurns | None:
        return None if answer.id is None else self.store.question(answer.id)

    def _bad(self, stored: Stored, fact: Message) -> BadRow:
        answer = stored.answer
        called = repr(answer.id) if self.store.joined_by_id else _quoted(answer.prompt)
        reason = Message("data.answer_to", called=called, fact=fact)
        if answer.turns > 1:
            reason = Message("data.answer_in_turn", called=called, turn=answer.turn, fact=fact)
        return BadRow(*self._place(stored), reason)

    def _place(self, stored: Stored) -> tuple[str, int]:
        return self.places[stored.file].place(stored.row)

    def _beside(self, stored: Stored, other: Stored) -> str:
        """The place, for a message that already names the other file."""
        file, row = self._place(stored)
        if file == self._place(other)[0]:
            return Message("data.row", row=row)
        return _row_of(file, row)


def _row_of(file: str, row: int) -> Message:
    return Message("data.row_of_file", file=file, row=row)


def _quoted(prompt: str | None) -> Message:
    if prompt is None:
        return Message("data.prompt_unknown")
    return Message("data.the_prompt", prompt=shortened(prompt))


def _prompt_of(question: PromptTurns | None, turn: int) -> str | None:
    if question is None or turn > len(question.prompts):
        return None
    return conversation(question.prompts[:turn], "User turn")


def _reference_of(question: PromptTurns | None, turn: int) -> str | None:
    if question is None or turn > len(question.references):
        return None
    return conversation(question.references[:turn], "Reference for turn")
