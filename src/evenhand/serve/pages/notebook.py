"""Values as a notebook shows them: tables with their uncertainty, and charts. The HTML is inert."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from evenhand.errors import MissingExtra
from evenhand.serve.pages.rendering import Language, ScoreFormat, Wording, render_template

if TYPE_CHECKING:
    from evenhand.report.charts.drawing import Chart


HTML = "text/html"
# With more comparisons each one's own tables would be a book; the first table has them all.
_WHOLE_AT_MOST = 4
_ROWS_AT_MOST = 100
_WIDTH, _HEIGHT = 120, 14


def html_of(value: object, language: Language = "en") -> str | None:
    """None where a notebook has nothing better than the value's own text."""
    template = _TEMPLATES.get(type(value).__name__)
    if template is None:
        return None
    return render_template(
        f"notebook_{template}.html",
        language,
        value=value,
        line=interval_image,
        scores=ScoreFormat(Wording(language)),
        extra=_extra(value),
        chart=_picture(value, language),
        whole_at_most=_WHOLE_AT_MOST,
        rows_at_most=_ROWS_AT_MOST,
    )


def bundle_of(value: object, language: Language = "en") -> dict[str, Any]:
    """Its chart as Vega-Lite, for those who draw it themselves; a terminal draws nothing."""
    if type(value).__name__ not in _CHARTS or not _is_shown_as_html():
        return {}
    try:
        chart = _chart(value, language)
    except MissingExtra:
        return {}
    if chart is None:
        return {}
    import altair as alt

    major = alt.SCHEMA_VERSION.removeprefix("v").split(".")[0]
    return {f"application/vnd.vegalite.v{major}+json": chart.to_dict()}


def interval_image(value: float | None, low: float | None, high: float | None) -> Markup:
    """From 0 to 1, with a tick at the middle, in colours that light and dark pages bear."""
    if value is None:
        return Markup("")
    middle = _HEIGHT / 2
    shapes = [
        f'<path d="M0 {middle}H{_WIDTH}" stroke="#8888"/>',
        f'<path d="M{_WIDTH / 2} 1V{_HEIGHT - 1}" stroke="#888"/>',
    ]
    if low is not None and high is not None:
        shapes.append(
            f'<path d="M{_WIDTH * low:.1f} {middle}H{_WIDTH * high:.1f}" stroke="#0072b2" '
            'stroke-width="4"/>'
        )
    shapes.append(f'<circle cx="{_WIDTH * value:.1f}" cy="{middle}" r="3.5" fill="#d55e00"/>')
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}">'
        f"{''.join(shapes)}</svg>"
    )
    image = Markup('<img alt="" width="{}" height="{}" src="{}">')
    return image.format(_WIDTH, _HEIGHT, _svg_address(svg.encode()))


def _svg_address(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


# By name: to load the classes would be to load all that they need.
_TEMPLATES: Mapping[str, str] = {
    "Verdict": "verdict",
    "Failure": "failure",
    "RunSummary": "run",
    "Conclusions": "conclusions",
    "RunRanking": "ranking",
    "Audit": "audit",
}


def _report_chart(value: Any, language: Language) -> Chart | None:
    from evenhand.report.charts.drawing import report_chart

    return report_chart(value, language=language) if value.conclusions else None


def _ranking_chart(value: Any, language: Language) -> Chart | None:
    from evenhand.report.charts.drawing import ranking_chart

    return None if value.ranking is None else ranking_chart(value.ranking, language=language)


def _audit_chart(value: Any, language: Language) -> Chart | None:
    from evenhand.report.charts.drawing import share_chart

    say = Wording(language)
    shares = [
        (str(say("notebook.accuracy")), value.accuracy),
        *((each.name, each.accuracy) for each in value.yardsticks),
        (str(say("notebook.orders_agree")), value.consistency),
        (str(say("notebook.longer_judge")), value.length.by_judge),
        (str(say("notebook.longer_labels")), value.length.by_labels),
    ]
    return share_chart(shares, title=value.judge, level=value.level, language=language)


_CHARTS: Mapping[str, Callable[[Any, Language], Chart | None]] = {
    "Conclusions": _report_chart,
    "RunRanking": _ranking_chart,
    "Audit": _audit_chart,
}


def _chart(value: object, language: Language) -> Chart | None:
    made = _CHARTS.get(type(value).__name__)
    return None if made is None else made(value, language)


def _picture(value: object, language: Language) -> str | None:
    """None without a chart, or without the extra that draws it: the tables have its figures."""
    from evenhand.report.charts.drawing import draw, specification

    try:
        chart = _chart(value, language)
        return None if chart is None else _svg_address(draw(specification(chart), "svg"))
    except MissingExtra:
        return None


def _extra(value: Any) -> Any:
    """What a template needs and the value has not: a word on an audit."""
    if type(value).__name__ == "Audit":
        from evenhand.trust.findings import assess_audit

        return assess_audit(value)
    return None


def _is_shown_as_html() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is None or HTML in shell.display_formatter.active_types
