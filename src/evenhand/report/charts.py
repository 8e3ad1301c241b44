"""Charts of a report and of a ranking: the same Altair chart for a file, a page and a notebook."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from evenhand.errors import InputError, MissingExtra
from evenhand.report.chart_data import (
    ChartRow,
    chart_csv,
    conclusion_rows,
    ranking_rows,
    reliability_rows,
)
from evenhand.report.chart_specs.words import ChartWords, Language
from evenhand.report.whole_file import written_whole

if TYPE_CHECKING:
    import altair as alt

    from evenhand.report.conclusions import Conclusions
    from evenhand.stats.calibration_change import CalibrationChange
    from evenhand.stats.estimated_share import EstimatedShare
    from evenhand.stats.ranking_result import Ranking

    Chart: TypeAlias = alt.LayerChart | alt.VConcatChart | alt.HConcatChart

ChartFormat = Literal["svg", "png", "json", "csv"]
Picture = Literal["svg", "png", "json"]
CHART_FORMATS: tuple[ChartFormat, ...] = get_args(ChartFormat)
_PIXELS_PER_POINT = 2


def write_report_chart(conclusions: Conclusions, path: Path) -> None:
    """Everything that the run says, one chart under the other, into a file."""
    kind = chart_format(path)
    if kind == "csv":
        _write_rows(conclusion_rows(conclusions), path)
    else:
        _write(report_chart(conclusions), path, kind)


def write_ranking_chart(ranking: Ranking, path: Path) -> None:
    """The leaderboard and beside it the expected win matrix, into a file."""
    kind = chart_format(path)
    if kind == "csv":
        _write_rows(ranking_rows(ranking), path)
    else:
        _write(ranking_chart(ranking), path, kind)


def write_reliability_chart(change: CalibrationChange, judge: str, path: Path) -> None:
    """What was said against what happened, before and after, into a file."""
    kind = chart_format(path)
    if kind == "csv":
        _write_rows(reliability_rows(change), path)
    else:
        _write(reliability_chart(change, judge), path, kind)


def chart_format(path: Path) -> ChartFormat:
    """By the file's ending: known before anything is drawn."""
    for known in CHART_FORMATS:
        if path.suffix.lower() == f".{known}":
            return known
    raise InputError(
        f"{path.name or path} does not say what kind of chart it is to hold; end it in .svg or "
        ".png, in .csv for its figures, or in .json for its Vega-Lite specification"
    )


def report_chart(conclusions: Conclusions, *, language: Language = "en") -> alt.VConcatChart:
    """All that the run has to show, one under the other."""
    _need_altair()
    import altair as alt

    from evenhand.report.chart_specs import outcomes, rates

    say = ChartWords(language)
    charts = [rates.win_rate_chart(conclusions, say)]
    if conclusions.conclusions:
        charts.append(outcomes.outcome_chart(conclusions, say))
    if any(each.by_criterion for each in conclusions.conclusions):
        charts.append(rates.criterion_chart(conclusions, say))
    if any(each.by_tag for each in conclusions.conclusions):
        charts.append(rates.tag_chart(conclusions, say))
    if conclusions.conclusions:
        charts.append(rates.length_chart(conclusions, say))
    # Each has its own legend: the comparisons that it shows.
    stack = alt.VConcatChart(vconcat=charts, spacing=36)
    chart: alt.VConcatChart = stack.resolve_scale(color="independent", shape="independent")
    return chart


def ranking_chart(ranking: Ranking, *, language: Language = "en") -> alt.HConcatChart:
    """The leaderboard, and the expected win matrix beside it."""
    _need_altair()
    import altair as alt

    from evenhand.report.chart_specs import rankings

    say = ChartWords(language)
    charts = [rankings.leaderboard_chart(ranking, say)]
    if ranking.models:
        charts.append(rankings.win_matrix_chart(ranking, say))
    pair = alt.HConcatChart(hconcat=charts, spacing=48)
    chart: alt.HConcatChart = pair.resolve_scale(color="independent")
    return chart


def win_rate_chart(conclusions: Conclusions, *, language: Language = "en") -> alt.LayerChart:
    """Each comparison's win rate with its interval: by judge, by the two models."""
    _need_altair()
    from evenhand.report.chart_specs import rates

    return rates.win_rate_chart(conclusions, ChartWords(language))


def outcome_chart(conclusions: Conclusions, *, language: Language = "en") -> alt.LayerChart:
    """How many pairs came to each outcome, never folded into one another."""
    _need_altair()
    from evenhand.report.chart_specs import outcomes

    return outcomes.outcome_chart(conclusions, ChartWords(language))


def criterion_chart(conclusions: Conclusions, *, language: Language = "en") -> alt.LayerChart:
    """The win rate on each criterion."""
    _need_altair()
    from evenhand.report.chart_specs import rates

    return rates.criterion_chart(conclusions, ChartWords(language))


def tag_chart(conclusions: Conclusions, *, language: Language = "en") -> alt.LayerChart:
    """The win rate on the pairs of each tag."""
    _need_altair()
    from evenhand.report.chart_specs import rates

    return rates.tag_chart(conclusions, ChartWords(language))


def length_chart(conclusions: Conclusions, *, language: Language = "en") -> alt.LayerChart:
    """The win rate as it is and at equal length, and how often the longer answer won."""
    _need_altair()
    from evenhand.report.chart_specs import rates

    return rates.length_chart(conclusions, ChartWords(language))


def leaderboard_chart(ranking: Ranking, *, language: Language = "en") -> alt.LayerChart:
    """The models best first, each score with its interval."""
    _need_altair()
    from evenhand.report.chart_specs import rankings

    return rankings.leaderboard_chart(ranking, ChartWords(language))


def win_matrix_chart(ranking: Ranking, *, language: Language = "en") -> alt.LayerChart:
    """What the model of a row is expected to score against that of a column."""
    _need_altair()
    from evenhand.report.chart_specs import rankings

    return rankings.win_matrix_chart(ranking, ChartWords(language))


def reliability_chart(
    change: CalibrationChange, judge: str, *, language: Language = "en"
) -> alt.LayerChart:
    """How often verdicts of like confidence are right, before and after calibration."""
    _need_altair()
    from evenhand.report.chart_specs import reliability

    return reliability.reliability_chart(change, judge, ChartWords(language))


def share_chart(
    shares: Sequence[tuple[str, EstimatedShare]],
    *,
    title: str,
    lines: Sequence[str] = (),
    unit: str = "pair",
    level: float = 0.95,
    middle: float | None = None,
    language: Language = "en",
) -> alt.LayerChart:
    """Named shares with their intervals: a judge beside its yardsticks, a judge's probes."""
    _need_altair()
    from evenhand.report.chart_specs import shares as specs

    return specs.share_chart(
        [specs.NamedShare(*each) for each in shares],
        ChartWords(language),
        title=title,
        lines=lines,
        unit=unit,
        level=level,
        middle=middle,
    )


def specification(chart: Chart, *, dark: bool = False, checked: bool = True) -> dict[str, Any]:
    """The chart as Vega-Lite with the look of a file. To check it against its schema takes longer
    than to draw it; whoever draws at once would be told by the drawing."""
    from evenhand.report.chart_specs.look import FILE_LOOK, on_dark

    spec: dict[str, Any] = chart.to_dict(validate=checked)
    made = {**spec, "config": {**FILE_LOOK, **spec.get("config", {})}}
    return on_dark(made) if dark else made


def _write(chart: Chart, path: Path, kind: Picture) -> None:
    _write_whole(draw(specification(chart), kind), path)


def _write_rows(rows: Iterable[ChartRow], path: Path) -> None:
    _write_whole(chart_csv(rows), path)


def _write_whole(content: bytes, path: Path) -> None:
    # A chart is made anew from the store at any time: it takes the place of an older one.
    with written_whole(path.expanduser(), overwrite=True) as stream:
        stream.write(content)


def can_draw() -> bool:
    """Whether the extra `plot` is installed."""
    return all(find_spec(name) is not None for name in ("altair", "vl_convert"))


def draw(spec: dict[str, Any], kind: Picture) -> bytes:
    """A specification as a picture, or as JSON."""
    if kind == "json":
        return json.dumps(spec, ensure_ascii=True, indent=1).encode() + b"\n"
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("vl-convert-python, which draws charts,", "plot") from None
    import altair as alt

    from evenhand.report.chart_room import with_room

    version = re.match(r"v\d+\.\d+", alt.SCHEMA_VERSION)
    # The data is in the specification: nothing may be fetched.
    options: dict[str, Any] = {
        "vl_version": version[0] if version else None,
        "allowed_base_urls": [],
    }
    svg = with_room(vl_convert.vegalite_to_svg(spec, **options))
    if kind == "svg":
        return svg.encode()
    png: bytes = vl_convert.svg_to_png(svg, scale=_PIXELS_PER_POINT)
    return png


def _need_altair() -> None:
    try:
        import altair  # noqa: F401 - only whether it is there
    except ImportError:
        raise MissingExtra("altair", "plot") from None
