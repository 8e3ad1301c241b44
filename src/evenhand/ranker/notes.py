"""What a reader of a ranking should know, in each language."""

from __future__ import annotations

from evenhand.contract import Locale
from evenhand.ranker.ranking import Contradiction, RankedResponse, ResponseComparison

_SENTENCES: dict[Locale, dict[str, str]] = {
    "en": {
        "single": "Each step of this order rests on one comparison; neighbours says how sure the "
        "judge was of it.",
        "shared": "{count} of {total} responses share their places with others: they could not be "
        "told apart.",
        "invalid": "{count} of {total} comparisons gave no verdict; nothing was guessed from them.",
        "circles": "The comparisons contradict each other in {count} circles; the responses in "
        "them share their places.",
        "unasked": "No more than {made} comparisons were allowed, and they did not suffice to "
        "place every response.",
        "identical": "Responses that repeat another one word for word: {count}; no comparison was "
        "spent on them.",
    },
    "zh": {
        "single": "此排序的每一步只依据一次比较；neighbours 说明评审对它有多大把握。",
        "shared": "{total} 个响应中有 {count} 个与其他响应并列：无法区分高下。",
        "invalid": "{total} 次比较中有 {count} 次没有结论；没有据此做任何猜测。",
        "circles": "比较结果有 {count} 处循环矛盾；其中的响应并列。",
        "unasked": "只允许 {made} 次比较，不足以为每个响应排定名次。",
        "identical": "{count} 个响应与另一个完全相同；没有为它们进行比较。",
    },
}


def notes_on_ranking(
    ranking: tuple[RankedResponse, ...],
    comparisons: tuple[ResponseComparison, ...],
    *,
    contradictions: tuple[Contradiction, ...],
    repeated: int,
    unasked: int,
    locale: Locale,
) -> tuple[str, ...]:
    sentences = _SENTENCES[locale]
    shared = sum(each.rank_from != each.rank_to for each in ranking)
    invalid = sum(each.outcome == "invalid" for each in comparisons)
    notes = [sentences["single"]] if comparisons else []
    if shared:
        notes.append(sentences["shared"].format(count=shared, total=len(ranking)))
    if invalid:
        notes.append(sentences["invalid"].format(count=invalid, total=len(comparisons)))
    if contradictions:
        notes.append(sentences["circles"].format(count=len(contradictions)))
    if unasked:
        notes.append(sentences["unasked"].format(made=len(comparisons)))
    if repeated:
        notes.append(sentences["identical"].format(count=repeated))
    return tuple(notes)
