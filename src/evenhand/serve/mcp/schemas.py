"""What the tools take and give: their input models, what agents are told of each, and short JSON
Schemas without references.
"""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

from pydantic import Field

from evenhand import tools
from evenhand.contract.model import Model
from evenhand.contract.pair import Text
from evenhand.serve.values import AuditRun, Criteria, ReportOptions, Rows, RunStateView

# As long as clients and proxies let a call take, and no longer.
MOST_WAIT_S = 300.0


class RunWanted(Model):
    run: Text = Field(description="The run's id, as startRun gave it, or its name")


class StatusWanted(RunWanted):
    wait_s: float = Field(
        default=0,
        ge=0,
        le=MOST_WAIT_S,
        allow_inf_nan=False,
        description="Wait up to so many seconds for the run to end, with progress on the way",
    )


class ReportWanted(ReportOptions, RunWanted):
    def options(self) -> ReportOptions:
        return ReportOptions.model_validate(self.model_dump(exclude={"run"}))


class AuditWanted(AuditRun):
    """A run by its id, or labelled pairs that are judged first."""

    run: Text | None = Field(  # type: ignore[assignment]  # one of the two is needed here
        default=None, description="A run's id or name; or give pairs"
    )
    pairs: Rows = Field(
        default=(),
        description="The contract's input each, with a label: A, B or TIE, by somebody to trust",
    )
    criteria: Criteria = Field(default=(), description="For pairs that have none of their own")

    def of_run(self, run: str, judge: str | None) -> AuditRun:
        known = self.model_dump(exclude={"pairs", "criteria"}) | {"run": run, "judge": judge}
        return AuditRun.model_validate(known)


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
        "pairwiseCompare in a loop. Give the pairs inline, with modelA and modelB to have them "
        "named, and criteria in each or once for all. Returns at once with the run's id. The same "
        "pairs and judge find the same run again; nothing is judged or paid for twice. Set "
        "maxCalls or maxCost to bound what it may spend.",
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
        "kappa, consistency between the orders, position and length bias, against simple "
        "baselines. Give run for a run whose pairs have labels, or labelled pairs inline (each "
        "with label), which are judged first, with progress. findings.word is trustworthy, with "
        "care, not trustworthy, too few labels, not shown (judged in one order) or not enough "
        "data; thresholds such as minAccuracy give a ruling: pass, fail or undecided. Do it "
        "before you rely on a judge.",
    ),
}


# The JSON Schemas of the tools: objects at the top, inputs without references, and short, since an
# agent's model reads all of them before it has done anything.

Schema = dict[str, Any]

_NUMBER_OR_NULL = {"type": ["number", "null"]}
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_COUNTS = ("pairs", "done", "winsA", "winsB", "ties", "inconsistent", "invalid", "pending", "calls")

# The contract's failure; what its metadata may hold stands in the schema of pairwiseCompare.
FAILURE: Schema = {
    "properties": {
        "success": {"const": False},
        "error": {"type": "object", "description": "kind, message, retryable"},
        "metadata": {"type": "object"},
    },
    "required": ["success", "error", "metadata"],
    "additionalProperties": False,
}

# Of the others, what an agent reads. They hold more, which the documentation explains, and
# their exact types would bring the statistics along before anybody has asked for them.
STATUS: Schema = {
    "properties": {
        "id": _TEXT,
        "name": _TEXT,
        "state": {"enum": list(get_args(RunStateView))},
        **{name: {"type": "integer"} for name in _COUNTS},
        "costUsd": _NUMBER_OR_NULL,
        "remainingS": _NUMBER_OR_NULL,
        "stoppedBy": {"type": ["string", "null"]},
        "error": {"type": ["object", "null"]},
        "notes": _TEXTS,
    },
    "required": ["id", "name", "state", *_COUNTS, "costUsd", "stoppedBy", "error", "notes"],
}
RANKING: Schema = {
    "properties": {
        "success": {"const": True},
        "ranking": {
            "type": "array",
            "description": "Best first; those not told apart share their ranks",
            "items": {
                "type": "object",
                "properties": {
                    "index": {"type": "integer"},
                    "rankFrom": {"type": "integer"},
                    "rankTo": {"type": "integer"},
                },
                "required": ["index", "rankFrom", "rankTo"],
            },
        },
        "neighbours": {"type": "array", "description": "What each step of the order rests on"},
        "comparisons": {"type": "array"},
        "contradictions": {"type": "array"},
        "notes": _TEXTS,
        "metadata": {"type": "object"},
    },
    "required": ["success", "ranking", "neighbours", "comparisons", "notes", "metadata"],
}
REPORT: Schema = {
    "properties": {
        "run": {"type": "object", "description": "What it was, took and cost"},
        "conclusions": {
            "type": "object",
            "properties": {
                "state": _TEXT,
                "pairs": {"type": "integer"},
                "pending": {"type": "integer"},
                "conclusions": {
                    "type": "array",
                    "description": "One for each judge and two models",
                    "items": {
                        "type": "object",
                        "properties": {
                            "judge": _TEXT,
                            "winRate": {
                                "type": "object",
                                "description": "rate is null where reason says why",
                                "properties": {
                                    "side": {"enum": ["A", "B"]},
                                    "rate": _NUMBER_OR_NULL,
                                    "low": _NUMBER_OR_NULL,
                                    "high": _NUMBER_OR_NULL,
                                    "counts": {"type": "object"},
                                    "reason": {"type": ["string", "null"]},
                                },
                                "required": ["side", "rate", "low", "high", "counts"],
                            },
                        },
                        "required": ["judge", "winRate"],
                    },
                },
                "notes": _TEXTS,
            },
            "required": ["state", "pairs", "pending", "conclusions", "notes"],
        },
    },
    "required": ["run", "conclusions"],
}
AUDIT: Schema = {
    "properties": {
        "findings": {
            "type": "object",
            "properties": {
                "word": _TEXT,
                "lines": _TEXTS,
                "ruling": {"enum": ["pass", "fail", "undecided", None]},
                "checks": {"type": "array"},
            },
            "required": ["word", "lines", "ruling", "checks"],
        },
        "audit": {
            "type": "object",
            "description": "The figures: accuracy, kappa, consistency, place, length, …",
            "properties": {
                "judge": _TEXT,
                "n": {"type": "integer"},
                "accuracy": {"type": "object"},
                "disagreements": {"type": "array"},
            },
            "required": ["judge", "n", "accuracy", "disagreements"],
        },
        "run": {"type": "object", "description": "As of runStatus"},
    },
    "required": ["findings", "audit", "run"],
}


@cache
def input_schema(model: type[Model]) -> Schema:
    """Inlined, since not every client follows references; what may be null may be left out."""
    schema = tools.inlined_schema(model.model_json_schema(by_alias=True))
    schema.pop("description", None)
    return {**schema, "properties": _without_nulls(schema["properties"])}


def _without_nulls(properties: Schema) -> Schema:
    return {name: _without_null(field) for name, field in properties.items()}


def _without_null(field: Schema) -> Schema:
    kept = {key: value for key, value in field.items() if key != "default" or value is not None}
    choices = kept.get("anyOf", ())
    if len(choices) == 2 and choices[1] == {"type": "null"}:
        del kept["anyOf"]
        kept = {**choices[0], **kept}
    if isinstance(kept.get("items"), dict):
        kept["items"] = _without_null_inside(kept["items"])
    return kept


def _without_null_inside(schema: Schema) -> Schema:
    if "properties" in schema:
        return {**schema, "properties": _without_nulls(schema["properties"])}
    if "anyOf" in schema:
        return {**schema, "anyOf": [_without_null_inside(each) for each in schema["anyOf"]]}
    return schema


def compare_schema() -> Schema:
    """Of pairwiseCompare: the contract's output, rule by rule. Its words are in the contract, like
    what lies behind a verdict: each pass, and what was written beside them."""
    schema = tools.slim_schema(tools.output_schema(), described=False)
    defined = schema["$defs"]
    defined |= {name: {"type": "object"} for name in ("Artefact", "Pass")}
    for name in ("Ballot", "CriterionBallot", "Probabilities", "Scores", "Unread"):
        del defined[name]  # only passes have them
    return schema


def or_failure(schema: Schema) -> Schema:
    """What the tool gives, or the contract's failure."""
    return {"type": "object", "anyOf": [schema, FAILURE]}
