"""Runs in a store, made by its own face: real verdicts of scripted judges, without the engine."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from evenhand.contract import ErrorBody, Order, Usage, Winner
from evenhand.data.records import BadRow, Record
from evenhand.errors import JudgeError
from evenhand.judges.protocol import Completion, JudgeCall
from evenhand.judges.retry import RetryPolicy
from evenhand.judging.comparison import Failed, judge_pair
from evenhand.judging.config import JudgeConfig
from evenhand.judging.decision import PassResult
from evenhand.messages import Message
from evenhand.store import FailedPass, NewJudge, NewPass, NewRun, NewVerdict, Store, open_store
from scripted import Answer, ScriptedJudge, answer_json, make_pair

ONCE = JudgeConfig(repairs=0, retry=RetryPolicy(attempts=1))
USAGE = Usage(input_tokens=100, output_tokens=20, cost_usd=0.25, requests=1)


@dataclass(frozen=True)
class Row:
    """A row of a data set, with what its pair is made of and how the judge answers."""

    key: str
    answer: Answer
    label: Winner | None = None
    model_a: str | None = None
    model_b: str | None = None
    tags: tuple[str, ...] = ()
    pair: dict[str, Any] | None = None
    judged: bool = True


def says(winner: str, *, usage: Usage = USAGE, reasoning: str = "It says more.") -> Answer:
    """The same response wins in both orders; the judge sees the labels of its order."""
    shown = {"A": "B", "B": "A", "TIE": "TIE"}

    def answer(call: JudgeCall) -> Completion:
        seen = winner if call.order == "original" else shown[winner]
        return completed(
            answer_json(seen, criteria=[("accuracy", seen)], reasoning=reasoning), usage
        )

    return answer


def follows_place(call: JudgeCall) -> Completion:
    return completed(answer_json("A", criteria=[("accuracy", "A")]), USAGE)


def mumbles(call: JudgeCall) -> Completion:
    return completed("I cannot say.", USAGE)


def fails(call: JudgeCall) -> Completion:
    raise JudgeError("the server fell over; start it again")


def completed(text: str, usage: Usage) -> Completion:
    return Completion(text=text, usage=usage, model="model-1", request_id="request-1")


@cache
def _new_store() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.db"
        open_store(path).close()
        return path.read_bytes()


def fresh_store(path: Path) -> Store:
    """Copied where there is none, which is faster than making its tables each time."""
    if not path.exists():
        path.write_bytes(_new_store())
    return open_store(path, busy_timeout_s=5)


def opened(path: Path) -> Store:
    return fresh_store(path / "evenhand.db")


def make_run(
    store: Store,
    name: str,
    rows: Sequence[Row],
    *,
    judges: Sequence[str] = ("scripted",),
    skipped: Sequence[BadRow] = (),
    source: str = "pairs.jsonl",
    plan: dict[str, Any] | None = None,
    config: JudgeConfig = ONCE,
) -> int:
    run = store.runs.create(NewRun(name, f"fingerprint of {name}", plan or {}, (source,)))
    ids = [
        store.runs.add_judge(
            NewJudge(judge, judge, "en-reasoned-1", "en", "reasoned", {"temperature": 0})
        )
        for judge in judges
    ]
    store.runs.set_judges(run.id, ids)
    if rows:
        store.items.add(
            run.id, [item_of(row, number, source) for number, row in enumerate(rows, start=1)]
        )
    if skipped:
        store.items.add_skipped(run.id, skipped)
    store.runs.update(run.id, intake_done=True, state="judging")
    by_key = {row.key: row for row in rows}
    for judge_id in ids:
        judge_run(store, run.id, judge_id, by_key, config)
    return run.id


def judge_run(
    store: Store, run_id: int, judge_id: int, rows: dict[str, Row], config: JudgeConfig = ONCE
) -> None:
    """Judge what is pending, as far as its rows are to be judged."""
    passes: list[NewPass] = []
    verdicts: list[NewVerdict] = []
    for work in store.work.pending(run_id, judge_id, after=0, limit=10_000):
        row = rows[work.key]
        if not row.judged:
            continue
        keeper = _Keeper(work.pair_id, judge_id, run_id)
        judge = ScriptedJudge(row.answer)
        judged = asyncio.run(judge_pair(work.pair, judge, config, keeper=keeper))
        settled = judged.failure if isinstance(judged, Failed) else judged
        passes += keeper.made
        verdicts.append(NewVerdict(run_id, work.number, judge_id, settled))
    store.work.write(passes, verdicts)


class _Keeper:
    def __init__(self, pair_id: int, judge_id: int, run_id: int) -> None:
        self._ids = (pair_id, judge_id, run_id)
        self.made: list[NewPass] = []

    def recall(self, order: Order, sample: int) -> PassResult | None:
        return None

    def keep(self, made: PassResult) -> None:
        self.made.append(NewPass(*self._ids, made))

    def failed(self, order: Order, sample: int, error: JudgeError) -> None:
        body = ErrorBody(kind=error.kind, message=error.message, retryable=error.retryable)
        failed = FailedPass(order, sample, body, Usage(requests=error.requests))
        self.made.append(NewPass(*self._ids, failed))


def item_of(row: Row, number: int, source: str) -> Record:
    dull = {"prompt": f"Question {row.key}?", "response_a": "one", "response_b": "two"}
    pair = make_pair(**(dull | (row.pair or {})), id=row.key)
    return Record(
        row.key,
        pair,
        source,
        number + 1,
        label=row.label,
        model_a=row.model_a,
        model_b=row.model_b,
        tags=row.tags,
    )


# Two wins for A, one for B, a tie, an inconsistent pair, two invalid ones, and a pending one.
ROWS = (
    Row("q1", says("A"), label="A", model_a="old", model_b="new", tags=("math", "easy")),
    Row("q2", says("A")),
    Row("q3", says("B", reasoning="Response B adds up.")),
    Row("q4", says("TIE")),
    Row("q5", follows_place),
    Row("q6", mumbles),
    Row("q7", fails),
    Row("q8", says("A"), judged=False),
)
SKIPPED = (
    BadRow("pairs.jsonl", 10, Message("pair.field_missing", where="responseA")),
    BadRow("pairs.jsonl", 12, "the line is cut; write the file anew"),
)
