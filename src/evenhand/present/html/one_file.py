"""`evenhand report --html`: a run as one file that needs no network and no server. Its figures are
rendered by the templates of the served pages, and so are the pairs, which a script of ours makes
browsable.
"""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Any

from markupsafe import Markup

from evenhand.analyses.rank import rank_runs
from evenhand.analyses.registry import AnalysisSubject, analyses, redacted
from evenhand.analyses.report import without_addresses
from evenhand.analysis_options import RankOptions
from evenhand.errors import EvenhandError, InputError
from evenhand.installation import version
from evenhand.judges.addresses import AddressRedactor
from evenhand.messages import Language, Message, catalogue
from evenhand.present.blocks import numbers_of
from evenhand.present.html.figures import (
    DISAGREEMENTS,
    FILTER_WORDS,
    LEANING,
    SHOWN_AT_MOST,
    RunLinks,
    audit_links,
    audit_shares,
    ranking_values,
    several_models,
    show_conclusion,
)
from evenhand.present.html.one_file_pairs import (
    MOST_PAIRS,
    PairData,
    PairSelection,
    inert_json,
    select_pairs,
)
from evenhand.present.html.rendering import (
    LANGUAGES,
    FigureFormat,
    PageTranslator,
    Wording,
    environment,
)
from evenhand.present.reasons import reason_of
from evenhand.present.svg import colours
from evenhand.report.conclusions import Conclusions
from evenhand.report.files import atomic_file
from evenhand.report.lookup import find_run
from evenhand.report.manifest import manifest_of
from evenhand.report.overview import overview
from evenhand.report.run import RunReport, report_run
from evenhand.settings import load_settings
from evenhand.store import RunRecord, Store
from evenhand.store.verdict_filter import VerdictFilter
from evenhand.store.verdict_table import MOST_TAGS, PROMPT_CHARACTERS
from evenhand.store.verdicts import VerdictPlace
from evenhand.trust.audit import Audit, audit_run
from evenhand.trust.findings import assess_audit

# Read without a script; more would make a page that nobody scrolls through.
_READ_PLAINLY = 20
# With more of them each one's own section would be a book; the table has them all.
_WHOLE_AT_MOST = 12
_SAID_LIVE = (
    *("comparisons.", "file.live.", "filter.", "flag.", "flag_pair.is", "outcome.", "page."),
    *("pair.", "pairs.", "sort.", "winner."),
)


@dataclass(frozen=True, slots=True)
class HtmlReport:
    """What was written: `pairs` of `judged` pairs, `cut` of them with a text that was too long."""

    path: Path
    pairs: int
    judged: int
    cut: int


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
        values = _figures(store, run, conclusions, choice, language)
        with atomic_file(path.expanduser(), overwrite=True) as stream:
            for text in _rendered(values, choice, data, language):
                stream.write(text.encode())
    return HtmlReport(path=path, pairs=len(choice.numbers), judged=choice.of, cut=data.cut)


def _figures(
    store: Store,
    run: RunRecord,
    conclusions: Conclusions,
    choice: PairSelection,
    language: Language,
) -> dict[str, Any]:
    """What the templates of pages show of a run."""
    links = RunLinks(None, one_contest=len(choice.contests) < 2, offered={}, held=choice.all)
    seen = overview(store, run.name) if conclusions.conclusions else None
    manifest = manifest_of(store, run.name)
    return {
        "found": conclusions,
        "links": links,
        "shown": [
            show_conclusion(each, conclusions, seen, links)
            for each in conclusions.conclusions[:_WHOLE_AT_MOST]
        ],
        "ranked": _ranking(store, conclusions),
        "trust": seen.judges if seen is not None else (),
        "pairs_of": lambda model, against=None: links.pairs(
            model=model, against=against, ending="valid", named=None if against else "two"
        ),
        "audits": tuple(_audits(store, run, conclusions, links, language)),
        "sections": tuple(_sections(store, run)),
        "numbers_of": numbers_of,
        "report": _without_folders(without_addresses(report_run(store, run.name), "")),
        "manifest": manifest,
        "again": None if manifest.command is None else shlex.join(manifest.command),
        "shown_at_most": SHOWN_AT_MOST,
    }


def _sections(store: Store, run: RunRecord) -> Iterator[dict[str, Any]]:
    """What other registered analyses say of the run, as blocks."""
    subject = AnalysisSubject(store, (run,), load_settings())
    for each in analyses().values():
        if not each.in_report:
            continue
        try:
            result = each.implementation.compute(subject, each.options())
        except InputError:
            continue  # it has nothing to say of such a run
        shown = each.implementation.blocks(redacted(each, result, ""))
        yield {"name": each.name, "blocks": [(type(block).__name__, block) for block in shown]}


def _ranking(store: Store, conclusions: Conclusions) -> dict[str, Any] | None:
    """Of three models or more; two are compared by their win rate."""
    if not several_models(conclusions):
        return None
    options = RankOptions(level=conclusions.level)
    try:
        ranked = rank_runs(store, [conclusions.run], options, families=load_settings().families)
    except InputError:
        return None  # nothing that could be ranked yet
    return None if ranked.ranking is None else ranking_values(ranked, ranked.ranking)


def _audits(
    store: Store, run: RunRecord, conclusions: Conclusions, links: RunLinks, language: Language
) -> Iterator[dict[str, Any]]:
    for judge in dict.fromkeys(conclusions.judges):
        try:
            audit = audit_run(store, run.name, judge=judge, level=conclusions.level)
        except EvenhandError:
            continue  # no labels, or a judge that was asked in several ways
        rows, reasons = _disagreements(store, run, audit, language)
        yield {
            "audit": audit,
            "findings": assess_audit(audit),
            "shares": audit_shares(audit, language),
            "looked_at": rows,
            "reasons": reasons,
            **audit_links(audit, links),
        }


def _disagreements(
    store: Store, run: RunRecord, audit: Audit, language: Language
) -> tuple[list[dict[str, Any]], dict[tuple[int, int], str]]:
    """The first pairs whose label the judge did not come to, with the judge's reason for each."""
    judge = next(each for each in store.runs.judges(run.id) if each.name == audit.judge)
    hide = AddressRedactor.of_record(judge.settings)
    rows: list[dict[str, Any]] = []
    reasons = {}
    for each in audit.disagreements[:DISAGREEMENTS]:
        item = store.verdicts.item(run.id, each.id)
        place = VerdictPlace(0 if item is None else item.item.number, judge.id)
        for whole in store.verdicts.whole_at(run.id, [place]):
            row: dict[str, Any] = {"number": place.number, "judge_id": judge.id}
            row |= {"label": each.label, "winner": each.verdict, "outcome": each.outcome}
            rows.append(row | {"prompt": whole.pair.prompt[:PROMPT_CHARACTERS]})
            reasons[place.number, judge.id] = reason_of(whole, language, hide)
    return rows, reasons


def _without_folders(report: RunReport) -> RunReport:
    """The file goes to anybody."""
    skipped = tuple(
        each.model_copy(update={"source": PurePath(each.source).name}) for each in report.skipped
    )
    sources = tuple(PurePath(each).name for each in report.sources)
    return report.model_copy(update={"sources": sources, "skipped": skipped})


def _rendered(
    values: dict[str, Any], choice: PairSelection, data: PairData, language: Language
) -> Iterator[str]:
    """Piece by piece: a file of many pairs is never in memory whole."""
    say = Wording(language)
    style = colours() + _inline("evenhand.css", "report.css")
    script = _inline("evenhand.js", "report.js")
    # Both are ours and are held to their hashes; the rest is base64 or JSON without an `<`.
    parts = (Markup(part) for part in data.parts())  # noqa: S704
    yield from (
        environment()
        .get_template("one_file.html")
        .generate(
            say=say,
            language=language,
            figure=FigureFormat(say),
            told=PageTranslator(language),
            **values,
            choice=choice,
            **_form(values["found"], choice, data.judges),
            first=data.first(_READ_PLAINLY),
            judges=data.judges,
            parts=lambda: parts,
            table=lambda: Markup(data.table()),  # noqa: S704
            words=Markup(inert_json(_live_words(language))),  # noqa: S704
            style=Markup(style),  # noqa: S704
            script=Markup(script),  # noqa: S704
            policy=policy(style, script),
            version=version(),
            made_at=datetime.now(UTC),
        )
    )


def _form(found: Conclusions, choice: PairSelection, judges: list[str]) -> dict[str, Any]:
    """The filters of a page's table, with nothing set; the script sets them."""
    models = {name for met in choice.contests for name in met if name is not None}
    criteria = [own.name for each in found.conclusions for own in each.by_criterion]
    return {
        "pairs_at": "#pairs",
        "query": {
            **VerdictFilter().model_dump(by_alias=False),
            "judge": None,
            "sort": "number",
            "descending": False,
        },
        "given": {},
        "active": (),
        "wrong": {},
        "totals": {
            "models": sorted(models),
            "criteria": [{"name": each} for each in dict.fromkeys(criteria)],
            "tags": [{"name": name} for name, _ in choice.tags.most_common(MOST_TAGS)],
            "judges": [{"judge": each} for each in dict.fromkeys(judges)],
        },
    }


def policy(style: str, script: str) -> str:
    """This style and this script: nothing else is loaded or run, and no text becomes markup or a
    script."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _inline(*names: str) -> str:
    static = files("evenhand.present.html").joinpath("static")
    return "".join(static.joinpath(name).read_text("utf-8") for name in names)


def _live_words(language: Language) -> dict[str, Any]:
    """What the script says, and each filter's name with the words for its values."""
    told = catalogue(language, "label")
    shown = {key: said for key, said in told.items() if key.startswith(_SAID_LIVE)}
    named = {"id": ("pair.id", ""), **FILTER_WORDS}
    return shown | {
        "leaning": LEANING,
        "filters": {
            name: (
                told[word],
                {
                    key.removeprefix(values): said
                    for key, said in told.items()
                    if values and key.startswith(values)
                },
            )
            for name, (word, values) in named.items()
        },
    }
