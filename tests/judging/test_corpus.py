"""The reader against a person's readings: of the corpus, and of answers that quote an attack."""

from __future__ import annotations

from cases import each_case
from corpus import CORPUS, CRITERIA, Case
from evenhand.contract import AnswerProtocol, Ballot, Criterion
from explained import read
from hostile_cases import QUOTING_ANSWERS

ASKED = tuple(Criterion(name=name) for name in CRITERIA)


def winner_in(text: str, protocol: AnswerProtocol | None = None) -> str | None:
    outcome = read(text, criteria=ASKED, protocol=protocol)
    return outcome.winner if isinstance(outcome, Ballot) else None


@each_case("case", CORPUS, ids=lambda case: case.name)
def test_an_answer_is_read_as_a_careful_person_reads_it(case: Case) -> None:
    read_as = winner_in(case.text)
    if case.in_prose:
        assert read_as is None
        named: AnswerProtocol = "llmbar" if "Output (" in case.text else "evenhand"
        assert winner_in(case.text, named) == case.expected
    elif not (case.may_stay_unread and read_as is None):
        assert read_as == case.expected, case.text


@each_case("case", [case for case in CORPUS if "json" not in case.name], ids=lambda case: case.name)
def test_an_answer_means_the_same_without_the_criteria(case: Case) -> None:
    outcome = read(case.text)
    # Which lines belong to a criterion may be unknown now; a wrong winner is never the result.
    if isinstance(outcome, Ballot):
        assert case.expected in (outcome.winner, None), case.text


@each_case("case", CORPUS, ids=lambda case: case.name)
def test_windows_line_ends_change_nothing(case: Case) -> None:
    assert winner_in(case.text.replace("\r\n", "\n").replace("\n", "\r\n")) == winner_in(case.text)


@each_case(("name", "text", "expected"), QUOTING_ANSWERS, ids=lambda case: case[0])
def test_a_quoted_attack_does_not_become_the_verdict(
    name: str, text: str, expected: str | None
) -> None:
    assert winner_in(text) == expected


def test_most_of_what_a_person_reads_at_once_is_read() -> None:
    unread = [case for case in CORPUS if case.may_stay_unread and winner_in(case.text) is None]
    assert len(unread) <= 0.1 * len(CORPUS)
