"""The texts of charts: fixed words in both languages, and names and numbers shortened to one
printable line.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal

from evenhand.messages import render

Language = Literal["en", "zh"]

_ENGLISH = {
    "against": "{own} against {other}",
    "by_judge": "{sides}, by {judge}",
    "range": "{low} to {high}",
    "or_more": "{low} or more",
    "or_less": "{high} or less",
    "no_interval": "no interval",
    "no_data": "not enough data",
    "nothing": "nothing was judged yet",
    "interval": "{percent} % interval",
    "from": "from",
    "name": "name",
    "of": "of",
    # A run
    "run": "run {run}",
    "win_rate": "win rate",
    "win_rate_title": "Win rate",
    "win_rate_of": "Win rate of {subject}",
    "ties.half": "ties count as half",
    "ties.excluded": "ties are left out",
    "ties.wins": "wins only",
    "always_valid": "intervals that hold whenever one looks",
    "length_looks": "the win rate's interval holds whenever one looks, the others for one look",
    "worst_case": "dotted: the worst case, with every invalid pair lost or won",
    "cut": "the first {shown} of {all}",
    "by.criterion": "Win rate by criterion",
    "by.tag": "Win rate by tag",
    "none.criterion": "there are no criteria in this run",
    "none.tag": "there are no tags in this run",
    "largest.criterion": "the {shown} criteria with the most pairs, of {all}",
    "largest.tag": "the {shown} tags with the most pairs, of {all}",
    "length_title": "Do longer answers win?",
    "equal_length": "win rate at equal length",
    "equal_length_half": "at equal length, ties as half",
    "equal_length_of": "{rate} of {model}",
    "longer_won": "the longer answer won",
    "decided": "of {pairs}",
    "share": "share",
    "share_of_pairs": "share of pairs",
    "outcomes_title": "Outcomes",
    "of_subject": "of {subject}",
    "outcome": "outcome",
    "pairs": "pairs",
    "won": "won",
    "lost": "lost",
    "tie": "tie",
    "inconsistent": "inconsistent",
    "invalid": "invalid",
    # A ranking
    "ranking_title": "Ranking",
    "matrix_title": "Expected win rate",
    "no_models": "no models were compared yet",
    "score.elo": "Bradley–Terry score",
    "score.log-odds": "Bradley–Terry log-odds",
    "score": "score",
    "rank_games": "rank (from, to) · games",
    "rank_range": "{rank} ({low} to {high})",
    "ranked.half": "ties as half",
    "ranked.davidson": "ties by Davidson's model",
    "best": "the best {shown} of {all} models",
    "matrix_reading": "of the row against the column, in percent",
    "tie_is_half": "a tie is half",
    "model": "model",
    "opponent": "against",
    "expected": "expected win rate",
    # A calibration
    "reliability_title": "Reliability",
    "before": "before",
    "after": "after",
    "said": "confidence, bin's mean",
    "right_share": "share that is right",
    "confidence": "confidence",
    "bin": "bin",
    "right": "right",
    "series_error": "{series}: {error}",
    "error": "calibration error {error}",
    "error_unknown": "calibration error not known",
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
    "interval": "{percent} % 区间",
    "from": "依据",
    "name": "名称",
    "of": "属于",
    "run": "运行 {run}",
    "win_rate": "胜率",
    "win_rate_title": "胜率",
    "win_rate_of": "胜率：{subject}",
    "ties.half": "平局计半",
    "ties.excluded": "不计平局",
    "ties.wins": "只计获胜",
    "always_valid": "区间在任何时候查看都成立",
    "length_looks": "胜率的区间在任何时候查看都成立，其余只对一次查看成立",
    "worst_case": "虚线：最坏情形，即所有无效配对全负或全胜",
    "cut": "前 {shown} 个，共 {all}",
    "by.criterion": "按标准的胜率",
    "by.tag": "按标签的胜率",
    "none.criterion": "此运行没有标准",
    "none.tag": "此运行没有标签",
    "largest.criterion": "配对最多的 {shown} 个标准，共 {all} 个",
    "largest.tag": "配对最多的 {shown} 个标签，共 {all} 个",
    "length_title": "较长的响应更常获胜吗？",
    "equal_length": "同等长度下的胜率",
    "equal_length_half": "同等长度下，平局计半",
    "equal_length_of": "{rate}：{model}",
    "longer_won": "较长的响应获胜",
    "decided": "{pairs}中",
    "share": "比例",
    "share_of_pairs": "占配对的比例",
    "outcomes_title": "结果",
    "of_subject": "{subject}",
    "outcome": "结果",
    "pairs": "配对",
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
    "matrix_reading": "行对列，百分比",
    "tie_is_half": "平局计半",
    "model": "模型",
    "opponent": "对手",
    "expected": "预期胜率",
    "reliability_title": "可靠性",
    "before": "校准前",
    "after": "校准后",
    "said": "置信度（区间均值）",
    "right_share": "正确的比例",
    "confidence": "置信度",
    "bin": "区间",
    "right": "正确",
    "series_error": "{series}：{error}",
    "error": "校准误差 {error}",
    "error_unknown": "校准误差未知",
}
_COUNTED = {
    "pair": "{n} 个配对",
    "prompt": "{n} 个提示",
    "decided pair": "{n} 个分出胜负的配对",
    "comparison": "{n} 个比较",
    "game": "{n} 场",
    "verdict": "{n} 个裁决",
    "case": "{n} 个案例",
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

# Joiners build letters and emoji; every other invisible format character only misleads.
_JOINERS = frozenset("\u200c\u200d")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_MARKS = frozenset({"Mn", "Me"})
# Letters of living languages carry two or three marks; a tower of them hides the rows above.
_MOST_MARKS = 3
# What lies deeper inside a text than that is never drawn.
_MOST_READ = 1000
NAMELESS = "(no name)"


def plain(text: str) -> str:
    """The text on one line, without what a reader cannot see and XML cannot hold."""
    kept: list[str] = []
    marks = 0
    for char in text:
        category = unicodedata.category(char)
        marks = marks + 1 if category in _MARKS else 0
        if category in _UNSEEN and char not in _JOINERS:
            kept.append(" " if char.isspace() else "")
        elif marks <= _MOST_MARKS and not _is_noncharacter(char):
            kept.append(char)
    return " ".join("".join(kept).split()) or NAMELESS


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
    return f"{_tenths(share)} %"


def percent_range(low: float, high: float, say: ChartWords = ENGLISH) -> str:
    return say("range", low=_tenths(low), high=_tenths(high))


def listed(parts: Sequence[str]) -> str:
    return " · ".join(part for part in parts if part)


def _tenths(share: float) -> str:
    text = f"{100 * share:.1f}"
    return "0.0" if text == "-0.0" else text


def _is_noncharacter(char: str) -> bool:
    code = ord(char)
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def _columns(text: str) -> int:
    return sum(map(_width, text))


def _width(char: str) -> int:
    if unicodedata.category(char) in _MARKS or char in _JOINERS:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _leading(text: str, most: int) -> str:
    used = 0
    for end, char in enumerate(text):
        used += _width(char)
        if used > most:
            return text[:end]
    return text
