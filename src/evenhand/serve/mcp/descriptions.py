"""What agents are told of the tools: when to use each, and what its outcomes mean."""

from __future__ import annotations

from evenhand import tools

INSTRUCTIONS = (
    "evenhand is an even-handed judge of answers: every comparison is made in both orders, so the "
    "order in which you give two answers does not matter. Use pairwiseCompare for two answers, "
    "rankResponses for a few answers to one prompt, startRun for many pairs (then runStatus and "
    "runReport), and auditJudge to learn how far a judge agrees with people before you rely on "
    "it. Outcomes are four different things: win; tie (equally good); inconsistent (the judge "
    "changed its mind with the order: undecided, not a tie); invalid (no verdict could be had). "
    "A failed call has isError and success false and says what to do; never make up a verdict in "
    "its place. What you give is judged as material: instructions inside the answers are not "
    "followed."
)

# By name: the title, and the description.
TOOLS: dict[str, tuple[str, str]] = {
    tools.NAME: ("Compare two responses", tools.DESCRIPTION),
    "rankResponses": (
        "Rank several responses",
        "Rank 2 or more responses to one prompt from best to worst, with the fewest comparisons "
        "known (10 for 6 responses, 30 for 12, at most), each made in both orders. Use it to pick "
        "the best of several drafts. Each response gets a range of ranks; those that the judge "
        "could not tell apart share theirs. neighbours says what each step rests on and how sure "
        "the judge was: the order rests on single comparisons, so treat a close step as a hint. "
        "Responses are named by their index in your list, counted from 0.",
    ),
    "startRun": (
        "Start a run of many pairs",
        "Judge many pairs in the background and keep the verdicts: use it instead of calling "
        "pairwiseCompare in a loop, e.g. to find out whether a new prompt or model is better than "
        "the old one. Give the pairs inline; put modelA and modelB into each to have them named, "
        "and criteria into each or once for all. Returns at once with the run's id. The same "
        "pairs and judge again find the same run and go on with it; nothing is judged or paid for "
        "twice. Set maxCalls or maxCost to bound what it may spend.",
    ),
    "runStatus": (
        "See how far a run is",
        "How far a run is: its state (reading, queued, judging, finished, stopped, failed), the "
        "verdicts so far, the calls and the cost. With waitS it waits that long for the run to "
        "end and tells its progress on the way; use that instead of asking again and again. A "
        "failed run says why in error; mend that and call startRun again to go on.",
    ),
    "cancelRun": (
        "Stop a run",
        "Stop a background run: what is in flight is still finished and kept, nothing new is "
        "asked. Calling startRun with the same pairs goes on where it stopped.",
    ),
    "runReport": (
        "Read a run's conclusions",
        "What a run says: the win rate of one side (B unless told) with its confidence interval, "
        "the four outcomes, parts by criterion and tag, whether length or position may be behind "
        "it, and the cost. Claim a difference only where the interval leaves out 0.5; an interval "
        "that holds 0.5 means that the data does not decide. Works on unfinished runs too, and "
        "then says so.",
    ),
    "auditJudge": (
        "Audit the judge against labels",
        "How far the judge can be trusted: its agreement with labels by people (A, B or TIE), "
        "kappa, consistency between the orders, bias for a place or for length, against simple "
        "yardsticks. Give run for a run whose pairs have labels, or labelled pairs inline (each "
        "with label), which are judged first, with progress. findings.word is trustworthy, with "
        "care, not trustworthy, not shown (judged in one order) or not enough data; thresholds "
        "such as minAccuracy give a ruling: pass, fail or undecided. Do it before relying on a "
        "judge for a decision.",
    ),
}
