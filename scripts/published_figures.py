"""Published figures of recorded judges: the authors' rules on the authors' readings, to the digit.

    python scripts/published_figures.py [DATA_DIR]

Beside each figure stands what the same aggregation gives on our own reading of the same texts.
The two are never mixed.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from evenhand.contract import Ballot, Order, Winner, flip_or_none, other_order
from evenhand.parse import read

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"

Row = dict[str, Any]
Reader = Callable[[Row], Winner | None]
# Both orders of a pair in the labels of the original order; None is unread.
Passes = Mapping[Order, Winner | None]


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    published: str
    authors: str
    ours: str


def _rows(path: Path) -> tuple[Row, ...]:
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    return tuple(json.loads(line) for line in text.split("\n") if line)


@lru_cache(maxsize=64)
def judgments(data: Path, name: str) -> tuple[Row, ...]:
    return _rows(data / "judgments" / f"{name}.jsonl.gz")


@lru_cache(maxsize=64)
def labels(data: Path, name: str) -> dict[str, Winner]:
    return {row["id"]: row["label"] for row in _rows(data / "pairs" / f"{name}.jsonl")}


def as_recorded(row: Row) -> Winner | None:
    verdict: Winner | None = row["verdict_as_shown"]
    return verdict


def as_we_read(row: Row) -> Winner | None:
    """Our reading in the labels shown; the recorded verdict where no text was published."""
    if row["raw"] is None:
        return as_recorded(row)
    outcome = read(row["raw"], truncated=row.get("finish_reason") == "length")
    return outcome.winner if isinstance(outcome, Ballot) else None


_FIRST_MARK = re.compile(r"\[\[([ABC])\]\]")
_CHOICE = re.compile(r"Choice:\s*([AB])")
_MARKED: dict[str, Winner] = {"A": "A", "B": "B", "C": "TIE"}


def first_mark(row: Row) -> Winner | None:
    """The position-bias authors' reading: the first mark in the text, or its `Choice:`."""
    match = _FIRST_MARK.search(row["raw"]) or _CHOICE.match(row["raw"])
    return _MARKED[match[1]] if match else None


def by_pair(rows: Iterable[Row], reader: Reader) -> dict[str, Passes]:
    pairs: dict[str, dict[Order, Winner | None]] = {}
    for row in rows:
        verdict = reader(row)
        order: Order = row["pass"]
        mapped = verdict if order == "original" else flip_or_none(verdict)
        pairs.setdefault(row["id"], {})[order] = mapped
    return dict(pairs)


def judgebench(pairs: Mapping[str, Passes], label: Mapping[str, Winner]) -> tuple[float, ...]:
    """Shares of pairs that are right, right in both orders, and inconsistent, in percent."""
    right = both = inconsistent = 0
    for identity, passes in pairs.items():
        truth = label[identity]
        hits = [verdict == truth for verdict in passes.values()]
        misses = [verdict == flip_or_none(truth) for verdict in passes.values()]
        right += sum(hits) > sum(misses)
        both += all(hits)
        inconsistent += len(set(passes.values())) > 1
    n = len(pairs)
    return 100 * right / n, 100 * both / n, 100 * inconsistent / n


def llmbar(pairs: Mapping[str, Passes], label: Mapping[str, Winner]) -> float:
    """The mean of the two single-order accuracies, in percent; unread is wrong."""
    chosen = {identity: passes for identity, passes in pairs.items() if identity in label}
    hits = sum(
        verdict == label[identity]
        for identity, passes in chosen.items()
        for verdict in passes.values()
    )
    return 100 * hits / (2 * len(chosen))


def position_consistency(pairs: Mapping[str, Passes]) -> float:
    """The share of read records whose partner agrees, in percent; an unread partner agrees."""
    agreeing = total = 0
    for passes in pairs.values():
        for order, verdict in passes.items():
            if verdict is None:
                continue
            partner = passes.get(other_order(order))
            total += 1
            agreeing += partner is None or partner == verdict
    return 100 * agreeing / total


def pandalm(rows: Iterable[Row], label: Mapping[str, Winner], reader: Reader) -> tuple[float, ...]:
    """Accuracy and macro F1 over three classes, in percent; what could not be read is a tie."""
    counted = Counter((label[row["id"]], reader(row) or "TIE") for row in rows)
    total = sum(counted.values())
    classes: tuple[Winner, ...] = ("A", "B", "TIE")
    scores = []
    for name in classes:
        hits = counted[name, name]
        predicted = sum(counted[truth, name] for truth in classes)
        actual = sum(counted[name, said] for said in classes)
        scores.append(2 * hits / (predicted + actual) if predicted + actual else 0.0)
    accuracy = sum(counted[name, name] for name in classes) / total
    return 100 * accuracy, 100 * sum(scores) / len(scores)


def qlora(rows: tuple[Row, ...], reader: Reader) -> tuple[int, int, Counter[Winner | None]]:
    """Pairs that agree, pairs read in both orders, and how often each verdict was given."""
    pairs = by_pair(rows, reader).values()
    read_twice = [passes for passes in pairs if len(passes) == 2 and None not in passes.values()]
    agreeing = sum(len(set(passes.values())) == 1 for passes in read_twice)
    return agreeing, len(read_twice), Counter(reader(row) for row in rows)


JUDGEBENCH = "judgebench_gpt4o"
O1_MINI = f"{JUDGEBENCH}__arena_hard_o1-mini-2024-09-12"
SKYWORK = f"{JUDGEBENCH}__reward_model_Skywork_Skywork-Reward-Gemma-2-27B"
LLMBAR: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("GPT-4_CoT", (("natural", "94.5"), ("neighbor", "75.0"), ("gptinst", "83.2"))),
    ("GPT-4_Metrics_Reference", (("natural", "96.0"), ("neighbor", "85.4"), ("gptinst", "89.7"))),
    ("GPT-4_Vanilla", (("natural", "95.5"), ("neighbor", "78.7"), ("gptinst", "86.4"))),
    ("GPT-4_Vanilla_NoRules", (("natural", "93.5"), ("neighbor", "64.2"), ("gptinst", "76.6"))),
    ("ChatGPT_CoT", (("natural", "74.0"),)),
    ("LLaMA2_CoT", (("natural", "75.5"),)),
    ("PaLM2_CoT", (("natural", "73.0"),)),
    ("Falcon_CoT", (("natural", "57.0"),)),
)
POSITION_BIAS = (
    ("mtbench_pos__gpt-4-0613", "81.54"),
    ("mtbench_pos__gpt-3.5-turbo-1106", "69.59"),
    ("devbench_pos__gpt-4-0613", "82.77"),
)


def figures(data: Path) -> Iterator[Figure]:
    truth = labels(data, JUDGEBENCH)
    for name, judge, published in (
        ("judgebench o1-mini", O1_MINI, ("65.71", "58.00", "31.43")),
        ("judgebench Skywork", SKYWORK, ("64.29",)),
    ):
        rows = judgments(data, judge)
        theirs = judgebench(by_pair(rows, as_recorded), truth)
        ours = judgebench(by_pair(rows, as_we_read), truth)
        for what, figure, their, our in zip(
            ("right", "right in both orders", "inconsistent"), published, theirs, ours, strict=False
        ):
            yield Figure(f"{name}, {what} %", figure, f"{their:.2f}", f"{our:.2f}")
    for judge, subsets in LLMBAR:
        rows = judgments(data, f"llmbar__{judge}")
        their_pairs, our_pairs = by_pair(rows, as_recorded), by_pair(rows, as_we_read)
        for subset, figure in subsets:
            truth = labels(data, f"llmbar_{subset}")
            their, our = llmbar(their_pairs, truth), llmbar(our_pairs, truth)
            yield Figure(
                f"llmbar {judge} {subset}, accuracy %", figure, f"{their:.1f}", f"{our:.1f}"
            )
    for judge, figure in POSITION_BIAS:
        rows = judgments(data, judge)
        their = position_consistency(by_pair(rows, first_mark))
        our = position_consistency(by_pair(rows, as_we_read))
        yield Figure(f"position bias {judge}, consistent %", figure, f"{their:.2f}", f"{our:.2f}")
    rows, truth = judgments(data, "pandalm__gpt-3.5-turbo"), labels(data, "pandalm")
    scored = zip(pandalm(rows, truth, as_recorded), pandalm(rows, truth, as_we_read), strict=True)
    for (what, figure), (their, our) in zip(
        (("accuracy", "71.07"), ("macro F1", "57.55")), scored, strict=True
    ):
        yield Figure(f"pandalm gpt-3.5-turbo, {what}", figure, f"{their:.2f}", f"{our:.2f}")
    yield from _qlora_figures(judgments(data, "qlora_vicuna__gpt-4"))


def _qlora_figures(rows: tuple[Row, ...]) -> Iterator[Figure]:
    agreeing, both, counts = qlora(rows, as_recorded)
    our_agreeing, our_both, our_counts = qlora(rows, as_we_read)
    yield Figure(
        "qlora_vicuna gpt-4, consistent",
        "61.4% (1367 of 2227)",
        f"{100 * agreeing / both:.1f}% ({agreeing} of {both})",
        f"{100 * our_agreeing / our_both:.1f}% ({our_agreeing} of {our_both})",
    )
    names: tuple[tuple[str, Winner | None, str], ...] = (
        ("first wins", "A", "2512"),
        ("second wins", "B", "1355"),
        ("ties", "TIE", "600"),
        ("unread", None, "13"),
    )
    for what, winner, figure in names:
        yield Figure(
            f"qlora_vicuna gpt-4, {what}", figure, str(counts[winner]), str(our_counts[winner])
        )


def main(arguments: list[str]) -> int:
    data = Path(arguments[0]) if arguments else DATA
    if not (data / "judgments").is_dir():
        print(f"no recorded judgments in {data}; give the data folder as the argument")
        return 0
    print(f"{'figure':<58}{'published':>22}{'their rule':>22}{'our reading':>22}")
    wrong = 0
    for figure in figures(data):
        same = figure.authors == figure.published
        wrong += not same
        print(
            f"{figure.name:<58}{figure.published:>22}{figure.authors:>22}{figure.ours:>22}"
            + ("" if same else "  differs")
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
