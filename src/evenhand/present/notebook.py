"""What a notebook shows of a value: its sentence, its figures with their uncertainty, its chart and
its notes. The HTML is inert, and has no style of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from evenhand.errors import visible
from evenhand.messages import Language, render
from evenhand.present.labels import ChartWords, listed, percent, percent_range

_ROWS_AT_MOST = 100
# With more comparisons each one's sentence would be a page; the table has them all.
_SENTENCES_AT_MOST = 4
_OUTCOMES = ("A", "B", "tie", "inconsistent", "invalid")


def html_of(value: object, language: Language = "en") -> str | None:
    """None where a notebook has nothing better than the value's own text."""
    show = _SHOWN.get(type(value).__name__)
    if show is None:
        return None
    return Markup("<div>{}</div>").format(Markup("\n").join(show(value, ChartWords(language))))


def _verdict(value: Any, say: ChartWords) -> Iterable[Markup]:
    about = value.metadata
    stated = "" if value.confidence is None else say("confidence", value=f"{value.confidence:.2f}")
    caveat = say.sentence(about.judge_caveat) if about.judge_caveat else ""
    outcome = about.outcome.value
    won = say.outcome(value.winner) if outcome == "win" else say.outcome(outcome)
    yield _line(won, listed([stated, about.judge or "", caveat]))
    yield Markup('<p dir="auto">{}</p>').format(value.overall_reasoning)
    if value.comparison:
        yield _table(
            [say(each) for each in ("criterion", "winner", "reasoning", "of_a", "of_b")],
            [
                (
                    each.criterion,
                    _winner(each.winner, say),
                    *(each.reasoning, each.a_strength, each.b_strength),
                )
                for each in value.comparison
            ],
        )
    if about.passes:
        yield _table(
            [say(each) for each in ("shown_order", "winner", "stated", "reasoning")],
            [(say(f"order.{each.order}"), *_ballot(each, say)) for each in about.passes],
        )
    yield _notes(value.notes, say)


def _ballot(each: Any, say: ChartWords) -> tuple[str, str, str]:
    ballot = each.ballot
    if ballot is None:
        return "—", "—", "" if each.unread is None else say.sentence(each.unread.reason)
    confidence = "—" if ballot.confidence is None else f"{ballot.confidence:.2f}"
    return _winner(ballot.winner, say), confidence, ballot.reasoning


def _winner(winner: str | None, say: ChartWords) -> str:
    return "—" if winner is None else say.outcome(winner)


def _failure(value: Any, say: ChartWords) -> Iterable[Markup]:
    yield _line(say.outcome("invalid"), say.sentence(value.error.message))


def _run(value: Any, say: ChartWords) -> Iterable[Markup]:
    stopped = say("stopped", by=value.stopped_by) if value.stopped_by else ""
    yield _line(value.run, listed([say.counted(value.pairs, "pair"), stopped]))
    if value.error is not None:
        yield _line("", say.sentence(value.error.message))
    yield _table(
        [say("judge"), *(say.outcome(kind) for kind in _OUTCOMES), say("pending")],
        [
            (
                judge.judge,
                *_numbers(judge.wins_a, judge.wins_b, judge.ties),
                *_numbers(judge.inconsistent, judge.invalid, judge.pending),
            )
            for judge in value.judges
        ],
    )
    yield _notes(value.notes, say)


def _conclusions(value: Any, say: ChartWords) -> Iterable[Markup]:
    from evenhand.present.charts import report_chart

    yield _line(value.run, listed([say.counted(value.pairs, "pair"), say(f"ties.{value.ties}")]))
    if not value.conclusions:
        yield _line("", say("nothing"))
        return
    for each in value.conclusions[:_SENTENCES_AT_MOST]:
        yield _line("", render(each.messages, say.language))
    yield _table(
        [say("comparison"), say("judge"), say("win_rate"), *map(say, ("won", "lost"))]
        + [say.outcome(kind) for kind in _OUTCOMES[2:]],
        [_comparison(each, say) for each in value.conclusions[:_ROWS_AT_MOST]],
    )
    yield _cut(value.conclusions, say)
    yield _drawing(report_chart(value, language=say.language))
    yield _notes(value.notes, say)


def _comparison(each: Any, say: ChartWords) -> Sequence[str]:
    rate, counts = each.claimed, each.win_rate.counts
    own, other = counts.wins_a, counts.wins_b
    if each.side == "B":
        own, other = other, own
    return (
        say("against", own=each.names[0], other=each.names[1]),
        each.judge,
        listed([_figure(rate.rate, rate, say), say("by_labels") if each.by_people else ""]),
        *_numbers(own, other, counts.ties, counts.inconsistent, counts.invalid),
    )


def _ranking(value: Any, say: ChartWords) -> Iterable[Markup]:
    from evenhand.analyses.rank import sum_up_ranking
    from evenhand.present.charts import ranking_chart

    yield _line("", render(sum_up_ranking(value), say.language))
    if value.ranking is not None:
        yield _drawing(ranking_chart(value.ranking, language=say.language))
        yield _notes((*value.notes, *value.ranking.notes), say)
        return
    yield _table(
        [say("model"), say("model_score"), say("games")],
        [
            (each.model, f"{each.rating:,.0f} ({say('no_interval')})", *_numbers(each.games))
            for each in value.elo.models[:_ROWS_AT_MOST]
        ],
    )
    yield _cut(value.elo.models, say)
    yield _line("", say("elo"))
    yield _notes(value.notes, say)


def _audit(value: Any, say: ChartWords) -> Iterable[Markup]:
    from evenhand.present.charts import share_chart
    from evenhand.trust.findings import assess_audit

    yield _line(value.judge, say.counted(value.n, "labelled pair"))
    yield _notes(assess_audit(value).lines, say)
    shares = [
        (say("accuracy"), value.accuracy),
        *((each.name, each.accuracy) for each in value.yardsticks),
        (say("agreement"), value.agreement),
        (say("orders_agree"), value.consistency),
        (say("longer_judge"), value.length.by_judge),
        (say("longer_labels"), value.length.by_labels),
    ]
    yield _drawing(share_chart(shares, title=value.judge, level=value.level, language=say.language))
    rows = (value.confusion.a, value.confusion.tie, value.confusion.b)
    yield _table(
        [say("label"), *(say.outcome(kind) for kind in _OUTCOMES)],
        [
            (
                say.outcome(row.label),
                *_numbers(row.says_a, row.says_b, row.says_tie, row.inconsistent, row.invalid),
            )
            for row in rows
        ],
    )
    yield _notes(value.notes, say)


# By name: to load the classes would be to load all that they need.
_SHOWN: Mapping[str, Callable[[Any, ChartWords], Iterable[Markup]]] = {
    "Verdict": _verdict,
    "Failure": _failure,
    "RunSummary": _run,
    "Conclusions": _conclusions,
    "RunRanking": _ranking,
    "Audit": _audit,
}


def _line(strong: str, rest: str) -> Markup:
    head = Markup("<strong><bdi>{}</bdi></strong>").format(visible(strong)) if strong else ""
    return Markup("<p>{}{}{}</p>").format(head, " · " if strong and rest else "", visible(rest))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    head = Markup("").join(Markup("<th>{}</th>").format(each) for each in heads)
    body = Markup("\n").join(
        Markup("<tr><th><bdi>{}</bdi></th>{}</tr>").format(
            row[0],
            Markup("").join(Markup('<td dir="auto">{}</td>').format(each) for each in row[1:]),
        )
        for row in rows
    )
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body)


def _notes(notes: Iterable[str], say: ChartWords) -> Markup:
    lines = [Markup("<li>{}</li>").format(visible(say.sentence(note))) for note in notes]
    return Markup("<ul>{}</ul>").format(Markup("").join(lines)) if lines else Markup("")


def _cut(rows: Sequence[object], say: ChartWords) -> Markup:
    if len(rows) <= _ROWS_AT_MOST:
        return Markup("")
    return _line("", say("first_rows", shown=_ROWS_AT_MOST, all=f"{len(rows):,}"))


def _drawing(chart: Any) -> Markup:
    return Markup("<p>{}</p>").format(chart.image())


def _figure(value: float | None, of: Any, say: ChartWords) -> str:
    if value is None:
        return say.sentence(of.reason or say("no_data"))
    known = of.low is not None and of.high is not None
    limits = percent_range(of.low, of.high, say) if known else say("no_interval")
    return f"{percent(value)} ({limits})"


def _numbers(*counts: int | None) -> tuple[str, ...]:
    return tuple(f"{count or 0:,}" for count in counts)
