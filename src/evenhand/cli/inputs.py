"""Arguments become values: a pair from texts, @files or one JSON document; the data of a run, its
columns and price; each judge's calibration.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.settings import load_settings

if TYPE_CHECKING:
    from evenhand.cli.options import PairRules, PairTexts
    from evenhand.cli.run import DataFiles
    from evenhand.contract import Pair
    from evenhand.data.options import ReadOptions
    from evenhand.data.orders import OrderDraw
    from evenhand.judges.prices import Price
    from evenhand.judges.protocol import Judge
    from evenhand.judging.config import Calibrator
    from evenhand.runs import Sources
    from evenhand.runs.sources import Prompts


_OPTION_FOR = {
    "prompt": "--prompt",
    "responseA": "--a",
    "responseB": "--b",
    "criteria": "-c NAME",
}


def gather_pair(given: PairTexts, *, criteria_needed: bool = True) -> Pair:
    """A pair from a document, from options, or from both where they do not overlap."""
    options = {"--prompt": given.prompt, "--a": given.a, "--b": given.b}
    options |= {"--context": given.context, "--reference": given.reference}
    _refuse_second_reader(given.document, options)
    texts = {
        option: None if value is None else read_text(value, option)
        for option, value in options.items()
    }
    fields = {
        "prompt": texts["--prompt"],
        "response_a": texts["--a"],
        "response_b": texts["--b"],
        "context": texts["--context"],
        "reference": texts["--reference"],
        "id": given.identifier,
        "criteria": [read_criterion(each) for each in given.criteria] if given.criteria else None,
        "allow_tie": False if given.no_tie else None,
        "swap_positions": False if given.no_swap else None,
    }
    return _merged(
        read_document(given.document) if given.document is not None else {},
        {name: value for name, value in fields.items() if value is not None},
        criteria_needed=criteria_needed,
    )


def read_text(value: str, option: str) -> str:
    """A text, or with @ the file that holds it (@- is standard input, @@ a text that begins so)."""
    if value.startswith("@@"):
        return value[1:]
    if not value.startswith("@"):
        return value
    return _decode(_read_bytes(value[1:], option), value[1:])


def read_document(name: str) -> dict[str, Any]:
    """One JSON document from a file, or from standard input with -."""
    import json

    from evenhand.contract.json_text import RepeatedKey, refuse_repeated_key

    text = _decode(_read_bytes(name, Message("command.the_document")), name)
    if not text.strip():
        raise InputError(Message("command.document_empty", name=_shown(name)))
    try:
        document = json.loads(text)
        refuse_repeated_key(text.encode("utf-8", "surrogatepass"), document)
    except RecursionError:
        raise InputError(Message("command.document_too_deep", name=_shown(name))) from None
    except RepeatedKey as error:
        raise InputError(
            Message("command.document_refused", name=_shown(name), error=error)
        ) from None
    except ValueError as error:
        raise InputError(
            Message("command.document_not_json", name=_shown(name), error=error)
        ) from None
    if not isinstance(document, dict):
        raise InputError(Message("command.document_no_object", name=_shown(name)))
    return document


def read_criterion(value: str) -> str | dict[str, Any]:
    from evenhand.contract.pair import criterion_in

    return criterion_in(value)


def _merged(document: dict[str, Any], given: dict[str, Any], *, criteria_needed: bool) -> Pair:
    from evenhand.contract import Pair, read_pair
    from evenhand.contract.pair import missing_field, spellings

    for name in given:
        field = Pair.model_fields[name]
        for spelling in spellings(name, field.validation_alias):
            if spelling in document:
                raise InputError(Message("command.given_twice", spelling=spelling))
    values = {**document, **given}
    if not values:
        raise InputError(Message("command.nothing_to_compare"))
    if "criteria" not in values and (criteria := load_settings().criteria):
        values["criteria"] = list(criteria)
    try:
        return read_pair(values, criteria_needed=criteria_needed)
    except InputError as error:
        missing = missing_field(error)
        option = _OPTION_FOR.get(missing or "")
        if option is None:
            raise
        raise InputError(Message("command.field_missing", field=missing, option=option)) from None


def _refuse_second_reader(document: str | None, options: dict[str, str | None]) -> None:
    readers: list[str] = [Message("command.the_document")] if document == "-" else []
    readers += [option for option, value in options.items() if value == "@-"]
    if len(readers) > 1:
        raise InputError(Message("command.stdin_read_twice", readers=readers))


def _read_bytes(name: str, option: str) -> bytes:
    if name == "-":
        if sys.stdin is None:
            raise InputError(Message("command.stdin_closed"))
        return sys.stdin.buffer.read()
    if not name:
        raise InputError(Message("command.no_file_named", option=option))
    try:
        return Path(name).expanduser().read_bytes()
    except OSError as error:
        raise InputError(
            Message(
                "command.file_unreadable", option=option, name=name, reason=error.strerror or error
            )
        ) from None
    except (RuntimeError, ValueError):  # no such user's home; a NUL in the name
        raise InputError(Message("command.no_file_name", option=option, name=name)) from None


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            Message("command.file_not_utf8", name=_shown(name), byte=error.start + 1)
        ) from None


def _shown(name: str) -> str:
    return Message("command.standard_input") if name == "-" else name


# What the options of a run say about its data: the files, how rows become pairs, the price.


def read_options(
    columns: list[str] | None,
    rules: PairRules,
    *,
    criteria_needed: bool,
    orders: OrderDraw | None = None,
    values: list[str] | None = None,
) -> ReadOptions:
    from evenhand.contract import read_criteria
    from evenhand.data.options import ReadOptions

    return ReadOptions(
        columns=mapped_columns(columns),
        criteria=read_criteria([read_criterion(each) for each in rules.criteria])
        if rules.criteria
        else load_settings().criteria,
        criteria_needed=criteria_needed,
        allow_tie=False if rules.no_tie else None,
        swap_positions=False if rules.no_swap else None,
        orders=orders,
        values=meant_values(values),
    )


def mapped_columns(given: list[str] | None) -> dict[str, str]:
    return dict(_mapped(entry) for entry in given or ())


def _mapped(entry: str) -> tuple[str, str]:
    field, equals, column = entry.partition("=")
    if not equals or not field.strip():
        raise InputError(Message("command.map_malformed", entry=entry))
    return field.strip(), column.strip()


def meant_values(given: list[str] | None) -> dict[str, str]:
    """What spellings of a verdict mean."""
    return dict(_meant(entry) for entry in given or ())


def _meant(entry: str) -> tuple[str, str]:
    spelled, equals, verdict = entry.rpartition("=")
    if not equals or not spelled.strip():
        raise InputError(Message("command.value_malformed", entry=entry))
    return spelled.strip(), verdict.strip()


def read_price(given: str | None) -> Price | None:
    from evenhand.judges import prices

    return None if given is None else prices.read_price(given, where="--price")


def read_sources(given: DataFiles, reading: ReadOptions, *, prompts: Prompts = "all") -> Sources:
    """Which of the three ways of giving data was taken; more than one is an error."""
    from evenhand.data.source import open_source
    from evenhand.runs import ModelOutputs, PairFiles

    a, b = given.a, given.b
    if (a is None) != (b is None):
        raise InputError(
            Message("command.other_file_missing", option="--b" if b is None else "--a")
        )
    files = [a, b] if a is not None and b is not None else list(given.outputs or ())
    ways = [bool(given.pairs), a is not None, bool(given.outputs)]
    if sum(ways) > 1:
        raise InputError(Message("command.data_given_twice"))
    if a is not None and given.baseline is not None:
        raise InputError(Message("command.baseline_of_outputs"))
    if given.pairs:
        for option, value in (("--baseline", given.baseline), ("--questions", given.questions)):
            if value is not None:
                raise InputError(Message("command.belongs_to_outputs", option=option))
        if prompts != "all":
            raise InputError(Message("command.belongs_to_outputs", option="--prompts"))
        return PairFiles.of([data_path(each) for each in given.pairs], reading)
    if not files:
        raise InputError(Message("command.nothing_to_judge"))
    if len(files) < 2:
        raise InputError(Message("command.one_output"))
    if reading.criteria_needed and not reading.criteria:  # outputs have none of their own
        raise InputError(Message("command.no_criteria"))
    return ModelOutputs(
        tuple([open_source(data_path(file)) for file in files]),
        reading,
        baseline=given.baseline,
        questions=open_source(data_path(given.questions)) if given.questions else None,
        prompts=prompts,
    )


def data_path(given: str | Path) -> Path | str:
    from evenhand.data.remote import url_in

    if str(given) != "-":
        return url_in(given) or Path(given).expanduser()
    if sys.stdin is None:
        raise InputError(Message("command.stdin_closed"))
    return "-"


# Which judge takes which calibration.


def calibrations_of(
    names: Sequence[str] | None, judges: Sequence[Judge], *, forced: bool
) -> list[Calibrator | None]:
    """For each judge the calibration that was learned on it, or none.

    A calibration that is no judge's goes to the first without one, which it refuses in its own
    words unless it is forced.
    """
    if not names:
        if forced:
            raise InputError(
                Message(
                    "command.both_or_neither", option="--force-calibration", other="--calibration"
                )
            )
        return [None] * len(judges)
    from evenhand.trust.calibration import open_calibration

    taken: list[Calibrator | None] = [None] * len(judges)
    strange = []
    for name in names:
        opened = open_calibration(name, forced=forced)
        own = [
            place
            for place, judge in enumerate(judges)
            if judge.name == opened.saved.learned_on.judge and taken[place] is None
        ]
        if own:
            taken[own[0]] = opened
        else:
            strange.append((name, opened))
    for name, opened in strange:
        if None not in taken:
            raise InputError(Message("command.calibration_too_many", name=name))
        taken[taken.index(None)] = opened
    return taken
