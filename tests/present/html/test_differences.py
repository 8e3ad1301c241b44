"""Which words differ: nothing is lost, what is equal is not marked, and huge texts end soon."""

from __future__ import annotations

import re
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.present.html.texts import (
    MOST_CHARACTERS,
    Differences,
    DiffSpan,
    compare_parts,
    marked,
    show_responses,
)

_TEXTS = st.text(alphabet="ab cd,\n中文字", max_size=200)


def joined(spans: list[DiffSpan]) -> str:
    return "".join(span.text for span in spans)


def differing(spans: list[DiffSpan]) -> list[str]:
    return [span.text for span in spans if span.differs]


def test_the_words_in_one_text_alone_are_marked() -> None:
    found = compare_parts(["The cat sat on the mat."], ["The dog sat on the mat."])
    assert found is not None
    assert differing(found.a[0]) == ["cat"]
    assert differing(found.b[0]) == ["dog"]
    assert found.alike == 5 / 6


def test_words_that_only_one_text_has_are_marked_there_alone() -> None:
    found = compare_parts(["one two three"], ["one two and a half three"])
    assert found is not None
    assert differing(found.a[0]) == []
    assert "".join(differing(found.b[0])).split() == ["and", "a", "half"]


def test_chinese_is_compared_sign_by_sign() -> None:
    found = compare_parts(["今天天气很好，我们去公园。"], ["今天天气不好，我们去公园。"])
    assert found is not None
    assert differing(found.a[0]) == ["很"]
    assert differing(found.b[0]) == ["不"]


def test_marks_are_worth_showing_only_where_most_words_are_in_both() -> None:
    """Three words of five are 0.6 in common, four are 0.8."""
    apart = show_responses("a b c d e", "a b c x y", rendered=False)
    assert (apart.alike, apart.worth_marking) == (0.6, False)
    assert "<mark>x y</mark>" in apart.b.html
    close = show_responses("a b c d e", "a b c d x", rendered=False)
    assert (close.alike, close.worth_marking) == (0.8, True)
    assert "<mark>x</mark>" in close.b.html


def test_texts_that_repeat_themselves_are_compared_too() -> None:
    """No word stands once in them. Of ten words in each sentence one is another."""
    sentence = "Each time it picks a pivot and parts the list. "
    a, b = sentence * 40, sentence.replace("pivot", "median") * 40
    found = compare_parts([a], [b])
    assert found is not None
    assert found.alike > 0.85
    assert {span.text for span in found.a[0] if span.differs} == {"pivot"}
    assert {span.text for span in found.b[0] if span.differs} == {"median"}


def test_responses_need_not_be_compared() -> None:
    alone = show_responses("some text", "some other text", rendered=True, compare=False)
    assert (alone.alike, alone.worth_marking) == (None, False)
    assert "<mark>" not in alone.a.html + alone.b.html


def test_texts_that_are_too_long_are_not_compared() -> None:
    assert compare_parts(["x" * (MOST_CHARACTERS + 1)], ["x"]) is None


def test_long_texts_that_differ_in_few_words_are_compared() -> None:
    words = [f"word{number}" for number in range(15_000)]
    other = [*words[:7000], "another", *words[7001:]]
    found = compare_parts([" ".join(words)], [" ".join(other)])
    assert found is not None
    assert (differing(found.a[0]), differing(found.b[0])) == (["word7000"], ["another"])


def test_texts_that_would_take_long_are_not_compared() -> None:
    """Every second word is the same: difflib finds these one by one, each time from the start."""
    a, b = (" ".join(f"{own}{n}" if n % 2 else f"both{n}" for n in range(10_000)) for own in "xy")
    began = time.process_time()
    found = compare_parts([a], [b])
    assert time.process_time() - began < 5  # measured: 0.3 s
    assert found is None
    assert show_responses(a, b, rendered=False).alike is None


def test_marks_are_escaped() -> None:
    assert marked([DiffSpan("<b>", differs=True), DiffSpan("&", differs=False)]) == (
        "<mark>&lt;b&gt;</mark>&amp;"
    )


@settings(deadline=None)
@given(st.lists(_TEXTS, max_size=5), st.lists(_TEXTS, max_size=5))
def test_every_part_comes_back_whole(a: list[str], b: list[str]) -> None:
    found = compare_parts(a, b)
    if found is not None:
        assert [joined(spans) for spans in found.a] == a
        assert [joined(spans) for spans in found.b] == b


@settings(deadline=None)
@given(_TEXTS, _TEXTS)
def test_what_is_not_marked_is_the_same_text_on_both_sides(a: str, b: str) -> None:
    found = compare_parts([a], [b])
    if found is not None:
        # Each word and sign on its own; what is between them, a mark could not show.
        same_a, same_b = (
            [
                token
                for span in spans
                if not span.differs
                for token in re.findall(r"[a-d]+|\S", span.text)
            ]
            for spans in (found.a[0], found.b[0])
        )
        assert same_a == same_b


@settings(deadline=None)
@given(_TEXTS)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    found = compare_parts([text], [text])
    assert found is not None
    assert found.alike == 1
    assert differing(found.a[0]) == differing(found.b[0]) == []


@settings(deadline=None)
@given(st.lists(_TEXTS, max_size=3), st.lists(_TEXTS, max_size=3))
def test_exchanged_texts_have_exchanged_differences(a: list[str], b: list[str]) -> None:
    found, exchanged = compare_parts(a, b), compare_parts(b, a)
    assert (found is None) == (exchanged is None)
    if found and exchanged:
        assert found == Differences(exchanged.b, exchanged.a, exchanged.alike)
