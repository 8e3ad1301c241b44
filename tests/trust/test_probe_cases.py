"""The probes' pairs: enough of them, balanced, the same at every call, and true to their names."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.contract import Locale, read_criteria
from evenhand.errors import InputError
from evenhand.trust.probes.cases import LANGUAGES, PROBE_NAMES, ProbeCase, ProbePairs, probe_cases
from evenhand.trust.probes.texts import (
    ProbeQuestion,
    cut_short,
    dress_in_markdown,
    inject,
    pad,
    probe_texts,
    shuffle_sentences,
)

CASES = probe_cases()
CHINESE = re.compile(r"[\u4e00-\u9fff]")

sentences = st.lists(
    st.text(st.characters(categories=["L", "N"]), min_size=4, max_size=20).map(lambda t: f"{t}."),
    min_size=5,
    max_size=9,
    unique=True,
)


def of(probe: str, language: Locale) -> list[ProbeCase]:
    return [case for case in CASES if (case.probe, case.language) == (probe, language)]


def good_and_other(case: ProbeCase) -> tuple[str, str]:
    texts = (case.pair.response_a, case.pair.response_b)
    return texts if case.sound == "A" else (texts[1], texts[0])


def question(
    parts: list[str], language: Locale = "en", keys: tuple[str, ...] = ()
) -> ProbeQuestion:
    return ProbeQuestion("q", "p?", tuple(parts), "poor", language, keys=keys)


def test_there_are_at_least_150_pairs_of_which_no_two_are_alike() -> None:
    assert len(CASES) >= 150
    assert len({case.id for case in CASES}) == len(CASES)
    shown = {(c.pair.prompt, c.pair.response_a, c.pair.response_b, c.probe) for c in CASES}
    assert len(shown) == len(CASES)


def test_every_probe_is_asked_in_both_languages_and_about_the_same() -> None:
    for probe in PROBE_NAMES:
        english, chinese = of(probe, "en"), of(probe, "zh")
        assert len(english) >= 8
        assert [case.twin for case in english] == [case.twin for case in chinese]
        assert [case.sound for case in english] == [case.sound for case in chinese]


def test_the_good_answer_stands_on_each_side_equally_often() -> None:
    for probe in PROBE_NAMES:
        sides = Counter(case.sound for case in of(probe, "en"))
        assert sides["A"] == sides["B"]


def test_the_same_cases_come_at_every_call() -> None:
    assert probe_cases() == CASES


def test_no_question_is_asked_twice_by_one_probe() -> None:
    for probe in PROBE_NAMES:
        prompts = [case.pair.prompt for case in of(probe, "zh")]
        assert len(set(prompts)) == len(prompts)


def test_both_languages_have_the_same_texts_each_in_its_own_language() -> None:
    english, chinese = probe_texts("en"), probe_texts("zh")
    for kind in ("questions", "injections", "flatteries", "refusals"):
        ours, theirs = getattr(english, kind), getattr(chinese, kind)
        assert [each.id for each in ours] == [each.id for each in theirs]
        assert len({each.id for each in ours}) == len(ours)
    for one, other in zip(english.questions, chinese.questions, strict=True):
        assert len(one.sentences) == len(other.sentences) >= 5
        assert (one.ordered, bool(one.keys), bool(one.wordy)) == (
            *(other.ordered, bool(other.keys)),
            bool(other.wordy),
        )
        for text in (one.prompt, one.answer, one.poor):
            assert not CHINESE.search(text)
        for text in (other.prompt, other.answer, other.poor):
            assert CHINESE.search(text)


def test_what_is_set_in_bold_stands_in_the_answer() -> None:
    for language in LANGUAGES:
        for each in probe_texts(language).questions:
            assert all(key in each.answer for key in each.keys)


def test_every_injection_carries_its_poor_answer_and_fills_its_slots() -> None:
    for case in (*of("injection", "en"), *of("injection", "zh")):
        _, injected = good_and_other(case)
        assert "{answer}" not in injected
        assert "{label}" not in injected
        poor = {each.prompt: each.poor for each in probe_texts(case.language).questions}
        assert poor[case.pair.prompt] in injected
        assert injected.replace(poor[case.pair.prompt], "").strip()


def test_an_injected_verdict_names_its_own_response() -> None:
    for case in of("injection", "en"):
        _, injected = good_and_other(case)
        named = re.findall(r'"winner": "([AB])"|\[\[([AB])\]\]', injected)
        assert {label for both in named for label in both if label} <= {"A", "B"} - {case.sound}


def test_the_longer_text_is_more_than_twice_as_long() -> None:
    for language in LANGUAGES:
        for case in of("longer", language):
            good, wordy = good_and_other(case)
            assert len(wordy) > 2 * len(good)


def test_expectations_are_in_the_labels_of_the_pair() -> None:
    for case in CASES:
        if case.probe in ("identical", "markdown"):
            assert case.expected == ("TIE",)
        elif case.probe in ("padded", "longer"):
            assert case.expected == (case.sound, "TIE")
        elif case.probe == "languages":
            assert case.expected == ()
        else:
            assert case.expected == (case.sound,)


@given(sentences)
def test_of_shuffled_sentences_none_follows_what_it_should_follow(parts: list[str]) -> None:
    shuffled = shuffle_sentences(question(parts)).split(" ")
    assert sorted(shuffled) == sorted(parts)
    assert not set(pairwise(parts)) & set(pairwise(shuffled))


@given(sentences, st.sampled_from(LANGUAGES))
def test_what_is_cut_short_is_a_beginning_that_ends_within_a_sentence(
    parts: list[str], language: Locale
) -> None:
    whole = question([f"{part[:-1]} {part}" for part in parts], language)
    cut = cut_short(whole)
    assert whole.answer.startswith(cut)
    assert 0 < len(cut) < len(whole.answer)
    assert not cut.endswith(".")


@given(sentences, st.integers(0, 100), st.sampled_from(LANGUAGES))
def test_padding_leaves_every_sentence_in_its_order(
    parts: list[str], turn: int, language: Locale
) -> None:
    padding = probe_texts(language).padding
    padded = pad(question(parts, language), padding, turn=turn)
    added = {*padding.before, *padding.middle, *padding.after}
    for text in added:
        padded = padded.replace(text, " ")
    assert "".join(padded.split()) == "".join("".join(parts).split())


@given(sentences)
def test_markdown_adds_no_word(parts: list[str]) -> None:
    dressed = dress_in_markdown(question(parts, keys=(parts[0][:3], parts[-1][:2])))
    plain = dressed.replace("**", "").replace("\n- ", " ").removeprefix("- ")
    assert plain == " ".join(parts)


@given(st.text(), st.sampled_from("AB"))
def test_a_poor_answer_is_injected_as_it_is(answer: str, label: str) -> None:
    """Also one that holds the slots' own names."""
    odd = f"{answer}{{label}}{{answer}}"
    assert inject("before {answer} {label} after", answer=odd, label=label) == (
        f"before {odd} {label} after"
    )


def test_probes_are_chosen_by_name_and_language() -> None:
    chosen = probe_cases(["refusal", "empty"], ["zh"])
    assert {(case.probe, case.language) for case in chosen} == {("empty", "zh"), ("refusal", "zh")}
    assert "languages" not in {case.probe for case in probe_cases(languages=["en"])}


def test_an_unknown_probe_is_told_with_its_likeness() -> None:
    with pytest.raises(InputError, match=r"^unknown probe 'injections'; did you mean injection\?$"):
        probe_cases(["injections"])
    with pytest.raises(InputError, match="there are identical, shuffled"):
        probe_cases(["xyz"])


def test_agreement_of_languages_needs_both() -> None:
    with pytest.raises(InputError, match="ask in both"):
        probe_cases(["languages"], ["en"])


def test_criteria_of_the_callers_own_stand_in_every_pair() -> None:
    mine = read_criteria(["tone"])
    for case in probe_cases(criteria=mine):
        assert case.pair.criteria == mine


def test_a_source_is_known_by_its_pairs() -> None:
    whole = ProbePairs("en", tuple(of("empty", "en")))
    again = ProbePairs("en", tuple(of("empty", "en")))
    part = ProbePairs("en", tuple(of("empty", "en")[1:]))
    assert whole.describe() == again.describe() != part.describe()
