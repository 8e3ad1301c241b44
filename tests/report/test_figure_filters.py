"""Every figure of a report or an audit that counts pairs has a filter whose table shows exactly
those pairs, whatever the judge said and however it was asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.contract import Order, Outcome, Winner
from evenhand.contract.pair import DrawnOrderPair
from evenhand.data.records import Record
from evenhand.judges.protocol import JudgeCall
from evenhand.judging.config import JudgeConfig
from evenhand.report.conclusions import Conclusion, conclude
from evenhand.stats.estimates import EstimatedShare
from evenhand.store import NewJudge, NewRun, NewVerdict, Store
from evenhand.store.verdict_filter import VerdictFilter
from evenhand.trust.audit import Audit, audit_run
from scripted import answer_json
from store_values import decided, failure, item
from stored_runs import ONCE, Row, completed, judge_run, opened
from stored_runs import USAGE as NO_MATTER

LABELS: tuple[Winner | None, ...] = ("A", "B", "TIE", None)
LENGTHS = ("short", "a longer one", "the longest of them all")
# What each order says of the pair, in the caller's labels, and X where it mumbles; a letter a
# sample. Each is met in both orders, in one fixed one, and in a drawn one.
SAID = (
    *("AA/AA", "BB/BB", "TT/TT", "AA/BB", "BB/AA", "AA/TT", "TT/AA", "BB/TT", "TT/BB"),
    *("AB/AA", "AB/BA", "AB/BB", "XX/AA", "BB/XX", "XX/XX", "AX/AX", "XB/AX", "AT/TA"),
)
WINNERS = {"A": "A", "B": "B", "T": "TIE"}
EXCHANGED = {"A": "B", "B": "A", "TIE": "TIE"}


def says(said: str) -> Any:
    def answer(call: JudgeCall) -> Any:
        letter = said.split("/")[call.order == "swapped"][call.sample - 1]
        if letter == "X":
            return completed("I would rather not say.", NO_MATTER)
        winner = WINNERS[letter]
        seen = winner if call.order == "original" else EXCHANGED[winner]
        criteria = [("accuracy", seen), ("clarity", "A")]
        return completed(answer_json(seen, confidence=0.7, criteria=criteria), NO_MATTER)

    return answer


def rows() -> Iterator[tuple[Row, Record]]:
    orders: tuple[Order | None, ...] = (None, None, "original", "swapped")
    for place in range(4 * len(SAID) * 3):
        said, shown = SAID[place % len(SAID)], orders[place // len(SAID) % 4]
        fixed = shown == "original" and place // (4 * len(SAID)) == 2
        made = item(
            f"q{place}",
            prompt=f"Question {place // 2}?",  # two rows a prompt
            response_a=LENGTHS[place % 3],
            response_b=LENGTHS[place // 3 % 3],
            criteria=["accuracy", "clarity"],
            label=LABELS[place // 5 % 4],
            tags=("even",) if place % 2 == 0 else (),
            swap_positions=not fixed,
        )
        if shown is not None and not fixed:
            fields = dict(made.pair) | {"swap_positions": False, "drawn_order": shown}
            made = replace(made, pair=DrawnOrderPair.model_construct(**fields))
        yield Row(f"q{place}", says(said)), made


# A third of the rows have the same text twice: ties by rule, unless the judge is asked.
CONFIGS: dict[str, JudgeConfig] = {
    "one sample": ONCE,
    "two samples": replace(ONCE, samples=2),
    "averaged": replace(ONCE, reconcile="average", samples=2),
    "identical asked": replace(ONCE, ask_identical=True),
}


@pytest.fixture(scope="module", params=list(CONFIGS))
def judged(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    made = list(rows())
    with opened(tmp_path_factory.mktemp("figures")) as store:
        run = store.runs.create(NewRun("run", "f", {}, ("pairs.jsonl",)))
        judge = store.runs.add_judge(NewJudge("judge", "judge"))
        store.runs.set_judges(run.id, [judge])
        store.items.add(run.id, [each for _, each in made])
        store.runs.update(run.id, intake_done=True, state="finished")
        by_key = {row.key: row for row, _ in made}
        judge_run(store, run.id, judge, by_key, CONFIGS[request.param])
        yield store


Figures = Iterator[tuple[str, int, dict[str, Any]]]


def share(name: str, figure: EstimatedShare, **filters: Any) -> Figures:
    """What it is a part of is `of`; where that is no filter of its own, the rest is `rest`."""
    whole, rest = filters.pop("of", None), filters.pop("rest", None)
    yield name, figure.part, filters
    if whole is not None:
        yield f"{name}, of", figure.of, whole
    if rest is not None:
        yield f"{name}, the rest", figure.of - figure.part, rest


def outcomes(name: str, counts: Any, **filters: Any) -> Figures:
    for winner in ("A", "B"):
        won = counts.wins_a if winner == "A" else counts.wins_b
        yield f"{name}, {winner}", won, {"outcome": Outcome.WIN, "winner": winner} | filters
    for outcome in ("tie", "inconsistent", "invalid"):
        count = counts.ties if outcome == "tie" else getattr(counts, outcome)
        yield f"{name}, {outcome}", count, {"outcome": Outcome(outcome)} | filters


def figures_of_report(conclusion: Conclusion) -> Figures:
    position, counts = conclusion.position, conclusion.win_rate.counts
    yield from outcomes("outcomes", counts)
    yield "valid", counts.valid, {"ending": "valid"}
    yield "ties by rule", conclusion.identical, {"by_rule": True}
    yield from share(
        *("orders agree", position.consistency),
        orders="agree",
        of={"orders": "read"},
        rest={"orders": "differ"},
    )
    yield from share(
        *("position lean", position.first_preference),
        leans="first",
        of={"leans": "either"},
        rest={"leans": "second"},
    )
    yield "leans first", position.flips_first + position.half_flips_first, {"leans": "first"}
    yield "leans second", position.flips_second + position.half_flips_second, {"leans": "second"}
    yield from share(
        *("longer wins", conclusion.length.longer_wins),
        longer_wins=True,
        rest={"longer_wins": False},
    )
    for group in conclusion.by_tag:
        yield from outcomes(f"tag {group.name}", group.rate.counts, tag=group.name)
    for group in conclusion.by_criterion:
        own = group.rate.counts
        counted = {"A": own.wins_a, "B": own.wins_b, "TIE": own.ties}
        counted |= {"inconsistent": own.inconsistent, "invalid": own.invalid}
        for end, count in counted.items():
            filters = {"criterion": group.name, "criterion_end": end}
            yield f"criterion {group.name}, {end}", count, filters


def figures_of_audit(audit: Audit) -> Figures:
    yield "ties by rule", audit.identical, {"by_rule": True}
    asked: dict[str, Any] = {"label": "any", "by_rule": False}
    yield from share("accuracy", audit.accuracy, disagrees=False, of=asked)
    yield "disagreements", audit.disagreements_in_all, {"disagrees": True}
    yield from share(
        *("agreement", audit.agreement),
        disagrees=False,
        of=asked | {"ending": "decided"},
    )
    yield from share("inconsistent", audit.inconsistent, label="any", outcome=Outcome.INCONSISTENT)
    yield from share("invalid", audit.unread, label="any", outcome=Outcome.INVALID)
    yield from share("consistency", audit.consistency, orders="agree", of={"orders": "read"})
    yield from share(
        *("longer the judge at", audit.length.by_judge),
        label="any",
        longer_wins=True,
        rest={"label": "any", "longer_wins": False},
    )
    yield from share(
        *("longer by the labels", audit.length.by_labels),
        label="longer",
        rest={"label": "shorter"},
    )
    for each in audit.by_tag:
        yield from share(f"tag {each.tag}", each.accuracy, tag=each.tag, disagrees=False)
        yield from share(
            *(f"consistency of {each.tag}", each.consistency),
            tag=each.tag,
            orders="agree",
            rest={"tag": each.tag, "orders": "differ"},
        )


def assert_tables_show_them(store: Store, run_id: int, figures: Figures) -> int:
    counts = list(figures)
    shown = [store.table.count(run_id, VerdictFilter(**each)) for _, _, each in counts]
    told = [(name, count) for name, count, _ in counts]
    assert told == [(name, count) for (name, _), count in zip(told, shown, strict=True)]
    return len([count for _, count in told if count])


def test_each_figure_of_a_report_counts_what_its_filter_shows(judged: Store) -> None:
    run = judged.runs.all()[0]
    (conclusion,) = conclude(judged, run.name).conclusions
    # Two of the four are asked in both orders: an order that mumbles is not read.
    assert conclusion.position.pairs > 50
    assert min(conclusion.position.flips_first, conclusion.position.half_flips_second) > 0
    assert assert_tables_show_them(judged, run.id, figures_of_report(conclusion)) > 20


def test_each_figure_of_an_audit_counts_what_its_filter_shows(judged: Store) -> None:
    run = judged.runs.all()[0]
    assert assert_tables_show_them(judged, run.id, figures_of_audit(audit_run(judged, "run"))) > 12


def test_samples_of_an_order_that_split_lean_nowhere_and_do_not_agree(judged: Store) -> None:
    run = judged.runs.all()[0]
    (conclusion,) = conclude(judged, run.name).conclusions
    counts = {
        kind: judged.table.count(run.id, VerdictFilter(orders="differ", leans=kind))
        for kind in (None, "either")
    }
    assert counts[None] - counts["either"] == conclusion.position.split


def test_verdicts_that_abstain_are_those_that_the_report_counts(tmp_path: Path) -> None:
    told = {"digest": "d", "min_agreement": 0.9, "threshold": 0.8}
    plan = {"judges": ["judge"], "deciding": [{"calibration": told}]}
    with opened(tmp_path) as store:
        run = store.runs.create(NewRun("run", "f", plan, ("pairs.jsonl",)))
        judge = store.runs.add_judge(NewJudge("judge", "judge"))
        store.runs.set_judges(run.id, [judge])
        store.items.add(run.id, [item(f"q{n}", label=LABELS[n // 3 % 4]) for n in range(40)])
        store.runs.update(run.id, intake_done=True, state="finished")
        settled = []
        for number in range(1, 41):
            sure = (0.95, 0.85, 0.6, 0.8)[number % 4]
            outcome = (Outcome.WIN, Outcome.WIN, Outcome.TIE, Outcome.INCONSISTENT)[number % 5 % 4]
            winner: Winner = "A" if outcome is Outcome.WIN else "TIE"
            judgement = decided(
                *(outcome, winner, sure, "calibration"),
                abstained=sure < 0.8 and outcome is not Outcome.INCONSISTENT,
            )
            settled.append(
                NewVerdict(run.id, number, judge, judgement if number % 9 else failure([]))
            )
        store.work.write([], settled)
        (counted,) = conclude(store, "run").abstentions
        kept: dict[str, Any] = {"abstained": False, "ending": "decided"}
        figures: list[tuple[str, int, dict[str, Any]]] = [
            ("kept", counted.kept, kept),
            ("abstained", counted.abstained, {"abstained": True}),
            ("right", counted.agreement_kept.part, kept | {"disagrees": False}),
            ("labelled", counted.agreement_kept.of, kept | {"label": "any"}),
            *share("right", counted.agreement_abstained, abstained=True, disagrees=False),
        ]
        assert assert_tables_show_them(store, run.id, iter(figures)) == 5
        sums = {
            (low, high): store.table.count(
                run.id, VerdictFilter(min_confidence=low, below_confidence=high)
            )
            for low, high in ((None, 0.6), (0.6, 0.8), (0.8, 0.9), (0.9, None))
        }
        # Of 40, four are invalid (9, 18, 27, 36) and without a confidence; a number's remainder
        # by four says how sure the others are: 9 is 1, 18 is 2, 27 is 3 and 36 is 0.
        assert list(sums.values()) == [0, 10 - 1, 20 - 2, 10 - 1]
        without = VerdictFilter(has_confidence=False)
        assert store.table.count(run.id, without) == 4
