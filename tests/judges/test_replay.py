import asyncio
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evenhand.contract import ORDERS, Order, Pair, Scores, read_pair
from evenhand.errors import InputError, NotRecorded
from evenhand.judges.protocol import Completion, JudgeCall
from evenhand.judges.replay import ReplayJudge
from evenhand.judging.comparison import compare

RECORDED = Path(__file__).parents[2].parent / "shared" / "data" / "judgments"


def a_record(**fields: Any) -> dict[str, Any]:
    plain = {"id": "p1", "pass": "original", "raw": "[[A]]", "verdict_as_shown": "A", "model": "m"}
    return plain | fields


def a_file(directory: Path, *records: dict[str, Any], name: str = "recorded.jsonl") -> Path:
    path = directory / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def a_pair(pair_id: str | None = "p1") -> Pair:
    fields = {"prompt": "p", "responseA": "a", "responseB": "b", "criteria": ["accuracy"]}
    return read_pair(fields if pair_id is None else fields | {"id": pair_id})


def ask(
    judge: ReplayJudge, pair_id: str | None = "p1", order: Order = "original", sample: int = 1
) -> Completion:
    return asyncio.run(judge.ask(JudgeCall(pair=a_pair(pair_id), order=order, sample=sample)))


def test_a_recorded_completion_comes_back_verbatim(tmp_path: Path) -> None:
    raw = "线\n [[A]]\r\n\u2028 end "
    judge = ReplayJudge(a_file(tmp_path, a_record(raw=raw, finish_reason="length")))
    answer = ask(judge)
    assert (answer.text, answer.finish, answer.model) == (raw, "length", "m")
    # The text is there, so it is read anew: the authors' own reading is sometimes wrong.
    assert answer.verdict_as_shown is None
    assert judge.name == "replay:recorded.jsonl"


def test_a_verdict_recorded_without_its_text_comes_back_as_one(tmp_path: Path) -> None:
    answer = ask(ReplayJudge(a_file(tmp_path, a_record(raw=None, verdict_as_shown="TIE"))))
    assert (answer.text, answer.verdict_as_shown) == ("", "TIE")
    assert answer.flags == ("recorded verdict, no text",)


def test_scores_recorded_without_a_text_come_back_with_the_verdict(tmp_path: Path) -> None:
    bare = a_record(raw=None, verdict_as_shown="B", scores=[-1.5, 2])
    told = a_record(id="p2", scores=[1, 2])
    judge = ReplayJudge(a_file(tmp_path, bare, told))
    assert ask(judge).scores_as_shown == (-1.5, 2.0)
    # The text is there: what it says itself counts, and not what others made of it.
    assert ask(judge, "p2").scores_as_shown is None


def test_recorded_scores_are_turned_round_with_their_pass_and_decide_nothing(
    tmp_path: Path,
) -> None:
    shown = {"raw": None, "verdict_as_shown": "A", "scores": [1.0, 4.0]}
    path = a_file(tmp_path, a_record(**shown), a_record(**shown, **{"pass": "swapped"}))
    verdict = asyncio.run(compare(a_pair(), ReplayJudge(path)))
    first, second = (each.ballot for each in verdict.metadata.passes)
    assert first is not None
    assert second is not None
    assert (first.winner, first.scores) == ("A", Scores(a=1, b=4))
    assert (second.winner, second.scores) == ("B", Scores(a=4, b=1))
    assert verdict.outcome == "inconsistent"
    assert (first.confidence, second.confidence) == (None, None)


def test_neither_text_nor_verdict_is_an_empty_answer_and_not_a_tie(tmp_path: Path) -> None:
    answer = ask(ReplayJudge(a_file(tmp_path, a_record(raw=None, verdict_as_shown=None))))
    assert (answer.text, answer.verdict_as_shown, answer.flags) == ("", None, ())


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        (None, "stop"),
        ("stop", "stop"),
        ("content_filter", "filter"),
        ("refusal", "refusal"),
        ("odd", "other"),
    ],
)
def test_the_finish_reason_is_kept_as_far_as_it_is_known(
    tmp_path: Path, reason: str | None, finish: str
) -> None:
    judge = ReplayJudge(a_file(tmp_path, a_record(finish_reason=reason)))
    assert ask(judge).finish == finish


@pytest.mark.parametrize("first_number", [0, 1])
def test_samples_are_found_by_their_repetition_whatever_the_files_order(
    tmp_path: Path, first_number: int
) -> None:
    records = [a_record(raw=f"r{n}", repetition=n + first_number) for n in (2, 0, 1)]
    judge = ReplayJudge(a_file(tmp_path, *records))
    assert [ask(judge, sample=sample).text for sample in (1, 2, 3)] == ["r0", "r1", "r2"]


def test_samples_are_the_recordings_there_are_whatever_their_numbers(tmp_path: Path) -> None:
    records = [a_record(raw="three", repetition=3), a_record(raw="one", repetition=1)]
    judge = ReplayJudge(a_file(tmp_path, *records))
    assert [ask(judge, sample=sample).text for sample in (1, 2)] == ["one", "three"]
    with pytest.raises(NotRecorded, match=r"no sample 3 .* \(recorded: 2\)"):
        ask(judge, sample=3)


def test_an_id_that_is_a_number_is_read_as_its_text(tmp_path: Path) -> None:
    # As in files of pairs, whose ids may be numbers too.
    judge = ReplayJudge(a_file(tmp_path, a_record(id=7, raw="seven"), a_record(id="8")))
    assert ask(judge, "7").text == "seven"


def test_recordings_keep_the_numbers_of_their_repetitions(tmp_path: Path) -> None:
    records = [a_record(raw="three", repetition=3), a_record(raw="one", repetition=1)]
    judge = ReplayJudge(a_file(tmp_path, *records))
    assert [(each.repetition, each.raw) for each in judge.recordings()] == [
        (1, "one"),
        (3, "three"),
    ]
    assert judge.repetitions == 2


def test_each_pass_counts_its_samples_from_its_own_first_one(tmp_path: Path) -> None:
    from_zero = [a_record(id="p2", raw=f"r{n}", repetition=n) for n in (0, 1)]
    judge = ReplayJudge(a_file(tmp_path, a_record(raw="only"), *from_zero))
    assert ask(judge, "p1").text == "only"
    assert [ask(judge, "p2", sample=sample).text for sample in (1, 2)] == ["r0", "r1"]


@pytest.mark.parametrize(
    ("pair_id", "order", "remedy"),
    [
        ("p1", "swapped", "judge only the recorded order (no_swap)"),
        ("p2", "swapped", "; judge only recorded pairs, or record it"),
        (None, "original", "add one (id)"),
    ],
)
def test_what_was_not_recorded_has_a_remedy(
    tmp_path: Path, pair_id: str | None, order: Order, remedy: str
) -> None:
    with pytest.raises(NotRecorded) as caught:
        ask(ReplayJudge(a_file(tmp_path, a_record())), pair_id, order)
    assert caught.value.message.endswith(remedy)


def test_of_the_rounds_of_one_pass_the_last_is_its_answer(tmp_path: Path) -> None:
    records = [a_record(raw="second", round=2), a_record(raw="first")]
    assert ask(ReplayJudge(a_file(tmp_path, *records))).text == "second"


@pytest.mark.parametrize(
    ("pair_id", "order", "sample", "fact"),
    [
        ("p2", "original", 1, "pair 'p2'"),
        ("p1", "swapped", 1, "pass swapped of pair 'p1'"),
        ("p1", "original", 2, "no sample 2 of pair 'p1', pass original"),
        (None, "original", 1, "the pair has no id"),
    ],
)
def test_what_was_not_recorded_is_never_guessed(
    tmp_path: Path, pair_id: str | None, order: Order, sample: int, fact: str
) -> None:
    judge = ReplayJudge(a_file(tmp_path, a_record()))
    with pytest.raises(NotRecorded) as caught:
        ask(judge, pair_id, order, sample)
    assert fact in str(caught.value)


def test_two_different_recordings_of_one_pass_are_an_error_naming_both_lines(
    tmp_path: Path,
) -> None:
    path = a_file(tmp_path, a_record(), a_record(id="p2"), a_record(raw="[[B]]"))
    with pytest.raises(InputError, match="lines 1 and 3: two different recordings of pair 'p1'"):
        ReplayJudge(path)


def test_the_same_recording_twice_is_one(tmp_path: Path) -> None:
    assert ask(ReplayJudge(a_file(tmp_path, a_record(), a_record()))).text == "[[A]]"


def test_gzip_a_byte_order_mark_blank_lines_and_windows_line_ends_are_all_read(
    tmp_path: Path,
) -> None:
    plain = b"\xef\xbb\xbf" + json.dumps(a_record()).encode() + b"\r\n\r\n  \n"
    plain += json.dumps(a_record(**{"pass": "swapped", "raw": "[[B]]"})).encode()
    for name, content in (("a.jsonl", plain), ("b.jsonl.gz", gzip.compress(plain))):
        (tmp_path / name).write_bytes(content)
        judge = ReplayJudge(tmp_path / name)
        assert [ask(judge, order=order).text for order in ORDERS] == ["[[A]]", "[[B]]"]


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ('{"id": "p1"', "line 2 is not JSON"),
        ("[1]", "line 2 is not a JSON object"),
        ('{"pass": "original", "raw": ""}', "line 2 has no id"),
        ('{"id": "p1", "raw": ""}', "line 2 has no pass"),
        ('{"id": "p1", "pass": "original"}', "line 2 has neither raw nor verdict_as_shown"),
        (
            '{"id": [7], "pass": "original", "raw": ""}',
            "line 2: id must be a string or a whole number, not [7]",
        ),
        ('{"id": "p1", "pass": "both", "raw": ""}', 'pass must be original or swapped, not "both"'),
        ('{"id": "p1", "pass": "original", "raw": 3}', "raw must be a string or null, not 3"),
        (
            '{"id": "p1", "pass": "original", "raw": null, "verdict_as_shown": "C"}',
            "verdict_as_shown must be A, B, TIE or null",
        ),
        (
            '{"id": "p1", "pass": "original", "raw": "", "repetition": true}',
            "repetition must be a whole number",
        ),
        (
            '{"id": "p1", "pass": "original", "raw": null, "verdict_as_shown": "A", "scores": 3}',
            "scores must be two numbers or null, not 3",
        ),
        (
            '{"id": "p1", "pass": "original", "raw": null, "verdict_as_shown": "A",'
            ' "scores": [1, true]}',
            "scores must be two numbers or null, not [1,true]",
        ),
    ],
)
def test_a_bad_line_is_named_with_its_file_its_number_and_what_it_should_be(
    tmp_path: Path, line: str, fact: str
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(a_record(id="p0")) + "\n" + line + "\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        ReplayJudge(path)
    assert fact in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_a_broken_and_an_unreadable_file_are_input_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        ReplayJudge(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="cannot read"):
        ReplayJudge(tmp_path)
    whole = gzip.compress(b"".join(json.dumps(a_record(id=str(n))).encode() for n in range(900)))
    (tmp_path / "half.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="is truncated or damaged"):
        ReplayJudge(tmp_path / "half.gz")


def test_a_replayed_judge_needs_no_prompt_and_costs_nothing(tmp_path: Path) -> None:
    judge = ReplayJudge(a_file(tmp_path, a_record()))
    assert (judge.traits.modes, judge.traits.needs_prompt) == (("reasoned",), False)
    assert judge.traits.free


@pytest.mark.slow
@pytest.mark.recorded
def test_every_published_recording_is_found_again_word_for_word() -> None:
    if not RECORDED.is_dir():
        pytest.skip("the recorded judgments in ../shared/data are not there")
    for path in sorted(RECORDED.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        judge = ReplayJudge(path)
        answered = Counter[bool]()
        for record in records:
            call = JudgeCall(
                pair=a_pair(record["id"]), order=record["pass"], sample=record.get("repetition", 1)
            )
            coroutine = judge.ask(call)
            with pytest.raises(StopIteration) as done:
                coroutine.send(None)
            answer: Completion = done.value.value
            answered[
                answer.text == (record["raw"] or "")
                and (
                    record["raw"] is not None
                    or answer.verdict_as_shown == record["verdict_as_shown"]
                )
            ] += 1
        assert answered == {True: len(records)}
