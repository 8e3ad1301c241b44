"""Models' outputs joined into a run: prompts that only one of them answered are counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenhand.data.options import ReadOptions
from evenhand.data.source import open_source
from evenhand.errors import DataError
from evenhand.present.html.rendering import PageTranslator
from evenhand.runs import ModelOutputs, Stop
from evenhand.runs.sources import Prompts, note_on_partners, take_in
from evenhand.store import NewRun, RunRecord, Store, Tally, WithoutPartner, open_store
from run_data import write_lines


def answers(model: str, numbers: range) -> list[dict[str, Any]]:
    return [
        {"id": n, "prompt": f"What is {n} plus {n}?", "output": f"{model} says {n + n}"}
        for n in numbers
    ]


class Joined:
    """Two files, old with prompts 1 to 1000 and new with every tenth of them and three more."""

    def __init__(self, directory: Path, *, prompts: Prompts = "all") -> None:
        old = answers("old", range(1, 1001))
        new = answers("new", range(10, 1001, 10)) + answers("new", range(2001, 2004))
        files = [
            write_lines(directory / f"{name}.jsonl", rows)
            for name, rows in (("old", old), ("new", new))
        ]
        self.sources = ModelOutputs(
            tuple(open_source(file) for file in files),
            ReadOptions(criteria_needed=False),
            prompts=prompts,
        )

    def taken_in(self, store: Store, *, bad_rows: Any = "skip", until: int | None = None) -> bool:
        stop = Stop()

        def told(rows: int) -> None:
            if until is not None and rows >= until:
                stop.ask("interrupt")

        run = stored(store, dict(self.sources.describe()))
        return take_in(
            store, run.id, self.sources, bad_rows=bad_rows, by_id=False, stop=stop, report=told
        )


def stored(store: Store, data: dict[str, Any] | None = None) -> RunRecord:
    run = store.runs.find("run")
    new = NewRun("run", "print", {"data": data or {}}, ())
    return run if run is not None else store.runs.create(new)


def tally(store: Store) -> Tally:
    return store.verdicts.tally(stored(store).id)


def test_every_prompt_without_a_partner_is_skipped_and_counted_once(tmp_path: Path) -> None:
    joined = Joined(tmp_path)
    with open_store(tmp_path / "store.db") as store:
        # Broken off and begun again, as by a kill, and once more than needed.
        assert joined.taken_in(store, until=500) is False
        assert stored(store).without_partner == ()
        for _ in range(2):
            assert joined.taken_in(store) is True
            assert (tally(store).pairs, tally(store).skipped_rows) == (100, 903)
            run = stored(store)
            assert run.without_partner == (WithoutPartner("old", "new", only_a=900, only_b=3),)
            assert run.without_partner[0].prompts == 903
            assert not run.on_common_prompts
        note = note_on_partners(stored(store))
        assert note == (
            "903 answers have no counterpart (900 in old but not in new, 3 in new but not in old) "
            "and count as missing; prompts common compares only prompts answered by both"
        )
        assert PageTranslator("zh")(note).startswith("有 903 个回答没有对应的回答")


def test_on_common_prompts_nothing_is_missing_and_the_number_is_told(tmp_path: Path) -> None:
    joined = Joined(tmp_path, prompts="common")
    with open_store(tmp_path / "store.db") as store:
        assert joined.taken_in(store, bad_rows="stop") is True
        assert (tally(store).pairs, tally(store).skipped_rows) == (100, 0)
        run = stored(store)
        assert run.on_common_prompts
        assert run.without_partner == (WithoutPartner("old", "new", only_a=900, only_b=3),)
        note = note_on_partners(run)
        assert note == (
            "903 answers have no counterpart (900 in old but not in new, 3 in new but not in old) "
            "and are left out; only prompts answered by both are compared"
        )
        assert "只比较双方都有的提示" in PageTranslator("zh")(note)


def test_a_prompt_without_a_partner_is_an_error_with_both_remedies(tmp_path: Path) -> None:
    joined = Joined(tmp_path)
    with open_store(tmp_path / "store.db") as store, pytest.raises(DataError) as refused:
        joined.taken_in(store, bad_rows="stop")
    message = refused.value.message
    assert "old.jsonl, row 1: the answer to '1' has no counterpart from new" in message
    assert "bad_rows skip" in message
    assert "prompts common" in message


def test_the_two_are_two_runs(tmp_path: Path) -> None:
    """What is missing in one is not in the other, so that neither finds the other's store."""
    told = [Joined(tmp_path, prompts=prompts).sources.describe() for prompts in ("all", "common")]
    assert told[0] != told[1]
    assert "prompts" not in told[0]  # as in runs from before


def test_turns_are_skipped_one_by_one(tmp_path: Path) -> None:
    """A row of two turns is two pairs: without a partner it is two that are missing."""
    questions = [{"question_id": n, "turns": ["q", "r"]} for n in (1, 2, 3)]
    both = [{"question_id": n, "choices": [{"turns": ["x", "y"]}]} for n in (1, 2, 3)]
    one = [both[0], {"question_id": 2, "choices": [{"turns": ["x"]}]}]
    paths = [
        write_lines(tmp_path / f"{name}.jsonl", rows)
        for name, rows in (("a", both), ("b", one), ("questions", questions))
    ]
    a, b, asked = (open_source(path) for path in paths)
    sources = ModelOutputs((a, b), ReadOptions(criteria_needed=False), questions=asked)
    with open_store(tmp_path / "store.db") as store:
        run = stored(store)
        take_in(
            store,
            run.id,
            sources,
            bad_rows="skip",
            by_id=False,
            stop=Stop(),
            report=lambda _: None,
        )
        # Judged are 1:1, 1:2 and 2:1; lacking are 2:2, 3:1 and 3:2.
        assert (tally(store).pairs, tally(store).skipped_rows) == (3, 3)
        assert stored(store).without_partner == (WithoutPartner("a", "b", only_a=3, only_b=0),)
