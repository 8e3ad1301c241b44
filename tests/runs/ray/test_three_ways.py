"""This process, a batch API and workers of Ray ask the same and come to the same verdicts, whatever
the options are; what one of them cannot do is said before anything is asked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from analysed import analysis_of
from batch_providers import Answer, OpenAIProvider
from evenhand.analyses.registry import CALIBRATE
from evenhand.contract import read_criteria
from evenhand.data.options import ReadOptions
from evenhand.data.orders import OrderDraw
from evenhand.errors import InputError
from evenhand.judges.registry import open_judge
from evenhand.judges.retry import RetryPolicy
from evenhand.judging.config import JudgeConfig
from evenhand.prompts import built_in_template
from evenhand.runs import JudgePlan, RunOptions, RunSummary, given_pairs, judge_pairs
from evenhand.store import Store, VerdictRow, open_store
from evenhand.trust.calibration import AppliedCalibration
from evenhand.trust.cascades import report_cascade, run_cascade
from ray_workers import Crowd
from run_data import asked_number, labelled_sums, right_place, sums, unsure_answer
from scripted import answer_json

QUICK = RetryPolicy(attempts=3, base_s=0.001, cap_s=0.01)
# Each with a store of its own.
WAYS: dict[str, dict[str, Any]] = {
    "here": {},
    "batch": {"batch": True, "batch_poll_s": 0.1},
    "ray": {"executor": "ray", "ray_workers": 2, "concurrency": 4},
}


@dataclass(frozen=True)
class Asked:
    """Options of a run that change what is asked, or what comes of it."""

    config: JudgeConfig = field(default_factory=lambda: JudgeConfig(retry=QUICK))
    rows: dict[str, Any] = field(default_factory=dict)  # of every pair
    judges: tuple[str, ...] = ("openai:m",)
    orders: OrderDraw | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def by(cls, **config: Any) -> Asked:
        return cls(JudgeConfig(retry=QUICK, **config))

    def of(self, *judges: str) -> Asked:
        return replace(self, judges=judges)


def own_template() -> Any:
    usual = built_in_template("en", "reasoned")
    return replace(usual, name="own")


OPTIONS = {
    "as given": Asked(),
    "three samples": Asked.by(samples=3),
    "samples on average": Asked.by(samples=2, reconcile="average"),
    "letters": Asked.by(mode="letter"),
    "letters by agreement": Asked.by(mode="letter", reconcile="agreement"),
    "confidence by logprobs": Asked.by(confidence="logprobs"),
    "in Chinese": Asked.by(locale="zh"),
    "own template": Asked.by(template=own_template()),
    "no repairs": Asked.by(repairs=0),
    "two repairs": Asked.by(repairs=2),
    "identical asked": Asked.by(ask_identical=True),
    "one order": Asked(rows={"swap_positions": False}),
    "one drawn order": Asked(orders=OrderDraw(both_orders=0.3)),
    "no ties": Asked(rows={"allow_tie": False}),
    "two criteria": Asked(rows={"criteria": ["accuracy", {"name": "brevity", "weight": 2}]}),
    "several judges": Asked(judges=("openai:m", "openai:other")),
    "fresh": Asked(options={"fresh": True}),
    "prepared": Asked.by(prepare=("metrics", "reference", "analysis")),
    "prepared letters": Asked.by(mode="letter", prepare=("metrics",)),
    "prepared for several": Asked.by(prepare=("analysis",)).of("openai:m", "openai:other"),
}


def whimsical(prompt: str, body: dict[str, Any]) -> Answer:
    """Of no opinion, and always the same of what it is shown; now and then not to be read."""
    chance = sha256(f"{body['model']} {body.get('seed')} {prompt}".encode()).digest()
    winner = "AB"[chance[0] % 2]
    if body.get("max_tokens", body.get("max_completion_tokens", 99)) < 20:
        return winner
    if chance[1] < 50:
        return "I would rather not decide."
    criteria = [("accuracy", winner), ("brevity", "AB"[chance[2] % 2])]
    return answer_json(winner, confidence=chance[3] / 255, criteria=criteria)


@pytest.fixture
def stores(tmp_path: Path, fresh_database: str) -> dict[str, str]:
    return {
        "here": str(tmp_path / "here.db"),
        "batch": str(tmp_path / "batch.db"),
        "ray": fresh_database,
    }


def plan(spec: str, provider: OpenAIProvider, config: JudgeConfig) -> JudgePlan:
    own = replace(config, judge=spec, base_url=provider.url, api_key="sk-loopback", timeout_s=60)
    return JudgePlan(own.open_judge(), own)


async def judged(
    rows: list[dict[str, Any]],
    plans: list[JudgePlan],
    store: Store,
    options: RunOptions,
    *,
    orders: OrderDraw | None = None,
) -> RunSummary:
    reading = ReadOptions(criteria=read_criteria(["accuracy"]), orders=orders)
    sources = given_pairs(rows, reading)
    try:
        return await judge_pairs(sources, plans, options, store=store)
    finally:
        sources.close()
        for each in plans:
            await each.judge.close()


def found(row: VerdictRow) -> tuple[Any, ...]:
    return (
        *(row.outcome, row.winner, row.confidence, row.confidence_source, row.abstained),
        *(row.first_pass_winner, row.second_pass_winner, row.error_kind),
    )


def verdicts(store: Store, name: str) -> dict[tuple[str, str], tuple[Any, ...]]:
    run = store.runs.find(name)
    assert run is not None
    names = {judge.id: judge.name for judge in store.runs.judges(run.id)}
    rows = store.verdicts.each(run.id)
    return {(names[row.judge_id], row.item.key): found(row) for row in rows}


def asked_of(provider: OpenAIProvider) -> Counter[str]:
    """Each request that came so far, one by one or in a batch."""
    bodies = [
        request.json for request in provider.requests if request.path.endswith("/completions")
    ]
    bodies += [body for batch in provider.batches.values() for _, body in batch.requests]
    return Counter(map(short, bodies))


def short(body: dict[str, Any]) -> str:
    """A request's model and the digest of all of it, which tells differences as well."""
    asked = {name: value for name, value in body.items() if name != "stream"}
    digest = sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
    return f"{body['model']} {digest[:16]}"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback")


@pytest.fixture
def provider() -> Iterator[OpenAIProvider]:
    with OpenAIProvider(whimsical) as started:
        yield started


@pytest.mark.parametrize("name", OPTIONS)
async def test_options_come_to_the_same_whoever_carries_the_run_out(
    name: str, provider: OpenAIProvider, stores: dict[str, str], crowd: Crowd
) -> None:
    asked = OPTIONS[name]
    how = asked.config
    provider.tells_logprobs = how.mode == "letter" or how.confidence == "logprobs"
    rows = [row | asked.rows for row in sums(8)]
    same = sums(1, begin=99)[0]
    rows.append(same | asked.rows | {"response_b": same["response_a"]})
    came = {}
    requests: dict[str, Counter[str]] = {}
    for way, options in WAYS.items():
        plans = [plan(spec, provider, how) for spec in asked.judges]
        chosen = RunOptions(name="run", **asked.options, **options)
        with open_store(stores[way]) as store:
            summary = await judged(rows, plans, store, chosen, orders=asked.orders)
            came[way] = verdicts(store, "run")
        assert summary.pending == 0
        requests[way] = asked_of(provider) - sum(requests.values(), Counter())
    assert len(came["here"]) == len(rows) * len(asked.judges)
    assert came["batch"] == came["here"] == came["ray"]
    assert requests["batch"] == requests["here"] == requests["ray"]


async def test_identical_responses_are_a_tie_by_rule_in_every_way(
    provider: OpenAIProvider, stores: dict[str, str], crowd: Crowd
) -> None:
    """Of 4 pairs one has the same response twice: 3 pairs are asked, in two orders."""
    same = sums(1, begin=99)[0]
    rows = [*sums(3), same | {"response_b": same["response_a"]}]
    for number, (way, options) in enumerate(WAYS.items(), 1):
        with open_store(stores[way]) as store:
            asked = plan("openai:m", provider, JudgeConfig(retry=QUICK, repairs=0))
            summary = await judged(rows, [asked], store, RunOptions(name="run", **options))
            [verdict] = [
                row for (_, key), row in verdicts(store, "run").items() if key == same["id"]
            ]
        # Outcome, winner, no confidence, whose it is, not abstained; no passes and no error.
        assert verdict == ("tie", "TIE", None, "rule", False, None, None, None), way
        assert (summary.calls, summary.ties) == (6, 1), way
        assert asked_of(provider).total() == 6 * number


def of_two_minds(prompt: str, body: dict[str, Any]) -> Answer:
    """The cheap one goes by the place in every fourth sum; the dear one can add."""
    winner = right_place(prompt)
    if body["model"] == "cheap" and asked_number(prompt) % 4 == 0:
        winner = "A"
    return answer_json(winner, confidence=0.9, criteria=[("accuracy", winner)])


async def test_what_the_cheap_judge_leaves_goes_to_the_dear_one_in_every_way(
    stores: dict[str, str], crowd: Crowd
) -> None:
    came, kept = {}, {}
    requests: dict[str, Counter[str]] = {}
    with OpenAIProvider(of_two_minds) as provider:
        for way, options in WAYS.items():
            usual = JudgeConfig(retry=QUICK)
            plans = [plan(spec, provider, usual) for spec in ("openai:cheap", "openai:dear")]
            sources = given_pairs(sums(20), ReadOptions(criteria=read_criteria(["accuracy"])))
            with open_store(stores[way]) as store:
                summaries = await run_cascade(sources, plans, RunOptions(**options), store=store)
                came[way] = [verdicts(store, summary.run) for summary in summaries]
                report = report_cascade(store, summaries, planned=2)
            sources.close()
            kept[way] = [(stage.asked, stage.kept, stage.calls) for stage in report.stages]
            models = Counter(each.split()[0] for each in asked_of(provider).elements())
            requests[way] = models - sum(requests.values(), Counter())
    # Sums 4, 8, 12, 16 and 20, in two orders.
    assert kept["here"] == [(20, 15, 40), (5, 5, 10)]
    assert requests["here"] == {"cheap": 40, "dear": 10}
    assert came["batch"] == came["here"] == came["ray"]
    assert kept["batch"] == kept["here"] == kept["ray"]
    assert requests["batch"] == requests["here"] == requests["ray"]


async def test_a_calibrated_judge_abstains_in_every_way_alike(
    stores: dict[str, str], crowd: Crowd
) -> None:
    usual, rows = JudgeConfig(retry=QUICK), labelled_sums(300)
    with OpenAIProvider(lambda prompt, _: unsure_answer(prompt)) as provider:
        with open_store(stores["here"]) as store:
            learn = RunOptions(name="learn")
            await judged(rows, [plan("openai:m", provider, usual)], store, learn)
            learned = analysis_of(CALIBRATE, store, "learn", min_agreement=0.8).calibration
        calibrated = replace(usual, calibration=AppliedCalibration(learned))
        came = {}
        for way, options in WAYS.items():
            with open_store(stores[way]) as store:
                chosen = RunOptions(name="run", **options)
                await judged(rows[:50], [plan("openai:m", provider, calibrated)], store, chosen)
                came[way] = verdicts(store, "run")
    assert {row[4] for row in came["here"].values()} == {True, False}
    assert came["batch"] == came["here"] == came["ray"]


@pytest.mark.parametrize("way", ["batch", "ray"])
async def test_what_failed_is_tried_again_where_that_is_asked_for(
    way: str, stores: dict[str, str], crowd: Crowd
) -> None:
    unreadable = True

    def grumbling(prompt: str, body: dict[str, Any]) -> Answer:
        if unreadable and "plus 3?" in prompt:
            return "Not today."
        return of_two_minds(prompt, body)

    with OpenAIProvider(grumbling) as provider, open_store(stores[way]) as store:
        once = JudgeConfig(retry=QUICK, repairs=0)
        first = RunOptions(name="run", **WAYS[way])
        before = await judged(sums(8), [plan("openai:m", provider, once)], store, first)
        assert (before.invalid, before.pending) == (1, 0)
        unreadable = False
        again = replace(first, retry=("unread",))
        after = await judged(sums(8), [plan("openai:m", provider, once)], store, again)
        assert (after.invalid, after.pending, after.calls) == (0, 0, 2)


@pytest.mark.parametrize(
    ("way", "second", "told"),
    [
        ("batch", "baseline:longer", "baseline:longer has no batch API"),
        ("ray", "replay", "leave out executor ray"),
    ],
)
async def test_a_later_stage_that_cannot_be_judged_so_is_refused_before_the_first(
    way: str, second: str, told: str, stores: dict[str, str], tmp_path: Path, crowd: Crowd
) -> None:
    answers = tmp_path / "answers.jsonl"
    answers.write_text("")
    spec = f"replay:{answers}" if second == "replay" else second
    with OpenAIProvider(of_two_minds) as provider, open_store(stores[way]) as store:
        usual = JudgeConfig(retry=QUICK)
        plans = [plan("openai:cheap", provider, usual)]
        plans.append(JudgePlan(open_judge(spec), replace(usual, judge=spec)))
        sources = given_pairs(sums(4), ReadOptions(criteria=read_criteria(["accuracy"])))
        with pytest.raises(InputError, match=told):
            await run_cascade(sources, plans, RunOptions(**WAYS[way]), store=store)
        sources.close()
        assert store.runs.all() == []
        assert provider.requests == []
        for each in plans:
            await each.judge.close()
