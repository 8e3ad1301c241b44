"""The sentences that evenhand itself puts into a verdict, in each language. Labels are written in
full and passes by these names only, so that a verdict and its mirror image differ in nothing
else.
"""

from __future__ import annotations

from evenhand.contract import Locale, Order, Winner

_PASS: dict[Locale, dict[Order, str]] = {
    "en": {"original": "First pass", "swapped": "Second pass"},
    "zh": {"original": "第一轮", "swapped": "第二轮"},
}
_MARKS: dict[Locale, dict[Order, str]] = {
    "en": {order: f"{name}: " for order, name in _PASS["en"].items()},
    "zh": {order: f"{name}：" for order, name in _PASS["zh"].items()},
}
_WINNER: dict[Locale, dict[Winner | None, str]] = {
    "en": {"A": "Response A", "B": "Response B", "TIE": "a tie", None: "no majority"},
    "zh": {"A": "响应 A", "B": "响应 B", "TIE": "平局", None: "没有多数"},
}
_SENTENCES: dict[Locale, dict[str, str]] = {
    "en": {
        "inconsistent": "The winner changed with the order ({choices}): the position made a "
        "difference.",
        "split": "The samples do not agree on a winner ({choices}).",
        "flipped": "The orders chose differently on their own ({choices}); "
        "their mean probability decided.",
        "not_judged": "Not judged.",
        "not_judged_in": "Not judged in one order ({which}).",
        "longer": "{longer} is {ratio} times as long as {shorter} "
        "({long_size} and {short_size} characters); length is no merit.",
        "empty": "{which} is empty.",
        "both_empty": "Both responses are empty.",
        "identical": "The two responses are identical.",
        "not_asked": "The judge was not asked, since the two responses are identical.",
        "addresses_judge": "{which} seems to address the judge; read it before you trust "
        "this verdict.",
        "both_address_judge": "Both responses seem to address the judge; read them before you "
        "trust this verdict.",
        "no_logprobs": "The judge gave no log-probabilities, so there is no confidence.",
        "some_unread": "{count} of {total} answers could not be read and did not count.",
        "one_order": "Judged in one order only: the position may have decided.",
        "recorded": "The verdict of a pass was recorded without its text.",
    },
    "zh": {
        "inconsistent": "获胜者随顺序改变（{choices}）：位置影响了结果。",
        "split": "各次采样没有一致的获胜者（{choices}）。",
        "flipped": "两种顺序各自的选择不同（{choices}）；由平均概率决定。",
        "not_judged": "未评判。",
        "not_judged_in": "有一种顺序未评判（{which}）。",
        "longer": "{longer} 的长度是 {shorter} 的 {ratio} 倍"
        "（{long_size} 与 {short_size} 个字符）；长度不是优点。",
        "empty": "{which} 为空。",
        "both_empty": "两个响应都为空。",
        "identical": "两个响应完全相同。",
        "not_asked": "两个响应完全相同，因此没有询问评审。",
        "addresses_judge": "{which} 似乎在对评审说话；相信这一结论之前请先阅读它。",
        "both_address_judge": "两个响应似乎都在对评审说话；相信这一结论之前请先阅读它们。",
        "no_logprobs": "评审没有给出对数概率，因此没有置信度。",
        "some_unread": "{total} 个回答中有 {count} 个无法读取，没有计入。",
        "one_order": "只按一种顺序评判：位置可能起了作用。",
        "recorded": "有一轮的结论只有记录，没有文字。",
    },
}


def say(locale: Locale, sentence: str, **values: str) -> str:
    return _SENTENCES[locale][sentence].format(**values)


def name_pass(locale: Locale, order: Order) -> str:
    return _PASS[locale][order]


def name_winner(locale: Locale, winner: Winner | None) -> str:
    return _WINNER[locale][winner]


def marks(locale: Locale) -> dict[Order, str]:
    """What a text begins with that is kept with others: the pass that said it."""
    return _MARKS[locale]


def list_choices(locale: Locale, choices: list[tuple[Order, Winner | None]]) -> str:
    separator = "；" if locale == "zh" else "; "
    return separator.join(
        _MARKS[locale][order] + name_winner(locale, winner) for order, winner in choices
    )
