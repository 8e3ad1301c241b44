"""A run's win rates with their intervals, by criterion and tag too; the effects of length and
position; what abstained; what the run took and is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pydantic import Field

from evenhand.analyses.registry import AnalysisSubject
from evenhand.analysis_options import ReportOptions
from evenhand.blocks import (
    Block,
    Facts,
    Finding,
    NoteLines,
    Rate,
    Rates,
    Remark,
    Sentence,
    Title,
    Tone,
)
from evenhand.contract.model import Model
from evenhand.judges.addresses import AddressRedactor
from evenhand.messages import Message, chained, joined
from evenhand.messages.numbers import dollars, rate
from evenhand.quantities import (
    counted,
    counted_share,
    interval,
    rate_with_interval,
)
from evenhand.report.conclusions import Conclusion, ConclusionLimits, Conclusions, conclude
from evenhand.report.manifest import Manifest, manifest_of
from evenhand.report.run import RunReport, report_run

if TYPE_CHECKING:
    from evenhand.report.abstentions import Abstentions
    from evenhand.report.claims import ClaimedRate
    from evenhand.report.conclusions import GroupRate, SideRate

# With more of them each one's own page would be a book.
_WHOLE_AT_MOST = 4
_PARTS_AT_MOST = 12
_PRIVATE_SETTINGS = frozenset({"base_url"})
_DIGITS = 12
_OUTCOMES = ("wins", "losses", "ties", "inconsistent", "invalid")


class Report(Model):
    """A run's outcomes and cost, its conclusions, and on the command line its manifest."""

    run: RunReport
    conclusions: Conclusions
    manifest: Manifest | None = Field(default=None, exclude_if=lambda value: value is None)


Result = Report


def compute(subject: AnalysisSubject, options: ReportOptions) -> Report:
    """What is not given is as [gate] of the config file says."""
    store, name = subject.store, subject.run.name
    options = options.over(asdict(subject.settings.gate))
    return Report(
        run=report_run(store, name),
        conclusions=conclude(
            store,
            name,
            side=options.side,
            ties=options.ties,
            level=options.level,
            limits=ConclusionLimits.of(options),
            families=subject.settings.families,
        ),
        manifest=manifest_of(store, name),
    )


def concluded(result: Report, subject: AnalysisSubject) -> Conclusions:
    """What its HTML file shows."""
    return result.conclusions


def redact(result: Report, hide: str) -> Report:
    return Report(
        run=without_addresses(result.run, hide),
        conclusions=result.conclusions.model_copy(update={"store": hide}),
    )


def without_addresses(report: RunReport, hide: str) -> RunReport:
    """As others may read it."""
    judges = tuple(
        judge.model_copy(update={"settings": _public(judge.settings)}) for judge in report.judges
    )
    redactors = {judge.judge: AddressRedactor.of_record(judge.settings) for judge in report.judges}
    invalid = tuple(
        pair.model_copy(update={"message": redactors[pair.judge](pair.message)})
        for pair in report.invalid_pairs
    )
    plan = dict(report.plan)
    if sides := plan.get("data", {}).get("sides"):  # models that answered, by all they depend on
        plan["data"] = {**plan["data"], "sides": [_public(side) for side in sides]}
    return report.model_copy(
        update={"store": hide, "plan": plan, "judges": judges, "invalid_pairs": invalid}
    )


def _public(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in _PRIVATE_SETTINGS}


def blocks(result: Report) -> Iterator[Block]:
    found = result.conclusions
    claims = found.conclusions
    yield Title(_title(found))
    for each in claims[:_WHOLE_AT_MOST]:
        yield Sentence(_sentence(each, several=len(found.judges) > 1), strong=True)
    if len(claims) > _WHOLE_AT_MOST:
        yield Sentence(Message("report.more_below", n=len(claims) - _WHOLE_AT_MOST))
    yield Facts(tuple(_about(result)))
    if len(claims) > 1:
        yield _comparisons(found)
    if len(claims) <= _WHOLE_AT_MOST:
        for each in claims:
            if len(claims) > 1:
                model, against = each.names
                values = {"model": model, "against": against, "judge": each.judge}
                yield Title(Message("report.judged_by", **values))
            yield from _conclusion(each)
    else:
        yield Remark(Message("report.rest_in_json"))
    yield from abstention_blocks(found.abstentions)
    if found.notes:
        yield NoteLines(found.notes)
    if result.manifest is not None:
        yield Facts(((Message("caption.made_by"), _made_by(result.manifest)),))


def _title(found: Conclusions) -> Message:
    state = Message(f"report.state_{found.state}")
    if found.state == "stopped" and found.stopped_by:
        state = Message("report.stopped_by", state=state, by=found.stopped_by)
    return Message("report.title", run=found.run, state=state)


def _sentence(claim: Conclusion, *, several: bool) -> str:
    sentence: str = joined(claim.messages) if claim.messages else claim.sentence
    if not several:
        return sentence
    return Message("report.sentence_of", sentence=sentence, judge=claim.judge)


def _about(result: Report) -> Iterator[tuple[str, str]]:
    found = result.conclusions
    yield Message("caption.compared"), _compared(found)
    spent = result.run.spent.cost_usd
    cost = Message("report.cost_unknown") if spent is None else dollars(spent)
    yield Message("caption.cost"), Message("report.cost", calls=result.run.calls, cost=cost)
    if not found.conclusions:
        missing = "pairs" if found.judges else "judges"
        yield Message("figure.win_rate"), Message(f"gate.no_{missing}", run=found.run)


def _compared(found: Conclusions) -> Message:
    sides = list(dict.fromkeys(each.names for each in found.conclusions))
    what: str = Message("report.nothing_yet")
    if len(sides) == 1:
        labels = found.side, "B" if found.side == "A" else "A"
        model, against = (
            name if name == label or name.endswith(f"({label})") else f"{name} ({label})"
            for name, label in zip(sides[0], labels, strict=True)
        )
        what = Message("gate.versus", model=model, against=against)
    elif sides:
        models = {name for names in sides for name in names}
        what = Message("report.matchups", models=len(models), n=len(sides))
    size = Message(
        "report.size",
        pairs=counted(found.pairs, "pair"),
        prompts=counted(found.prompts, "prompt"),
    )
    if found.pending:
        size = Message("report.and_pending", what=size, n=found.pending)
    if found.skipped_rows:
        skipped = counted(found.skipped_rows, "row")
        size = Message("report.and_skipped", what=size, rows=skipped)
    judges = list(found.judges) or [Message("report.nobody")]
    return Message("report.compared", what=what, judges=judges, size=size)


def _comparisons(found: Conclusions) -> Rates:
    judges = len(found.judges) > 1
    titles = (*(("judge",) if judges else ()), "model", "against")
    return Rates(
        tuple(Message(f"caption.{each}") for each in titles),
        Message("figure.win_rate"),
        outcome_titles(),
        tuple(
            rate_row(
                (*((each.judge,) if judges else ()), *each.names),
                each.win_rate,
                claims=each.claims,
                claimed=each.claimed,
            )
            for each in found.conclusions
        ),
    )


def outcome_titles() -> tuple[str, ...]:
    """Of the columns that a rate's counts stand in."""
    return tuple(Message(f"caption.{name}") for name in _OUTCOMES)


def rate_row(
    names: tuple[str, ...],
    own: SideRate,
    *,
    claims: bool = True,
    claimed: ClaimedRate | None = None,
) -> Rate:
    """A rate and its outcomes. `claims`: nothing holds back what its interval shows; `claimed` is
    shown in place of the judge's own, and has no test of its own."""
    shown = claimed or own
    outcomes = own.counts.ties, own.counts.inconsistent, own.counts.invalid
    counts = (*own.won_and_lost, *outcomes)
    if shown.rate is None or shown.low is None or shown.high is None:
        return Rate(names, text=Message("figure.not_enough"), counts=counts)
    by_labels = claimed is not None and claimed.estimator == "corrected"
    return Rate(
        names,
        shown.rate,
        shown.low,
        shown.high,
        tone=_tone(shown.low, claims and (claimed is not None or own.shows_difference)),
        text=Message("report.by_labels") if by_labels else "",
        counts=counts,
    )


def _tone(low: float, shown: bool) -> Tone:
    """Of an interval from here on, and whether a difference is shown."""
    if not shown:
        return "unclear"
    return "good" if low > 0.5 else "bad"


def _conclusion(claim: Conclusion) -> Iterator[Block]:
    yield Facts(tuple(_facts(claim)))
    rows = [*_parts(claim.by_criterion, claim)]
    if claim.by_tag:
        rows += [Rate((Message("caption.tag"),))] if rows else []
        rows += _parts(claim.by_tag, claim)
    if rows:
        first = Message("caption.criterion" if claim.by_criterion else "caption.tag")
        yield Rates((first,), Message("figure.win_rate"), outcome_titles(), tuple(rows))
    length, position = chained(_length(claim)), chained(_position(claim))
    yield Facts(((Message("caption.length"), length), (Message("caption.position"), position)))


def _facts(claim: Conclusion) -> Iterator[tuple[str, str | Rate]]:
    own = claim.win_rate
    yield Message("caption.outcomes"), _outcomes(claim)
    name, labelled = Message("figure.win_rate"), claim.claimed
    if claim.by_people and labelled.rate is not None:
        known = rate_with_interval(labelled.rate, labelled.low or 0.0, labelled.high or 1.0)
        yield name, Message("report.rate_by_labels", rate=known, level=labelled.level)
        name = Message("caption.judge")
    if own.rate is None or own.low is None or own.high is None:
        yield name, own.reason or Message("figure.not_enough")
    else:
        known = rate_with_interval(own.rate, own.low, own.high)
        yield name, Message("report.rate", rate=known, kind=_kind(claim), counting=counting_of(own))
        tone = _tone(own.low, own.shows_difference and claim.judge_claims)
        yield "", Rate((), own.rate, own.low, own.high, tone=tone)
    if (test := own.sign_test) is not None:
        won, lost = (test.wins_a, test.wins_b)[:: 1 if own.side == "A" else -1]
        values = {"p": test.p_value, "won": won, "lost": counted(lost, test.by)}
        yield Message("caption.sign_test"), Message("report.sign_test", **values)
    if claim.decision is not None and claim.account is not None:
        account, p = claim.account, claim.decision.p_value
        if p is not None:
            account = Message("report.decision", account=account, p=p)
        yield Message("caption.decision"), account
    if (worst := own.worst_case) is not None:
        worst_case = Message(
            "report.worst_case",
            missing=Message(
                f"report.missing_{'one' if own.missing == 1 else 'all'}", n=own.missing
            ),
            lost=rate(worst.rate_if_lost),
            won=rate(worst.rate_if_won),
            ends=interval(worst.low, worst.high),
        )
        yield Message("caption.worst_case"), worst_case


def _outcomes(claim: Conclusion) -> Message:
    counts, (won, lost) = claim.win_rate.counts, claim.win_rate.won_and_lost
    outcomes = Message(
        "report.outcomes",
        model=claim.names[0],
        against=claim.names[1],
        won=won,
        lost=lost,
        ties=counts.ties,
        inconsistent=counts.inconsistent,
        invalid=counts.invalid,
    )
    if not claim.pending:
        return outcomes
    return Message("report.outcomes_pending", outcomes=outcomes, n=claim.pending)


def counting_of(own: SideRate) -> Message:
    """How ties and flipped pairs are in the rate, and in its interval."""
    counting = Message(f"report.counting_{own.ties}")
    # Of pairs in one order nobody knows which would have flipped.
    if own.ties == "wins" or own.drawn_order:
        return counting
    return Message("report.counting_covered", counting=counting)


def _kind(claim: Conclusion) -> Message:
    own = claim.win_rate
    prompts = counted(own.prompts or 0, "prompt")
    if own.always_valid:
        sequential = claim.decision is not None and own.ties == "half"
        code = "sequential" if sequential else "always_valid"
        return Message(f"report.interval_{code}", level=own.level, prompts=prompts)
    method = "exact" if own.method == "exact" else "score"
    kind = Message(f"report.interval_{method}", level=own.level)
    if not own.clustered:
        return kind
    return Message("report.interval_clustered", interval=kind, prompts=prompts)


def _length(claim: Conclusion) -> Iterator[Message]:
    yield Message("report.longer_won", share=counted_share(claim.length.longer_wins))
    for each in claim.length.controlled:
        if each.rate is None or each.low is None or each.high is None:
            reason = each.reason or Message("figure.not_enough")
            yield Message("report.equal_length_unknown", reason=reason)
            continue
        known = rate_with_interval(each.rate, each.low, each.high)
        # The fit knows no other way to count them.
        code = "" if claim.win_rate.ties == "half" else "_ties_half"
        at_equal_length = Message(f"report.equal_length{code}", rate=known)
        if each.caution:
            at_equal_length = Message("chain.then", first=at_equal_length, then=each.caution)
        yield at_equal_length


def _position(claim: Conclusion) -> Iterator[Message]:
    position = claim.position
    if not position.pairs:
        yield Message("report.no_pair_in_both_orders")
        return
    yield Message("report.orders_agree", share=counted_share(position.consistency))
    if position.favours is not None:
        leaning = position.first_preference
        part = leaning.part if position.favours == "first" else leaning.of - leaning.part
        biased = Message(f"report.biased_to_{position.favours}", n=part, of=leaning.of)
        if position.p_value is not None:
            biased = Message("report.tested", what=biased, p=position.p_value)
        yield Message("report.alarm", what=biased) if position.alarm else biased
    elif position.first_preference.of == 0:
        yield Message("report.no_flips")
    elif position.reason is not None:
        yield Message("report.few_flips")
    elif position.p_value is not None:
        yield Message("report.tested", what=Message("report.no_bias"), p=position.p_value)


def _parts(parts: Sequence[GroupRate], claim: Conclusion) -> Iterator[Rate]:
    """The largest, where they are many; criteria in their order."""
    largest = sorted(range(len(parts)), key=lambda place: -parts[place].rate.n)[:_PARTS_AT_MOST]
    for place in sorted(largest):
        part = parts[place]
        yield rate_row((part.name,), part.rate, claims=claim.judge_claims)
    if len(parts) > _PARTS_AT_MOST:
        yield Rate((Message("figure.more", n=len(parts) - _PARTS_AT_MOST),))


def abstention_blocks(found: Sequence[Abstentions]) -> Iterator[Block]:
    """Verdicts that stand and that abstained, of each judge with a calibration."""
    for each in found:
        if len(found) > 1:
            yield Title(each.judge)
        yield Facts(tuple(_abstained(each)))
        warned = each.check is not None and each.check.contradicted
        for place, note in enumerate(each.notes, start=1):
            # The warning is the last of them.
            warns = warned and place == len(each.notes)
            label = Message("caption.warning" if warns else "caption.learned")
            yield Finding(label, note, "bad" if warns else "plain")


def _abstained(own: Abstentions) -> Iterable[tuple[str, str]]:
    code = "all_abstained" if own.threshold is None else "abstained_below"
    values = {"threshold": own.threshold, "agreement": own.min_agreement}
    limit = Message(f"report.{code}", part=own.abstained, of=own.judged, **values)
    kept, abstained = own.agreement_kept, own.agreement_abstained
    return (
        (Message("caption.abstained"), limit),
        (Message("caption.coverage"), counted_share(own.coverage)),
        (
            Message("caption.agreement"),
            Message("report.agreement_kept", share=counted_share(kept)),
        ),
        ("", Message("report.agreement_abstained", share=counted_share(abstained))),
    )


def _made_by(manifest: Manifest) -> Message:
    """Versions, models, prompts and the run in short; the manifest has all of it."""
    ours = [f"evenhand {each.get('evenhand')}" for each in manifest.environments]
    served = [name for judge in manifest.judges for name in judge.served_models]
    prompts = [
        Message("report.prompt", prompt=each.prompt) for each in manifest.judges if each.prompt
    ]
    fingerprint = Message("report.fingerprint", fingerprint=manifest.fingerprint[:_DIGITS])
    parts = list(dict.fromkeys([*ours, *served, *prompts, fingerprint]))
    return Message("report.made_by", parts=parts, run=manifest.run)
