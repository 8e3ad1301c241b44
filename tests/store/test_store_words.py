"""Words: found in any script, whatever case or width they are in, and never anything but words."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.store import NewVerdict, Store, open_store
from evenhand.store.full_text import phrases_of, places_of, words_of
from evenhand.store.verdict_filter import VerdictFilter
from parts import examples
from store_values import Begun, begin, item, win

TEXTS = {
    "latin": ("Why does the RIVER flow?", "Because of gravity", "It's naïve café Straße"),
    "han": ("河流为什么改变方向？", "因为重力。", "改变方向的河"),
    "kana": ("なぜ川は流れるのか", "カタカナ と ﾊﾝｶｸ", "b"),
    "thai": ("ทำไมแม่น้ำไหล", "a", "b"),
    "hangul": ("강은 왜 흐르는가", "중력 때문에", "b"),
    "wide": ("ＦＵＬＬ ｗｉｄｔｈ １２３", "a", "b"),
    "code": ("snake_case camelCase x+y==2", "SELECT * FROM t; --", 'say "hi" OR NOT this'),
    "nul": ("before\x00after", "\x1a", "end\x1a0"),
    "empty": ("", "", ""),
}


def filled(store: Store) -> Begun:
    begun = begin(
        store,
        *(
            item(key, prompt=prompt, response_a=a, response_b=b)
            for key, (prompt, a, b) in TEXTS.items()
        ),
    )
    begun.judge_all()
    fill(begun)
    return begun


def fill(begun: Begun) -> None:
    while begun.store.words.add(begun.run_id, limit=4):
        pass


def found(begun: Begun, query: str) -> set[str]:
    # Clients may send 1,000 characters; the store itself takes any number.
    wanted = VerdictFilter().model_copy(update={"query": query})
    return {row.id for row in begun.store.table.browse(begun.run_id, wanted).rows}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("river", {"latin"}),
        ("RIVER why", {"latin"}),
        ("gravity river", {"latin"}),  # in different texts of one pair
        ("rive", set()),  # a part of a word is no word
        ("strasse CAFÉ naïve", {"latin"}),
        ("河流", {"han"}),
        ("改变方向", {"han"}),
        ("方向改变", set()),  # as it is written, not letter by letter
        ("向因", set()),  # not across the ends of two texts
        ("河", {"han"}),
        ("重力 河流", {"han"}),
        ("流", {"han", "kana"}),
        ("川は", {"kana"}),
        ("ハンカク", {"kana"}),
        ("แม่น้ำ", {"thai"}),
        ("강은", {"hangul"}),
        ("full WIDTH 123", {"wide"}),
        ("snake case", {"code"}),
        ("camelcase", {"code"}),
        ("before after", {"nul"}),
        ("beforeafter", set()),
        ("end", {"nul"}),
        ("?!…", set()),
        ("", set()),
        ("🙂", set()),
    ],
)
def test_words_are_found(store: Store, query: str, expected: set[str]) -> None:
    assert found(filled(store), query) == expected


HOSTILE = (
    '"',
    '""',
    "'",
    "river' OR '1'='1",
    "river AND why",
    "river OR nowhere",
    "NOT river",
    "river NEAR why",
    "prompt:river",
    "^river",
    "rive*",
    "{prompt} : river",
    "-river",
    "(river",
    "river) & !x",
    "river & | ! <-> :*",
    "river\x00why",
    "\\",
    "%_",
    "'; DROP TABLE pairs; --",
    "river " * 5_000,
    "河" * 5_000,
    "x" * 100_000,
    "\ud83d\ude42",
    "left\u202eright",
)


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_a_query_holds_it_is_plain_words(store: Store, query: str) -> None:
    begun = begin(store, item("same", prompt=query.replace("\ud83d\ude42", "")), item("other"))
    begun.judge_all()
    fill(begun)
    assert found(begun, query) == ({"same"} if phrases_of(query) else set())


@given(text=st.text(max_size=60), start=st.integers(0, 60), length=st.integers(1, 60))
@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whole_words_of_a_text_are_found_in_it(
    store: Store, text: str, start: int, length: int
) -> None:
    begun = begin(store, item("x", prompt=text), name=f"run {hash((text, start, length))}")
    begun.judge_all()
    fill(begun)
    words = list(re.finditer(r"\S+", text))[start % 5 :][:length]
    query = " ".join(word[0] for word in words)
    assert found(begun, query) == ({"x"} if phrases_of(query) else set())
    store.deletion.delete(begun.name)


def test_a_text_without_end_is_indexed_by_its_beginning(store: Store) -> None:
    long = "begin " + "的" * 200_000 + " end"
    wide = " ".join(f"{'语' * 3}{n}" for n in range(30_000))
    begun = begin(store, item("long", prompt=long, response_a=wide, response_b="w" * 1_000_000))
    begun.judge_all()
    fill(begun)
    assert found(begun, "begin") == {"long"}
    assert found(begun, "语语语1") == {"long"}
    assert found(begun, "end") == set()
    assert len(list(words_of(long))) == 5_000


def test_a_tsvector_stays_below_what_postgresql_holds() -> None:
    texts = tuple(
        " ".join(f"{chr(0x10400 + n % 40)}{letter * 60}{n}" for n in range(9_000))
        for letter in "abc"
    )
    written = places_of(texts)
    assert len(written.encode()) < 1_000_000
    assert max(int(place) for place in re.findall(r":(\d+)", written)) < 16_383


def test_pairs_of_a_deleted_run_are_found_no_more_and_new_ones_are(store: Store) -> None:
    first = filled(store)
    assert found(first, "river") == {"latin"}
    store.deletion.delete(first.name)
    again = begin(store, *(item(f"{n}", prompt=f"ocean {n}") for n in range(9)))
    again.judge_all()
    fill(again)
    assert found(again, "river") == set()
    assert len(found(again, "ocean")) == 9


def test_runs_share_the_words_of_their_pairs(store: Store) -> None:
    first = filled(store)
    other = begin(
        store,
        item(
            "latin again",
            prompt=TEXTS["latin"][0],
            response_a="Because of gravity",
            response_b=TEXTS["latin"][2],
        ),
        name="other",
    )
    other.judge_all()
    fill(other)
    assert found(other, "river") == {"latin again"}
    assert found(first, "river") == {"latin"}
    store.deletion.delete(first.name)
    fill(other)
    assert found(other, "river") == {"latin again"}


def test_indexing_goes_on_from_where_it_was(store: Store) -> None:
    begun = begin(store, *(item(f"{n}") for n in range(10)))
    assert store.words.add(begun.run_id, limit=4) == 4
    assert store.words.add(begun.run_id, after=4, limit=40) == 10
    assert store.words.add(begun.run_id) is None


def test_a_run_that_is_deleted_leaves_others_to_be_indexed_again(store: Store) -> None:
    first = filled(store)
    other = begin(store, item("x", prompt="ocean"), name="other")
    other.judge_all()
    fill(other)
    store.deletion.delete(first.name)
    fill(other)
    assert found(other, "ocean") == {"x"}


def test_two_processes_index_the_same_pairs_once(address: str) -> None:
    with open_store(address) as one, open_store(address) as other:
        begun = begin(one, *(item(f"{n}", prompt=f"word{n}") for n in range(30)))
        begun.judge_all()
        while one.words.add(begun.run_id, limit=3) or other.words.add(begun.run_id, limit=3):
            other.words.add(begun.run_id, limit=3)
        assert [len(found(begun, f"word{n}")) for n in range(30)] == [1] * 30


def test_a_judge_more_shows_a_pair_twice(store: Store) -> None:
    begun = begin(store, item("x", prompt="river"))
    begun.judge_all()
    second = begin(store, name="second", judge="another")
    store.runs.set_judges(begun.run_id, [begun.judge_id, second.judge_id])
    store.work.write([], [NewVerdict(begun.run_id, 1, second.judge_id, win("B", []))])
    fill(begun)
    assert store.table.count(begun.run_id, VerdictFilter(query="river")) == 2
