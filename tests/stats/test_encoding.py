"""Every make of column gives the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.stats.columns import codes_of_hashes, encode, object_addresses
from evenhand.stats.ranking.leaderboard import rank_battles
from naive_ranking import make_field

pa: Any = import_module("pyarrow")

MAKES: dict[str, Callable[[list[str]], Any]] = {
    "list": list,
    "list of other objects": lambda cells: [f"{cell} "[:-1] for cell in cells],
    "tuple": tuple,
    "array of texts": np.array,
    "array of bytes's width": lambda cells: np.array(cells, dtype="U7"),
    "array of objects": lambda cells: np.array(cells, dtype=object),
    "every second of an array": lambda cells: np.repeat(np.array(cells, dtype=object), 2)[::2],
    "series": pd.Series,
    "series of objects": lambda cells: pd.Series(cells, dtype=object),
    "categories": lambda cells: pd.Series(cells, dtype="category"),
    "arrow series": lambda cells: pd.Series(cells, dtype=pd.ArrowDtype(pa.string())),
    "arrow": pa.array,
    "large arrow": lambda cells: pa.array(cells, pa.large_string()),
    "arrow dictionary": lambda cells: pa.array(cells).dictionary_encode(),
    "arrow chunks": lambda cells: pa.chunked_array([cells[:7], cells[7:]]),
    "arrow chunks of dictionaries": lambda cells: pa.chunked_array(
        [pa.array(cells[:7]).dictionary_encode(), pa.array(cells[7:]).dictionary_encode()]
    ),
}


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_cells_come_back_from_their_codes(make: Callable[[list[str]], Any]) -> None:
    cells = [f"m{number * 7 % 5}" for number in range(50)]
    encoded = encode(make(cells), "column")
    assert [encoded.values[code] for code in encoded.codes] == cells
    assert len(encoded.values) == 5


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_a_ranking_does_not_depend_on_the_make_of_its_columns(
    make: Callable[[list[str]], Any],
) -> None:
    made = make_field(4, 120, seed=1)
    plain = rank_battles(made.a, made.b, made.winner, prompt=made.prompt)
    other = rank_battles(make(made.a), make(made.b), make(made.winner), prompt=make(made.prompt))
    for one, same in zip(plain.models, other.models, strict=True):
        assert one.model == same.model
        assert same.score == pytest.approx(one.score, abs=1e-9)
        assert same.low == pytest.approx(one.low, abs=1e-9)


@pytest.mark.parametrize(
    "column",
    [
        ["x", None],
        np.array(["x", None], dtype=object),
        pd.Series(["x", None]),
        pd.Series(["x", None], dtype="category"),
        pa.array(["x", None]),
        pa.array(["x", None]).dictionary_encode(),
        pa.chunked_array([["x"], [None]]),
    ],
)
def test_a_missing_cell_is_refused_with_its_row(column: Any) -> None:
    with pytest.raises(InputError, match=r"column is (None|NaN) in row 2"):
        encode(column, "column")


@pytest.mark.parametrize(
    "column",
    [
        [1.0, 0.0, 0.5],
        np.array([1.0, 0.0, 0.5]),
        np.array([1, 0, 0.5], dtype=np.float32),
        pd.Series([1.0, 0.0, 0.5]),
        pa.array([1.0, 0.0, 0.5]),
        pa.chunked_array([[1.0], [0.0, 0.5]]),
    ],
)
def test_preferences_come_in_any_make(column: Any) -> None:
    ranking = rank_battles(["x", "x", "x"], ["y", "y", "y"], column, intervals=None)
    assert ranking.win_matrix[0][1] == pytest.approx(0.5)


def test_true_means_that_a_won() -> None:
    ranking = rank_battles(["x"] * 4, ["y"] * 4, np.array([True, True, True, False]))
    assert ranking.models[0].model == "x"
    assert ranking.win_matrix[0][1] == pytest.approx(0.75)


def test_whole_numbers_serve_as_names() -> None:
    ranking = rank_battles([7, 7, 8], [8, 8, 7], ["A", "B", "A"], intervals=None)
    assert {row.model for row in ranking.models} == {"7", "8"}


@settings(deadline=None)
@given(st.lists(st.text(max_size=3), min_size=1, max_size=300))
def test_any_texts_come_back(cells: list[str]) -> None:
    for column in (cells, np.array(cells, dtype=object), [cell + "" for cell in cells]):
        encoded = encode(column, "column")
        assert [encoded.values[code] for code in encoded.codes] == cells
        assert len(set(encoded.values)) == len(encoded.values)


def test_a_rare_object_late_in_a_long_column_is_found() -> None:
    cells = ["common"] * 50_000
    cells[49_999], cells[31_003] = "rare", "odd"
    encoded = encode(cells, "column")
    assert sorted(encoded.values) == ["common", "odd", "rare"]
    assert [encoded.values[encoded.codes[row]] for row in (0, 31_003, 49_999)] == [
        "common",
        "odd",
        "rare",
    ]


def test_addresses_are_those_of_the_objects() -> None:
    cells = ["x", "y", "x", object()]
    found = object_addresses(cells)
    assert found is not None
    assert found.tolist() == [id(cell) for cell in cells]
    of_array = object_addresses(np.array(cells, dtype=object))
    assert of_array is not None
    assert of_array.tolist() == found.tolist()


def test_many_different_objects_are_left_to_the_dictionary() -> None:
    objects = [object() for _ in range(5_000)]
    assert object_addresses(objects) is None  # a sample of a list shows it, without a copy
    many = object_addresses(np.array(objects))
    assert many is not None
    assert codes_of_hashes(many) is None


def test_fixed_width_texts_with_equal_sums_are_told_apart() -> None:
    # Whatever the hash makes of them, cells are compared whole afterwards.
    cells = np.array([f"{left:04d}{9999 - left:04d}" for left in range(1000)] * 3)
    encoded = encode(cells, "column")
    assert [encoded.values[code] for code in encoded.codes] == cells.tolist()


@pytest.mark.parametrize("chunked", [False, True])
def test_what_is_left_of_a_filtered_dictionary_is_all_that_counts(chunked: bool) -> None:
    """Arrow keeps the dictionary whole: a model that no row names has fought no battle."""

    def filtered(cells: list[str]) -> Any:
        column = pa.array([*cells, "ghost", None]).dictionary_encode()
        kept = pa.array([True] * len(cells) + [False, False])
        return pa.chunked_array([column.filter(kept)]) if chunked else column.filter(kept)

    a, b, prompts = ["x", "y", "z"] * 4, ["y", "z", "x"] * 4, [f"p{n}" for n in range(12)]
    plain = rank_battles(a, b, ["A"] * 12, prompt=prompts)
    assert (plain.prior, plain.cluster_count) == (0, 12)
    assert rank_battles(filtered(a), filtered(b), ["A"] * 12, prompt=filtered(prompts)) == plain


@pytest.mark.parametrize("kind", ["u8", "u2", "i8", ">i4", ">u8"])
def test_codes_of_any_width_and_byte_order_are_places(kind: str) -> None:
    a, b = np.array([0, 1, 2, 0]), np.array([1, 2, 0, 2])
    winner, models = ["A", "A", "B", "A"], ["x", "y", "z"]
    expected = rank_battles(a, b, winner, models=models)
    assert rank_battles(a.astype(kind), b.astype(kind), winner, models=models) == expected


def test_preferences_among_objects_are_numbers() -> None:
    a, b, preferences = ["x", "y", "x"], ["y", "x", "y"], [0.25, 0.5, 1]
    expected = rank_battles(a, b, preferences)
    for column in (np.array(preferences, dtype=object), pd.Series(preferences, dtype=object)):
        assert rank_battles(a, b, column) == expected


@pytest.mark.parametrize("column", [list, lambda cells: pd.Series(cells, dtype=object)])
def test_pandas_own_missing_cell_is_named(column: Callable[[list[Any]], Any]) -> None:
    with pytest.raises(InputError, match="model_a is <NA> in row 2; give every row a value"):
        rank_battles(column(["x", pd.NA]), ["y", "x"], ["A", "A"])
    with pytest.raises(InputError, match="weight is <NA> in row 2; give every row a value"):
        rank_battles(["x", "y"], ["y", "x"], ["A", "A"], weight=column([1.5, pd.NA]))
