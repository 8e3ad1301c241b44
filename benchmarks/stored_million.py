"""Two finished runs over the same pairs, as many as wanted, written into a SQLite store in bulk:
verdicts, passes with reasons, labels, tags and flags as runs would leave them, drawn by a seed. The
first is between two models, the second by another judge among many. PostgreSQL gets a copy."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

from sqlalchemy import Boolean

from evenhand.contract import Pair
from evenhand.judging.explanation import is_noted
from evenhand.store import NewJudge, NewRun, open_store
from evenhand.store.intake import prompt_key
from evenhand.store.schema import metadata

MODELS = ("vendor/alpha", "vendor/beta", *(f"vendor/model-{number}" for number in range(3, 41)))
TAGS = ("maths", "code", "writing", "history", "science", "chat", "翻译")
RARE_TAG, RARE_WORD, RARE_HAN = "rare", "zeugma", "稀有词"
CRITERIA = ("accuracy", "clarity", "depth")
_RARELY = 10_000  # one pair in so many has the rare tag and words
_FLAGGED = 1_000
_PROMPTS = 5  # pairs to one prompt
_VOCABULARY = (
    "the a of to and in is it that for with as on by this from when which can more one other water "
    "light river stone market number letter answer question reason example method result carries "
    "follows explains measures compares returns changes grows holds begins remains small large"
)
_WORDS = _VOCABULARY.split()
# outcome, winner, first and second choice, how many of a hundred
_KINDS = (
    (("win", "A", "A", "A"), 40),
    (("win", "B", "B", "B"), 39),
    (("tie", "TIE", "TIE", "TIE"), 8),
    (("inconsistent", "TIE", "A", "B"), 10.5),
    (("inconsistent", "TIE", "B", "A"), 0.5),
    (("inconsistent", "TIE", "A", "TIE"), 1),
    (("invalid", None, None, None), 1),
)
_REASONS = {
    "A": ("Response A gives a worked example.", "Response A follows the question closely."),
    "B": ("Response B names its source.", "Response B is easier to follow."),
    "TIE": ("They cover the same ground.", "Neither is clearly better."),
}
_PAIRS = """
INSERT INTO pairs (id, digest, allow_tie, criteria, prompt, response_a, response_b)
VALUES (?, ?, 1, ?, ?, ?, ?)
"""
_ITEMS = """
INSERT INTO items (run_id, number, key, pair_id, swap_positions, row, label, source, model_a,
                   model_b, tags, prompt_key, length_a, length_b, noted)
VALUES (?, ?, ?, ?, 1, ?, ?, 'outputs.jsonl', ?, ?, ?, ?, ?, ?, ?)
"""
_FLAGS = "INSERT INTO pair_flags (run_id, number, flagged_at, comment) VALUES (?, ?, 0, 'odd')"
_ITEM_TAGS = "INSERT INTO item_tags (run_id, tag, number) VALUES (?, ?, ?)"
_VERDICTS = """
INSERT INTO verdicts (run_id, number, judge_id, outcome, winner, first_pass_winner,
                      second_pass_winner, confidence, confidence_source, error_kind, error_message,
                      samples, passes, created_at, abstained, by_criterion, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'stated', ?, ?, 1, 2, 0, 0, ?, ?)
"""
_PASSES = """
INSERT INTO passes (pair_id, judge_id, shown_order, sample, status, reason, winner, confidence,
                    requests, input_tokens, output_tokens, cost_usd, time_ms, run_id, created_at,
                    raw, body)
VALUES (?, ?, ?, 1, ?, ?, ?, ?, 1, 400, 120, 0.0004, 800, ?, 0, ?, ?)
"""
_BY_CRITERION = (
    '[["accuracy","win","{0}","{0}","{0}"],["clarity","tie","TIE","TIE","TIE"],'
    '["depth","inconsistent","TIE","A","B"]]'
)
_BODY = '{{"time_ms":{:.3f}}}'
_FAILED = (
    '{"success":false,"error":{"kind":"invalid","message":"no valid verdict","retryable":false},'
    '"metadata":{"evaluationTimeMs":1,"positionsSwapped":true,"outcome":"invalid"}}'
)
_UNREAD = '{"reason":"none"}'
_EXCHANGED = str.maketrans("AB", "BA")


def fill(path: Path, pairs: int, *, seed: int = 0) -> None:
    """Runs 1 and 2. About two kilobytes a pair, and some 150 µs."""
    rng = random.Random(seed)
    runs = []
    with open_store(path) as store:
        for name, models in (("two", MODELS[:2]), ("many", MODELS)):
            run = store.runs.create(NewRun(name, name, {"samples": 1}, ("outputs.jsonl",)))
            judge = NewJudge(f"judge-{name}", "openai:judge", locale="en", mode="reasoned")
            judge_id = store.runs.add_judge(judge)
            store.runs.set_judges(run.id, [judge_id])
            store.runs.update(
                run.id, intake_done=True, state="finished", seconds=1, calls=2 * pairs
            )
            runs.append(_Rows(run.id, judge_id, models, rng))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA cache_size=-200000")
        criteria = json.dumps([{"name": name} for name in CRITERIA])
        for first in range(1, pairs + 1, 10_000):
            numbers = range(first, min(first + 10_000, pairs + 1))
            texts = [_texts(number, rng) for number in numbers]
            database.executemany(
                _PAIRS,
                (
                    (number, blake2b(b"%d" % number, digest_size=16).digest(), criteria, *text)
                    for number, text in zip(numbers, texts, strict=True)
                ),
            )
            for rows in runs:
                rows.add(database, numbers, texts)


def _texts(number: int, rng: random.Random) -> tuple[str, str, str]:
    rare = f" {RARE_WORD} {RARE_HAN}" if number % _RARELY == 0 else ""
    words = [" ".join(rng.choices(_WORDS, k=rng.randrange(20, 60))) for _ in range(2)]
    prompt = f"Question {number // _PROMPTS}: why does the river change? 河流为什么改变？"
    return prompt, words[0] + rare, words[1]


def copy_to_postgres(path: Path, url: str) -> None:
    """What `fill` wrote, into an empty database; ids as they are."""
    import psycopg

    open_store(url).close()
    tables = ("runs", "judges", "run_judges", "pairs", "items", "item_tags", "pair_flags")
    with closing(sqlite3.connect(path)) as here, psycopg.connect(url) as there:
        for name in (*tables, "verdicts", "passes"):
            columns = list(metadata.tables[name].columns)
            named = ", ".join(f'"{column.name}"' for column in columns)
            truths = [place for place, each in enumerate(columns) if isinstance(each.type, Boolean)]
            begin = f"COPY {name} ({named}) FROM STDIN".encode()
            with there.cursor() as cursor, cursor.copy(begin) as rows:
                for row in here.execute(f"SELECT {named} FROM {name}"):  # noqa: S608 - our own names
                    values = list(row)
                    for place in truths:
                        values[place] = bool(values[place])
                    rows.write_row(values)
    with psycopg.connect(url, autocommit=True) as there:
        there.execute("VACUUM ANALYZE")


class _Rows:
    """Of one run."""

    def __init__(
        self, run_id: int, judge_id: int, models: Sequence[str], rng: random.Random
    ) -> None:
        self._run_id = run_id
        self._judge_id = judge_id
        self._models = models
        self._rng = rng
        self._kinds = [kind for kind, _ in _KINDS]
        self._shares = [share for _, share in _KINDS]

    def add(
        self, database: sqlite3.Connection, numbers: range, texts: list[tuple[str, str, str]]
    ) -> None:
        drawn = self._rng.choices(self._kinds, self._shares, k=len(numbers))
        tags = [self._tags(number) for number in numbers]
        database.executemany(_ITEMS, self._items(numbers, texts, tags))
        database.executemany(
            _ITEM_TAGS,
            (
                (self._run_id, tag, number)
                for number, some in zip(numbers, tags, strict=True)
                for tag in some
            ),
        )
        flagged = [(self._run_id, number) for number in numbers if number % _FLAGGED == 0]
        database.executemany(_FLAGS, flagged)
        sure = [round(self._rng.uniform(0.5, 1), 3) for _ in numbers]
        database.executemany(_VERDICTS, self._verdicts(numbers, drawn, sure))
        database.executemany(_PASSES, self._passes(numbers, drawn, sure))

    def _tags(self, number: int) -> list[str]:
        own = TAGS[number % len(TAGS)]
        return [own, RARE_TAG] if number % _RARELY == 0 else [own]

    def _items(
        self, numbers: range, texts: list[tuple[str, str, str]], tags: list[list[str]]
    ) -> Iterator[tuple[object, ...]]:
        for number, (prompt, a, b), some in zip(numbers, texts, tags, strict=True):
            models = self._models
            if len(models) > 2:
                models = self._rng.sample(models, 2)
            label = self._rng.choice(("A", "B", "TIE"))
            yield (
                *(self._run_id, number, f"pair-{number}", number, number, label, *models),
                *(json.dumps(some, ensure_ascii=False), prompt_key(prompt, None), len(a), len(b)),
                is_noted(Pair.model_construct(prompt="", response_a=a, response_b=b, criteria=())),
            )

    def _verdicts(
        self, numbers: range, drawn: Sequence[tuple[str | None, ...]], sure: list[float]
    ) -> Iterator[tuple[object, ...]]:
        for number, kind, confidence in zip(numbers, drawn, sure, strict=True):
            outcome, winner = kind[:2]
            key = (self._run_id, number, self._judge_id, *kind)
            if outcome == "invalid":
                yield *key, None, "invalid", "no valid verdict", None, _FAILED
                continue
            stated = 0.5 if outcome == "inconsistent" else confidence
            choice = winner if outcome == "win" else "A"
            body = _BODY.format(1_000 * self._rng.random())
            yield *key, stated, None, None, _BY_CRITERION.format(choice), body

    def _passes(
        self, numbers: range, drawn: Sequence[tuple[str | None, ...]], sure: list[float]
    ) -> Iterator[tuple[object, ...]]:
        for number, kind, confidence in zip(numbers, drawn, sure, strict=True):
            for order, winner in zip(("original", "swapped"), kind[2:], strict=True):
                key = (number, self._judge_id, order)
                if winner is None:
                    yield *key, "unread", "no_verdict", None, None, self._run_id, "well", _UNREAD
                    continue
                shown = {"A": "B", "B": "A"}.get(winner, winner) if order == "swapped" else winner
                said = self._rng.choice(_REASONS[winner])
                if order == "swapped":
                    said = said.translate(_EXCHANGED)
                raw = json.dumps(
                    {"result": {"winner": shown, "confidence": confidence, "reasoning": said}}
                )
                body = '{"criteria":["A","TIE","TIE"]}'
                yield *key, "ballot", None, winner, confidence, self._run_id, raw, body
