"""Sentence, gate, interval, tests, notes and pages of random runs agree with each other, and with
what was written to the store. What has to hold is written out here, from printed text where that
is what a reader goes by."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args
from xml.etree import ElementTree as ET

import pytest

from evenhand.analyses.gate import GateCheck, gate_run, judge_gate, junit_xml
from evenhand.analyses.rank import rank_runs, sum_up_ranking
from evenhand.analysis_options import GateOptions
from evenhand.errors import InputError
from evenhand.messages import Message, render
from evenhand.report.conclusions import Conclusion, ConclusionLimits, Conclusions, Side, conclude
from evenhand.serve.config import ServerConfig
from evenhand.store import Store
from http_service import HttpService
from page_visits import Visitor
from random_runs import RandomRun, random_run
from servers import forget_proxies
from stored_runs import opened

Claim = Literal["better", "worse", "none", "accuracy"]

_ENDS = r"[<>]?\d+(?:\.\d+)?"
_RATE = re.compile(rf"(?P<rate>{_ENDS})% win rate|胜率(?:为)? (?P<chinese>{_ENDS})%")
_INTERVAL = re.compile(rf"(?:CI|区间)(?: over \d+ matchups)? ({_ENDS})–({_ENDS})")
_TOPICS = re.compile(
    rf"on these topics, ({_ENDS})–({_ENDS}) over|跨 \d+ 个主题 ({_ENDS})–({_ENDS})"
)
_COUNTS = re.compile(r"won (\d+), lost (\d+), tied (\d+)(?:, flipped (\d+))?")
_CHINESE_COUNTS = re.compile(r"胜 (\d+)，负 (\d+)，平 (\d+)(?:，翻转 (\d+))?")
_GATE_RATE = re.compile(r"win rate (?P<rate>[<>]?\d\.\d+)")
_CLAIMS: tuple[tuple[str, Claim], ...] = (
    (r"^\S+ beats \S+( on these topics)?: ", "better"),
    (r"^\S+ loses to \S+( on these topics)?: ", "worse"),
    (r"^\S+ and \S+ are not significantly different", "none"),
    (r"^No (conclusion|difference|evidence)", "none"),
    (r"^The judge is right", "accuracy"),
    (r"^(在这些主题上，)?\S+ 优于 \S+：", "better"),
    (r"^(在这些主题上，)?\S+ 不如 \S+：", "worse"),
    (r"^(在这些主题之外，)?\S+ 与 \S+ 无显著差异：", "none"),
    (r"^(\S+ 对 \S+ (尚)?无结论|无法就 \S+ 与 \S+ 得出结论|没有证据表明)", "none"),
    (r"^评审在", "accuracy"),
)
_RULED = {"better": "pass", "worse": "fail", "none": "undecided"}
_MIRRORED = {"better": "worse", "worse": "better", "pass": "fail", "fail": "pass"}
_THRESHOLDS = (0.3, 0.45, 0.55, 0.7)
_ALL = range(500)
# Some as they come, and some with what is rare: topics, and claims that chance, length or people
# hold back.
_QUICK = (*range(46, 98), 113, 121, 144, 174, 198, 281, 443, 464)
_PAGES = (8, 9, 48, 57, 64, 281)


def claim_of(sentence: str) -> Claim:
    found = [claim for form, claim in _CLAIMS if re.search(form, sentence)]
    assert len(found) == 1, sentence
    return found[0]


def side_of_half(printed: str) -> int:
    """Of a printed percentage: "<50" is below one half and 50 is on it."""
    number = float(printed.lstrip("<>"))
    beyond = printed.startswith(">") - printed.startswith("<")
    return (number > 50) - (number < 50) or beyond


def near(printed: str, share: float, *, of: float = 100.0) -> bool:
    """Within the last digit that is printed."""
    number = printed.lstrip("<>")
    digits = len(number.partition(".")[2])
    most = 0.5 if printed != number else 0.5 * 10.0**-digits
    return abs(float(number) - of * share) <= most + 1e-9


def sign_test(wins: int, losses: int) -> float:
    """Two-sided, by the binomial distribution with one half."""
    n, fewer = wins + losses, min(wins, losses)
    return min(1.0, sum(math.comb(n, k) for k in range(fewer + 1)) / 2.0 ** (n - 1))


def asked(limits: ConclusionLimits, **more: Any) -> GateOptions:
    given = limits.model_dump(by_alias=False) | more
    if given.pop("labels_are_random"):
        given["labels_are"] = "random"
    return GateOptions(corrected=given.pop("require_labels"), **given)


class Faces:
    """One run, read from both sides."""

    def __init__(self, store: Store, run: RandomRun, seed: int) -> None:
        self.store, self.run, self.seed = store, run, seed
        self.found = conclude(store, run.name, limits=run.limits)
        self.mirrored = conclude(store, run.name, limits=run.limits, side="A")

    def agree(self) -> Iterator[str]:
        """Checks all of it; gives what each conclusion claims, for the test to count."""
        found, run = self.found, self.run
        gate = judge_gate(found, asked(run.limits))
        other = judge_gate(self.mirrored, asked(run.limits))
        assert len(found.conclusions) == len(gate.checks) == len(run.said)
        as_json = json.loads(found.model_dump_json(by_alias=True))["conclusions"]
        gate_json = json.loads(gate.model_dump_json(by_alias=True))["checks"]
        for own, check in zip(as_json, gate_json, strict=True):
            for end in ("rate", "low", "high"):
                assert own["claimed"][end] == check[end]
            assert own["sentence"] == check["sentence"]
        for conclusion, check in zip(found.conclusions, gate.checks, strict=True):
            self._counts(conclusion, check)
            self._interval(conclusion)
            self._sentence(conclusion, check)
            self._tests(conclusion, check)
            self._holds(conclusion, check)
            yield from self._length(conclusion, check)
            yield from self._grazes(conclusion)
            yield claim_of(conclusion.sentence)
        for pair in zip(found.conclusions, self.mirrored.conclusions, strict=True):
            self._mirrors(*pair)
        for check, turned in zip(gate.checks, other.checks, strict=True):
            assert turned.ruling == _MIRRORED.get(check.ruling, check.ruling)
        rulings = {check.ruling for check in gate.checks}
        whole = "fail" if "fail" in rulings else "pass" if rulings == {"pass"} else "undecided"
        assert gate.ruling == whole
        suite = ET.fromstring(junit_xml(gate))  # noqa: S314
        assert suite.get("failures") == str(sum(each.ruling == "fail" for each in gate.checks))
        self._notes(found)
        if self.seed % 3 == 0:
            for threshold in _THRESHOLDS:
                self._other_gate(threshold)
        if self.seed % 3 == 1:
            self._only_criterion()
            self._other_ties()
        if self.seed % 2 == 0:
            self._lead()
        if self.seed % 10 == 0:
            again = gate_run(self.store, run.name, asked(run.limits, min_win_rate=0.5))
            assert again.model_dump() == gate.model_dump()

    def _only_criterion(self) -> None:
        """A limit on the only criterion, which came out as the pairs did, is ruled on as one on the
        whole is, for the same reasons."""
        require = ("overall>0.5", "accuracy>0.5")
        ruled = judge_gate(self.found, asked(self.run.limits, require=require))
        checks = zip(ruled.checks[::2], ruled.checks[1::2], strict=True)
        for conclusion, (whole, part) in zip(self.found.conclusions, checks, strict=True):
            outcomes = [each.rate.counts for each in conclusion.by_criterion]
            same = outcomes == [conclusion.win_rate.counts]
            if not same or self.run.averaged or conclusion.by_people:
                continue
            assert (whole.ruling, whole.low, whole.high) == (part.ruling, part.low, part.high)
            assert whole.line.replace("overall", "accuracy") == part.line

    def _other_ties(self) -> None:
        """Whatever ties count as, who is said to win has won more, and the gate says so too."""
        limits = self.run.limits
        for ties in ("excluded", "wins"):
            found = conclude(self.store, self.run.name, limits=limits, ties=ties)
            ruled = judge_gate(found, asked(limits))
            for conclusion, check in zip(found.conclusions, ruled.checks, strict=True):
                code = conclusion.messages[0].code.removesuffix("_here")
                if code not in ("conclusion.better", "conclusion.worse"):
                    assert check.ruling != "pass" or conclusion.accuracy is not None
                    continue
                assert check.ruling == _RULED[code.removeprefix("conclusion.")]
                if not self.run.prompts_repeat:
                    assert (check.wins > check.losses) == (code == "conclusion.better")

    def _lead(self) -> None:
        """Nobody leads whom a report, by the same limits, does not say to beat the others."""
        if (None, None) in self.run.said:
            return
        limits = ConclusionLimits()
        said = {
            each.names: each
            for side in get_args(Side)
            for each in conclude(self.store, self.run.name, side=side, limits=limits).conclusions
        }
        try:
            ranked = rank_runs(self.store, [self.run.name])
        except InputError:  # no verdict is valid
            assert all(each.win_rate.counts.valid == 0 for each in said.values())
            return
        assert ranked.ranking is not None
        claim, *_ = sum_up_ranking(ranked)
        if claim.code not in ("ranking.leads", "ranking.leads_two"):
            return
        leader = claim.values["model"]
        for names, conclusion in said.items():
            if names[0] != leader:
                continue
            claims = claim_of(conclusion.sentence)
            assert claims != "worse", f"{claim} / {conclusion.sentence}"
            if len(self.run.said) == 1:
                assert claims == "better", f"{claim} / {conclusion.sentence}"
            if conclusion.claimed.excludes_half:
                assert not conclusion.blocks("claim"), f"{claim} / {conclusion.sentence}"

    def _counts(self, conclusion: Conclusion, check: GateCheck) -> None:
        """What is counted is what was written."""
        said = self.run.said[conclusion.against, conclusion.model]
        assert (check.wins, check.losses) == (said["B"], said["A"])
        assert (check.ties, check.inconsistent) == (said["TIE"], said["inconsistent"])
        assert (check.invalid, check.pending) == (said["invalid"], said["pending"])
        assert conclusion.pairs == said.total()

    def _interval(self, conclusion: Conclusion) -> None:
        claimed = conclusion.claimed
        assert (claimed.rate is None) == (claimed.low is None) == (claimed.high is None)
        if claimed.rate is not None and claimed.low is not None and claimed.high is not None:
            assert 0 <= claimed.low <= claimed.rate <= claimed.high <= 1
        pending = sum(said["pending"] for said in self.run.said.values())
        looks = bool(pending) or self.run.grown or self.run.limits.growing
        assert claimed.always_valid == (looks and claimed.rate is not None)

    def _sentence(self, conclusion: Conclusion, check: GateCheck) -> None:
        english, chinese = conclusion.sentence, render(conclusion.messages, "zh")
        claim = claim_of(english)
        assert claim_of(chinese) == claim
        assert check.sentence == english
        claimed = conclusion.claimed
        if claim == "accuracy":
            assert conclusion.names == ("B", "A")
        else:
            assert check.ruling == _RULED[claim], f"{english} / {check.line}"
        headlines = [render(conclusion.messages[0], language) for language in ("en", "zh")]
        gate_rate = _GATE_RATE.search(check.line)
        if claimed.rate is not None:
            assert gate_rate is not None
            assert near(gate_rate["rate"], claimed.rate, of=1.0)
        for headline in headlines:
            if "No conclusion" in headline:
                assert check.ruling == "undecided"
            rate = _RATE.search(headline)
            if rate is None:
                assert claim in ("none", "accuracy")
                continue
            assert claimed.rate is not None
            assert claimed.low is not None
            assert claimed.high is not None
            shown = rate["rate"] or rate["chinese"]
            if claim == "none" and conclusion.messages[0].code == "no_conclusion.length":
                # It tells the rate at equal length, which is not the one that is held back.
                controlled = conclusion.length.controlled[0]
                assert controlled.rate is not None
                assert near(shown, controlled.rate)
                continue
            if conclusion.messages[0].code == "no_conclusion.contradicted":
                # It tells the judge's rate on the labelled pairs.
                assert near(shown, conclusion.messages[0].values["judge"])
                continue
            assert near(shown, claimed.rate)
            low, high = self._printed_interval(conclusion, headline)
            sides = {side_of_half(each) for each in (low, shown, high)}
            assert side_of_half(low) <= side_of_half(shown) <= side_of_half(high)
            if claim in ("better", "worse"):
                assert sides == {1 if claim == "better" else -1}
            else:
                assert side_of_half(low) <= 0 <= side_of_half(high)
            counts = _COUNTS.search(headline) or _CHINESE_COUNTS.search(headline)
            assert (counts is None) == conclusion.by_people
            if counts is not None:
                said = self.run.said[conclusion.against, conclusion.model]
                printed = tuple(int(each or 0) for each in counts.groups())
                assert printed == (said["B"], said["A"], said["TIE"], said["inconsistent"])

    def _printed_interval(self, conclusion: Conclusion, headline: str) -> tuple[str, str]:
        """The one that the claim goes by: over topics, where it is to hold for others."""
        claimed = conclusion.claimed
        form = _INTERVAL
        if claimed.topics is not None and not conclusion.by_people:
            form = _TOPICS
        found = form.search(headline)
        assert found is not None, headline
        low, high = (each for each in found.groups() if each is not None)
        assert claimed.low is not None
        assert claimed.high is not None
        assert near(low, claimed.low), headline
        assert near(high, claimed.high), headline
        return low, high

    def _tests(self, conclusion: Conclusion, check: GateCheck) -> None:
        """A claim by the judge alone needs six decisive prompts and the exact sign test. What is
        missing counts against it, and can only make the test's p larger than this."""
        if check.ruling == "undecided" or conclusion.by_people:
            return
        test = conclusion.win_rate.sign_flip
        assert test is not None
        assert test.decisive >= 6
        assert test.p_value <= 0.05
        if not self.run.prompts_repeat and not self.run.averaged:
            assert check.wins + check.losses + check.inconsistent >= 6
            assert sign_test(check.wins, check.losses) <= 0.05 / len(self.run.said) + 1e-12
        won = check.wins > check.losses
        if not self.run.prompts_repeat:
            assert won == (check.ruling == "pass")
        assert check.inconsistent < check.wins + check.losses

    def _holds(self, conclusion: Conclusion, check: GateCheck) -> None:
        """What blocks a claim is named by the gate, and stands in the sentence's place; what does
        not claim though its interval leaves one half out is blocked by something."""
        blocking = [hold for hold in conclusion.holds if "claim" in hold.blocks]
        for hold in blocking:
            assert str(hold.line) in check.line
            assert check.ruling == "undecided"
        first = str(conclusion.messages[0])
        if conclusion.claimed.excludes_half and check.ruling == "undecided":
            assert blocking
            if conclusion.accuracy is None:
                assert first in [str(hold.sentence) for hold in blocking]

    def _length(self, conclusion: Conclusion, check: GateCheck) -> Iterator[str]:
        """Where the longer response won every decided pair, and each side was the longer one at
        times, length explains whatever the verdicts claim."""
        longer = self.run.longer[conclusion.against, conclusion.model]
        if longer["shorter"] or longer["equal"] or min(longer["A"], longer["B"]) < 5:
            return
        if self.run.limits.allow_length or conclusion.by_people or longer["longer"] < 30:
            return
        assert check.ruling == "undecided", check.line
        if conclusion.claimed.excludes_half:
            yield "length"

    def _grazes(self, conclusion: Conclusion) -> Iterator[str]:
        """Two digits would print an end, or the rate, that is not one half as 50: `_sentence` reads
        what is printed, so that these runs show what is made of it."""
        claimed = conclusion.claimed
        ends = [claimed.low, claimed.high]
        claims = claim_of(conclusion.sentence) in ("better", "worse")
        if claims and any(each is not None and round(100 * each) == 50 for each in ends):
            yield "grazes"

    def _mirrors(self, conclusion: Conclusion, turned: Conclusion) -> None:
        own, other = conclusion.claimed, turned.claimed
        assert conclusion.names == turned.names[::-1]
        assert own.estimator == other.estimator
        if own.rate is not None and own.low is not None and own.high is not None:
            assert other.rate == pytest.approx(1 - own.rate, abs=1e-9)
            assert other.low == pytest.approx(1 - own.high, abs=1e-9)
            assert other.high == pytest.approx(1 - own.low, abs=1e-9)
        claim = claim_of(conclusion.sentence)
        assert claim_of(turned.sentence) == _MIRRORED.get(claim, claim)
        assert [each.code for each in conclusion.holds] == [each.code for each in turned.holds]

    def _notes(self, found: Conclusions) -> None:
        run, notes = self.run, [each for each in found.notes if isinstance(each, Message)]
        codes = Counter(each.code for each in notes)
        values = {each.code: each.values for each in notes}
        written: Counter[str] = sum((Counter(each) for each in run.said.values()), Counter())
        assert not any("None" in each for each in found.notes)
        assert ("report.several_matchups" in codes) == (len(run.said) > 1)
        assert ("report.not_finished" in codes) == (written["pending"] > 0)
        assert ("report.growing" in codes) == run.limits.growing
        assert ("report.grown_data" in codes) == (run.grown and not run.limits.growing)
        for code, number in (
            ("report.invalid_verdicts", written["invalid"]),
            ("report.rows_skipped", run.skipped),
        ):
            assert values.get(code, {}).get("n", 0) == number
        if "report.longer_in_most" in codes:
            assert any(each.claimed.excludes_half for each in found.conclusions)
        beside = codes["report.labels_compared"] + codes["report.labels_not_used"]
        assert beside <= sum(not each.by_people for each in found.conclusions)
        assert not (run.labels == 0 and beside)

    def _other_gate(self, threshold: float) -> None:
        options = asked(self.run.limits, min_win_rate=threshold, assume_accuracy=0.99)
        mirrored = asked(self.run.limits, min_win_rate=1 - threshold, assume_accuracy=0.99)
        checks = judge_gate(self.found, options).checks
        turned = judge_gate(self.mirrored, mirrored).checks
        for check, conclusion, other in zip(checks, self.found.conclusions, turned, strict=True):
            assert other.ruling == _MIRRORED.get(check.ruling, check.ruling)
            if check.ruling == "undecided":
                continue
            assert check.low is not None
            assert check.high is not None
            assert check.low > threshold if check.ruling == "pass" else check.high < threshold
            assert not check.sentence.startswith(("No conclusion", "No difference"))
            claim = claim_of(conclusion.sentence)
            if check.ruling == "pass" and threshold > 0.5:
                assert claim in ("better", "accuracy")
            if check.ruling == "fail" and threshold < 0.5:
                assert claim in ("worse", "accuracy")


def check_runs(folder: Path, seeds: Sequence[int]) -> Counter[str]:
    store, claims = opened(folder), Counter[str]()
    try:
        for seed in seeds:
            try:
                claims.update(Faces(store, random_run(store, seed), seed).agree())
            except Exception as error:
                error.add_note(f"random run {seed}")
                raise
    finally:
        store.close()
    return claims


def test_sentence_gate_interval_tests_and_notes_agree(tmp_path: Path) -> None:
    claims = check_runs(tmp_path, _QUICK)
    # Else the runs show little.
    assert min(claims[each] for each in ("better", "worse", "none", "accuracy")) >= 3
    assert min(claims[each] for each in ("length", "grazes")) >= 2


@pytest.mark.slow
def test_five_hundred_random_runs_agree(tmp_path: Path) -> None:
    claims = check_runs(tmp_path, _ALL)
    assert min(claims[each] for each in ("better", "worse", "none", "accuracy")) >= 25
    assert min(claims[each] for each in ("length", "grazes")) >= 4


@pytest.fixture
def visited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Visitor, Store]]:
    """A server over runs of two sides, at rest: of three models the ranking comes first."""
    forget_proxies(monkeypatch)
    store = opened(tmp_path)
    for seed in _PAGES:
        random_run(store, seed)
    service = HttpService(ServerConfig(store=str(tmp_path / "evenhand.db"), port=0))
    service.start()
    try:
        yield Visitor(service), store
    finally:
        service.close()
        store.close()


def test_pages_say_what_the_gate_rules(visited: tuple[Visitor, Store]) -> None:
    visitor, store = visited
    claims = Counter[str]()
    for run in store.runs.page(limit=100):
        found = conclude(store, run.name)
        (own,), (check,) = found.conclusions, judge_gate(found).checks
        path = f"/runs/{run.id}"
        pages = {"en": visitor.wait(path, lambda page: "still calculating" not in page.text)}
        pages["zh"] = visitor.see(path, language="zh")
        for language, page in pages.items():
            headline = _bare(page.by_id("result").text)
            assert headline == render(own.messages[0], "zh" if language == "zh" else "en")
            claim = claim_of(headline)
            assert claim == "accuracy" or check.ruling == _RULED[claim]
        claims[claim] += 1
        if check.rate is not None:
            shown = re.search(
                rf"Win rate of {own.names[0]}\s*: ({_ENDS}) ?%", _bare(pages["en"].text)
            )
            assert shown is not None
            assert near(shown[1], check.rate)
    assert set(claims) == {"better", "worse", "none", "accuracy"}


def _bare(text: str) -> str:
    """Without the marks that keep names apart from the text around them."""
    return re.sub(r"\s+", " ", re.sub("[\u2068\u2069]", "", text)).strip()
