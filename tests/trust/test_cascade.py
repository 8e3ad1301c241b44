"""From judge to judge: who gets what, what stands, what it took, what is left for people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import evenhand
from analysed import analysis_of
from evenhand import RunOptions
from evenhand.analyses.registry import CALIBRATE
from evenhand.contract import Usage, read_criteria
from evenhand.data.options import ReadOptions
from evenhand.errors import InputError
from evenhand.judges.protocol import Completion, JudgeCall
from evenhand.judging.config import JudgeConfig
from evenhand.report.lookup import find_run
from evenhand.runs import JudgePlan, UntilDecided, given_pairs
from evenhand.store import NewVote, open_store
from evenhand.trust.calibration import AppliedCalibration
from evenhand.trust.cascades import CascadeReport, for_people, report_cascade, run_cascade
from evenhand.trust.labelling import begin_labelling
from evenhand.trust.vote_files import import_votes
from run_data import adds_up_here, is_right, labelled_sums, unsure
from scripted import ScriptedJudge, answer_json

PAIRS = 300


class Named(ScriptedJudge):
    def __init__(self, name: str, answer: Any) -> None:
        super().__init__(answer)
        self.name = name


def places(call: JudgeCall) -> str:
    return answer_json("A", confidence=0.9)


def never(call: JudgeCall) -> str:
    return "I cannot say."


def costly(call: JudgeCall) -> Completion:
    return Completion(text=adds_up_here(call), usage=Usage(cost_usd=0.01, requests=1))


async def cascaded(
    rows: list[dict[str, Any]], plans: list[JudgePlan], at: Path, **options: Any
) -> CascadeReport:
    reading = ReadOptions(criteria=read_criteria(["accuracy"]))
    sources = given_pairs(rows, reading)
    try:
        with open_store(at) as store:
            asked = RunOptions(store=at, **options)
            summaries = await run_cascade(sources, plans, asked, store=store)
            return report_cascade(store, summaries, planned=len(plans))
    finally:
        sources.close()


def plan(judge: ScriptedJudge, **config: Any) -> JudgePlan:
    return JudgePlan(judge, JudgeConfig(repairs=0, **config))


async def test_what_a_judge_cannot_settle_goes_on(tmp_path: Path) -> None:
    at = tmp_path / "store.db"

    def two_thirds(call: JudgeCall) -> str:
        """Every third pair by its place, every third not at all."""
        number = int(call.pair.id.removeprefix("sum-")) if call.pair.id else 0
        answer = (places, never, adds_up_here)[number % 3]
        return answer(call)

    first, second, third = Named("one", two_thirds), Named("two", places), Named("three", costly)
    plans = [plan(first), plan(second), plan(third)]
    found = await cascaded(labelled_sums(30), plans, at)
    # Numbers 2, 5, … (10 of them) stand at once; the second settles nothing; the third all.
    assert [(s.judge, s.asked, s.kept, s.left) for s in found.stages] == [
        ("one", 30, 10, 20),
        ("two", 20, 0, 20),
        ("three", 20, 20, 0),
    ]
    assert (found.stages[0].inconsistent, found.stages[0].invalid) == (10, 10)
    assert (found.pairs, found.kept, found.left, found.finished) == (30, 30, 0, True)
    assert (found.coverage.part, found.coverage.of) == (30, 30)
    assert (found.agreement.part, found.agreement.of) == (30, 30)
    assert [len(judge.calls) for judge in (first, second, third)] == [60, 40, 40]
    assert (found.passes, found.calls) == (140, 140)
    assert found.stages[2].cost_usd == pytest.approx(0.40)
    assert found.cost_usd is None  # the first two did not say
    # Again: it is all there.
    again = await cascaded(labelled_sums(30), plans, at)
    assert again == found
    assert [len(judge.calls) for judge in (first, second, third)] == [60, 40, 40]


async def test_peoples_votes_are_labels_of_a_cascade_too(tmp_path: Path) -> None:
    at = tmp_path / "store.db"
    rows = [{name: row[name] for name in row if name != "label"} for row in labelled_sums(30)]
    rows[0] |= {"label": "A"}
    plans = [plan(Named("one", adds_up_here))]
    await cascaded(rows, plans, at)
    with open_store(at) as store:
        (run,) = store.runs.all()
        pair_ids = {item.number: item.pair_id for item in store.items.all(run.id)}

        def vote(numbers: range, verdict: Any, **told: Any) -> None:
            for who in ("ann", "bob"):
                store.votes.add([NewVote(pair_ids[n], who, verdict, **told) for n in numbers])

        # The judge is always right: A, and B on every third pair.
        vote(range(1, 13), "A", draw="random")
        vote(range(13, 16), "B", draw="chosen")
        vote(range(16, 19), "B", draw="weighted", chance=0.5)
        vote(range(19, 22), "B", origin="escalation")
    found = await cascaded(rows, plans, at)
    # q1 by the data, 2 to 12 by people, who are wrong on 3, 6, 9 and 12.
    assert (found.agreement.part, found.agreement.of) == (8, 12)
    assert found.stages[0].agreement == found.agreement


async def test_what_abstains_goes_to_the_next_judge(tmp_path: Path) -> None:
    at = tmp_path / "store.db"
    rows = labelled_sums(PAIRS)
    criteria = ["accuracy"]
    cheap = ScriptedJudge(unsure)
    run = await evenhand.run(
        rows, cheap, JudgeConfig(), criteria=criteria, options=RunOptions(store=at)
    )
    with open_store(at) as store:
        report = analysis_of(CALIBRATE, store, run.run, min_agreement=0.8)
    applied = AppliedCalibration(report.calibration)
    assert report.calibration.guarantee is not None
    assert report.calibration.guarantee.threshold is not None
    asked = len(cheap.calls)
    strong = Named("strong", adds_up_here)
    plans = [JudgePlan(cheap, JudgeConfig(calibration=applied)), plan(strong)]
    found = await cascaded(rows, plans, at)
    assert len(cheap.calls) == asked  # the calibrated stage shares every pass
    first, second = found.stages
    assert first.kept + first.abstained == PAIRS
    assert second.asked == first.abstained > 0
    # What an earlier run had asked counts as the stage's, and was not asked again.
    assert (first.passes, first.calls) == (2 * PAIRS, 0)
    assert found.calls == 2 * second.asked
    assert len(strong.calls) == 2 * first.abstained
    assert (found.kept, found.left) == (PAIRS, 0)
    with open_store(at) as store:
        rows_kept = store.verdicts.each(find_run(store, first.run).id)
        threshold = report.calibration.guarantee.threshold
        right = sum(
            is_right(row.item.number)
            for row in rows_kept
            if row.confidence is not None and row.confidence >= threshold
        )
        run_id = find_run(store, first.run).id
        abstained = begin_labelling(store, run_id, "ann", only="abstained").queue
    assert len(abstained) == first.abstained
    # The strong judge is always right.
    assert first.agreement.part == right
    assert found.agreement.part == right + second.asked
    assert first.min_agreement == 0.8
    assert second.min_agreement is None
    assert any("strong has no calibration" in note for note in found.notes)


async def test_what_nobody_settles_is_left_for_people_blind(tmp_path: Path) -> None:
    at = tmp_path / "store.db"
    rows = [row | {"model_a": "old", "model_b": "new"} for row in labelled_sums(4)]
    found = await cascaded(rows, [plan(Named("one", places)), plan(Named("two", never))], at)
    assert (found.kept, found.left) == (0, 4)
    with open_store(at) as store:
        left = list(for_people(store, found.stages[-1].run))
    assert [row["id"] for row in left] == [row["id"] for row in rows]
    assert left[0]["response_a"] == rows[0]["response_a"]
    assert not {"label", "model_a", "model_b"} & set(left[0])
    with open_store(at) as store:
        run_id = find_run(store, found.stages[-1].run).id
        labelling = begin_labelling(store, run_id, "ann", only="abstained")
        assert len(labelling.queue) == 4
        labelling.vote(labelling.queue[0], "first")
        (vote,) = store.votes.each(run_id)
        # Known as what it is, and so kept out of calibrations.
        assert (vote.vote.origin, vote.vote.draw) == ("escalation", "chosen")
        # So is one by the file, which people fill in and bring back.
        filled = tmp_path / "left.jsonl"
        lines = [json.dumps(row | {"who": "bob", "verdict": "A"}) + "\r\n" for row in left]
        filled.write_text("".join(lines), "utf-8")
        import_votes(store, find_run(store, found.stages[0].run).name, filled)
        origins = {own.vote.who: own.vote.origin for own in store.votes.each(run_id)}
        assert origins == {"ann": "escalation", "bob": "escalation"}
    # And the next stage still had them.
    with open_store(at) as store:
        items = [row.item for row in store.verdicts.each(find_run(store, found.stages[-1].run).id)]
    assert {(item.label, item.model_a) for item in items} == {("A", "old"), ("B", "old")}


async def test_a_cap_is_kept_over_all_stages(tmp_path: Path) -> None:
    at = tmp_path / "store.db"
    first, second = Named("one", places), Named("two", adds_up_here)
    plans = [plan(first), plan(second)]
    found = await cascaded(labelled_sums(10), plans, at, max_calls=26)
    assert len(first.calls) + len(second.calls) <= 26
    assert not found.finished
    found = await cascaded(labelled_sums(10), plans, at)
    assert found.finished
    assert (len(first.calls), len(second.calls)) == (20, 20)


async def test_one_stage_that_uses_the_cap_up_says_so(tmp_path: Path) -> None:
    plans = [plan(Named("one", places)), plan(Named("two", adds_up_here))]
    found = await cascaded(labelled_sums(10), plans, tmp_path / "store.db", max_calls=20)
    assert (len(found.stages), found.left, found.finished) == (1, 10, False)
    assert any("a cap was reached" in note for note in found.notes)


async def test_what_no_cascade_can_be_made_of_is_refused(tmp_path: Path) -> None:
    one, two = Named("one", places), Named("one", adds_up_here)
    with pytest.raises(InputError, match=r"^judge one appears twice in the cascade; name it once$"):
        await cascaded(labelled_sums(2), [plan(one), plan(two)], tmp_path / "store.db")
    with pytest.raises(InputError, match="escalate judges every pair"):
        await cascaded(
            labelled_sums(2), [plan(one)], tmp_path / "store.db", until_decided=UntilDecided()
        )
