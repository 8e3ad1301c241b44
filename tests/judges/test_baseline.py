import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.contract import ORDERS, Order, Pair, Winner, flip, read_pair
from evenhand.errors import InputError
from evenhand.judges.protocol import Completion, JudgeCall
from evenhand.judges.registry import open_judge

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def a_pair(response_a: str, response_b: str, *, prompt: str = "p", allow_tie: bool = True) -> Pair:
    return read_pair(
        {
            "prompt": prompt,
            "responseA": response_a,
            "responseB": response_b,
            "criteria": ["accuracy"],
            "allowTie": allow_tie,
        }
    )


def ask(which: str, pair: Pair, order: Order = "original", sample: int = 1) -> Completion:
    return asyncio.run(
        open_judge(f"baseline:{which}").ask(JudgeCall(pair=pair, order=order, sample=sample))
    )


def test_the_longer_response_wins_in_the_labels_that_the_pass_shows() -> None:
    pair = a_pair("four", "longer")
    assert ask("longer", pair, "original").verdict_as_shown == "B"
    assert ask("longer", pair, "swapped").verdict_as_shown == "A"


def test_length_is_counted_in_characters_and_not_in_bytes() -> None:
    # Two characters of three bytes each against three of one byte.
    assert ask("longer", a_pair("响应", "abc")).verdict_as_shown == "B"


@pytest.mark.parametrize("which", ["longer", "random"])
@pytest.mark.parametrize("order", ORDERS)
def test_equal_responses_tie_where_ties_are_allowed_and_are_no_coin_where_not(
    which: str, order: Order
) -> None:
    assert ask(which, a_pair("same", "same"), order).verdict_as_shown == "TIE"
    refused = ask(which, a_pair("same", "same", allow_tie=False), order)
    assert (refused.text, refused.verdict_as_shown, refused.finish) == ("", None, "refusal")
    said = "equally long" if which == "longer" else "identical"
    assert refused.refusal == f"the responses are {said}, but ties are not allowed"


@given(texts, texts, texts, st.integers(), st.integers(1, 5), st.booleans())
def test_every_baseline_names_the_same_response_in_both_orders_and_mirrors(
    prompt: str, one: str, other: str, seed: int, sample: int, allow_tie: bool
) -> None:
    pair = a_pair(one, other, prompt=prompt, allow_tie=allow_tie)
    for which in ("longer", f"random:{seed}"):
        first = ask(which, pair, "original", sample).verdict_as_shown
        second = ask(which, pair, "swapped", sample).verdict_as_shown
        mirrored = ask(which, pair.mirrored(), "original", sample).verdict_as_shown
        assert second == mirrored == (flip(first) if first else None)
        assert first == ask(which, pair, "original", sample).verdict_as_shown


def verdicts_of_a_coin(which: str, *, sample: int = 1) -> list[Winner | None]:
    return [
        ask(which, a_pair("left", "right", prompt=str(n)), sample=sample).verdict_as_shown
        for n in range(400)
    ]


def test_the_coin_is_fair_and_changes_with_the_seed_the_prompt_and_the_sample() -> None:
    plain = verdicts_of_a_coin("random")
    # 400 fair draws have a standard deviation of 10: 5 of them either way is 150 to 250.
    assert 150 <= plain.count("A") <= 250
    assert set(plain) == {"A", "B"}
    for changed in (verdicts_of_a_coin("random:1"), verdicts_of_a_coin("random", sample=2)):
        differing = sum(one != other for one, other in zip(plain, changed, strict=True))
        assert 150 <= differing <= 250
    assert verdicts_of_a_coin("random:0") == plain


def test_a_baseline_says_that_it_is_no_judge_and_needs_no_prompt() -> None:
    judge = open_judge("baseline:random:7")
    assert judge.name == "baseline:random:7"
    assert judge.traits.caveat == "a baseline that ignores the content, not a real judge"
    assert (judge.traits.needs_prompt, judge.traits.modes) == (False, ("reasoned",))
    assert judge.traits.free
    assert ask("longer", a_pair("a", "bb")).flags == ("baseline",)


@pytest.mark.parametrize("which", ["shorter", "longer:3", "Random"])
def test_an_unknown_baseline_is_refused_with_the_known_ones(which: str) -> None:
    with pytest.raises(InputError, match="the baselines are longer, random, random:SEED"):
        open_judge(f"baseline:{which}")


@pytest.mark.parametrize("seed", ["", "x", "1.5"])
def test_a_seed_that_is_no_whole_number_is_refused(seed: str) -> None:
    with pytest.raises(InputError, match="whole number"):
        open_judge(f"baseline:random:{seed}")
