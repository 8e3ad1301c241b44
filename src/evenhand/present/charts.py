"""The charts of a report, a ranking, a calibration and named shares, and their files: SVG, or the
figures as CSV.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from evenhand.errors import InputError
from evenhand.messages import Language, Message
from evenhand.present.chart_rows import (
    ChartRow,
    chart_csv,
    conclusion_rows,
    ranking_rows,
    reliability_rows,
)
from evenhand.present.labels import (
    ChartWords,
    distinct,
    listed,
    percent,
    percent_range,
    shortened,
)
from evenhand.present.leaderboard import Board, BoardRow, board_of, matrix_of
from evenhand.present.svg import (
    SHARE_TICKS,
    Chart,
    ChartPanel,
    Heading,
    IntervalRow,
    NumberScale,
    brief,
    drawings,
    interval_panel,
    matrix_panel,
    outcome_panel,
    reliability_panel,
    sentence_panel,
)
from evenhand.report.files import atomic_file

if TYPE_CHECKING:
    from evenhand.analyses.calibrate import CalibrationReport
    from evenhand.analyses.rank import RunRanking
    from evenhand.report.claims import ClaimedRate
    from evenhand.report.conclusions import Conclusion, Conclusions, GroupRate, SideRate
    from evenhand.stats.calibration.reliability import CalibrationChange, CalibrationError
    from evenhand.stats.estimates import EstimatedShare
    from evenhand.stats.ranking.result import RankedModel, Ranking


# A picture with more rows than that is none any more; the CSV has them all.
MOST_ROWS = 60
MOST_SERIES = 6
MOST_MODELS = 200
MOST_IN_MATRIX = 30
_NAME_COLUMNS = 24
_LABEL_COLUMNS = 32
_NOTE_COLUMNS = 112
Numbers = tuple[float | None, float | None, float | None]


# Files.

ChartFormat = Literal["svg", "csv"]
CHART_FORMATS: tuple[ChartFormat, ...] = get_args(ChartFormat)


def chart_format(path: Path) -> ChartFormat:
    """By the file's ending: known before anything is drawn."""
    for known in CHART_FORMATS:
        if path.suffix.lower() == f".{known}":
            return known
    raise InputError(Message("report.chart_kind_unknown", name=path.name or path))


def write_report_chart(conclusions: Conclusions, path: Path) -> None:
    """Everything that the run shows, one chart under the other."""
    _write(path, lambda: report_chart(conclusions), lambda: conclusion_rows(conclusions))


def write_ranking_chart(result: RunRanking, path: Path) -> None:
    """The leaderboard and beside it the expected win matrix."""
    if (ranking := result.ranking) is None:
        raise InputError(Message("command.belongs_to_fit", option="plot"))
    _write(path, lambda: ranking_chart(ranking), lambda: ranking_rows(ranking))


def write_reliability_chart(report: CalibrationReport, path: Path) -> None:
    """Predicted against observed accuracy, before and after calibration."""
    change, judge = report.change, report.learned_on.judge
    _write(path, lambda: reliability_chart(change, judge), lambda: reliability_rows(change))


# By the name of the analysis whose result it shows.
CHART_WRITERS: dict[str, Callable[[Any, Path], None]] = {
    "calibrate": write_reliability_chart,
    "report": lambda report, path: write_report_chart(report.conclusions, path),
    "rank": write_ranking_chart,
}


def _write(path: Path, draw: Callable[[], Chart], rows: Callable[[], Iterable[ChartRow]]) -> None:
    content = chart_csv(rows()) if chart_format(path) == "csv" else draw().svg().encode()
    # A chart is made anew from the store at any time: it takes the place of an older one.
    with atomic_file(path.expanduser(), overwrite=True) as stream:
        stream.write(content)


# A run.


def report_chart(conclusions: Conclusions, *, language: Language = "en") -> Chart:
    """All that the run has to show, one under the other."""
    say = ChartWords(language)
    found = conclusions.conclusions
    panels = [_win_rates(conclusions, say)]
    if found:
        panels.append(_outcomes(conclusions, say))
    for what, groups in _GROUPS.items():
        if any(groups(each) for each in found):
            panels.append(_by_group(conclusions, what, say))
    if found:
        panels.append(_length(conclusions, say))
    return Chart(tuple(panels), language)


def win_rate_chart(conclusions: Conclusions, *, language: Language = "en") -> Chart:
    """Each comparison's win rate with its interval: by judge, by the two models."""
    return Chart((_win_rates(conclusions, ChartWords(language)),), language)


def outcome_chart(conclusions: Conclusions, *, language: Language = "en") -> Chart:
    """How many pairs have each outcome, never folded into one another."""
    return Chart((_outcomes(conclusions, ChartWords(language)),), language)


def criterion_chart(conclusions: Conclusions, *, language: Language = "en") -> Chart:
    """The win rate on each criterion."""
    return Chart((_by_group(conclusions, "criterion", ChartWords(language)),), language)


def tag_chart(conclusions: Conclusions, *, language: Language = "en") -> Chart:
    """The win rate on the pairs of each tag."""
    return Chart((_by_group(conclusions, "tag", ChartWords(language)),), language)


def length_chart(conclusions: Conclusions, *, language: Language = "en") -> Chart:
    """The win rate as it is and at equal length, and how often the longer answer won."""
    return Chart((_length(conclusions, ChartWords(language)),), language)


_GROUPS: dict[str, Callable[[Conclusion], tuple[GroupRate, ...]]] = {
    "criterion": attrgetter("by_criterion"),
    "tag": attrgetter("by_tag"),
}


def _win_rates(conclusions: Conclusions, say: ChartWords) -> ChartPanel:
    compared = conclusions.conclusions
    who = _subject(compared, say)
    title = say("win_rate_of", subject=who) if who else say("win_rate_title")
    if not compared:
        return sentence_panel(Heading(title), say("nothing"))
    names = _name_comparisons(compared, say)
    shown = compared[:MOST_ROWS]
    rows = [_claim_row(each, name=name, say=say) for name, each in zip(names, shown, strict=False)]
    run = say("run", run=shortened(conclusions.run, 2 * _LABEL_COLUMNS))
    lines = _lines(conclusions, rows, _cut(len(compared), len(shown), say), who=run, say=say)
    return interval_panel(
        Heading(title, lines), rows, _scale(conclusions.level, say("win_rate"), say)
    )


def _outcomes(conclusions: Conclusions, say: ChartWords) -> ChartPanel:
    title = say("outcomes_title")
    shown = conclusions.conclusions[:MOST_ROWS]
    rows = [
        (name, _counts(each))
        for name, each in zip(_name_comparisons(conclusions.conclusions, say), shown, strict=False)
    ]
    if not any(sum(counts) for _, counts in rows):
        return sentence_panel(Heading(title), say("nothing"))
    who = _subject(shown, say)
    own, other = ("B", "A") if conclusions.side == "B" else ("A", "B")
    return outcome_panel(
        Heading(title, [say("of_subject", subject=who)] if who else ()),
        rows,
        kinds=[
            (own, say("won")),
            ("tie", say("tie")),
            ("inconsistent", say("inconsistent")),
            (other, say("lost")),
            ("invalid", say("invalid")),
        ],
        axis=say("share_of_pairs"),
    )


def _counts(each: Conclusion) -> tuple[int, ...]:
    counts, (own, other) = each.win_rate.counts, each.win_rate.won_and_lost
    return own, counts.ties, counts.inconsistent, other, counts.invalid


def _by_group(conclusions: Conclusions, what: str, say: ChartWords) -> ChartPanel:
    title = say(f"by.{what}")
    compared = conclusions.conclusions
    shown = compared[:MOST_SERIES]
    groups = _GROUPS[what]
    largest: dict[str, int] = {}
    for each in shown:
        for group in groups(each):
            largest[group.name] = max(largest.get(group.name, 0), group.rate.n)
    if not largest:
        return sentence_panel(Heading(title), say(f"none.{what}"))
    kept = sorted(largest, key=lambda name: -largest[name])[:MOST_ROWS]
    labels = dict(zip(kept, distinct(kept, _LABEL_COLUMNS), strict=True))
    series = _name_comparisons(compared, say) if len(compared) > 1 else [""]
    rows = [
        _rate_row(group.rate, each, name=labels[name], of=of, say=say)
        for name in largest
        if name in labels
        for of, each in zip(series, shown, strict=False)
        for group in groups(each)
        if group.name == name
    ]
    cut = [_cut(len(compared), len(shown), say)]
    if len(kept) < len(largest):
        cut.append(say(f"largest.{what}", shown=len(kept), all=f"{len(largest):,}"))
    lines = _lines(conclusions, rows, *cut, who=_subject(shown, say), say=say)
    return interval_panel(
        Heading(title, lines), rows, _scale(conclusions.level, say("win_rate"), say)
    )


def _length(conclusions: Conclusions, say: ChartWords) -> ChartPanel:
    """The judged rate, what it would be at equal length, and how often the longer answer won."""
    title = say("length_title")
    compared = conclusions.conclusions
    if not compared:
        return sentence_panel(Heading(title), say("nothing"))
    shown = compared[:MOST_SERIES]
    series = _name_comparisons(compared, say) if len(compared) > 1 else [""]
    pairs = list(zip(series, shown, strict=False))
    rows = [
        _rate_row(each.win_rate, each, name=say("as_judged"), of=of, say=say) for of, each in pairs
    ]
    # Its ties are half, however those of the win rate above it count.
    equal = say("equal_length" if conclusions.ties == "half" else "equal_length_half")
    for of, each in pairs:
        for rate in each.length.controlled:
            model = rate.model and shortened(rate.model, _NAME_COLUMNS)
            rows.append(
                _row(
                    (rate.rate, rate.low, rate.high),
                    name=say("equal_length_of", rate=equal, model=model) if model else equal,
                    of=of,
                    count=say.counted(rate.n, "pair"),
                    reason=rate.reason,
                    say=say,
                )
            )
    for of, each in pairs:
        longer = each.length.longer_wins
        count = say("decided", pairs=say.counted(longer.of, "decided_pair"))
        rows.append(_share_row(say("longer_won"), longer, count, of=of, say=say))
    cut = _cut(len(compared), len(shown), say)
    return interval_panel(
        Heading(title, _lines(conclusions, rows, cut, always_valid="length_looks", say=say)),
        rows,
        _scale(conclusions.level, say("share"), say, axis=say("share_of_pairs")),
    )


def _subject(conclusions: Sequence[Conclusion], say: ChartWords) -> str:
    """Who is compared, where it is the same two in every comparison; else nothing."""
    sides = {(each.model, each.against, each.side) for each in conclusions}
    return _sides(conclusions[0], say) if len(sides) == 1 else ""


def _name_comparisons(conclusions: Sequence[Conclusion], say: ChartWords) -> list[str]:
    """By what differs between them, no two alike."""
    judges = {each.judge for each in conclusions}
    one_subject = bool(_subject(conclusions, say))
    names = []
    for each in conclusions:
        judge = shortened(each.judge, _NAME_COLUMNS)
        if one_subject:
            names.append(judge)
        elif len(judges) == 1:
            names.append(_sides(each, say))
        else:
            names.append(say("by_judge", sides=_sides(each, say), judge=judge))
    return distinct(names, 3 * _NAME_COLUMNS)


def _sides(each: Conclusion, say: ChartWords) -> str:
    own, other = (shortened(name, _NAME_COLUMNS) for name in each.names)
    return say("against", own=own, other=other)


def _claim_row(each: Conclusion, *, name: str, say: ChartWords) -> IntervalRow:
    """What the sentence goes by: the judge's rate, or people's as their labels correct it."""
    claimed, worst = each.claimed, each.win_rate.worst_case
    count = _counted(claimed, say)
    shown = worst is not None and claimed.rate is not None and not each.by_people
    return _row(
        (claimed.rate, claimed.low, claimed.high),
        name=name,
        count=listed([count, say("by_labels")]) if each.by_people else count,
        reason=claimed.reason,
        side=each.side if each.claims else None,
        worst=(worst.low, worst.high) if worst is not None and shown else None,
        say=say,
    )


def _counted(rate: SideRate | ClaimedRate, say: ChartWords) -> str:
    """What the rate is a mean of: pairs, or prompts where its interval is always valid."""
    if rate.always_valid and rate.prompts is not None:
        return say.counted(rate.prompts, "prompt")
    return say.counted(rate.n, "pair")


def _rate_row(
    rate: SideRate, of_two: Conclusion, *, name: str, say: ChartWords, of: str = ""
) -> IntervalRow:
    worst = rate.worst_case
    return _row(
        (rate.rate, rate.low, rate.high),
        name=name,
        of=of,
        count=_counted(rate, say),
        reason=rate.reason,
        side=rate.side if rate.shows_difference and of_two.judge_claims else None,
        worst=(worst.low, worst.high) if worst and rate.rate is not None else None,
        say=say,
    )


def _share_row(
    name: str, share: EstimatedShare, count: str, *, say: ChartWords, of: str = ""
) -> IntervalRow:
    numbers = (share.value, share.low, share.high)
    return _row(numbers, name=name, of=of, count=count, reason=share.reason, say=say)


def _row(
    numbers: Numbers,
    *,
    name: str,
    count: str,
    reason: str | None,
    say: ChartWords,
    of: str = "",
    side: str | None = None,
    worst: tuple[float, float] | None = None,
) -> IntervalRow:
    value, low, high = numbers
    bounded = low is not None and high is not None
    missing = None if value is not None and bounded else reason or say("no_data")
    return IntervalRow(
        name=name,
        of=of,
        value=value,
        low=low,
        high=high,
        numbers=(
            "" if value is None else percent(value),
            percent_range(low, high, say) if low is not None and high is not None else "",
            "" if value is None else count,
        ),
        reason=None if missing is None else brief(say.sentence(missing)),
        side=side,
        worst=worst,
    )


def _scale(
    level: float,
    heading: str,
    say: ChartWords,
    *,
    axis: str | None = None,
    even: float | None = 0.5,
) -> NumberScale:
    headings = (heading, say("interval", percent=f"{100 * level:g}"), say("from"))
    return NumberScale(axis or heading, SHARE_TICKS, headings, even)


def _lines(
    conclusions: Conclusions,
    rows: Iterable[IntervalRow],
    *cut: str,
    say: ChartWords,
    who: str = "",
    always_valid: str = "always_valid",
) -> list[str]:
    looked = any(each.win_rate.always_valid for each in conclusions.conclusions)
    lines = [
        listed([who, say(f"ties.{conclusions.ties}"), say(always_valid) if looked else ""]),
        listed(cut),
        say("worst_case") if any(row.worst for row in rows) else "",
    ]
    return [line for line in lines if line]


def _cut(count: int, shown: int, say: ChartWords) -> str:
    if shown == count:
        return ""
    return say("cut", shown=shown, all=say.counted(count, "comparison"))


# A ranking.


def ranking_chart(ranking: Ranking, *, language: Language = "en") -> Chart:
    """The leaderboard, and the expected win matrix beside it."""
    say = ChartWords(language)
    panels = [_leaderboard(ranking, say)]
    if ranking.models:
        panels.append(_win_matrix(ranking, say))
    return Chart(tuple(panels), language, beside=True)


def leaderboard_chart(ranking: Ranking, *, language: Language = "en") -> Chart:
    """The models best first, each score with its interval."""
    return Chart((_leaderboard(ranking, ChartWords(language)),), language)


def win_matrix_chart(ranking: Ranking, *, language: Language = "en") -> Chart:
    """What the model of a row is expected to score against that of a column."""
    return Chart((_win_matrix(ranking, ChartWords(language)),), language)


def _leaderboard(ranking: Ranking, say: ChartWords) -> ChartPanel:
    title = say("ranking_title")
    if not ranking.models:
        return sentence_panel(Heading(title), say("no_models"))
    board = board_of(ranking, most=MOST_MODELS)
    decimals = 0 if ranking.scale == "elo" else 2
    names = distinct((row.model.model for row in board.rows), _LABEL_COLUMNS)
    level = say("interval", percent=f"{100 * ranking.level:g}")
    return interval_panel(
        Heading(title, _ranking_lines(ranking, len(board.rows), say)),
        [_model_row(row, name, decimals, say) for name, row in zip(names, board.rows, strict=True)],
        NumberScale(
            say(f"score.{ranking.scale}"),
            _score_ticks(board, decimals),
            (say("model_score"), level, say("rank_games")),
        ),
    )


def _model_row(row: BoardRow, name: str, decimals: int, say: ChartWords) -> IntervalRow:
    model = row.model
    note = brief(say.sentence(model.note)) if model.note else ""
    return IntervalRow(
        name=name,
        value=row.at,
        low=row.low,
        high=row.high,
        numbers=(
            f"{model.score + 0.0:,.{decimals}f}",
            _limits(model.low, model.high, decimals, say),
            listed([_rank(model, say), say.counted(model.games, "game"), note]),
        ),
    )


def _limits(low: float | None, high: float | None, decimals: int, say: ChartWords) -> str:
    if low is not None and high is not None:
        return say("range", low=f"{low:,.{decimals}f}", high=f"{high:,.{decimals}f}")
    if low is not None:
        return say("or_more", low=f"{low:,.{decimals}f}")
    if high is not None:
        return say("or_less", high=f"{high:,.{decimals}f}")
    return say("no_interval")


def _score_ticks(board: Board, decimals: int) -> list[tuple[float, str]]:
    """The ends and the middle of the scale; its one score where it has no width."""
    width = board.most - board.least
    places = (0.0, 0.5, 1.0) if width else (0.0,)
    return [(place, f"{board.least + place * width:,.{decimals}f}") for place in places]


def _rank(model: RankedModel, say: ChartWords) -> str:
    if model.rank_low is None or model.rank_high is None or model.rank_low == model.rank_high:
        return f"{model.rank}"
    return say("rank_range", rank=model.rank, low=model.rank_low, high=model.rank_high)


def _ranking_lines(ranking: Ranking, shown: int, say: ChartWords) -> list[str]:
    prompts = say.counted(ranking.cluster_count, "prompt") if ranking.clusters == "prompt" else ""
    counted = [say.counted(ranking.games, "game"), prompts, say(f"ranked.{ranking.ties}")]
    notes = [*ranking.notes[:3], *([ranking.reason] if ranking.reason else [])]
    return [
        listed([*counted, _best(shown, ranking, say)]),
        *(brief(say.sentence(note), _NOTE_COLUMNS) for note in notes),
    ]


def _best(shown: int, ranking: Ranking, say: ChartWords) -> str:
    models = len(ranking.models)
    return say("best", shown=shown, all=f"{models:,}") if shown < models else ""


def _win_matrix(ranking: Ranking, say: ChartWords) -> ChartPanel:
    title = say("matrix_title")
    if not ranking.models:
        return sentence_panel(Heading(title), say("no_models"))
    cells = matrix_of(ranking, most=MOST_IN_MATRIX)
    names = distinct((row.model for row in ranking.models[: len(cells)]), _LABEL_COLUMNS)
    line = listed([say("matrix_reading"), say("tie_is_half"), _best(len(cells), ranking, say)])
    tone = drawings().tone
    return matrix_panel(
        Heading(title, [line]),
        names,
        [
            [
                None if cell is None else (cell.value, tone(cell.value, cell.significant))
                for cell in row
            ]
            for row in cells
        ],
        against=say("versus"),
    )


# A calibration.


def reliability_chart(change: CalibrationChange, judge: str, *, language: Language = "en") -> Chart:
    """How often verdicts of like confidence are right, before and after calibration."""
    say = ChartWords(language)
    points = [
        row for row in reliability_rows(change) if row.at is not None and row.value is not None
    ]
    title = say("reliability_title")
    if not points:
        reason = change.after_all.reason or say("no_data")
        return Chart((sentence_panel(Heading(title), brief(say.sentence(reason))),), language)
    errors = [("before", change.before), ("after", change.after_all)]
    series = [(kind, say(kind)) for kind, error in errors if error is not None]
    heading = Heading(
        title,
        [
            listed(
                [shortened(judge, 2 * _LABEL_COLUMNS), say.counted(change.after_all.n, "verdict")]
            ),
            listed([_error(say(kind), error, say) for kind, error in errors if error is not None]),
        ],
    )
    described = [
        f"{say(row.of)}, {row.name}: "
        + listed([percent(row.value or 0.0), say.counted(row.n or 0, "verdict")])
        for row in points
    ]
    panel = reliability_panel(
        heading, points, described, series=series, axes=(say("said"), say("right_share"))
    )
    return Chart((panel,), language)


def _error(series: str, error: CalibrationError, say: ChartWords) -> str:
    known = error.error is not None
    shown = say("error", error=f"{error.error:.3f}") if known else say("error_unknown")
    return say("series_error", series=series, error=shown)


# Named shares.


def share_chart(
    shares: Sequence[tuple[str, EstimatedShare]],
    *,
    title: str,
    unit: str = "pair",
    level: float = 0.95,
    language: Language = "en",
) -> Chart:
    """Named shares with their intervals: a judge beside its baselines, a judge's probes."""
    say = ChartWords(language)
    heading = Heading(shortened(title, 2 * _LABEL_COLUMNS))
    if not shares:
        return Chart((sentence_panel(heading, say("no_data")),), language)
    shown = shares[:MOST_ROWS]
    names = distinct((name for name, _ in shown), _LABEL_COLUMNS)
    rows = [
        _share_row(name, share, say.counted(share.of, unit), say=say)
        for name, (_, share) in zip(names, shown, strict=True)
    ]
    scale = _scale(level, say("share"), say, axis=say("share"), even=None)
    return Chart((interval_panel(heading, rows, scale),), language)
