"""Explains a decision: the contract's verdict or failure, with prose, notes and metadata. Texts
from several ballots are merged without preferring the first pass.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from evenhand.contract import (
    Analysis,
    AnswerProtocol,
    Artefact,
    Ballot,
    CriterionBallot,
    CriterionVerdict,
    Differentiators,
    ErrorBody,
    Failure,
    Locale,
    Metadata,
    Order,
    Outcome,
    Pair,
    Pass,
    ResponseAnalysis,
    Unread,
    Usage,
    Verdict,
    Winner,
    rename,
)
from evenhand.contract.pair import drawn_order
from evenhand.errors import EvenhandError
from evenhand.judging.answers.reader import whole_characters
from evenhand.judging.answers.reasons import exchanged
from evenhand.judging.answers.results import ParsedAnalysis
from evenhand.judging.ballots import add_usage, prose_of
from evenhand.judging.decision import (
    CriterionDecision,
    Decision,
    Judged,
    PassBallot,
    PassResult,
    VerdictContext,
)
from evenhand.judging.reconciliation import (
    Choices,
    Unreconciled,
    by_order,
    canonical,
    position,
    shown_first,
)
from evenhand.messages.phrases import list_choices, marks, name_pass, name_winner, say
from evenhand.prompts import response_digests


def explain(pair: Pair, judged: Judged, context: VerdictContext) -> Verdict:
    """The verdict on a pair with its reasons; the decision itself is final."""
    decision = judged.decision
    passes = in_contract(pair, judged.passes)
    prose = _prose(pair, decision, passes, context) if passes else _unasked(pair, context.locale)
    if judged.artefacts:
        prose["notes"] = (*prose["notes"], *_notes_on_writing(judged, context.locale))
    return Verdict(
        winner=decision.winner,
        confidence=decision.confidence,
        **prose,
        metadata=_metadata(
            pair,
            passes,
            context,
            evaluation_time_ms=judged.time_ms,
            positions_swapped=pair.swap_positions and bool(passes),
            outcome=decision.outcome,
            confidence_source=decision.confidence_source,
            samples=judged.samples,
            abstained=decision.abstained,
            decided_by=decision.decided_by,
            probabilities=decision.probabilities,
            criteria=tuple([criterion.to_contract() for criterion in decision.criteria]),
            **_of_artefacts(judged, passes),
        ),
    )


_NOTHING_USED = Usage(input_tokens=0, output_tokens=0, cost_usd=0.0)


def _of_artefacts(judged: Judged, passes: Sequence[Pass]) -> dict[str, Any]:
    if judged.decision.decided_by == "identical":
        return {"usage": _NOTHING_USED}
    if not judged.artefacts:
        return {}
    usage = add_usage([*(p.usage for p in passes), *(a.usage for a in judged.artefacts)])
    return {"artefacts": judged.artefacts, "usage": usage}


def _notes_on_writing(judged: Judged, locale: Locale) -> Iterable[str]:
    """Texts whose preparation failed."""
    unused = defaultdict[str, set[str]](set)
    for each in judged.artefacts:
        if each.outcome != "answered":
            unused[each.kind].add(each.outcome)
    for kind, outcomes in unused.items():
        yield say(locale, "not_prepared", kind=kind, outcome=", ".join(sorted(outcomes)))


def failure_of(error: EvenhandError) -> Failure:
    """The contract's JSON for any error."""
    metadata = error.metadata if isinstance(error.metadata, Metadata) else Metadata()
    return Failure(
        error=ErrorBody(kind=error.kind, message=error.message, retryable=error.retryable),
        metadata=metadata,
    )


def failed_metadata(
    pair: Pair,
    results: Sequence[PassResult],
    context: VerdictContext,
    *,
    samples: int,
    time_ms: float,
    requests: int = 0,
    why: Unreconciled | None = None,
    artefacts: tuple[Artefact, ...] = (),
) -> Metadata:
    """What is known of a pair without a verdict. `requests` were wasted, besides those of the
    passes and artefacts."""
    usage = add_usage([*(each.usage for each in results), *(each.usage for each in artefacts)])
    return _metadata(
        pair,
        in_contract(pair, results),
        context,
        evaluation_time_ms=time_ms,
        outcome=Outcome.INVALID,
        samples=samples,
        criteria=tuple([each.to_contract() for each in why.criteria]) if why else (),
        position_consistency=why.position_consistency if why else None,
        artefacts=artefacts,
        usage=usage.model_copy(update={"requests": usage.requests + requests}),
    )


def in_contract(pair: Pair, results: Iterable[PassResult]) -> tuple[Pass, ...]:
    return tuple([pass_in_contract(pair, result) for result in results])


def pass_in_contract(pair: Pair, made: PassResult) -> Pass:
    reading = made.reading
    return Pass(
        order=reading.order,
        sample=reading.sample,
        ballot=ballot_in_contract(pair, reading) if isinstance(reading, PassBallot) else None,
        unread=reading if isinstance(reading, Unread) else None,
        usage=made.usage,
        time_ms=made.time_ms,
        repaired=made.repaired,
        model=made.model,
        request_ids=made.request_ids,
    )


def ballot_in_contract(pair: Pair, ballot: PassBallot) -> Ballot:
    """With its prose. The stored decision stands, even if a later version would read the text
    otherwise."""
    prose = prose_of(ballot, pair)
    own: Callable[[str], str] = str if ballot.order == "original" else rename
    sides = (prose.response_a, prose.response_b)
    reasoning, entries = prose.reasoning, prose.criteria
    if ballot.order == "swapped":
        sides = (prose.response_b, prose.response_a)
        reasoning = _own_names(reasoning, prose.protocol)
        entries = tuple(
            [e._replace(a_assessment=e.b_assessment, b_assessment=e.a_assessment) for e in entries]
        )
    fields: dict[str, Any] = {
        "order": ballot.order,
        "sample": ballot.sample,
        "winner": ballot.winner,
        "confidence": ballot.confidence,
        "confidence_source": ballot.confidence_source,
        "probabilities": ballot.probabilities,
        "scores": ballot.scores,
        "strength": ballot.strength,
        "criteria": [
            {"criterion": criterion.name, "winner": winner}
            for criterion, winner in zip(pair.criteria, ballot.criteria, strict=False)
        ],
        "reasoning": own(reasoning),
        "differentiators": [own(text) for text in prose.differentiators],
        "analysis": {"response_a": _side(sides[0], own), "response_b": _side(sides[1], own)},
        "protocol": ballot.protocol,
        "flags": ballot.flags,
        "raw": ballot.raw,
    }
    for shown, entry in zip(fields["criteria"], entries, strict=False):
        shown["reasoning"] = own(entry.reasoning)
        shown["a_assessment"] = own(entry.a_assessment)
        shown["b_assessment"] = own(entry.b_assessment)
    for shown, shares in zip(fields["criteria"], ballot.criterion_probabilities, strict=False):
        shown["probabilities"] = shares
    # JSON can spell lone surrogates, and a model cut inside an emoji does. The backslash is checked
    # first: one character is found many times faster than three.
    spelt = "\\" in ballot.raw and ("\\ud" in ballot.raw or "\\uD" in ballot.raw)
    return Ballot.model_validate(_whole_strings(fields) if spelt else fields)


def _side(analysis: ParsedAnalysis, own: Callable[[str], str]) -> dict[str, list[str]]:
    return {
        "strengths": [own(text) for text in analysis.strengths],
        "weaknesses": [own(text) for text in analysis.weaknesses],
    }


def _own_names(reasoning: str, protocol: AnswerProtocol) -> str:
    """Other protocols have other names for the responses, exchanged too."""
    if protocol == "evenhand":
        return reasoning
    return exchanged(reasoning, protocol)


def _whole_strings(value: Any) -> Any:
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, dict):
        return {key: _whole_strings(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole_strings(item) for item in value]
    return value


def _metadata(
    pair: Pair, passes: tuple[Pass, ...], context: VerdictContext, **known: Any
) -> Metadata:
    models = list(dict.fromkeys(p.model for p in passes if p.model))
    return Metadata(
        **{
            "id": pair.id,
            "positions_swapped": pair.swap_positions,
            "judge": context.judge,
            "judge_caveat": context.caveat,
            "model": models[0] if len(models) == 1 else None,
            "locale": context.locale,
            "mode": context.mode,
            "prompt_version": context.prompt_version,
            "reconcile": context.reconcile,
            "usage": add_usage(p.usage for p in passes),
            "passes": passes,
            **known,
        }
    )


def _unasked(pair: Pair, locale: Locale) -> dict[str, Any]:
    """A tie by rule on every criterion."""
    identical = say(locale, "identical")
    return {
        "comparison": tuple(
            CriterionVerdict(
                criterion=criterion.name,
                winner="TIE",
                reasoning=identical,
                a_strength="",
                b_strength="",
            )
            for criterion in pair.criteria
        ),
        "overall_reasoning": "",
        "differentiators": Differentiators(),
        "analysis": Analysis(),
        "notes": (say(locale, "not_asked"),),
    }


_AnyBallot = TypeVar("_AnyBallot", Ballot, CriterionBallot)
_QuotedBallots = Sequence[tuple[Order, _AnyBallot]]


@dataclass(frozen=True, slots=True)
class _Orders:
    """The ballots by order, and how their texts are merged."""

    ballots: Mapping[Order, Sequence[Ballot]]
    locale: Locale
    canonical: tuple[Order, ...]
    keep_both: bool  # identical responses: neither order comes first

    def on_criterion(self, place: int) -> dict[Order, list[CriterionBallot]]:
        """By order, without entries that name no winner."""
        return {
            order: [
                entry
                for ballot in ballots
                if ballot.criteria and (entry := ballot.criteria[place]).winner is not None
            ]
            for order, ballots in self.ballots.items()
        }


def _prose(
    pair: Pair, decision: Decision, passes: tuple[Pass, ...], context: VerdictContext
) -> dict[str, Any]:
    ballots = [p.ballot for p in passes if p.ballot]
    first = shown_first(response_digests(pair))
    sources = _Orders(
        by_order(pair, ballots),
        context.locale,
        canonical(pair, first),
        keep_both=first is None and pair.swap_positions,
    )
    choices = _choices(pair, decision)
    inconsistent = decision.outcome is Outcome.INCONSISTENT
    quoted, both = _quoted_ballots(
        sources, sources.ballots, winner=decision.winner, choices=choices, decided=not inconsistent
    )
    comparison = tuple(
        [
            _criterion(sources, criterion, sources.on_criterion(place))
            for place, criterion in enumerate(decision.criteria)
        ]
    )
    points = _criteria_won(decision.criteria, comparison)
    if inconsistent:
        _add_claims(points, sources, decision.criteria, quoted)
    else:
        for _, ballot in quoted:
            if ballot.winner == decision.winner:
                points[ballot.winner] += ballot.differentiators
    return {
        "comparison": comparison,
        "overall_reasoning": _merged(
            sources, [o for o, _ in quoted], [ballot.reasoning for _, ballot in quoted], both=both
        ),
        "differentiators": Differentiators(
            a_advantages=_distinct(points["A"]), b_advantages=_distinct(points["B"])
        ),
        "analysis": _analysis(sources, quoted, both=both),
        "position_consistency": position(pair, choices),
        "notes": (
            *_note_on_orders(sources, decision, choices),
            *_notes(pair, passes, ballots, context),
        ),
    }


def _choices(pair: Pair, decision: Decision) -> Choices:
    if pair.swap_positions:
        return {"original": decision.first_pass_winner, "swapped": decision.second_pass_winner}
    # A single order is inconsistent only if its samples split.
    split = decision.outcome is Outcome.INCONSISTENT
    return {pair.orders[0]: None if split else decision.winner}


def _note_on_orders(sources: _Orders, decision: Decision, choices: Choices) -> Sequence[str]:
    averaged = decision.probabilities is not None
    if decision.outcome is Outcome.INCONSISTENT:
        which = "split" if averaged or None in choices.values() else "inconsistent"
    elif averaged and len(set(choices.values())) > 1:
        which = "flipped"
    else:
        return ()
    return (_note_on(which, sources.locale, tuple([(o, choices[o]) for o in sources.canonical])),)


# Cached: there are few variants, and rendering one takes longer than all else here.
@cache
def _note_on(which: str, locale: Locale, choices: tuple[tuple[Order, Winner | None], ...]) -> str:
    return say(locale, which, choices=list_choices(locale, choices))


def _notes(
    pair: Pair, passes: Sequence[Pass], ballots: Sequence[Ballot], context: VerdictContext
) -> Sequence[str]:
    locale = context.locale
    notes = list(notes_on(pair, locale))
    if not pair.swap_positions:
        notes.append(say(locale, "one_order" if drawn_order(pair) is None else "drawn_order"))
    wanted = context.confidence == "logprobs"
    if wanted and any(ballot.probabilities is None for ballot in ballots):
        notes.append(say(locale, "no_logprobs"))
    if context.caveat is None and any(b.protocol == "recorded" for b in ballots):
        notes.append(say(locale, "recorded"))
    if len(ballots) < len(passes):
        unread = str(len(passes) - len(ballots))
        notes.append(say(locale, "some_unread", count=unread, total=str(len(passes))))
    return notes


def _criterion(
    sources: _Orders,
    criterion: CriterionDecision,
    entries: Mapping[Order, Sequence[CriterionBallot]],
) -> CriterionVerdict:
    choices: Choices = {
        "original": criterion.first_pass_winner,
        "swapped": criterion.second_pass_winner,
    }
    quoted, both = _quoted_ballots(
        sources,
        entries,
        winner=criterion.winner,
        choices=choices,
        decided=criterion.outcome is Outcome.WIN or criterion.outcome is Outcome.TIE,
    )
    orders = [order for order, _ in quoted]
    reasoning = _merged(sources, orders, [entry.reasoning for _, entry in quoted], both=both)
    if criterion.outcome is Outcome.INVALID:
        reasoning = _gap(sources, entries, reasoning)
    return CriterionVerdict(
        criterion=criterion.name,
        winner=criterion.winner,
        reasoning=reasoning,
        a_strength=_merged(sources, orders, [entry.a_assessment for _, entry in quoted], both=both),
        b_strength=_merged(sources, orders, [entry.b_assessment for _, entry in quoted], both=both),
    )


def _gap(
    sources: _Orders, entries: Mapping[Order, Sequence[CriterionBallot]], reasoning: str
) -> str:
    """If an order does not judge a criterion: that fact, and what the other one says."""
    silent = [order for order in sources.canonical if not entries[order]]
    if len(silent) == len(sources.canonical):
        return say(sources.locale, "not_judged")
    gap = say(sources.locale, "not_judged_in", which=name_pass(sources.locale, silent[0]))
    return f"{gap} {reasoning}".strip()


def _criteria_won(
    criteria: Sequence[CriterionDecision], comparison: Sequence[CriterionVerdict]
) -> dict[Winner, list[str]]:
    """By side: the criteria it won, each with its reason."""
    won: dict[Winner, list[str]] = {"A": [], "B": [], "TIE": []}
    for criterion, entry in zip(criteria, comparison, strict=True):
        if criterion.winner is not None and criterion.outcome is Outcome.WIN:
            won[criterion.winner].append(_with_reason(criterion.name, entry.reasoning))
    return won


def _add_claims(
    won: dict[Winner, list[str]],
    sources: _Orders,
    criteria: Sequence[CriterionDecision],
    quoted: _QuotedBallots[Ballot],
) -> None:
    """If the passes differ: each one's claims, marked with its pass."""
    for order, ballot in quoted:
        which = marks(sources.locale)[order]
        for criterion, entry in zip(criteria, ballot.criteria, strict=False):
            if entry.winner is not None and criterion.outcome is Outcome.INCONSISTENT:
                won[entry.winner].append(which + _with_reason(criterion.name, entry.reasoning))
        won[ballot.winner] += [which + point for point in ballot.differentiators]


def _with_reason(name: str, reason: str) -> str:
    return f"{name}: {reason}" if reason else name


def _quoted_ballots(
    sources: _Orders,
    entries: Mapping[Order, Sequence[_AnyBallot]],
    *,
    winner: Winner | None,
    choices: Mapping[Order, Winner | None],
    decided: bool,
) -> tuple[list[tuple[Order, _AnyBallot]], bool]:
    """Whose words are used, and whether all are kept, each marked with its pass.

    A decision uses a ballot that named it, from the canonical first order. If nobody named it or
    nothing was decided, all orders are quoted: the first ballot that states the order's choice, or
    one for each side if the order split.
    """
    if decided:
        agreeing = [
            entry for order in sources.canonical for entry in _first(entries, order, winner)
        ]
        if agreeing:
            return agreeing, False
    quoted: list[tuple[Order, _AnyBallot]] = []
    for order in sources.canonical:
        sides = [choices[order]] if choices[order] is not None else _sides(entries[order])
        for side in sides:
            quoted += _first(entries, order, side)
    return quoted, True


def _first(
    entries: Mapping[Order, Sequence[_AnyBallot]], order: Order, side: Winner | None
) -> list[tuple[Order, _AnyBallot]]:
    """The order's first ballot for this side, if any."""
    for entry in entries[order]:
        if entry.winner == side:
            return [(order, entry)]
    return []


def _sides(entries: Sequence[Ballot | CriterionBallot]) -> list[Winner | None]:
    return list(dict.fromkeys(entry.winner for entry in entries))


def _merged(sources: _Orders, orders: Sequence[Order], texts: Sequence[str], *, both: bool) -> str:
    stripped = [text.strip() for text in texts]
    if both or (sources.keep_both and len({text for text in stripped if text}) > 1):
        which = marks(sources.locale)
        entries = zip(orders, stripped, strict=True)
        return "\n".join([which[order] + text for order, text in entries if text])
    for text in stripped:
        if text:
            return text
    return ""


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Without blanks and repeats, ignoring case, spacing and a final full stop."""
    seen: dict[str, str] = {}
    for text in texts:
        stripped = text.strip()
        if stripped:
            seen.setdefault(_single_spaced(stripped).rstrip(".。").casefold(), stripped)
    return tuple(seen.values())


def _single_spaced(text: str) -> str:
    # The plain space is the only printable white space, so most texts skip splitting, which takes
    # five times as long.
    if text.isprintable() and "  " not in text:
        return text
    return " ".join(text.split())


def _analysis(sources: _Orders, quoted: Sequence[tuple[Order, Ballot]], *, both: bool) -> Analysis:
    given = [(order, ballot.analysis) for order, ballot in quoted if _has_points(ballot.analysis)]
    if not given:
        return Analysis()
    if not both and not (sources.keep_both and len({analysis for _, analysis in given}) > 1):
        return given[0][1]
    return Analysis(
        response_a=_gathered(sources, [(order, analysis.response_a) for order, analysis in given]),
        response_b=_gathered(sources, [(order, analysis.response_b) for order, analysis in given]),
    )


def _gathered(
    sources: _Orders, given: Sequence[tuple[Order, ResponseAnalysis]]
) -> ResponseAnalysis:
    marked = [(marks(sources.locale)[order], analysis) for order, analysis in given]
    return ResponseAnalysis(
        strengths=_distinct([which + text for which, each in marked for text in each.strengths]),
        weaknesses=_distinct([which + text for which, each in marked for text in each.weaknesses]),
    )


def _has_points(analysis: Analysis) -> bool:
    a, b = analysis.response_a, analysis.response_b
    return bool(a.strengths or a.weaknesses or b.strengths or b.weaknesses)


# Notes on the pair itself, by rule.

# Twice as long, and by more than a phrase.
LONGER_RATIO = 2.0
LONGER_BY = 100

# Ways in which responses address the judge, as known attacks do. A hint to look, never a reason for
# a verdict. Each pattern is tried only if one of its words occurs, and every repetition is bounded,
# so that no text is slow.
_FORMS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("ignore", "disregard", "forget", "override"),
        r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}\b(?:above|previous|prior|earlier"
        r"|instructions?|criteria|rules|rubric|other (?:response|answer))\b",
    ),
    (
        ("choose", "pick", "select", "prefer", "favo", "vote", "declare"),
        r"\b(?:choose|pick|select|prefer|favou?r|vote for|declare)\s{1,3}(?:me\b|this (?:response"
        r"|answer|one)\b|(?:response|answer|option|assistant) [ab]\b)",
    ),
    (
        ("judge", "grader", "evaluator", "reviewer", "rater"),
        r"\b(?:dear|attention|note (?:to|for)|message (?:to|for)|hey)\s{0,3},?\s{0,3}"
        r"(?:the\s{1,3}|all\s{1,3}|any\s{1,3})?(?:ai\s{1,3})?"
        r"(?:judges?|graders?|evaluators?|reviewers?|raters?)\b"
        r"|\bas (?:the|an?) (?:ai\s{1,3})?(?:judge|grader|evaluator)\b[^.\n]{0,20}\byou\b",
    ),
    (
        ("winner", "better one", "best one"),
        r"\b(?:this|my) (?:response|answer) (?:is|should be) (?:the )?"
        r"(?:winner|better one|best one)\b"
        r'|"winner"\s{0,3}:|^[ \t]{0,8}winner\s{0,3}:\s{0,3}(?:response\s{0,3})?[ab]\b',
    ),
    (("[[",), r"\[\[\s{0,3}[abc](?:\s{0,3}[<>=]{1,2}\s{0,3}[ab])?\s{0,3}\]\]"),
    (("verdict",), r"^[ \t]{0,8}final verdict\s{0,3}:\s{0,3}(?:response\s{0,3})?[ab]\b"),
    (
        ("<|", "inst]", "sys>>", "_of_turn"),
        r"<\|(?:im_start|im_end|eot_id|start_header_id|end_of_text|endoftext|system|user"
        r"|assistant)\|>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>",
    ),
    (
        ("忽略", "无视", "不要理会", "忘记"),
        r"(?:忽略|无视|不要理会|忘记)[^。\n]{0,16}"
        r"(?:以上|上述|之前|前面|先前|指令|指示|标准|规则|另一)",
    ),
    (
        ("选", "判", "支持"),
        r"(?:选择|选|判定?|支持)"
        r"(?:我|本回答|本响应|本答案|这个(?:回答|响应|答案)|(?:响应|回答)\s{0,3}[ab])",
    ),
    (
        ("评审", "评委", "裁判", "评分者", "评判者", "评估者"),
        r"(?:致|尊敬的|亲爱的|告知|提醒)[^。\n]{0,6}(?:评审|评委|裁判|评分者|评判者|评估者)",
    ),
    (("获胜者",), r"获胜者\s{0,3}[:：]\s{0,3}(?:响应\s{0,3})?[ab]"),
)
# Letters from the rarest in prose to the commonest, roughly; Chinese characters count as rare.
_BY_RARITY = "[|]<>_jqxzkvwygpbfcmdluhrsinoate "


def _by_rarest_letter() -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
    """The words by their rarest letter, with the number of their form: a letter is found in a
    twentieth of a word's time, and its absence rules its words out."""
    by_letter: dict[str, list[tuple[str, int]]] = {}
    for number, (words, _) in enumerate(_FORMS):
        for word in words:
            by_letter.setdefault(min(word, key=_BY_RARITY.find), []).append((word, number))
    return tuple((letter, tuple(words)) for letter, words in by_letter.items())


_WORDS_BY_LETTER = _by_rarest_letter()
_PATTERNS = tuple(re.compile(form, re.MULTILINE) for _, form in _FORMS)


def notes_on(pair: Pair, locale: Locale) -> tuple[str, ...]:
    """Notes on length, identical texts and texts that address the judge; mirrored with the pair."""
    notes = [_on_length(pair, locale), _on_addressing(pair, locale)]
    if pair.response_a == pair.response_b:
        notes.insert(0, say(locale, "identical"))
    return tuple(note for note in notes if note)


def is_noted(pair: Pair) -> bool:
    return bool(notes_on(pair, "en"))


def _on_length(pair: Pair, locale: Locale) -> str | None:
    a, b = len(pair.response_a), len(pair.response_b)
    name_a, name_b = name_winner(locale, "A"), name_winner(locale, "B")
    if a == b:
        return say(locale, "both_empty") if a == 0 else None
    longer, shorter = (name_a, name_b) if a > b else (name_b, name_a)
    big, small = max(a, b), min(a, b)
    if small == 0:
        return say(locale, "empty", which=shorter)
    if big < LONGER_RATIO * small or big - small < LONGER_BY:
        return None
    return say(
        locale,
        "longer",
        longer=longer,
        shorter=shorter,
        ratio=f"{big / small:.1f}",
        long_size=f"{big:,}",
        short_size=f"{small:,}",
    )


def _on_addressing(pair: Pair, locale: Locale) -> str | None:
    a = addresses_judge(pair.response_a)
    b = addresses_judge(pair.response_b)
    if a and b:
        return say(locale, "both_address_judge")
    if a or b:
        return say(locale, "addresses_judge", which=name_winner(locale, "A" if a else "B"))
    return None


def addresses_judge(text: str) -> bool:
    lowered = text.lower()
    numbers: set[int] = set()
    for letter, words in _WORDS_BY_LETTER:
        if letter in lowered:
            for word, number in words:
                if word in lowered:
                    numbers.add(number)
    return any(_PATTERNS[number].search(lowered) is not None for number in numbers)
