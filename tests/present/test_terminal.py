from __future__ import annotations

import io
import json
import time
import unicodedata
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from evenhand.present.terminal import (
    Prose,
    clean,
    escape,
    one_line,
    plain,
    register_plain_signs,
    show_hanging,
)

ESCAPES = st.sampled_from(
    ["\x1b", "\x1b[", "\x1b]8;;", "\x1b]", "\x07", "\x1b\\", "\x9b", "\x9d", "\x90", "\x9c", "31m"]
)
HOSTILE = st.lists(st.one_of(st.text(), ESCAPES)).map("".join)


@given(HOSTILE)
@example("\x1b]0;title\x1b\\\x1b")
def test_clean_text_has_no_character_that_a_terminal_acts_upon(text: str) -> None:
    for char in clean(text):
        assert char in "\n\t\u200c\u200d" or unicodedata.category(char) not in ("Cc", "Cf", "Cs")


@given(HOSTILE)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "S", "Zs"))))
def test_visible_text_stays_as_it_is(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;new title\x07text", "text"),
        ("\x9b2Jgone?", "gone?"),
        ("\x1bc reset", " reset"),
        ("\x1b(0lqqk", "lqqk"),
        ("one\rtwo\r\nthree", "one\ntwo\nthree"),
        ("a\x00b\x08c\x7fd", "abcd"),
        ("abc\u202edcba\u2066x\u2069", "abcdcbax"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("\U000e0041\U000e0042tags", "tags"),
        ("[bold]as it is[/bold]", "[bold]as it is[/bold]"),
        ("👩\u200d🔬 می\u200cخواهم", "👩\u200d🔬 می\u200cخواهم"),
    ],
)
def test_what_is_taken_out_and_what_stays(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_sequence_without_its_end_does_not_hide_the_text_after_it() -> None:
    assert clean("before \x1b]8;;https://example.org after\nnext") == (
        "before 8;;https://example.org after\nnext"
    )


def test_cleaning_takes_time_in_proportion_to_the_text() -> None:
    begun = time.perf_counter()
    for unit in ("\x1b]", "\x9d", "\x1b[", "\x1bP x"):
        clean(unit * 100_000)
    assert time.perf_counter() - begun < 5


def test_one_line_is_one_line() -> None:
    assert one_line(" a\r\n\tb\x1b[31m  c ") == "a b c"


@given(st.text(alphabet=st.characters()))
def test_escaped_json_means_the_same_and_is_harmless(text: str) -> None:
    written = escape(json.dumps({"text": text}, ensure_ascii=False))
    assert json.loads(written) == {"text": text}
    for char in written:
        assert unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def test_signs_of_our_own_have_a_plain_form() -> None:
    handler = register_plain_signs()
    assert "✓ a … b · c – • 中".encode("ascii", handler) == rb"+ a ... b - c - * \u4e2d"


WORDS = st.text("ab 汉e\u0301", max_size=30)


@given(st.lists(WORDS, max_size=6), st.integers(0, 2000), st.integers(10, 60))
def test_a_long_text_wraps_into_lines_that_fit_and_loses_nothing(
    words: list[str], times: int, width: int
) -> None:
    from rich.cells import cell_len

    text = "\n".join(words) * times
    console = Console(width=width)
    lines = list(Prose(text).lines(console, width))
    assert all(cell_len(line.rstrip()) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_ordinary_prose_wraps_as_rich_wraps_it() -> None:
    from rich.text import Text

    prose = "The first response names its source, and the second one does not do so. " * 300
    console = Console(width=71)
    wrapped = [line.plain.rstrip() for line in Text(prose).wrap(console, 71)]
    assert [line.rstrip() for line in Prose(prose).lines(console, 71)] == wrapped


@pytest.mark.parametrize("text", ["word " * 4000, "x" * 20_000, " " * 20_000, "汉字" * 8_000])
def test_wrapping_looks_at_a_text_a_bounded_number_of_times(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rich is given pieces, so that what it does more than once it does to a piece."""
    from rich.text import Text

    given_to_rich: list[int] = []
    whole = Text.wrap

    def counting(self: Text, *args: Any, **more: Any) -> Any:
        given_to_rich.append(len(self.plain))
        return whole(self, *args, **more)

    monkeypatch.setattr(Text, "wrap", counting)
    list(Prose(text + "y").lines(Console(width=80), 80))
    assert max(given_to_rich) <= 4_000 + 80 + 1
    assert sum(given_to_rich) <= 1.1 * len(text) + 200


def test_a_text_of_many_lines_is_few_segments() -> None:
    console = Console(file=io.StringIO(), width=80)
    lines = 100_000
    text = plain("y\n" * lines, indent=2)
    segments = list(console.render(text))
    # Rich takes tens of microseconds for each.
    assert len(segments) <= lines / 100
    assert "".join(segment.text for segment in segments) == "  y\n" * lines


def test_a_long_note_begins_under_its_lead_and_a_short_one_beside_it() -> None:
    for text, shown in (("one\ntwo", "note one\n     two\n"), ("y\n" * 60_000, "note\n  y\n  y\n")):
        printed_to = io.StringIO()
        show_hanging(Console(file=printed_to, width=20), Text("note"), plain(text))
        printed = printed_to.getvalue()
        assert "\n".join(line.rstrip() for line in printed.split("\n")).startswith(shown)
