"""A judge that answers from a file of recorded completions."""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import orjson

from evenhand.contract import ORDERS, WINNERS, Order, Winner
from evenhand.contract.json_text import (
    RepeatedKey,
    TooManyValues,
    refuse_many_values,
    refuse_repeated_key,
)
from evenhand.errors import InputError, NotRecorded
from evenhand.judges.protocol import ClosedOnExit, Completion, JudgeCall, Traits
from evenhand.judges.redaction import Redactor, secrets_in
from evenhand.judges.registry import JudgeName, JudgeOptions

Finish = Literal["stop", "length", "refusal", "filter", "other"]

NO_TEXT = "recorded verdict, no text"
_LINE_MAX = 128 << 20  # bytes: one is in memory whole

_FINISH: dict[str | None, Finish] = {
    None: "stop",
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
    "refusal": "refusal",
    "content_filter": "filter",
    "filter": "filter",
}


@dataclass(frozen=True, slots=True)
class _Recorded:
    """One recorded pass; `line` is its place in the file."""

    raw: str | None
    verdict_as_shown: Winner | None
    model: str | None
    finish: Finish
    scores: tuple[float, float] | None
    number: int  # of the repetition
    round: int
    line: int

    def has_same_answer(self, other: _Recorded) -> bool:
        return self == replace(other, round=self.round, line=self.line)


_Key = tuple[str, Order]
_ArtefactKey = tuple[str, str | None, str | None]  # pair, kind, response


class Recording(NamedTuple):
    """One recorded pass; the verdict is in the labels that it was shown."""

    id: str
    order: Order
    repetition: int  # as the file counts them
    raw: str | None
    verdict_as_shown: Winner | None
    finish: Finish


def open_named(name: JudgeName, options: JudgeOptions) -> ReplayJudge:
    return ReplayJudge(Path(name.model).expanduser())


def traits_of(name: JudgeName) -> Traits:
    return ReplayJudge.traits


class ReplayJudge(ClosedOnExit):
    """Recorded completions, found by pair id, order and sample number."""

    traits = Traits(modes=("reasoned",), needs_prompt=False, free=True, by_id=True)

    def __init__(self, path: Path) -> None:
        self.name = f"replay:{path.name}"
        self._passes, self._artefacts = _read(path)
        # A recorded answer may hold a key that its server echoed.
        self._redact = Redactor(others=secrets_in(os.environ))
        self.identity: Mapping[str, object] = {"sha256": _sha256_of(path)}

    async def ask(self, call: JudgeCall) -> Completion:
        if call.pair.id is None:
            raise NotRecorded.of("judges.replay_needs_id", name=self.name)
        if call.artefact is not None:
            return self._redact.clean(self._artefact(call.pair.id, call))
        recorded = self._find(call.pair.id, call.order, call.sample)
        if recorded.raw is None:
            return Completion(
                text="",
                finish=recorded.finish,
                verdict_as_shown=recorded.verdict_as_shown,
                scores_as_shown=recorded.scores,
                model=recorded.model,
                flags=(NO_TEXT,) if recorded.verdict_as_shown else (),
            )
        return self._redact.clean(
            Completion(text=recorded.raw, finish=recorded.finish, model=recorded.model)
        )

    def _artefact(self, pair_id: str, call: JudgeCall) -> Completion:
        """What the judge prepared at the time; shown and stored, without effect on recorded
        verdicts."""
        written = self._artefacts.get((pair_id, call.artefact, call.artefact_of))
        if written is None:
            values = {"name": self.name, "kind": call.artefact, "pair": pair_id}
            raise NotRecorded.of("judges.artefact_not_recorded", **values)
        return written

    def recordings(self) -> Iterator[Recording]:
        """All of them, by pair and order of first appearance."""
        for (pair_id, order), samples in self._passes.items():
            for each in samples:
                yield Recording(
                    pair_id, order, each.number, each.raw, each.verdict_as_shown, each.finish
                )

    @property
    def repetitions(self) -> int:
        return max(map(len, self._passes.values()), default=0)

    def _find(self, pair_id: str, order: Order, sample: int) -> _Recorded:
        samples = self._passes.get((pair_id, order))
        if samples is None:
            known = any((pair_id, other) in self._passes for other in ORDERS)
            values = {"name": self.name, "pair": pair_id}
            if not known:
                raise NotRecorded.of("judges.pair_not_recorded", **values)
            code = "judges.order_not_recorded" if order == "swapped" else "judges.pass_not_recorded"
            raise NotRecorded.of(code, order=order, **values)
        if sample > len(samples):
            raise NotRecorded.of(
                "judges.sample_not_recorded",
                name=self.name,
                sample=sample,
                pair_id=pair_id,
                order=order,
                n=len(samples),
            )
        return samples[sample - 1]


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(path: Path) -> tuple[dict[_Key, list[_Recorded]], dict[_ArtefactKey, Completion]]:
    """Each pass's samples in order of repetition, and the prepared texts."""
    passes: dict[_Key, dict[int, _Recorded]] = {}
    artefacts: dict[_ArtefactKey, Completion] = {}
    for line, text in _lines(path):
        record = _record(text, where=f"{path}, line {line}")
        artefacts |= dict(_artefacts_of(record, where=f"{path}, line {line}"))
        key = (str(record["id"]), cast("Order", record["pass"]))
        number = _sample_number(record)
        recorded = _Recorded(
            raw=record.get("raw"),
            verdict_as_shown=record.get("verdict_as_shown"),
            model=record.get("model"),
            finish=_FINISH.get(record.get("finish_reason"), "other"),
            scores=_two_scores(record, where=f"{path}, line {line}"),
            number=number,
            round=record.get("round") or 1,
            line=line,
        )
        samples = passes.setdefault(key, {})
        earlier = samples.get(number)
        samples[number] = (
            recorded if earlier is None else _later(earlier, recorded, path=path, key=key)
        )
    in_order = {
        key: [samples[number] for number in sorted(samples)] for key, samples in passes.items()
    }
    return in_order, artefacts


def _artefacts_of(
    record: dict[str, Any], *, where: str
) -> Iterator[tuple[_ArtefactKey, Completion]]:
    """`steps`: metrics and reference as texts, analysis by response."""
    pair_id, model = str(record["id"]), record.get("model")
    steps = record.get("steps") or {}
    analysis = (steps.get("analysis") or {}) if isinstance(steps, dict) else None
    if not isinstance(analysis, dict):
        raise InputError.of("judges.recording_steps", where=where, given=_shortened(steps))
    for kind, side, text in (
        ("metrics", None, steps.get("metrics")),
        ("reference", None, steps.get("reference")),
        ("analysis", "A", analysis.get("a")),
        ("analysis", "B", analysis.get("b")),
    ):
        if text is None:
            continue
        if not isinstance(text, str):
            raise InputError.of("judges.recording_steps", where=where, given=_shortened(text))
        yield (pair_id, kind, side), Completion(text=text, finish="stop", model=model)


def _two_scores(record: dict[str, Any], *, where: str) -> tuple[float, float] | None:
    """Only if there is no text: a completion speaks for itself."""
    given = record.get("scores")
    if given is None or record.get("raw") is not None:
        return None
    if not (
        isinstance(given, list)
        and len(given) == 2
        and all(type(each) in (int, float) and math.isfinite(each) for each in given)
    ):
        raise InputError.of("judges.recording_scores", where=where, given=_shortened(given))
    return float(given[0]), float(given[1])


def _sample_number(record: dict[str, Any]) -> int:
    for field in ("repetition", "sample"):
        if record.get(field) is not None:
            return cast("int", record[field])
    return 1


def _later(earlier: _Recorded, recorded: _Recorded, *, path: Path, key: _Key) -> _Recorded:
    """Of the rounds of one pass the last is its answer; any other repetition is an error."""
    if earlier.round != recorded.round:
        return max(earlier, recorded, key=lambda each: each.round)
    if earlier.has_same_answer(recorded):
        return earlier
    pair_id, order = key
    raise InputError.of(
        "judges.recordings_differ",
        path=path,
        line=earlier.line,
        line2=recorded.line,
        pair_id=pair_id,
        order=order,
    )


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    line = 0
    try:
        with path.open("rb") as file:
            gzipped = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            source = gzip.GzipFile(fileobj=file) if gzipped else file
            for line, raw in enumerate(iter(partial(source.readline, _LINE_MAX + 1), b""), start=1):
                if len(raw) > _LINE_MAX:
                    raise InputError.of(
                        "judges.recording_too_long", path=path, line=line, line_max=_LINE_MAX
                    )
                text = raw.removeprefix(b"\xef\xbb\xbf") if line == 1 else raw
                if text.strip():
                    yield line, text
    except FileNotFoundError:
        raise InputError.of("judges.recordings_missing", path=path) from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise InputError.of("judges.recordings_damaged", path=path, line=line) from None
    except OSError as error:
        raise InputError.of(
            "judges.recordings_unreadable", path=path, strerror=error.strerror or error
        ) from None


_FIELDS: dict[str, tuple[tuple[type, ...], str]] = {
    "id": ((str, int), "a string or a whole number"),
    "pass": ((str,), "original or swapped"),
    "raw": ((str, type(None)), "a string or null"),
    "verdict_as_shown": ((str, type(None)), "A, B, TIE or null"),
    "model": ((str, type(None)), "a string or null"),
    "finish_reason": ((str, type(None)), "a string or null"),
    "repetition": ((int, type(None)), "a whole number, 0 or more"),
    "sample": ((int, type(None)), "a whole number, 0 or more"),
    "round": ((int, type(None)), "a whole number, 0 or more"),
}


def _record(text: bytes, *, where: str) -> dict[str, Any]:
    try:
        refuse_many_values(text, _LINE_MAX // 16)
        record = orjson.loads(text)
        refuse_repeated_key(text, record)
    except (RepeatedKey, TooManyValues) as error:
        raise InputError.of("judges.where_error", where=where, error=error) from None
    except orjson.JSONDecodeError as error:
        raise InputError.of("judges.recording_not_json", where=where, msg=error.msg) from None
    if not isinstance(record, dict):
        raise InputError.of("judges.recording_no_object", where=where)
    for field in ("id", "pass"):
        if field not in record:
            raise InputError.of("judges.recording_field_missing", where=where, field=field)
    if "raw" not in record and "verdict_as_shown" not in record:
        raise InputError.of("judges.recording_empty", where=where)
    for field, (types, takes) in _FIELDS.items():
        if field in record and not _fits(field, record[field], types):
            raise InputError.of(
                "judges.recording_field_kind",
                where=where,
                field=field,
                takes=takes,
                record=_shortened(record[field]),
            )
    return record


def _fits(field: str, value: object, types: tuple[type, ...]) -> bool:
    if not isinstance(value, types) or isinstance(value, bool):
        return False
    if field == "pass":
        return value in ORDERS
    if field == "verdict_as_shown":
        return value is None or value in WINNERS
    return not isinstance(value, int) or value >= 0


def _shortened(value: object) -> str:
    shown = orjson.dumps(value).decode()
    return shown if len(shown) <= 40 else shown[:37] + "…"
