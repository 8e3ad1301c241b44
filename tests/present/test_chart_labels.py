"""Names as texts of a chart."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.present.labels import ENGLISH, distinct, percent, percent_range, shortened
from evenhand.report.files import NAMELESS, plain


@given(st.text(alphabet=st.characters(), max_size=300))
def test_a_plain_text_is_one_line_of_what_xml_can_hold(text: str) -> None:
    line = plain(text)
    assert line
    assert line == " ".join(line.split())
    assert plain(line) == line
    for char in line:
        # https://www.w3.org/TR/xml/#charsets, less what cannot be seen
        assert unicodedata.category(char) not in {"Cc", "Cs", "Zl", "Zp"}
        assert ord(char) not in (0xFFFE, 0xFFFF)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("two\nlines", "two lines"),
        ("a\r\n\tb", "a b"),
        ("bell\x07 and escape\x1b[31m", "bell and escape[31m"),
        ("right\u202eleft\u2066", "rightleft"),
        ("\ufeffmark\ufffe", "mark"),
        ("", NAMELESS),
        (" \u200b\n", NAMELESS),
        ("<script>alert(1)</script>]]>", "<script>alert(1)</script>]]>"),
        ("中文 模型", "中文 模型"),
        ("e" + "\u0301" * 50, "e" + "\u0301" * 3),
    ],
)
def test_what_cannot_be_seen_is_left_out(text: str, line: str) -> None:
    assert plain(text) == line


def test_a_long_name_keeps_both_its_ends() -> None:
    # 12 columns: the sign, a third of the other eleven (3) at the end, eight at the beginning
    assert shortened("abcdefghijklmnopqrstuvwxyz", 12) == "abcdefgh…xyz"
    assert shortened("abcdefghijkl", 12) == "abcdefghijkl"


def test_a_chinese_letter_takes_two_columns() -> None:
    # 9 columns: 8 without the sign, 2 of them at the end; six columns are three letters
    assert shortened("一二三四五六七八九十", 9) == "一二三…十"


@given(st.text(max_size=200), st.integers(4, 60))
def test_a_shortened_name_is_no_longer_than_asked(text: str, most: int) -> None:
    drawn = shortened(text, most)
    narrow = [char for char in drawn if unicodedata.category(char) not in {"Mn", "Me", "Cf"}]
    wide = [char for char in narrow if unicodedata.east_asian_width(char) in "WF"]
    assert len(narrow) + len(wide) <= max(most, len(NAMELESS))


@given(st.lists(st.text(max_size=80), max_size=40), st.integers(4, 20))
def test_no_two_names_share_a_label(names: list[str], most: int) -> None:
    labels = distinct(names, most)
    assert len(labels) == len(names) == len(set(labels))


def test_names_that_shorten_alike_are_numbered() -> None:
    names = [f"{'a' * 50}{middle}{'b' * 50}" for middle in "xyz"]
    first, second, third = distinct(names, 10)
    assert (second, third) == (f"{first} (2)", f"{first} (3)")


def test_numbers_as_texts() -> None:
    assert percent(0.5735) == "57.4%"  # 57.35 is just above in binary
    assert percent(-0.0) == "0.0%"
    assert percent_range(0.0, 1.0) == "0.0 to 100.0"
    assert ENGLISH.counted(1, "pair") == "1 pair"
    assert ENGLISH.counted(1234, "pair") == "1,234 pairs"
