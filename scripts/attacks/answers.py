"""Attacks by answers; see `scripts.attacks`."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from functools import partial

from scripts.attacks import Attack, Outcome
from scripts.quoting_completions import SEED, completions

import evenhand.judging.answers
from evenhand.contract import Criterion
from evenhand.judging.answers.results import PROTOCOLS, AnswerProtocol
from evenhand.judging.ballots import read_ballot
from evenhand.judging.decision import PassBallot

HALF = 500_000
# Twice the text may take twice the time; more than three times is no longer linear.
MOST_RATIO = 3.0
# Below this a measurement is the clock's own noise.
LEAST_S = 0.05
ENOUGH_S = 0.25
UNITS = (
    *("\n", " ", "\t", '"', "'", "“", "「", "`", "```\n", "~~~", "{", "}", '{"a":', '{"winner":"'),
    *("[[", "]]", "[[A]] ", "(", "1", "1 ", "1\n", "9.", "*", "_", "#", ">", "> [[A]]\n", "|", "-"),
    *(":", "：", "。", ". ", "A", "B ", "Winner:", "Winner: A\n", "not ", "if ", "over ", "the "),
    *("Response A ", "Response A says: ", 'Response A says "', "Output (a) is better ", "is much "),
    *("more ", "响应 A 更好", "不是", "写着：", "</think>\n", "<think>", "<quote>", "<!--", "<"),
    *("I choose ", "therefore ", "in terms of ", "give Assistant 1 a score of ", "overall ", "\\"),
    *("\\boxed{", '"result" : ', "“\n\n", "'\n\n", "\ufffc", "Best answer: "),
)
QUOTING, PLAIN = 40_000, 10_000
# Misread at most once in 10,000; of the clear decisions at least 95 % read.
MOST_MISREAD, MOST_UNREAD = 1 / 10_000, 0.05


def repeated(unit: str, length: int) -> str:
    return (unit * (length // len(unit) + 1))[:length]


def cpu_s(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Every compiled pattern by which answers are read, with the name that it has in its module."""
    names = [
        f"evenhand.judging.answers.{each.name}"
        for each in pkgutil.iter_modules(evenhand.judging.answers.__path__)
    ]
    names += ["evenhand.judging.ballots", "evenhand.contract.verdict"]
    for name in names:
        for key, value in vars(importlib.import_module(name)).items():
            for each in value.values() if isinstance(value, dict) else (value,):
                if isinstance(each, re.Pattern):
                    yield f"{name.rpartition('.')[2]}.{key}", each


def _applied(pattern: re.Pattern[str], text: str) -> None:
    for _ in pattern.finditer(text):
        pass
    pattern.fullmatch(text + "!")


def _ratio(work: Callable[[str], object], unit: str, *, length: int = HALF) -> float:
    half = cpu_s(lambda: work(repeated(unit, length)))
    whole = cpu_s(lambda: work(repeated(unit, 2 * length)))
    if whole / max(half, LEAST_S) > MOST_RATIO:  # once more: another process may have had the cache
        half = max(half, cpu_s(lambda: work(repeated(unit, length))))
    return whole / max(half, LEAST_S)


def _worth_measuring(work: Callable[[str], object], unit: str) -> int:
    """Half a MB, or as much as takes the clock some time: a pattern that the reader applies to the
    beginnings of lines is tried at every character here."""
    length = 8_000
    while length < HALF and cpu_s(partial(work, repeated(unit, length))) < ENOUGH_S:
        length *= 2
    return min(length, HALF)


def every_pattern_is_linear() -> Outcome:
    """Each pattern on the text that costs it most per character."""
    found = list(patterns())
    worst = (0.0, "", "")
    for name, pattern in found:
        apply = partial(_applied, pattern)
        costs = {unit: cpu_s(partial(apply, repeated(unit, 2_000))) for unit in UNITS}
        unit = max(costs, key=costs.__getitem__)
        length = _worth_measuring(apply, unit)
        worst = max(worst, (_ratio(apply, unit, length=length), name, unit))
    ratio, name, unit = worst
    figure = f"{len(found)} patterns, largest CPU ratio for twice the text {ratio:.1f} (limit 3)"
    return Outcome(ratio <= MOST_RATIO, f"{figure}: {name} on {unit!r}")


def _read_closing(text: str, *, closing: str = "", protocol: AnswerProtocol | None = None) -> None:
    text = text[: len(text) - len(closing)] + closing
    read_ballot(text, criteria=(Criterion(name="accuracy"),), protocol=protocol)


def the_reader_is_linear() -> Outcome:
    # The closing lines lead into every part of the reader.
    readers = [partial(_read_closing, closing=closing) for closing in ("", "\nWinner: B", "\n2")]
    readers += [partial(_read_closing, protocol=protocol) for protocol in PROTOCOLS]
    worst = max((_ratio(reader, unit), unit) for reader in readers for unit in UNITS)
    figure = f"{len(UNITS)} texts, largest CPU ratio of 1 MB to 0.5 MB {worst[0]:.1f} (limit 3)"
    return Outcome(worst[0] <= MOST_RATIO, f"{figure}: {worst[1]!r}")


def quoted_verdicts_are_not_read() -> Outcome:
    shares = {}
    for name, quoting, count in (("quoting", True, QUOTING), ("plain", False, PLAIN)):
        misread = unread = 0
        for one in completions(count, quoting=quoting):
            outcome = read_ballot(one.text)
            if not isinstance(outcome, PassBallot):
                unread += 1
            elif outcome.winner != one.due:
                misread += 1
        shares[name] = misread / count, unread / count
    held = all(
        misread <= MOST_MISREAD and unread <= MOST_UNREAD for misread, unread in shares.values()
    )
    figure = "; ".join(
        f"{name}: {misread:.3%} misread (limit 0.01 %), {unread:.2%} unread (limit 5 %)"
        for name, (misread, unread) in shares.items()
    )
    return Outcome(held, f"seed {SEED}, {QUOTING:,} and {PLAIN:,} completions; {figure}")


ATTACKS: tuple[Attack, ...] = (
    Attack("verdicts that a judge only quotes", quoted_verdicts_are_not_read, 600.0),
    Attack("text that makes a pattern explode", every_pattern_is_linear, 900.0),
    Attack("text that makes the reader explode", the_reader_is_linear, 900.0),
)
