"""Attacks by answers; see `scripts.attacks`."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType

from scripts.attacks import AtMost, Attack, Outcome
from scripts.quoting_completions import SEED, completions

import evenhand.judging.answers
from evenhand.contract import PROTOCOLS, AnswerProtocol, Criterion
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
    *("<answer>8</answer>", '"result":{"winner":"', "1 = Response A, ", "A>B\n", "(weight "),
    *("\\boxed{", '"result" : ', "“\n\n", "'\n\n", "\ufffc", "Best answer: "),
)
QUOTING, PLAIN, FORCED = 40_000, 10_000, 5_000
# Misread at most once in 10,000; of the clear decisions in due form at least 95% read.
MOST_MISREAD, MOST_UNREAD = 1 / 10_000, 0.05


def repeated(unit: str, length: int) -> str:
    return (unit * (length // len(unit) + 1))[:length]


def cpu_s(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Every pattern by which answers are read: those that a module holds, by their names, and those
    that are written where they are used."""
    names = [
        f"evenhand.judging.answers.{each.name}"
        for each in pkgutil.iter_modules(evenhand.judging.answers.__path__)
    ]
    for name in (*names, "evenhand.judging.ballots", "evenhand.contract.verdict"):
        module = importlib.import_module(name)
        short = name.rpartition(".")[2]
        for key, value in vars(module).items():
            for each in _compiled(value):
                yield f"{short}.{key}", each
        for line, pattern in _written_in_place(module):
            yield f"{short}:{line}", pattern


def _compiled(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict | list | tuple | set | frozenset):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _compiled(each)


def _written_in_place(module: ModuleType) -> Iterator[tuple[int, re.Pattern[str]]]:
    """Of calls such as `re.match("…", text)`; one whose pattern is put together there is refused,
    as it could not be tried."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="re"), attr=verb), args=[pattern, *_]
            ) if verb not in ("compile", "escape"):
                if not isinstance(pattern, ast.Constant) or not isinstance(pattern.value, str):
                    raise ValueError(f"{module.__name__}:{node.lineno}: name this pattern")
                yield node.lineno, re.compile(pattern.value)


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
    tried = list(patterns())
    worst = (0.0, "", "")
    for name, pattern in tried:
        apply = partial(_applied, pattern)
        costs = {unit: cpu_s(partial(apply, repeated(unit, 2_000))) for unit in UNITS}
        unit = max(costs, key=costs.__getitem__)
        length = _worth_measuring(apply, unit)
        worst = max(worst, (_ratio(apply, unit, length=length), name, unit))
    ratio, name, unit = worst
    slowest = AtMost("CPU for twice the text", ratio, MOST_RATIO, note=f"({name} on {unit!r})")
    return Outcome((slowest,), f"{len(tried)} patterns")


def _read_closing(text: str, *, closing: str = "", protocol: AnswerProtocol | None = None) -> None:
    text = text[: len(text) - len(closing)] + closing
    read_ballot(text, criteria=(Criterion(name="accuracy"),), protocol=protocol)


def the_reader_is_linear() -> Outcome:
    # The closing lines lead into every part of the reader.
    readers = [partial(_read_closing, closing=closing) for closing in ("", "\nWinner: B", "\n2")]
    readers += [partial(_read_closing, protocol=protocol) for protocol in PROTOCOLS]
    worst = max((_ratio(reader, unit), unit) for reader in readers for unit in UNITS)
    slowest = AtMost("CPU of 1 MB to 0.5 MB", worst[0], MOST_RATIO, note=f"({worst[1]!r})")
    return Outcome((slowest,), f"{len(UNITS)} texts, {len(readers)} ways to read each")


def quoted_verdicts_are_not_read() -> Outcome:
    checks = []
    for name, quoting, count in (("quoting", True, QUOTING), ("plain", False, PLAIN)):
        misread = unread = formal = 0
        for one in completions(count, quoting=quoting):
            outcome = read_ballot(one.text)
            # A decision in a sentence is read only where a protocol is named.
            formal += not one.in_prose
            if not isinstance(outcome, PassBallot):
                unread += not one.in_prose
            elif outcome.winner != one.due:
                misread += 1
        checks += [
            AtMost(f"{name}: misread", 100 * misread / count, 100 * MOST_MISREAD, "%"),
            AtMost("unread", 100 * unread / formal, 100 * MOST_UNREAD, "%"),
        ]
    return Outcome(tuple(checks), f"{QUOTING:,} and {PLAIN:,} completions, seed {SEED}")


def forced_protocols_read_no_quotation() -> Outcome:
    """What a judge quotes is no verdict in whichever protocol its answer is read by."""
    misread = read = 0
    for one in completions(FORCED, quoting=True):
        for protocol in PROTOCOLS:
            outcome = read_ballot(one.text, protocol=protocol)
            read += isinstance(outcome, PassBallot)
            misread += isinstance(outcome, PassBallot) and outcome.winner != one.due
    share = 100 * misread / (FORCED * len(PROTOCOLS))
    return Outcome(
        (AtMost("misread", share, 100 * MOST_MISREAD, "%"),),
        f"{FORCED:,} completions by {len(PROTOCOLS)} protocols, {read:,} of the readings a ballot",
    )


ATTACKS: tuple[Attack, ...] = (
    Attack("verdicts that a judge only quotes", quoted_verdicts_are_not_read, 600.0),
    Attack("the same, read by a forced protocol", forced_protocols_read_no_quotation, 600.0),
    Attack("text that makes a pattern explode", every_pattern_is_linear, 900.0),
    Attack("text that makes the reader explode", the_reader_is_linear, 1200.0),
)
