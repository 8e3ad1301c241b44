"""The real server as a process of its own, with judges behind it and a store that is filled.

Its data are small and rich: models, tags, labels, every outcome, Chinese, markdown. What a judge
says follows from the two texts that it is shown, so the same data always give the same run.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest

from door_server import shell, started_server
from evenhand.store import NewVote, open_store
from evenhand.trust.probes.cases import probe_cases
from html_reading import ATTACKS, Attack
from probe_judges import judge_with, prefers_longer, probed
from scripted import answer_json
from servers import JudgeServer, Reply, SeenRequest, Slow, chat_reply, error_reply

_WAIT_S = 60.0
# A run's name is shown too.
HOSTILE_NAME = "hostile <script>window.harmed=true</script>"


@dataclass(frozen=True)
class Site:
    """Where it is, and the ids of its runs by what they are for."""

    url: str
    store: Path
    directory: Path
    runs: Mapping[str, str]

    def run(self, which: str = "rich") -> str:
        return f"{self.url}/runs/{self.runs[which]}"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("site")
    with JudgeServer(_judge()) as judge, served(directory, judge.url) as url:
        yield Site(url, directory / "site.db", directory, filled(url, directory / "site.db"))


@contextmanager
def served(
    directory: Path, judge_url: str, *, log: str = "serve.log", **more: str
) -> Iterator[str]:
    """`evenhand serve` over the store in this folder; what is in `more` is its environment's."""
    config = directory / "serve.toml"
    offers = [
        f'[[judges]]\nname = "{name}"\njudge = "openai:{name}"\nbase_url = "{judge_url}"\n'
        'retries = 0\nrepairs = 0\nprice = "2/8"\n'
        for name in (*JUDGES, "broken")
    ]
    config.write_text(f'store = "{directory / "site.db"}"\n' + "".join(offers), "utf-8")
    surroundings = shell(directory, OPENAI_API_KEY="sk-loopback", **more)
    command = ["evenhand", "serve", "--config", str(config)]
    with started_server(command, directory, surroundings, log=log) as address:
        yield address


def _judge() -> Any:
    knowing = KnowingJudge([*answers_by_model(), *hostile_rows()])

    def answer(request: SeenRequest) -> Reply | Slow:
        if request.json["model"] == "broken":
            return error_reply(401, "no such key")
        if "Response A" not in request.prompt:  # a model answers, and is seen to
            what = "right" if request.json["model"] == "careful" else "wrong"
            return Slow(0.5, _charged(f"The {what} answer."))
        return knowing(request)

    return answer


def filled(url: str, store: Path) -> dict[str, str]:
    rich = [case.row for case in answers_by_model()]
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        runs = {
            "rich": _start(client, rich, name="answers by model", judges=list(JUDGES)),
            "plain": _start(client, list(simple_rows()), name="plain", judge="careful"),
            "failed": _start(client, list(simple_rows()), name="a key is missing", judge="broken"),
            "hostile": _start(
                client,
                [case.row for case in hostile_rows()],
                name=HOSTILE_NAME,
                judge="careful",
            ),
        }
        for each in runs.values():
            _wait(client, each)
    _vote(store, runs["rich"])
    return {**runs, "probes": _probe(store)}


def _probe(path: Path) -> str:
    """A judge that prefers length, on some of the probes."""
    cases = [each for each in probe_cases(["identical", "longer"]) if each.language == "en"]
    asked = probed(judge_with(prefers_longer, cases), cases, path.parent, file=path.name)
    asyncio.run(asked)
    with open_store(path) as store:
        return str(store.runs.page(limit=1)[0].id)


def _start(client: httpx.Client, rows: list[Any], **options: Any) -> str:
    body = {"pairs": rows, "criteria": list(CRITERIA), **options}
    answer = client.post("/v1/runs", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def _wait(client: httpx.Client, run: str) -> None:
    deadline = time.monotonic() + _WAIT_S
    while client.get(f"/v1/runs/{run}").json()["state"] not in ("finished", "failed", "stopped"):
        assert time.monotonic() < deadline, "a run of the pages' data did not end"
        time.sleep(0.05)


def _vote(path: Path, run: str) -> None:
    """Two people have voted on some pairs, and agree on most."""
    with open_store(path) as store:
        pairs = [own.pair_id for own in store.items.all(int(run))][:12]
        for who, letters in (("ann", "AABBAATABABA"), ("bo", "AABBAAAABBBA")):
            winners = {"A": "A", "B": "B", "T": "TIE"}
            store.votes.add(
                [
                    NewVote(pair, who, winners[letter])  # type: ignore[arg-type]
                    for pair, letter in zip(pairs, letters, strict=True)
                ]
            )


CRITERIA = ("accuracy", "clarity")
JUDGES = ("careful", "hasty")
# From the weakest to the strongest.
MODELS = ("cobalt-mini", "atlas-7b", "borealis", "墨子-14b")

Manner = Literal["decides", "ties", "follows the place", "mumbles"]


@dataclass(frozen=True)
class Topic:
    name: str
    prompt: str
    right: str
    wrong: str
    tags: tuple[str, ...]


TOPICS = (
    Topic(
        "sum",
        "What is 17 times 24? Show how you get there.",
        "17 × 24 = 17 × 20 + 17 × 4 = 340 + 68 = **408**.",
        "17 × 24 is about **400**, give or take a little.",
        ("math", "easy"),
    ),
    Topic(
        "sort",
        "Write a Python function that sorts a list of words by length.",
        "```python\ndef by_length(words: list[str]) -> list[str]:\n"
        "    return sorted(words, key=len)\n```\n\nIt is stable: equal lengths keep their order.",
        "```python\ndef by_length(words):\n    words.sort()\n    return words\n```",
        ("code",),
    ),
    Topic(
        "bread",
        "How do I keep bread fresh for a week?",
        "1. Keep it in a paper bag for the first two days.\n2. Slice and **freeze** the rest.\n"
        "3. Toast it straight from the freezer.\n\nThe fridge makes it stale *faster*.",
        "Put it into the fridge, where it keeps for a week.",
        ("everyday", "easy"),
    ),
    Topic(
        "水",
        "为什么冰会浮在水面上？请用两三句话说明。",
        "水结冰时，分子排列成较疏松的晶体结构，体积约增大百分之九，密度因此低于液态水。"
        "密度较小的冰就浮在水面上。",
        "因为冰里有空气，而且冰比较冷，所以会浮起来。",
        ("中文", "science"),
    ),
    Topic(
        "letter",
        "Write a short, friendly reminder to a colleague about an overdue report.",
        "Hi Sam,\n\nA quick reminder that the May report was due on Friday. Could you send it by "
        "Wednesday? If something is in the way, tell me and we will find a solution.\n\nThanks!",
        "Sam, the report is late. Send it.",
        ("writing",),
    ),
    Topic(
        "moon",
        "Why do we always see the same side of the Moon?",
        "The Moon turns once on its axis in the time that it goes once around the Earth: tides "
        "have locked the two periods. A little more than half is seen over time, by *libration*.",
        "Because the Moon does not rotate.",
        ("science",),
    ),
)


@dataclass(frozen=True)
class Case:
    """One row of the file, and what each judge makes of it."""

    row: Mapping[str, Any]
    better: Literal["A", "B"]
    manners: Mapping[str, Manner]
    astray: frozenset[str] = frozenset()  # judges that prefer the other response
    quoted: str = ""  # what the judge's reasoning repeats

    @property
    def texts(self) -> tuple[str, str]:
        return self.row["response_a"], self.row["response_b"]


def _draw(*what: object) -> float:
    """Between 0 and 1, by what it is for."""
    return int.from_bytes(sha256(repr(what).encode()).digest()[:6]) / 2**48


def answers_by_model() -> list[Case]:
    """Every two models on every topic: wins by strength, now and then against it."""
    return [
        _case(number, topic, models)
        for number, (topic, models) in enumerate(
            (topic, models) for topic in TOPICS for models in combinations(MODELS, 2)
        )
    ]


def _case(number: int, topic: Topic, models: tuple[str, str]) -> Case:
    weaker, stronger = models
    key = f"{topic.name}-{number + 1}"
    upset = _draw(key, "upset") < 0.2
    first, second = (stronger, weaker) if number % 2 else (weaker, stronger)
    wins = weaker if upset else stronger
    texts = {
        model: f"{topic.right if model == wins else topic.wrong}\n\n({model})" for model in models
    }
    better: Literal["A", "B"] = "A" if first == wins else "B"
    row: dict[str, Any] = {
        "id": key,
        "prompt": topic.prompt,
        "response_a": texts[first],
        "response_b": texts[second],
        "model_a": first,
        "model_b": second,
        "tags": list(topic.tags),
    }
    if _draw(key, "labelled") < 0.8:
        row["label"] = better if _draw(key, "label") < 0.85 else "tie"
    manners: dict[str, Manner] = {judge: _manner(key, judge) for judge in JUDGES}
    astray = frozenset(j for j in JUDGES if _draw(key, j, "astray") < (0.05, 0.25)[j == "hasty"])
    return Case(row, better, manners, astray)


def _manner(key: str, judge: str) -> Manner:
    drawn = _draw(key, judge, "manner")
    if drawn < 0.06:
        return "mumbles"
    if drawn < (0.15 if judge == "careful" else 0.35):
        return "follows the place"
    return "ties" if drawn > 0.9 else "decides"


def hostile_rows() -> list[Case]:
    """Every attack in every field that a page shows, and in what the judge says."""
    return [_attacked(attack) for attack in ATTACKS]


def _attacked(attack: Attack) -> Case:
    row = {
        "id": f"{attack.name} {attack.text}"[:200],
        "prompt": f"Prompt of {attack.name}: {attack.text}",
        "response_a": f"{attack.text}\n\nA of {attack.name}",
        "response_b": f"B of {attack.name}\n\n{attack.text}",
        "model_a": attack.text[:200],
        "model_b": "plain",
        "tags": [attack.text[:200], "attack"],
        "label": "A",
    }
    manners: dict[str, Manner] = dict.fromkeys(JUDGES, "decides")
    return Case(row, "A", manners, quoted=attack.text)


def simple_rows(count: int = 6) -> Iterator[dict[str, Any]]:
    """Pairs without models, tags and labels, whose better response says so."""
    for number in range(1, count + 1):
        good, bad = f"The right answer, {number}.", f"The wrong answer, {number}."
        yield {
            "id": f"plain-{number}",
            "prompt": f"Question {number}: which answer is right?",
            "response_a": good if number % 3 else bad,
            "response_b": bad if number % 3 else good,
        }


_SECTION = r"<<<\w+ Response {}>>>\n(.*?)\n<<<end"


class KnowingJudge:
    """Answers by the texts that it is shown; the model's name in the request says who it is."""

    def __init__(self, cases: list[Case]) -> None:
        self._cases = {frozenset(case.texts): case for case in cases}

    def __call__(self, request: SeenRequest) -> Reply:
        judge = str(request.json["model"])
        shown = [_shown(request.prompt, letter) for letter in "AB"]
        case = self._cases.get(frozenset(shown))
        if case is None:
            return _said("A" if "right" in shown[0] else "B", confidence=0.8)
        manner = case.manners[judge]
        if manner == "mumbles":
            return _charged("I would rather not say which of the two is better.")
        if manner == "ties":
            return _said("TIE", confidence=0.6)
        if manner == "follows the place":
            return _said("A", confidence=0.7)
        preferred = case.texts[(case.better == "B") != (judge in case.astray)]
        confidence = round(0.55 + 0.44 * _draw(case.row["id"], judge, "confidence"), 2)
        return _said("AB"[shown.index(preferred)], confidence=confidence, quoted=case.quoted)


def _said(winner: str, *, confidence: float, quoted: str = "") -> Reply:
    said = {"A": "Response A is right where Response B is not.", "TIE": "Both are equally right."}
    reasoning = said.get(winner, "Response B is right where Response A is not.")
    criteria = [("accuracy", winner), ("clarity", "TIE" if winner != "A" else "A")]
    return _charged(
        answer_json(
            winner,
            confidence=confidence,
            criteria=criteria,
            reasoning=f"{reasoning} {quoted}".strip(),
            differentiators=["Correctness", *([quoted] if quoted else [])],
        )
    )


def _charged(text: str) -> Reply:
    usage = {"prompt_tokens": 420, "completion_tokens": 96, "total_tokens": 516}
    return chat_reply(text, usage=usage)


def _shown(prompt: str, letter: str) -> str:
    (*_, text) = re.findall(_SECTION.format(letter), prompt, re.DOTALL)
    assert isinstance(text, str)
    return text
