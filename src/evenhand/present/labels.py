"""The texts of charts: fixed words in both languages, and names and numbers shortened to one
printable line.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal

from evenhand.messages import render
from evenhand.report.files import JOINERS, MARKS, plain

Language = Literal["en", "zh"]

_ENGLISH = {
    "against": "{own} vs {other}",
    "by_judge": "{sides}, by {judge}",
    "range": "{low} to {high}",
    "or_more": "{low} or more",
    "or_less": "{high} or less",
    "no_interval": "no interval",
    "no_data": "not enough data",
    "nothing": "Nothing judged yet",
    "interval": "{percent}% CI",
    "from": "based on",
    # A run
    "run": "run {run}",
    "win_rate": "win rate",
    "as_judged": "win rate as judged",
    "by_labels": "corrected by labels",
    "win_rate_title": "Win rate",
    "win_rate_of": "Win rate of {subject}",
    "ties.half": "ties count as half",
    "ties.excluded": "ties are left out",
    "ties.wins": "wins only",
    "always_valid": "always-valid intervals",
    "length_looks": "the win rate's interval is always valid, the others assume one look",
    "worst_case": "dotted: worst case, every invalid pair lost or won",
    "cut": "the first {shown} of {all}",
    "by.criterion": "Win rate by criterion",
    "by.tag": "Win rate by tag",
    "none.criterion": "This run has no criteria",
    "none.tag": "This run has no tags",
    "largest.criterion": "the {shown} criteria with the most pairs, of {all}",
    "largest.tag": "the {shown} tags with the most pairs, of {all}",
    "length_title": "Do longer responses win?",
    "equal_length": "win rate at equal length",
    "equal_length_half": "at equal length, ties count as half",
    "equal_length_of": "{rate} of {model}",
    "longer_won": "the longer response won",
    "decided": "of {pairs}",
    "share": "share",
    "share_of_pairs": "share of pairs",
    "outcomes_title": "Outcomes",
    "of_subject": "of {subject}",
    "won": "won",
    "lost": "lost",
    "tie": "tie",
    "inconsistent": "inconsistent",
    "invalid": "invalid",
    # A ranking
    "ranking_title": "Ranking",
    "matrix_title": "Expected win rate",
    "no_models": "No models compared yet",
    "score.elo": "Bradley–Terry score",
    "score.log-odds": "Bradley–Terry log-odds",
    "score": "score",
    "rank_games": "rank (range) · games",
    "rank_range": "{rank} ({low} to {high})",
    "ranked.half": "ties count as half",
    "ranked.davidson": "ties with Davidson's model",
    "best": "the best {shown} of {all} models",
    "versus": "against",
    "matrix_reading": "row against column, in percent",
    "tie_is_half": "ties count as half",
    # A calibration
    "reliability_title": "Reliability",
    "before": "before",
    "after": "after",
    "said": "mean confidence in the bin",
    "right_share": "share correct",
    "series_error": "{series}: {error}",
    "error": "calibration error {error}",
    "error_unknown": "calibration error unknown",
    # A notebook
    "outcome.A": "A won",
    "outcome.B": "B won",
    "outcome.TIE": "tie",
    "outcome.tie": "tie",
    "outcome.inconsistent": "inconsistent",
    "outcome.invalid": "invalid",
    "confidence": "confidence {value}",
    "criterion": "criterion",
    "winner": "winner",
    "reasoning": "reasoning",
    "of_a": "of A",
    "of_b": "of B",
    "order": "order",
    "order.original": "A shown first",
    "order.swapped": "B shown first",
    "stated": "stated confidence",
    "stopped": "stopped: {by}",
    "judge": "judge",
    "pending": "pending",
    "comparison": "comparison",
    "model": "model",
    "games": "games",
    "elo": "Elo ratings depend on the order of the battles.",
    "label": "label",
    "accuracy": "accuracy (labels)",
    "agreement": "agreement with the labels",
    "orders_agree": "both orders agree",
    "longer_judge": "longer won (judge)",
    "longer_labels": "longer won (labels)",
    "first_rows": "The first {shown} of {all}.",
}
_CHINESE = {
    "against": "{own} 对 {other}",
    "by_judge": "{sides}，评审 {judge}",
    "range": "{low} 至 {high}",
    "or_more": "{low} 以上",
    "or_less": "{high} 以下",
    "no_interval": "无区间",
    "no_data": "数据不足",
    "nothing": "尚无评判结果",
    "interval": "{percent}% 区间",
    "from": "依据",
    "run": "运行 {run}",
    "win_rate": "胜率",
    "as_judged": "评审给出的胜率",
    "by_labels": "按标注校正",
    "win_rate_title": "胜率",
    "win_rate_of": "胜率：{subject}",
    "ties.half": "平局计半",
    "ties.excluded": "不计平局",
    "ties.wins": "只计获胜",
    "always_valid": "区间随时有效",
    "length_looks": "胜率的区间随时有效，其余假定只查看一次",
    "worst_case": "点线：最坏情况，即无效样本对全负或全胜",
    "cut": "前 {shown} 个，共 {all}",
    "by.criterion": "按标准的胜率",
    "by.tag": "按标签的胜率",
    "none.criterion": "此运行没有标准",
    "none.tag": "此运行没有标签",
    "largest.criterion": "样本对最多的 {shown} 个标准，共 {all} 个",
    "largest.tag": "样本对最多的 {shown} 个标签，共 {all} 个",
    "length_title": "较长的回答更常获胜吗？",
    "equal_length": "同等长度下的胜率",
    "equal_length_half": "同等长度下，平局计半",
    "equal_length_of": "{rate}：{model}",
    "longer_won": "较长的回答获胜",
    "decided": "{pairs}中",
    "share": "比例",
    "share_of_pairs": "占样本对的比例",
    "outcomes_title": "结果",
    "of_subject": "{subject}",
    "won": "胜",
    "lost": "负",
    "tie": "平局",
    "inconsistent": "不一致",
    "invalid": "无效",
    "ranking_title": "排名",
    "matrix_title": "预期胜率",
    "no_models": "尚未比较任何模型",
    "score.elo": "Bradley–Terry 分数",
    "score.log-odds": "Bradley–Terry 对数胜算",
    "score": "分数",
    "rank_games": "名次（范围）· 场次",
    "rank_range": "{rank}（{low} 至 {high}）",
    "ranked.half": "平局计半",
    "ranked.davidson": "平局按 Davidson 模型",
    "best": "前 {shown} 个模型，共 {all} 个",
    "versus": "对",
    "matrix_reading": "行对列，百分比",
    "tie_is_half": "平局计半",
    "reliability_title": "可靠性",
    "before": "校准前",
    "after": "校准后",
    "said": "各组的平均置信度",
    "right_share": "正确的比例",
    "series_error": "{series}：{error}",
    "error": "校准误差 {error}",
    "error_unknown": "校准误差未知",
    "outcome.A": "A 胜",
    "outcome.B": "B 胜",
    "outcome.TIE": "平局",
    "outcome.tie": "平局",
    "outcome.inconsistent": "不一致",
    "outcome.invalid": "无效",
    "confidence": "置信度 {value}",
    "criterion": "标准",
    "winner": "胜者",
    "reasoning": "理由",
    "of_a": "关于 A",
    "of_b": "关于 B",
    "order": "顺序",
    "order.original": "A 在前",
    "order.swapped": "B 在前",
    "stated": "所述置信度",
    "stopped": "已停止：{by}",
    "judge": "评审",
    "pending": "待评判",
    "comparison": "比较",
    "model": "模型",
    "games": "场次",
    "elo": "Elo 分数取决于对战的顺序。",
    "label": "标注",
    "accuracy": "正确率（标注）",
    "agreement": "与标注一致",
    "orders_agree": "两种顺序一致",
    "longer_judge": "较长的回答获胜（评审）",
    "longer_labels": "较长的回答获胜（标注）",
    "first_rows": "前 {shown} 个，共 {all} 个。",
}
_COUNTED = {
    "pair": "{n} 个样本对",
    "prompt": "{n} 个提示词",
    "decided pair": "{n} 个分出胜负的样本对",
    "comparison": "{n} 个比较",
    "game": "{n} 场",
    "verdict": "{n} 个裁决",
    "case": "{n} 个案例",
    "labelled pair": "{n} 个有标注的样本对",
}
_WORDS: dict[Language, dict[str, str]] = {"en": _ENGLISH, "zh": _CHINESE}


class ChartWords:
    """`say("win_rate")`, in one language."""

    def __init__(self, language: Language = "en") -> None:
        self.language = language
        self._words = _WORDS[language]

    def __call__(self, key: str, **values: object) -> str:
        text = self._words[key]
        return text.format(**values) if values else text

    def counted(self, count: int, what: str) -> str:
        if self.language == "zh":
            return _COUNTED[what].format(n=f"{count:,}")
        return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"

    def sentence(self, sentence: str) -> str:
        """A reason or a note of the statistics."""
        return render(sentence, self.language)


ENGLISH = ChartWords("en")


# Names and numbers as the texts of a chart: one line, short, only what can be seen.

# What lies deeper inside a text than that is never drawn.
_MOST_READ = 1000


def shortened(text: str, most: int) -> str:
    """At most so many columns of a line. Names differ at both ends, so the middle goes."""
    if len(text) > 2 * _MOST_READ:
        text = f"{text[:_MOST_READ]}…{text[-_MOST_READ:]}"
    text = plain(text)
    if _columns(text) <= most:
        return text
    tail_columns = (most - 1) // 3
    tail = _leading(text[::-1], tail_columns)[::-1]
    return f"{_leading(text, most - 1 - tail_columns)}…{tail}"


def distinct(names: Iterable[str], most: int) -> list[str]:
    """A short text for each name, no two alike: two names must not share a row."""
    taken: set[str] = set()
    labels = []
    for name in names:
        short = label = shortened(name, most)
        count = 1
        while label in taken:
            count += 1
            label = f"{short} ({count})"
        taken.add(label)
        labels.append(label)
    return labels


def percent(share: float) -> str:
    return f"{_tenths(share)}%"


def percent_range(low: float, high: float, say: ChartWords = ENGLISH) -> str:
    return say("range", low=_tenths(low), high=_tenths(high))


def listed(parts: Sequence[str]) -> str:
    return " · ".join(part for part in parts if part)


def _tenths(share: float) -> str:
    """One digit, and more where one would read as certainty, or as even."""
    shown = f"{100 * share + 0.0:.1f}"
    for digits in (2, 3):
        if float(shown) in (0, 50, 100) and share not in (0.0, 0.5, 1.0):
            shown = f"{100 * share:.{digits}f}"
    return shown


def _columns(text: str) -> int:
    return sum(map(_width, text))


def _width(char: str) -> int:
    if unicodedata.category(char) in MARKS or char in JOINERS:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _leading(text: str, most: int) -> str:
    used = 0
    for end, char in enumerate(text):
        used += _width(char)
        if used > most:
            return text[:end]
    return text


# How wide a text is at most, whatever font it is shown in: in DejaVu Sans and Verdana, which are
# wider than most, as parts of the letters' height. What goes beyond a picture is cut off.

_NARROW = frozenset("iIjlftr.,:;'|!()[]{} /-")
_WIDE = frozenset("mwMWQ%@&—…")
_BOLD = 1.14


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    return sum(map(_letter_width, text)) * size * (_BOLD if bold else 1.0)


def _letter_width(char: str) -> float:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    if char in _NARROW:
        return 0.42
    if char in _WIDE:
        return 1.0
    return 0.79 if char.isupper() else 0.64 if char.isascii() else 0.9
