"""Saved views: a name and filters, of every run, bounded, and as text as hostile as any."""

from __future__ import annotations

import pytest

from evenhand.errors import InputError
from evenhand.store import NewJudge, Store
from evenhand.store.views import MOST_VIEWS
from store_values import begin, item

HOSTILE = "<script>alert(1)</script> '; DROP TABLE runs; -- \\ % _ 响应 “q” 👩‍💻"


def test_views_are_saved_listed_in_order_and_removed(store: Store) -> None:
    filters = {"tag": "a\x00b", "minConfidence": 0.5, "flagged": True, "sort": "length"}
    store.save_view("  hard   maths,\tB longer ", filters)
    store.save_view(HOSTILE, {})
    assert [(view.name, view.filters) for view in store.views()] == [
        ("hard maths, B longer", filters),
        (HOSTILE, {}),
    ]
    assert store.remove_view(HOSTILE)
    assert not store.remove_view(HOSTILE)
    assert [view.name for view in store.views()] == ["hard maths, B longer"]


def test_a_name_that_is_taken_is_refused_and_the_view_stays(store: Store) -> None:
    store.save_view("mine", {"outcome": "tie"})
    with pytest.raises(InputError, match="there is a view named 'mine' already"):
        store.save_view(" mine", {"outcome": "win"})
    store.save_view("Mine", {"outcome": "win"})  # another name in both engines
    assert [view.filters for view in store.views()] == [{"outcome": "tie"}, {"outcome": "win"}]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (" \n ", "the view has no name"),
        ("x" * 81, "has 81 characters; give 80 at most"),
        ("a\x00b", "U\\+0000"),
        ("a\u202eb", "U\\+202E"),
        ("\ud800", "U\\+D800"),
    ],
)
def test_what_is_no_name_is_refused(name: str, told: str, store: Store) -> None:
    with pytest.raises(InputError, match=told):
        store.save_view(name, {})
    assert store.views() == []


def test_views_are_bounded(store: Store) -> None:
    for number in range(MOST_VIEWS):
        store.save_view(f"view {number}", {})
    with pytest.raises(InputError, match="there are 50 saved views already"):
        store.save_view("one more", {})
    assert len(store.views()) == MOST_VIEWS == 50


def test_views_outlive_their_run_unless_they_quote_it(store: Store) -> None:
    for name, forget in (("run", True), ("other", False)):
        begun = begin(store, item("x"), name=name)
        store.save_view(f"quotes {name}", {"query": "secret"}, words_of=begun.run_id)
        store.save_view(f"plain {name}", {"outcome": "win"})
        if forget:
            store.forget_texts(name)
        else:
            store.delete_run(name)
    assert [view.name for view in store.views()] == ["plain run", "plain other"]


@pytest.mark.parametrize("stored", ["", "{", "[1]", "null", '"x"'])
def test_a_damaged_view_is_listed_without_filters(stored: str, store: Store) -> None:
    store.save_view("mine", {"outcome": "tie"})
    with store._writing() as connection:
        connection.exec_driver_sql(f"UPDATE saved_views SET filters = '{stored}'")  # noqa: S608
    assert [(view.name, view.filters) for view in store.views()] == [("mine", None)]


def test_a_judges_template_is_kept_once_it_is_known(store: Store) -> None:
    """A store of an earlier evenhand has the judge without it."""
    bare, whole = NewJudge("k", "n"), NewJudge("k", "n", template="{prompt} \x00 响应")
    judge = store.add_judge(bare)
    assert store.add_judge(whole) == store.add_judge(bare) == judge
    begun = begin(store, item("x"))
    store.set_run_judges(begun.run_id, [judge])
    assert [each.template for each in store.run_judges(begun.run_id)] == ["{prompt} \x00 响应"]
