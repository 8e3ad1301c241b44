"""No conclusion contradicts people's labels in the same store: each case through the command
line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from command_line import Command
from evenhand.analyses.registry import AnalysisSubject
from evenhand.analyses.report import blocks, compute
from evenhand.analysis_options import ReportOptions
from evenhand.contract import Winner
from evenhand.present.blocks import markdown
from evenhand.report.lookup import find_run
from evenhand.settings import Settings
from evenhand.store import Store
from judged_runs import vote_on
from stored_runs import Row, make_run, says

HERE = ("--store", "evenhand.db")


def pairs(*groups: tuple[int, str, Winner | None], **more: Any) -> list[Row]:
    """So many pairs in which the judge names this winner, and the label this one."""
    rows = [(verdict, label) for count, verdict, label in groups for _ in range(count)]
    named = {"model_a": "old", "model_b": "new", **more}
    return [
        Row(f"q{n}", says(verdict), label=label, **named) for n, (verdict, label) in enumerate(rows)
    ]


# The judge names new in 192 of 300, the labels in 111; it is right on 108 + 105 = 213, or 71%.
CONTRARY: tuple[tuple[int, str, Winner], ...] = (
    (108, "B", "B"),
    (84, "B", "A"),
    (3, "A", "B"),
    (105, "A", "A"),
)


def told(ran: Any) -> str:
    return " ".join(ran.out.split())


def test_labels_on_every_pair_are_the_answer(command: Command, store: Store) -> None:
    make_run(store, "whole", pairs(*CONTRARY))
    ran = command("gate", "whole", *HERE)
    assert ran.code == 1
    # Wilson's interval of 111 of 300 is 0.317 to 0.426.
    assert ran.out.startswith(
        "new loses to old: 37% win rate (95% CI 32–43, 300 prompts, by labels)."
    )
    assert "about all 300 pairs (111 won, 189 lost, 0 tied); by the judge alone: 64%" in ran.out
    assert "people: 111 won, 189 lost, 0 tied" in ran.out
    assert "new loses to old: 37% win rate (95% CI 32–43," in told(
        command("report", "whole", *HERE)
    )
    shown = command("report", "whole", "--json", *HERE).json["conclusions"]["conclusions"][0]
    assert shown["claimed"]["estimator"] == "corrected"
    assert shown["claimed"]["rate"] == pytest.approx(0.37)
    assert shown["winRate"]["rate"] == pytest.approx(0.64)
    mirrored = command("gate", "whole", "--side", "A", *HERE)
    assert mirrored.code == 0
    assert mirrored.out.startswith(
        "old beats new: 63% win rate (95% CI 57–68, 300 prompts, by labels)."
    )


def test_a_judge_near_a_coin_does_not_veto_people(command: Command, store: Store) -> None:
    # Right on 150 of 300; people prefer new in 222, and 222 / 300 = 0.74.
    coin: tuple[tuple[int, str, Winner], ...] = (
        (111, "B", "B"),
        (111, "A", "B"),
        (39, "B", "A"),
        (39, "A", "A"),
    )
    make_run(store, "coin", pairs(*coin))
    for options in ((), ("--corrected",)):
        ran = command("gate", "coin", *options, *HERE)
        assert ran.code == 0, options
        assert "people: 222 won, 78 lost, 0 tied" in ran.out


def test_labels_of_an_unknown_draw_that_contradict_the_judge_are_the_sentence(
    command: Command, store: Store
) -> None:
    run = make_run(store, "some", pairs((270, "B", None), (130, "A", None)))
    # Of 90 labelled pairs the judge gives 60 to new; people give 35 of these, and no other, to new.
    said = {f"q{n}": "A" if n < 25 or n > 60 else "B" for n in (*range(60), *range(300, 330))}
    vote_on(store, run, said, draw=None)
    ran = command("gate", "some", *HERE)
    assert ran.code == 6
    lead = "No conclusion on new vs old: on 90 labelled pairs the judge puts new at 67% and"
    assert ran.out.startswith(f"{lead} people at 39%")
    assert "--labels-are random" in ran.err
    # Against another threshold too, unless people's rate is above it as well.
    assert command("gate", "some", "--min-win-rate", "0.55", *HERE).code == 6
    assert command("gate", "some", "--min-win-rate", "0.3", *HERE).code == 0
    # At the user's word they correct the judge: 90 prompts are enough.
    corrected = command("gate", "some", "--labels-are", "random", "--json", *HERE)
    assert corrected.json["checks"][0]["corrected"] is True
    assert corrected.code != 0


def test_labels_that_agree_change_nothing_but_a_note(command: Command, store: Store) -> None:
    run = make_run(store, "agree", pairs((200, "B", None), (100, "A", None)))
    vote_on(store, run, {f"q{n}": "B" if n < 200 else "A" for n in range(180, 220)}, draw=None)
    assert command("gate", "agree", *HERE).code == 0
    told_of = told(command("report", "agree", *HERE))
    assert "new beats old: 67% win rate" in told_of
    assert "labels on 40 pairs do not correct the win rate" in told_of


def test_fewer_than_fifty_labelled_prompts_correct_nothing(command: Command, store: Store) -> None:
    run = make_run(store, "few", pairs((200, "B", None), (100, "A", None)))
    vote_on(store, run, {f"q{n}": "B" if n % 3 else "A" for n in range(49)}, draw="random")
    check = command("gate", "few", "--json", *HERE).json["checks"][0]
    assert check["corrected"] is False
    ran = command("gate", "few", "--corrected", *HERE)
    assert ran.code == 6
    assert "49 labelled prompts; at least 50 are needed" in ran.out
    vote_on(store, run, {"q49": "B"}, draw="random")
    assert command("gate", "few", "--json", *HERE).json["checks"][0]["corrected"] is True


def test_labels_are_required_where_the_caller_says_so(command: Command, store: Store) -> None:
    make_run(store, "none", pairs((200, "B", None), (100, "A", None)))
    assert command("gate", "none", *HERE).code == 0
    ran = command("gate", "none", "--corrected", *HERE)
    assert ran.code == 6
    assert ran.out.startswith(
        "No conclusion on new vs old: labels are required, but they cannot correct the rate here: "
        "no pair is labelled. "
    )
    assert " beats " not in ran.out
    refused = command("gate", "none", "--corrected", "--ties", "wins", *HERE)
    assert refused.code == 2


def test_an_unfinished_run_keeps_the_judges_claim_with_a_note(
    command: Command, store: Store
) -> None:
    rows = [*pairs(*CONTRARY), Row("late", says("B"), judged=False, model_a="old", model_b="new")]
    make_run(store, "open", rows)
    shown = command("report", "open", "--json", *HERE).json["conclusions"]
    assert shown["conclusions"][0]["claimed"]["estimator"] == "judge"
    assert any("do not correct this run" in note for note in shown["notes"])


def test_a_benchmark_whose_sides_are_no_models_is_about_the_judge(
    command: Command, store: Store
) -> None:
    # Labels and verdicts name B in half of the pairs; 213 of 300 are right.
    even: tuple[tuple[int, str, Winner], ...] = (
        *((107, "B", "B"), (43, "B", "A")),
        *((44, "A", "B"), (106, "A", "A")),
    )
    make_run(store, "bench", pairs(*even, model_a=None, model_b=None))
    said = told(command("report", "bench", *HERE))
    # Wilson's interval of 213 of 300 is 0.656 to 0.758.
    assert "The judge is right on 71% (66 to 76) of 300 labelled pairs." in said
    assert "It beats a coin flip (50%)." in said
    # All responses are of one length, so that the longer one names no winner.
    assert "It beats always picking the longer answer (0%)." in said
    shown = command("report", "bench", "--json", *HERE).json["conclusions"]["conclusions"][0]
    assert shown["accuracy"]["accuracy"]["value"] == pytest.approx(0.71)
    # Where most pairs have no label, A and B are what the run is about.
    few = pairs((149, "B", "B"), (151, "B", None), model_a=None, model_b=None)
    make_run(store, "few", few)
    assert "B beats A" in told(command("report", "few", *HERE))


def test_a_judge_below_a_coin_is_worse_than_one(command: Command, store: Store) -> None:
    wrong: tuple[tuple[int, str, Winner], ...] = (
        *((2, "B", "B"), (48, "B", "A")),
        *((48, "A", "B"), (2, "A", "A")),
    )
    make_run(store, "bench", pairs(*wrong, model_a=None, model_b=None))
    said = told(command("report", "bench", *HERE))
    # Wilson's interval of 4 of 100 is 0.016 to 0.098.
    assert "The judge is right on 4% (2 to 10) of 100 labelled pairs." in said
    assert "It does worse than a coin flip (50%)." in said
    audited = told(command("audit", "bench", *HERE))
    assert "worse than baseline:random, which is right on 50.0%" in audited
    assert "no better than baseline:random" not in said + audited


def test_tables_of_comparisons_show_what_the_sentences_claim(
    command: Command, store: Store
) -> None:
    run = make_run(store, "whole", pairs(*CONTRARY), judges=("one", "two"))
    store.runs.update(run, state="finished")
    ran = command("report", "whole", "--html", "out.html", *HERE)
    table = ran.out[ran.out.index("judge  model") : ran.out.index("new vs old")]
    assert table.count("0.37 (0.32 to 0.43), by labels") == 2
    assert "0.64" not in table
    page = (command.directory / "out.html").read_text()
    rows = page[page.index('id="comparisons"') :].partition("</table>")[0]
    assert (rows.count("by labels"), rows.count("64")) == (2, 0)
    assert rows.count("37") >= 2
    subject = AnalysisSubject(store, (find_run(store, "whole"),), Settings())
    agents = markdown(blocks(compute(subject, ReportOptions())))
    assert agents.count("- win rate: 0.37 (0.32 to 0.43), 95% interval, by labels") == 2
    assert agents.count("- judge: 0.64 (") == 2


def test_a_limit_on_a_tag_goes_by_its_own_labels(command: Command, store: Store) -> None:
    # Of 100 refunds the judge gives 80 to new, and people 20; of the others both give it 80.
    refunds = pairs((20, "B", "B"), (60, "B", "A"), (20, "A", "A"), tags=("refunds",))
    others = pairs((80, "B", "B"), (20, "A", "A"), tags=("other",))
    rows = [replace(row, key=f"q{n}") for n, row in enumerate([*refunds, *others])]
    make_run(store, "tags", rows)
    sure = ("--assume-accuracy", "0.95", *HERE)
    ran = command("gate", "tags", "--require", "tag:refunds>=0.4", "--json", *sure)
    assert ran.code == 1
    (check,) = ran.json["checks"]
    assert check["corrected"] is True
    assert check["rate"] == pytest.approx(0.2)
    assert command("gate", "tags", "--require", "tag:other>0.5", *sure).code == 0
