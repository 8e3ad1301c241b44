"""`evenhand report --html`: a run as one file that needs no network and no server. Figures and the
first pairs are plain HTML; a script of ours makes all pairs browsable.
"""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

import evenhand
from evenhand.errors import EvenhandError, InputError, MissingExtra
from evenhand.messages import Message, render
from evenhand.report.conclusions import Conclusions
from evenhand.report.files import atomic_file
from evenhand.report.lookup import find_run
from evenhand.report.manifest import Manifest, manifest_of
from evenhand.report.ranking import RankOptions, RunRanking, rank_runs
from evenhand.report.run import RunReport, report_run
from evenhand.serve.pages.html_report_pairs import (
    MOST_PAIRS,
    PairData,
    PairSelection,
    inert_json,
    select_pairs,
)
from evenhand.serve.pages.rendering import (
    LANGUAGES,
    FigureFormat,
    Language,
    PageTranslator,
    ScoreFormat,
    Wording,
    address,
    environment,
    words,
)
from evenhand.settings import load_settings
from evenhand.store import Store
from evenhand.trust.audit import Audit, audit_run
from evenhand.trust.findings import Findings, assess_audit

if TYPE_CHECKING:
    from evenhand.report.conclusions import Conclusion


_SEVERAL = 3


@dataclass(frozen=True, slots=True)
class ChartImage:
    """`name` is what it draws; the addresses hold the picture itself, for both palettes."""

    name: str
    light: str
    dark: str


@dataclass(frozen=True, slots=True)
class AuditWithFindings:
    audit: Audit
    findings: Findings


@dataclass(frozen=True, slots=True)
class RunFigures:
    """`undrawn` says why there are no charts."""

    conclusions: Conclusions
    run: RunReport
    ranking: RunRanking | None
    audits: tuple[AuditWithFindings, ...]
    charts: tuple[ChartImage, ...]
    undrawn: str | None
    manifest: Manifest


def gather(store: Store, conclusions: Conclusions, *, language: Language = "en") -> RunFigures:
    ranking = _ranking(store, conclusions)
    charts: tuple[ChartImage, ...] = ()
    undrawn = None
    try:
        charts = tuple(_charts(conclusions, ranking, language))
    except MissingExtra as error:
        undrawn = render(error.message, language, "page")  # the file goes to others
    return RunFigures(
        conclusions=conclusions,
        run=report_run(store, conclusions.run),
        ranking=ranking,
        audits=tuple(_audits(store, conclusions)),
        charts=charts,
        undrawn=undrawn,
        manifest=manifest_of(store, conclusions.run),
    )


def svg_address(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


def _ranking(store: Store, conclusions: Conclusions) -> RunRanking | None:
    """Of three models or more; two are compared by their win rate."""
    models = {name for each in conclusions.conclusions for name in (each.model, each.against)}
    if len(models - {None}) < _SEVERAL:
        return None
    try:
        return rank_runs(
            store,
            [conclusions.run],
            RankOptions(level=conclusions.level),
            families=load_settings().families,
        )
    except InputError:
        return None  # nothing that could be ranked yet


def _audits(store: Store, conclusions: Conclusions) -> Iterator[AuditWithFindings]:
    for judge in dict.fromkeys(conclusions.judges):
        try:
            audit = audit_run(store, conclusions.run, judge=judge, level=conclusions.level)
        except EvenhandError:
            continue  # no labels, or a judge that was asked in several ways
        yield AuditWithFindings(audit, assess_audit(audit))


def _charts(
    conclusions: Conclusions, ranking: RunRanking | None, language: Language
) -> Iterator[ChartImage]:
    from evenhand.report.charts import drawing as charts

    if not charts.can_draw():
        raise MissingExtra("altair or vl-convert-python, which draw charts,", "plot")
    from evenhand.report.charts.style import on_dark

    if not conclusions.conclusions:
        return
    drawn = {
        "rates": charts.win_rate_chart(conclusions, language=language),
        "outcomes": charts.outcome_chart(conclusions, language=language),
    }
    if any(each.by_criterion for each in conclusions.conclusions):
        drawn["criteria"] = charts.criterion_chart(conclusions, language=language)
    if any(each.by_tag for each in conclusions.conclusions):
        drawn["tags"] = charts.tag_chart(conclusions, language=language)
    drawn["length"] = charts.length_chart(conclusions, language=language)
    if ranking is not None and ranking.ranking is not None:
        drawn["leaderboard"] = charts.leaderboard_chart(ranking.ranking, language=language)
        drawn["matrix"] = charts.win_matrix_chart(ranking.ranking, language=language)
    for name, chart in drawn.items():
        light = charts.specification(chart, checked=False)
        yield ChartImage(
            name, *(svg_address(charts.draw(each, "svg")) for each in (light, on_dark(light)))
        )


# Read without a script; more would make a page that nobody scrolls through.
_READ_PLAINLY = 20
# With more of them each one's own section would be a book; the table has them all.
_WHOLE_AT_MOST = 12
_GROUPS_AT_MOST = 200
_MATRIX_AT_MOST = 30
_LIVE = "file.live."
# Words of the served pages that the script says too.
_SHARED = ("outcome.", "winner.", "pair.")


@dataclass(frozen=True, slots=True)
class HtmlReport:
    """What was written: `pairs` of `judged` pairs, `cut` of them with a text that was too long."""

    path: Path
    pairs: int
    judged: int
    cut: int
    charts: bool
    undrawn: str | None


def write_html_report(
    store: Store,
    conclusions: Conclusions,
    path: Path,
    *,
    pairs: int = MOST_PAIRS,
    language: Language = "en",
    processes: int = 1,
) -> HtmlReport:
    """What `conclude` found, and the pairs behind it. It takes the place of an older file of its
    name: it can be made anew from the store at any time. Many pairs are packed by several
    `processes`, each of which imports the main module anew."""
    if not 0 <= pairs <= MOST_PAIRS:
        raise InputError(Message("serve.pairs_outside", pairs=pairs, most_pairs=MOST_PAIRS))
    if language not in LANGUAGES:
        raise InputError(Message("serve.report_language_unknown", language=language))
    run = find_run(store, conclusions.run)
    choice = select_pairs(store, run, at_most=pairs)
    with PairData(store, run, choice, language=language, processes=processes) as data:
        figures = gather(store, conclusions, language=language)
        with atomic_file(path.expanduser(), overwrite=True) as stream:
            for text in _rendered(figures, choice, data, language):
                stream.write(text.encode())
    return HtmlReport(
        path=path,
        pairs=len(choice.numbers),
        judged=choice.of,
        cut=data.cut,
        charts=bool(figures.charts),
        undrawn=figures.undrawn,
    )


def _rendered(
    figures: RunFigures, choice: PairSelection, data: PairData, language: Language
) -> Iterator[str]:
    """Piece by piece: a file of many pairs is never in memory whole."""
    say = Wording(language)
    again = figures.manifest.command
    style, script = _inline("evenhand.css", "report.css"), _inline("report.js")
    # Both are ours and are held to their hashes; the rest is base64 or JSON without an `<`.
    parts = (Markup(part) for part in data.parts())  # noqa: S704
    yield from (
        environment()
        .get_template("one_file.html")
        .generate(
            say=say,
            language=language,
            figure=FigureFormat(say),
            scores=ScoreFormat(say),
            told=PageTranslator(language),
            figures=figures,
            again=None if again is None else shlex.join(again),
            choice=choice,
            first=data.first(_READ_PLAINLY),
            judges=data.judges,
            parts=lambda: parts,
            table=lambda: Markup(data.table()),  # noqa: S704
            words=Markup(inert_json(_live_words(language))),  # noqa: S704
            style=Markup(style),  # noqa: S704
            script=Markup(script),  # noqa: S704
            policy=policy(style, script),
            version=evenhand.__version__,
            made_at=datetime.now(UTC),
            outcomes=outcomes,
            parts_of=outcome_parts,
            percent=lambda level: f"{100 * level:g}",
            whole_at_most=_WHOLE_AT_MOST,
            groups_at_most=_GROUPS_AT_MOST,
            matrix_at_most=_MATRIX_AT_MOST,
        )
    )


def policy(style: str, script: str) -> str:
    """This style, this script and pictures inside the file: nothing else is loaded or run, and no
    text becomes markup or a script."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _inline(*names: str) -> str:
    static = files("evenhand.serve.pages").joinpath("static")
    return "".join(static.joinpath(name).read_text("utf-8") for name in names)


def _live_words(language: Language) -> dict[str, str]:
    """What the script says."""
    told = words(language)
    shared = {key: said for key, said in told.items() if key.startswith(_SHARED)}
    live = {key.removeprefix(_LIVE): said for key, said in told.items() if key.startswith(_LIVE)}
    return shared | live


def outcomes(conclusion: Conclusion) -> Iterator[tuple[str, str | None, int, str]]:
    """A kind, who won where it is a win, how many, and the address of the pairs behind it."""
    counts = conclusion.win_rate.counts
    of_a, of_b = conclusion.names if conclusion.side == "A" else conclusion.names[::-1]

    def to(outcome: str, winner: str | None = None) -> str:
        return address("#pairs", outcome=outcome, winner=winner, judge=conclusion.judge)

    yield "A", of_a, counts.wins_a, to("win", of_a)
    yield "B", of_b, counts.wins_b, to("win", of_b)
    yield "tie", None, counts.ties, to("tie")
    yield "inconsistent", None, counts.inconsistent, to("inconsistent")
    yield "invalid", None, counts.invalid, to("invalid")


def outcome_parts(conclusion: Conclusion) -> list[tuple[str, int, None]]:
    return [(kind, count, None) for kind, _, count, _ in outcomes(conclusion)]
