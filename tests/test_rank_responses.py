"""Several responses ranked: the right order from a sound judge, an honest one from any other."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand
from evenhand.contract import (
    Analysis,
    Differentiators,
    Metadata,
    Outcome,
    Pair,
    Usage,
    Verdict,
    Winner,
)
from evenhand.errors import (
    EvenhandError,
    InputError,
    JudgeAuthentication,
    JudgeTimeout,
    NoVerdict,
)
from evenhand.ranker.merge_insertion import ComparisonResult, merge_insertion
from evenhand.ranker.responses import RankedResponses, most_comparisons, rank_responses
from parts import examples
from scripted import answer_json
from servers import Reply, SeenRequest, StartServer, chat_reply, start_server

__all__ = ["start_server"]

# OEIS A001768: merge insertion's comparisons in the worst case, for 1 to 21 items.
WORST_CASES = (0, 1, 3, 5, 7, 10, 13, 16, 19, 22, 26, 30, 34, 38, 42, 46, 50, 54, 58, 62, 66)

Says = Callable[[Pair], Verdict]


def verdict(winner: Winner, outcome: Outcome = Outcome.WIN, confidence: float = 0.8) -> Verdict:
    return Verdict(
        winner=winner,
        confidence=confidence,
        comparison=(),
        overall_reasoning="so it seems",
        differentiators=Differentiators(),
        analysis=Analysis(),
        metadata=Metadata(outcome=outcome, judge="test", usage=Usage(requests=2)),
    )


def by_length(pair: Pair) -> Verdict:
    """A consistent judge: the longer is better."""
    a, b = len(pair.response_a), len(pair.response_b)
    if a == b:
        return verdict("TIE", Outcome.TIE)
    return verdict("A" if a > b else "B")


def rank(responses: Sequence[str], says: Says, **options: object) -> RankedResponses:
    async def ask(pair: Pair) -> Verdict:
        await asyncio.sleep(0)
        return says(pair)

    return asyncio.run(
        rank_responses("p", responses, criteria=["accuracy"], ask=ask, **options)  # type: ignore[arg-type]
    )


def places(ranked: RankedResponses) -> dict[int, tuple[int, int]]:
    return {each.index: (each.rank_from, each.rank_to) for each in ranked.ranking}


def told_by(key: Sequence[int]) -> Callable[[int, int], ComparisonResult]:
    def compared(one: int, other: int) -> ComparisonResult:
        if key[one] == key[other]:
            return ComparisonResult.EQUAL
        return ComparisonResult.FIRST if key[one] > key[other] else ComparisonResult.SECOND

    return compared


def sort(
    count: int, compared: Callable[[int, int], ComparisonResult]
) -> tuple[list[list[int]], int]:
    sorting = merge_insertion(range(count))
    made = 0
    try:
        batch = next(sorting)
        while True:
            made += len(batch)
            batch = sorting.send([compared(*pair) for pair in batch])
    except StopIteration as finished:
        return [level.items for level in finished.value.levels], made


@pytest.mark.parametrize("count", range(1, 8))
def test_every_order_is_found_and_the_worst_takes_exactly_the_published_number(count: int) -> None:
    worst = 0
    for key in itertools.permutations(range(count)):
        levels, made = sort(count, told_by(key))
        assert [key[item] for (item,) in levels] == list(range(count))
        worst = max(worst, made)
    assert worst == WORST_CASES[count - 1]


def test_the_bound_is_the_published_one() -> None:
    assert tuple(most_comparisons(count) for count in range(1, 22)) == WORST_CASES


@given(st.integers(2, 40), st.randoms(use_true_random=False))
@settings(max_examples=examples(200))
def test_no_order_takes_more_than_the_worst_case(count: int, rng: random.Random) -> None:
    key = rng.sample(range(count), count)
    levels, made = sort(count, told_by(key))
    assert [key[item] for (item,) in levels] == list(range(count))
    assert made <= most_comparisons(count)


@given(st.lists(st.integers(0, 6), min_size=2, max_size=20))
@settings(max_examples=examples(200))
def test_ties_share_a_place_and_cost_no_more(key: list[int]) -> None:
    levels, made = sort(len(key), told_by(key))
    values = [{key[item] for item in items} for items in levels]
    assert values == [{value} for value in sorted(set(key))]
    assert made <= most_comparisons(len(key))


@given(st.permutations(["x" * size for size in (1, 2, 3, 3, 4, 5, 5, 5, 9)]))
def test_a_consistent_judge_gives_the_same_places_in_whatever_order_responses_come(
    responses: list[str],
) -> None:
    # The three letters differ from each other, so that equal lengths are not identical texts.
    responses = [f"{chr(97 + place)}{text[1:]}" for place, text in enumerate(responses)]
    ranked = rank(responses, by_length)
    # 9 is first, the fives share 2 to 4, 4 is fifth, the threes share 6 and 7, then 2, then 1.
    expected = {9: (1, 1), 5: (2, 4), 4: (5, 5), 3: (6, 7), 2: (8, 8), 1: (9, 9)}
    assert places(ranked) == {index: expected[len(text)] for index, text in enumerate(responses)}
    assert not ranked.contradictions


def test_each_two_neighbours_of_a_strict_order_were_compared() -> None:
    ranked = rank(["x" * size for size in (4, 9, 1, 7, 3, 12, 5)], by_length)
    assert [each.index for each in ranked.ranking] == [5, 1, 3, 6, 0, 4, 2]
    for neighbours in ranked.neighbours:
        assert neighbours.compared
        assert neighbours.relation == "win"
        assert neighbours.winner == neighbours.upper
        assert neighbours.confidence == 0.8
    assert ranked.metadata.comparisons == len(ranked.comparisons) <= WORST_CASES[6]
    assert ranked.metadata.usage.requests == 2 * len(ranked.comparisons)
    assert "one comparison" in ranked.notes[0]


def unsound(rng: random.Random) -> Says:
    def says(pair: Pair) -> Verdict:
        choice = rng.randrange(5)
        if choice == 4:
            raise NoVerdict("no valid verdict: unread")
        return [
            verdict("A"),
            verdict("B"),
            verdict("TIE", Outcome.TIE),
            verdict("TIE", Outcome.INCONSISTENT),
        ][choice]

    return says


@given(
    st.integers(2, 14),
    st.randoms(use_true_random=False),
    st.booleans(),
    st.none() | st.integers(1, 9),
)
@settings(max_examples=examples(300))
def test_any_judge_at_all_ends_with_each_response_once(
    count: int, rng: random.Random, check: bool, limit: int | None
) -> None:
    responses = [f"answer {rng.randrange(count)}" for _ in range(count)]
    ranked = rank(responses, unsound(rng), check=check, max_comparisons=limit)
    assert sorted(each.index for each in ranked.ranking) == list(range(count))
    for each in ranked.ranking:
        assert 1 <= each.rank_from <= each.rank_to <= count
    for upper, lower in zip(ranked.ranking, ranked.ranking[1:], strict=False):
        assert (upper.rank_from, upper.rank_to) <= (lower.rank_from, lower.rank_to)
    asked = [{each.first, each.second} for each in ranked.comparisons]
    assert all(asked.count(pair) == 1 for pair in asked)
    assert limit is None or len(asked) <= limit
    # Who won a comparison is never put below who lost it, whatever the others say.
    at = places(ranked)
    for comparison in ranked.comparisons:
        assert (comparison.winner is not None) == (comparison.outcome == "win")
        if comparison.winner is not None:
            loser = comparison.first + comparison.second - comparison.winner
            assert at[comparison.winner] <= at[loser]
        if comparison.outcome == "invalid":
            assert comparison.error is not None
            assert comparison.error.kind == "invalid"


@pytest.mark.parametrize("outcome", [Outcome.TIE, Outcome.INCONSISTENT])
def test_a_judge_that_never_tells_them_apart_gives_all_of_them_all_places(
    outcome: Outcome,
) -> None:
    ranked = rank([f"answer {n}" for n in range(6)], lambda _: verdict("TIE", outcome))
    assert set(places(ranked).values()) == {(1, 6)}
    # Each of the others is tied with one: 5 comparisons join 6 responses.
    assert len(ranked.comparisons) == 5
    assert {each.relation for each in ranked.neighbours} <= {outcome.value, "shared"}


def test_a_judge_without_a_verdict_leaves_every_place_open_and_is_not_asked_for_ever() -> None:
    def mute(_: Pair) -> Verdict:
        raise NoVerdict("no valid verdict: it said nothing")

    ranked = rank([f"answer {n}" for n in range(12)], mute)
    assert set(places(ranked).values()) == {(1, 12)}
    assert ranked.metadata.invalid == len(ranked.comparisons) <= 3 * 12
    assert all(not each.compared for each in ranked.neighbours)
    assert {each.relation for each in ranked.neighbours} <= {"invalid", "unknown"}


def test_one_comparison_without_a_verdict_is_gone_around() -> None:
    def says(pair: Pair) -> Verdict:
        if {len(pair.response_a), len(pair.response_b)} == {2, 9}:
            raise NoVerdict("no valid verdict: unread")
        return by_length(pair)

    # The two stand first, so they are a pair of the first round.
    ranked = rank(["x" * size for size in (2, 9, 1, 7, 3)], says)
    assert [each.index for each in ranked.ranking] == [1, 3, 4, 0, 2]
    assert all(each.rank_from == each.rank_to for each in ranked.ranking)
    assert ranked.metadata.invalid == 1
    assert any("1 of" in note for note in ranked.notes)


def test_neighbours_without_a_verdict_share_their_places() -> None:
    def says(pair: Pair) -> Verdict:
        if {len(pair.response_a), len(pair.response_b)} == {2, 3}:
            raise NoVerdict("no valid verdict: unread")
        return by_length(pair)

    ranked = rank(["x" * size for size in (1, 2, 3, 4)], says)
    assert places(ranked) == {3: (1, 1), 2: (2, 3), 1: (2, 3), 0: (4, 4)}
    between = next(each for each in ranked.neighbours if {each.upper, each.lower} == {1, 2})
    assert (between.compared, between.relation, between.winner) == (False, "invalid", None)


def beats(*wins: tuple[str, str]) -> Says:
    def says(pair: Pair) -> Verdict:
        if (pair.response_a, pair.response_b) in wins:
            return verdict("A")
        assert (pair.response_b, pair.response_a) in wins
        return verdict("B")

    return says


def test_a_circle_is_found_where_it_is_looked_for_and_its_members_share_their_places() -> None:
    # Rock, paper, scissors above a response that loses to all three.
    circle = beats(
        ("paper", "rock"),
        ("scissors", "paper"),
        ("rock", "scissors"),
        ("rock", "nothing"),
        ("paper", "nothing"),
        ("scissors", "nothing"),
    )
    ranked = rank(["rock", "paper", "scissors", "nothing"], circle, check=True)
    assert places(ranked) == {0: (1, 3), 1: (1, 3), 2: (1, 3), 3: (4, 4)}
    (found,) = ranked.contradictions
    assert sorted(found.circle) == [0, 1, 2]
    assert (
        "The comparisons contradict each other in 1 cycle; the responses in it share their rank."
        in ranked.notes
    )


@given(st.integers(3, 9))
def test_a_sound_judge_stands_the_check(count: int) -> None:
    responses = ["x" * (1 + 7 * n % 31) for n in range(count)]
    ranked = rank(responses, by_length, check=True)
    assert not ranked.contradictions
    assert len(ranked.comparisons) <= most_comparisons(count) + 2 * count - 3
    assert [len(responses[each.index]) for each in ranked.ranking] == sorted(
        map(len, responses), reverse=True
    )


def test_identical_responses_cost_nothing_and_share_their_places() -> None:
    asked: list[Pair] = []

    def says(pair: Pair) -> Verdict:
        asked.append(pair)
        return by_length(pair)

    ranked = rank(["bb", "a", "bb", "a", "bb"], says)
    assert len(asked) == 1
    assert places(ranked) == {0: (1, 3), 2: (1, 3), 4: (1, 3), 1: (4, 5), 3: (4, 5)}
    assert [each.relation for each in ranked.neighbours] == [
        "identical",
        "identical",
        "win",
        "identical",
    ]
    # The neighbours at the border are twins of the two that were compared.
    assert (ranked.neighbours[2].upper, ranked.neighbours[2].winner) == (4, 4)
    nobody = rank(["same", "same"], says)
    assert len(asked) == 1
    assert places(nobody) == {0: (1, 2), 1: (1, 2)}
    assert nobody.comparisons == ()


def test_the_comparisons_of_a_round_run_at_the_same_time_but_no_more_than_told() -> None:
    running, most = 0, 0

    async def ask(pair: Pair) -> Verdict:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return by_length(pair)

    heard: list[tuple[int, int]] = []
    asyncio.run(
        rank_responses(
            "p",
            ["x" * n for n in range(1, 13)],
            criteria=["accuracy"],
            ask=ask,
            at_once=4,
            on_progress=lambda done, total: heard.append((done, total)),
        )
    )
    assert most == 4
    assert [done for done, _ in heard] == list(range(1, len(heard) + 1))
    assert {total for _, total in heard} == {30}


def test_a_judge_that_cannot_be_asked_at_all_is_an_error() -> None:
    def late(_: Pair) -> Verdict:
        raise JudgeTimeout("no answer within 5 s; raise --timeout")

    with pytest.raises(JudgeTimeout):
        rank(["a", "b", "c"], late)


def test_a_judge_that_fails_now_and_then_costs_only_that_comparison() -> None:
    asked = 0

    def says(pair: Pair) -> Verdict:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise JudgeTimeout("no answer within 5 s; raise --timeout")
        return by_length(pair)

    ranked = rank(["x" * n for n in (3, 1, 4, 2, 5)], says)
    assert [each.index for each in ranked.ranking] == [4, 2, 0, 3, 1]
    failed = [each for each in ranked.comparisons if each.error is not None]
    assert [each.error.kind for each in failed if each.error] == ["judge_timeout"]


def test_a_wrong_key_ends_it_at_once_and_leaves_nothing_running() -> None:
    asked: list[str] = []

    async def ask(pair: Pair) -> Verdict:
        asked.append(str(pair.id))
        if len(asked) == 1:
            raise JudgeAuthentication("the key was refused; check OPENAI_API_KEY")
        await asyncio.sleep(3600)
        raise AssertionError

    async def body() -> None:
        with pytest.raises(EvenhandError, match="key"):
            await rank_responses("p", list("abcdef"), criteria=["accuracy"], ask=ask)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(body())
    assert len(asked) <= 3


def test_an_abstained_win_decides_nothing() -> None:
    def says(pair: Pair) -> Verdict:
        sure = by_length(pair)
        metadata = sure.metadata.model_copy(update={"abstained": True})
        return sure.model_copy(update={"metadata": metadata})

    ranked = rank(["a", "bb"], says)
    assert places(ranked) == {0: (1, 2), 1: (1, 2)}
    assert ranked.neighbours[0].relation == "abstained"


@pytest.mark.parametrize(
    ("prompt", "responses", "criteria", "message"),
    [
        ("p", ["a"], ["accuracy"], "responses has 1 entry; a ranking needs at least 2"),
        ("p", "ab", ["accuracy"], "responses must be a list of texts"),
        ("p", ["a", 3], ["accuracy"], r"responses\[1\] must be a string, not the number 3"),
        ("p", ["a", "b"], [], "criteria is empty"),
        (None, ["a", "b"], ["accuracy"], "prompt is missing"),
    ],
)
def test_what_cannot_be_ranked_is_refused_by_name(
    prompt: str, responses: list[str], criteria: list[str], message: str
) -> None:
    async def ask(_: Pair) -> Verdict:
        raise AssertionError("nothing is asked")

    with pytest.raises(InputError, match=message):
        asyncio.run(rank_responses(prompt, responses, criteria=criteria, ask=ask))


def test_the_json_is_camel_case_and_whole() -> None:
    told = rank(["a", "bb"], by_length).model_dump(mode="json")
    assert told["ranking"] == [
        {"index": 1, "rankFrom": 1, "rankTo": 1},
        {"index": 0, "rankFrom": 2, "rankTo": 2},
    ]
    assert told["neighbours"][0] == {
        "upper": 1,
        "lower": 0,
        "compared": True,
        "relation": "win",
        "winner": 1,
        "confidence": 0.8,
    }
    assert RankedResponses.model_validate(told).ranking[0].index == 1


def shouts(request: SeenRequest) -> Reply:
    """The one in capitals is better, wherever it is shown."""
    first, second = re.findall(r"^(loud|LOUD|LOUDEST)$", request.prompt, re.MULTILINE)[-2:]
    if first.isupper() == second.isupper():
        return chat_reply(answer_json("A" if len(first) > len(second) else "B"))
    return chat_reply(answer_json("A" if first.isupper() else "B"))


def test_from_python_by_a_judges_name_and_by_a_judge(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(shouts)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-key")
    texts = ["loud", "LOUDEST", "LOUD"]
    heard: list[tuple[int, int]] = []

    async def by_name() -> RankedResponses:
        return await evenhand.rank_responses(
            "Shout.",
            texts,
            criteria=["volume"],
            judge="openai:loopback",
            on_progress=lambda done, most: heard.append((done, most)),
        )

    async def by_judge() -> RankedResponses:
        judge = evenhand.open_judge("openai:loopback")
        try:
            return await evenhand.rank_responses("Shout.", texts, criteria=["volume"], judge=judge)
        finally:
            await judge.close()

    ranked = asyncio.run(by_name())
    assert [each.index for each in ranked.ranking] == [1, 2, 0]
    assert ranked.metadata.judge == "openai:loopback"
    assert heard[-1] == (len(ranked.comparisons), 3)
    # Both orders of each comparison.
    assert len(server.requests) == 2 * len(ranked.comparisons)
    assert [each.index for each in asyncio.run(by_judge()).ranking] == [1, 2, 0]
    assert server.wait_until_idle()


def test_what_is_no_judge_is_refused_from_python() -> None:
    work = evenhand.rank_responses("p", ["a", "b"], criteria=["x"], judge=7)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="judge is 7"):
        asyncio.run(work)
