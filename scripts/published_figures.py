"""Published figures of recorded judges: the authors' rules on the authors' readings, to the digit.

    python -m scripts.published_figures [DATA_DIR]

Beside each figure stands what the same aggregation gives on our own reading of the same texts.
The two are never mixed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from scripts.published_rules import RuleName, apply_rule, as_recorded

from evenhand.contract import AnswerProtocol, Winner
from evenhand.judges.replay import Recording, ReplayJudge
from evenhand.judging.ballots import read_ballot
from evenhand.judging.decision import PassBallot

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    published: str
    authors: str
    ours: str


@lru_cache(maxsize=64)
def judgments(data: Path, name: str, folder: str = "judgments") -> tuple[Recording, ...]:
    return tuple(ReplayJudge(data / folder / f"{name}.jsonl.gz").recordings())


@lru_cache(maxsize=64)
def labels(data: Path, name: str) -> dict[str, Winner]:
    lines = (data / "pairs" / f"{name}.jsonl").read_text("utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    return {row["id"]: row["label"] for row in rows}


# The format that each rule's judges were asked for; ours is recognised where there is none.
PROTOCOLS: dict[RuleName, AnswerProtocol] = {
    "llmbar": "llmbar",
    "qlora": "three-class",
}


def as_we_read(recording: Recording, protocol: AnswerProtocol | None) -> Winner | None:
    """Our reading in the labels shown; the recorded verdict where no text was published."""
    if recording.raw is None:
        return as_recorded(recording)
    truncated = recording.finish == "length"
    outcome = read_ballot(recording.raw, truncated=truncated, protocol=protocol)
    return outcome.winner if isinstance(outcome, PassBallot) else None


def compare(
    rule: RuleName, recordings: tuple[Recording, ...], truth: dict[str, Winner] | None = None
) -> tuple[dict[str, float], dict[str, float]]:
    """The authors' figures by their reading, and by ours."""
    theirs = apply_rule(rule, recordings, truth)
    reader = partial(as_we_read, protocol=PROTOCOLS.get(rule))
    ours = apply_rule(rule, recordings, truth, reader=reader)
    return theirs, ours


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
# What the judge wrote before it judged: the recorded answers show what that was worth to it, with
# its authors' prompts; they say nothing of ours.
SUBSETS = ("natural", "neighbor", "gptinst")
PROCEDURES: tuple[tuple[str, tuple[str, str, str]], ...] = (
    ("GPT-4__Vanilla", ("95.5", "78.7", "86.4")),
    ("GPT-4__Metrics", ("93.0", "83.2", "89.7")),
    ("GPT-4__Reference", ("95.5", "80.6", "87.5")),
    ("GPT-4__Metrics_Reference", ("96.0", "85.4", "89.7")),
    ("PaLM2__Vanilla", ("83.0", "62.7", "73.4")),
    ("PaLM2__Metrics", ("81.0", "67.2", "75.5")),
    ("PaLM2__Reference", ("85.5", "66.0", "74.5")),
    ("PaLM2__Metrics_Reference", ("86.5", "69.8", "77.2")),
    ("Falcon__Vanilla", ("74.0", "50.4", "50.0")),
    ("Falcon__Metrics_Reference", ("62.5", "51.5", "49.5")),
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
        theirs, ours = compare("judgebench", judgments(data, judge), truth)
        for what, figure in zip(
            ("accuracy", "rightInBothOrders", "inconsistent"), published, strict=False
        ):
            yield Figure(f"{name}, {what}%", figure, f"{theirs[what]:.2f}", f"{ours[what]:.2f}")
    for judge, subsets in LLMBAR:
        for subset, figure in subsets:
            truth = labels(data, f"llmbar_{subset}")
            theirs, ours = compare("llmbar", judgments(data, f"llmbar__{judge}"), truth)
            yield Figure(
                f"llmbar {judge} {subset}, accuracy %",
                figure,
                f"{theirs['accuracy']:.1f}",
                f"{ours['accuracy']:.1f}",
            )
    for judge, published in PROCEDURES:
        for subset, figure in zip(SUBSETS, published, strict=True):
            truth = labels(data, f"llmbar_{subset}")
            recordings = judgments(data, f"llmbar__{judge}", "procedures")
            theirs, ours = compare("llmbar", recordings, truth)
            yield Figure(
                f"llmbar {judge} {subset}, accuracy %",
                figure,
                f"{theirs['accuracy']:.1f}",
                f"{ours['accuracy']:.1f}",
            )
    for judge, figure in POSITION_BIAS:
        theirs, ours = compare("position-bias", judgments(data, judge))
        yield Figure(
            f"position bias {judge}, consistent %",
            figure,
            f"{theirs['consistency']:.2f}",
            f"{ours['consistency']:.2f}",
        )
    recordings = judgments(data, "pandalm__gpt-3.5-turbo")
    theirs, ours = compare("pandalm", recordings, labels(data, "pandalm"))
    for what, figure in (("accuracy", "71.07"), ("macroF1", "57.55")):
        yield Figure(
            f"pandalm gpt-3.5-turbo, {what}", figure, f"{theirs[what]:.2f}", f"{ours[what]:.2f}"
        )
    yield from _qlora_figures(*compare("qlora", judgments(data, "qlora_vicuna__gpt-4")))


def _qlora_figures(theirs: dict[str, float], ours: dict[str, float]) -> Iterator[Figure]:
    def share(told: dict[str, float]) -> str:
        agreeing, both = told["consistentPairs"], told["pairsReadTwice"]
        return f"{told['consistency']:.1f}% ({agreeing:.0f} of {both:.0f})"

    yield Figure(
        "qlora_vicuna gpt-4, consistent", "61.4% (1367 of 2227)", share(theirs), share(ours)
    )
    for what, name, figure in (
        ("first wins", "firstWins", "2512"),
        ("second wins", "secondWins", "1355"),
        ("ties", "ties", "600"),
        ("unread", "unread", "13"),
    ):
        yield Figure(
            f"qlora_vicuna gpt-4, {what}", figure, f"{theirs[name]:.0f}", f"{ours[name]:.0f}"
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
