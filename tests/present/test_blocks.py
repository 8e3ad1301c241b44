"""One set of blocks on a terminal of 80 columns, in a pipe, and as Markdown."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from evenhand.blocks import (
    Block,
    Facts,
    Finding,
    Grid,
    Next,
    NoteLines,
    Rate,
    Rates,
    Remark,
    Ruled,
    Sentence,
    Title,
)
from evenhand.messages import Message
from evenhand.present.blocks import SCALE, bar, markdown, show_blocks

BLOCKS: tuple[Block, ...] = (
    Sentence("new beats old.", strong=True),
    Ruled("pass", "0.61 is above 0.5"),
    Facts((("pairs", "80"), ("", "of 40 prompts"))),
    Finding("habit", "prefers flattery", "bad"),
    Grid(("outcome", "count"), (("win", "60"), ("tags",), ("total", "80")), strong=frozenset({2})),
    Rates(
        ("tag",),
        "win rate",
        ("wins", "losses"),
        (
            Rate(("criterion",)),
            Rate(("maths",), 0.75, 0.6, 0.9, tone="good", counts=(60, 20)),
            Rate(("code",), text="not enough data", counts=(1, 0)),
        ),
    ),
    NoteLines(("A is longer.",)),
    Remark("3 more"),
    Next("evenhand plan"),
)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _shown(blocks: tuple[Block, ...], width: int) -> tuple[str, str]:
    out, err = _Terminal(), _Terminal()
    to_out, to_err = (
        Console(file=each, width=width, force_terminal=True, color_system=None, highlight=False)
        for each in (out, err)
    )
    show_blocks(to_out, to_err, blocks)
    return out.getvalue(), err.getvalue()


def test_every_block_is_on_the_terminal_and_next_goes_to_stderr() -> None:
    out, err = _shown(BLOCKS, 100)
    for text in ("new beats old.", "pass", "of 40 prompts", "prefers flattery", "total"):
        assert text in out
    assert "0.75 (0.60 to 0.90)" in out
    assert bar(0.75, 0.6, 0.9) in out
    assert "next  evenhand plan" in err
    assert "evenhand plan" not in out


def test_no_line_is_wider_than_the_terminal() -> None:
    long = Sentence("word " * 60)
    for width in (40, 80):
        out, _ = _shown((long, *BLOCKS), width)
        assert max(map(len, out.splitlines())) <= width


def test_rates_lose_their_bars_and_then_their_columns_where_it_is_narrow() -> None:
    rates = (BLOCKS[5],)
    assert "━" in _shown(rates, 100)[0]
    narrower = _shown(rates, 60)[0]
    assert "━" not in narrower
    assert "0.75 (0.60 to 0.90)" in narrower
    stacked = _shown(rates, 34)[0]
    assert "wins 60, losses 20" in stacked


def test_bar_covers_one_half_only_if_the_interval_does() -> None:
    """25 places: one half is the 13th, so 0.52 to 0.9 begins at the 14th."""
    assert bar(0.7, 0.52, 0.9)[12] == "|"
    assert bar(0.7, 0.5, 0.9)[12] == "━"
    assert bar(0.5, 0.4, 0.6)[12] == "•"


def test_markdown_has_tables_and_no_mark_from_data_is_active() -> None:
    text = markdown(
        [
            Sentence(Message("gate.versus", model="[x](http://e)", against="`b`|*c*")),
            Grid(("name", "n"), (("<b>|", "1"),)),
        ]
    )
    first, head, rule, row = (line for line in text.splitlines() if line)
    assert first == r"\[x\](http://e) vs \`b\`\|\*c\*"
    assert head == "| name | n |"
    assert rule == "|---|---:|"
    assert row == r"| \<b\>\| | 1 |"


def test_markdown_shows_every_block() -> None:
    text = markdown(BLOCKS)
    for part in (
        "**new beats old.**",
        "**pass** 0.61 is above 0.5",
        "- pairs: 80\n  of 40 prompts",
        "- habit: prefers flattery",
        "| maths | 0.75 (0.60 to 0.90) | 60 | 20 |",
        "> A is longer.",
        "evenhand plan",
    ):
        assert part in text


def test_markdown_speaks_the_readers_language() -> None:
    said = Message("count.pair", n=3)
    assert markdown([Sentence(said)], "zh") == "3 个样本对"


def test_hostile_text_fills_no_page() -> None:
    assert len(markdown([Sentence("x" * 10_000)])) == 400


def test_title_stands_apart() -> None:
    out, _ = _shown((Sentence("one"), Title("two"), Sentence("three")), 80)
    assert out.split("\n")[:4] == ["one", "", "two", "three"]


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3).map(sorted))
def test_bar_covers_one_half_only_where_the_interval_holds_it(bounds: list[float]) -> None:
    low, value, high = bounds
    drawn = bar(value, low, high)
    assert len(drawn) == len(SCALE) == 25
    assert drawn.count("•") == 1
    if low > 0.5 or high < 0.5:
        assert drawn[12] == "|"
    if low <= 0.5 <= high and low < 0.45 and high > 0.55:
        assert drawn[12] != "|"


def test_bar_stands_where_its_rate_is() -> None:
    assert bar(0.75, 0.625, 0.875) == " " * 12 + "|" + "  ━━━•━━━   "
    assert bar(0, 0, 0) == "•" + " " * 11 + "|" + " " * 12
