"""Judges who do not vote on pairs with a contestant of their own family."""

from __future__ import annotations

from pathlib import Path

from analysed import jury_of
from evenhand.analyses.jury import JurorReport
from evenhand.store import Store
from evenhand.trust.panels import open_jury, save_jury
from judged_runs import judged_run

GPT, CLAUDE, QWEN = "openai:gpt-5-mini", "anthropic:claude-sonnet-4-5", "openai:qwen2.5-72b"
# The first judge prefers its own, the others do not; in the last pair both are of its family.
MODELS: list[tuple[str | None, str | None]] = [
    ("gpt-4o", "llama-3-70b"),
    ("mistral-7b", "gpt-4o"),
    ("mistral-7b", "llama-3-70b"),
]
MODELS += [("gpt-4o", "o3-mini"), (None, "gpt-4o")]
SAID = {GPT: "ABABB", CLAUDE: "BABBA", QWEN: "BABBA"}


def by_judge(reports: tuple[JurorReport, ...]) -> dict[str, JurorReport]:
    return {each.judge.judge: each for each in reports}


def test_a_judge_has_no_vote_where_one_contestant_is_of_its_family(store: Store) -> None:
    judged_run(store, "run", SAID, models=MODELS)
    sitting = jury_of(store, "run", weights="plurality", recuse_family=True)
    # Pairs 1, 2 and 5 have one of its family; in pair 4 both are, and in pair 3 neither.
    assert sitting.poll.panel.votes[:, 0].tolist() == [-1, -1, 0, 1, -1]
    assert sitting.poll.panel.votes[:, 1].tolist() == [1, 0, 1, 1, 0]
    judges = by_judge(sitting.judges)
    assert (judges[GPT].recused, judges[GPT].votes) == (3, 2)
    assert judges[CLAUDE].recused == judges[QWEN].recused == 0
    assert sitting.poll.saved.recuse_family


def test_without_it_every_judge_votes_and_a_note_says_who_may_favour_whom(store: Store) -> None:
    judged_run(store, "run", SAID, models=MODELS)
    report = jury_of(store, "run", weights="plurality")
    assert [each.recused for each in report.judges] == [0, 0, 0]
    (note,) = [note for note in report.notes if "family" in note]
    assert note.startswith(f"{GPT} is from the same family as gpt-4o and o3-mini (gpt)")


def test_recusal_changes_the_jurys_verdict(store: Store) -> None:
    """Two judges of one family outvote the third, but for pairs of their own."""
    said = {GPT: "AAAA", "openai:o3": "AAAA", QWEN: "BBBB"}
    models = [("gpt-4o", "llama-3-70b")] * 2 + [("mistral-7b", "llama-3-70b")] * 2
    judged_run(store, "run", said, models=models)
    every = jury_of(store, "run", weights="plurality").counts
    assert (every.wins_a, every.wins_b) == (4, 0)
    recused = jury_of(store, "run", weights="plurality", recuse_family=True).counts
    assert (recused.wins_a, recused.wins_b) == (2, 2)
    # A majority takes two votes, and one judge is left for the first two pairs.
    short = jury_of(store, "run", weights="majority", recuse_family=True).counts
    assert (short.wins_a, short.no_quorum) == (2, 2)


def test_own_entries_recuse_too(store: Store) -> None:
    judged_run(store, "run", SAID, models=[("in-house", "llama-3-70b")] * 5)
    entries = (("in-house", ("claude",)),)
    sitting = jury_of(store, "run", recuse_family=True, families=entries)
    assert by_judge(sitting.judges)[CLAUDE].recused == 5


def test_a_saved_jury_recuses_as_it_did(store: Store, tmp_path: Path) -> None:
    judged_run(store, "run", SAID, models=MODELS)
    judged_run(store, "later", SAID, models=MODELS, keys=[f"l{n}" for n in range(5)])
    made = jury_of(store, "run", weights="plurality", recuse_family=True).poll.saved
    saved = open_jury(save_jury(made, tmp_path / "jury.json"))
    assert saved.recuse_family
    later = jury_of(store, "later", use=saved)
    assert by_judge(later.judges)[GPT].recused == 3


def test_a_recused_pair_is_counted_once(store: Store) -> None:
    """I is inconsistent: of five pairs three are recused, whatever the judge said of them."""
    judged_run(store, "run", SAID | {GPT: "IBIBB"}, models=MODELS)
    report = jury_of(store, "run", weights="plurality", recuse_family=True)
    own = by_judge(report.judges)[GPT]
    kinds = own.votes, own.inconsistent, own.invalid, own.abstained, own.recused, own.not_judged
    assert kinds == (1, 1, 0, 0, 3, 0)


def test_a_judge_recused_on_every_pair_does_not_decide(store: Store) -> None:
    said = {GPT: "A" * 40, CLAUDE: "A" * 25 + "B" * 15, QWEN: "A" * 22 + "B" * 18}
    models: list[tuple[str | None, str | None]] = [("gpt-4o", "llama-3-70b")] * 40
    judged_run(store, "run", said, models=models, labels="B" * 40)
    report = jury_of(store, "run", recuse_family=True)
    assert report.member != GPT
    (best,) = [each for each in report.accuracy if each.rule == "best member"]
    assert GPT not in best.picks
