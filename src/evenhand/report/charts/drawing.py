"""Make a chart, draw it and write it: the same Altair chart for a file, a page and a notebook.
Altair is loaded when a chart is asked for.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args
from xml.etree import ElementTree

from evenhand.errors import InputError, MissingExtra
from evenhand.messages import Message
from evenhand.report.charts.data import (
    ChartRow,
    chart_csv,
    conclusion_rows,
    ranking_rows,
    reliability_rows,
)
from evenhand.report.charts.labels import ChartWords, Language
from evenhand.report.files import atomic_file

if TYPE_CHECKING:
    import altair as alt

    from evenhand.report.conclusions import Conclusions
    from evenhand.stats.calibration.reliability import CalibrationChange
    from evenhand.stats.estimates import EstimatedShare
    from evenhand.stats.ranking.result import Ranking

    Chart: TypeAlias = alt.LayerChart | alt.VConcatChart | alt.HConcatChart


# Room for the texts of a drawn chart, whatever font they are shown in.
#
# Whoever draws an SVG measures its texts in a font of its own; a browser shows them in the
# reader's, which may be wider, and cuts off what goes beyond the picture. So the picture is made
# as large as its texts are in the widest of the usual fonts.

_SVG = "{http://www.w3.org/2000/svg}"
_ROOT = re.compile(
    r'(<svg [^>]*?)width="([\d.]+)" height="([\d.]+)" viewBox="0 0 [\d.]+ [\d.]+"(>\s*)'
    r'(?:<rect width="[\d.]+" height="[\d.]+"( [^>]*?)/>)?'
)
_STEP = re.compile(r"(translate|rotate|scale)\(([^)]*)\)")
_MARGIN = 4.0
# In DejaVu Sans and Verdana, which are wider than most, as parts of the letters' height.
_NARROW = frozenset("iIjlftr.,:;'|!()[]{} /-")
_WIDE = frozenset("mwMWQ%@&—…")
_BOLD = 1.14


@dataclass(frozen=True, slots=True)
class _Plane:
    """Where a point of an element is in the picture: x' = a x + c y + e, y' = b x + d y + f."""

    a: float = 1.0
    b: float = 0.0
    c: float = 0.0
    d: float = 1.0
    e: float = 0.0
    f: float = 0.0

    def at(self, x: float, y: float) -> tuple[float, float]:
        return self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f

    def inside(self, transform: str) -> _Plane:
        plane = self
        for kind, given in _STEP.findall(transform):
            numbers = [float(each) for each in re.split(r"[\s,]+", given.strip())]
            if kind == "translate":
                own = _Plane(e=numbers[0], f=numbers[1] if len(numbers) > 1 else 0.0)
            elif kind == "scale":
                own = _Plane(a=numbers[0], d=numbers[-1])
            else:  # about the origin: nothing here is turned about another point
                angle = math.radians(numbers[0])
                sine, cosine = math.sin(angle), math.cos(angle)
                own = _Plane(cosine, sine, -sine, cosine)
            plane = plane._times(own)
        return plane

    def _times(self, own: _Plane) -> _Plane:
        e, f = self.at(own.e, own.f)
        return _Plane(
            self.a * own.a + self.c * own.b,
            self.b * own.a + self.d * own.b,
            self.a * own.c + self.c * own.d,
            self.b * own.c + self.d * own.d,
            e,
            f,
        )


def with_room(svg: str) -> str:
    """The same picture, with its edges moved out to where its texts may end."""
    head = _ROOT.match(svg)
    if head is None:
        return svg
    width, height = float(head[2]), float(head[3])
    # What is read here was drawn a moment ago, and names are no markup in it.
    corners = list(_corners(ElementTree.fromstring(svg), _Plane()))  # noqa: S314 - our own picture
    left = math.floor(min([0.0, *(x - _MARGIN for x, _ in corners)]))
    top = math.floor(min([0.0, *(y - _MARGIN for _, y in corners)]))
    wide = math.ceil(max([width, *(x + _MARGIN for x, _ in corners)])) - left
    high = math.ceil(max([height, *(y + _MARGIN for _, y in corners)])) - top
    size = f'width="{wide}" height="{high}"'
    ground = f'<rect x="{left}" y="{top}" {size}{head[5]}/>' if head[5] else ""
    start = f'{head[1]}{size} viewBox="{left} {top} {wide} {high}"{head[4]}{ground}'
    return start + svg[head.end() :]


def _corners(element: ElementTree.Element, plane: _Plane) -> Iterator[tuple[float, float]]:
    plane = plane.inside(element.get("transform", ""))
    if element.tag == f"{_SVG}text":
        yield from _corners_of_text(element, plane)
    else:
        for each in element:
            yield from _corners(each, plane)


def _corners_of_text(element: ElementTree.Element, plane: _Plane) -> Iterator[tuple[float, float]]:
    if element.get("opacity") == "0":
        return
    size = float((element.get("font-size") or "11").removesuffix("px"))
    bold = _BOLD if element.get("font-weight") in ("bold", "600", "700") else 1.0
    lines = [each.text or "" for each in element] or [element.text or ""]
    wide = max(map(_width, lines)) * size * bold
    left = {"middle": -wide / 2, "end": -wide}.get(element.get("text-anchor", ""), 0.0)
    for x in (left, left + wide):
        for y in (-size, (len(lines) - 0.7) * size):
            yield plane.at(x, y)


def _width(text: str) -> float:
    return sum(map(_width_of, text))


def _width_of(char: str) -> float:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    if char in _NARROW:
        return 0.42
    if char in _WIDE:
        return 1.0
    return 0.79 if char.isupper() else 0.64 if char.isascii() else 0.9


# Charts of a report and of a ranking: the same Altair chart for a file, a page and a notebook.

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
    raise InputError(Message("report.chart_kind_unknown", name=path.name or path))


def report_chart(conclusions: Conclusions, *, language: Language = "en") -> alt.VConcatChart:
    """All that the run has to show, one under the other."""
    _need_altair()
    import altair as alt

    from evenhand.report.charts import rates
    from evenhand.report.charts import rates as outcomes

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

    from evenhand.report.charts import rankings

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
    from evenhand.report.charts import rates

    return rates.win_rate_chart(conclusions, ChartWords(language))


def outcome_chart(conclusions: Conclusions, *, language: Language = "en") -> alt.LayerChart:
    """How many pairs came to each outcome, never folded into one another."""
    _need_altair()
    from evenhand.report.charts import rates as outcomes

    return outcomes.outcome_chart(conclusions, ChartWords(language))


def criterion_chart(conclusions: Conclusions, *, language: Language = "en") -> alt.LayerChart:
    """The win rate on each criterion."""
    _need_altair()
    from evenhand.report.charts import rates

    return rates.criterion_chart(conclusions, ChartWords(language))


def tag_chart(conclusions: Conclusions, *, language: Language = "en") -> alt.LayerChart:
    """The win rate on the pairs of each tag."""
    _need_altair()
    from evenhand.report.charts import rates

    return rates.tag_chart(conclusions, ChartWords(language))


def length_chart(conclusions: Conclusions, *, language: Language = "en") -> alt.LayerChart:
    """The win rate as it is and at equal length, and how often the longer answer won."""
    _need_altair()
    from evenhand.report.charts import rates

    return rates.length_chart(conclusions, ChartWords(language))


def leaderboard_chart(ranking: Ranking, *, language: Language = "en") -> alt.LayerChart:
    """The models best first, each score with its interval."""
    _need_altair()
    from evenhand.report.charts import rankings

    return rankings.leaderboard_chart(ranking, ChartWords(language))


def win_matrix_chart(ranking: Ranking, *, language: Language = "en") -> alt.LayerChart:
    """What the model of a row is expected to score against that of a column."""
    _need_altair()
    from evenhand.report.charts import rankings

    return rankings.win_matrix_chart(ranking, ChartWords(language))


def reliability_chart(
    change: CalibrationChange, judge: str, *, language: Language = "en"
) -> alt.LayerChart:
    """How often verdicts of like confidence are right, before and after calibration."""
    _need_altair()
    from evenhand.report.charts import reliability

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
    from evenhand.report.charts import intervals as specs

    return specs.share_chart(
        [specs.NamedShare(*each) for each in shares],
        ChartWords(language),
        title=title,
        lines=lines,
        unit=unit,
        level=level,
        middle=middle,
    )


def specification(chart: Chart, *, dark: bool = False) -> dict[str, Any]:
    """The chart as Vega-Lite with the look of a file."""
    from evenhand.report.charts.style import FILE_LOOK, on_dark

    spec: dict[str, Any] = chart.to_dict()
    made = {**spec, "config": {**FILE_LOOK, **spec.get("config", {})}}
    return on_dark(made) if dark else made


def _write(chart: Chart, path: Path, kind: Picture) -> None:
    _write_whole(draw(specification(chart), kind), path)


def _write_rows(rows: Iterable[ChartRow], path: Path) -> None:
    _write_whole(chart_csv(rows), path)


def _write_whole(content: bytes, path: Path) -> None:
    # A chart is made anew from the store at any time: it takes the place of an older one.
    with atomic_file(path.expanduser(), overwrite=True) as stream:
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
