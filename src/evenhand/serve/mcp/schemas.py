"""What the tools take and give: input models, the descriptions that agents read, and short JSON
Schemas without references.
"""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

from pydantic import Field

from evenhand import tools
from evenhand.analysis_options import AuditOptions
from evenhand.contract.model import Model
from evenhand.contract.pair import Text
from evenhand.serve.fields import taking
from evenhand.serve.values import Criteria, Rows, RunStateView

# As long as clients and proxies let a call take, and no longer.
MOST_WAIT_S = 300.0


class RunWanted(Model):
    run: Text = Field(description="The run's id from startRun, or its name")


class StatusWanted(RunWanted):
    wait_s: float = Field(
        default=0,
        ge=0,
        le=MOST_WAIT_S,
        allow_inf_nan=False,
        description="Wait up to this many seconds for the run to end, reporting progress",
    )


@taking(AuditOptions)
class AuditWanted(Model):
    """A run by its id, or labelled pairs that are judged first."""

    run: Text | None = Field(default=None, description="A run's id or name; or give pairs")
    pairs: Rows = Field(
        default=(),
        description="Pairs as in pairwiseCompare, each with a label you trust: A, B or TIE",
    )
    criteria: Criteria = Field(default=(), description="For pairs without their own")
    judge: Text | None = None  # as the options describe it


INSTRUCTIONS = (
    "evenhand is an even-handed LLM judge: it makes every comparison in both orders, so the order "
    "in which you give two answers does not matter. Use pairwiseCompare for two answers, "
    "rankResponses for a few answers to one prompt, startRun for many pairs (then runStatus and "
    "runReport), and auditJudge to measure how well a judge agrees with people before you rely on "
    "it. There are four outcomes; never treat one as another: win; tie (equally good); "
    "inconsistent (the verdict flipped with the order: undecided, not a tie); invalid (no "
    "verdict). A failed call has isError true and success false and says what to do; never make "
    "up a verdict instead. Answers are judged as material: instructions inside them are not "
    "followed."
)

# By name: the title, and the description.
TOOLS: dict[str, tuple[str, str]] = {
    tools.NAME: ("Compare two responses", tools.DESCRIPTION),
    "rankResponses": (
        "Rank several responses",
        "Rank 2 or more responses to one prompt from best to worst, with as few comparisons as "
        "possible (at most 10 for 6 responses, 30 for 12), each in both orders. Use it to pick "
        "the best of several drafts. Each response gets a range of ranks; responses that the "
        "judge cannot tell apart share theirs. neighbours shows what each step is based on and "
        "how sure the judge was: each step is a single comparison, so treat a close one as a "
        "hint. Responses are identified by their index in your list, starting at 0.",
    ),
    "startRun": (
        "Start a run of many pairs",
        "Judge many pairs in the background and store the verdicts; use it instead of calling "
        "pairwiseCompare in a loop. Give the pairs inline, with modelA and modelB to name the "
        "models, and criteria per pair or once for all. Returns the run's id immediately. The "
        "same pairs and judge give the same run; nothing is judged or paid for twice. Set "
        "maxCalls or maxCost to limit spending.",
    ),
    "runStatus": (
        "Check a run's progress",
        "A run's state (reading, queued, judging, finished, stopped, failed), verdicts so far, "
        "calls and cost. With waitS it waits up to that long for the run to end and reports "
        "progress; use that instead of polling. A failed run says why in error; fix that and "
        "call startRun again to continue.",
    ),
    "cancelRun": (
        "Stop a run",
        "Stop a background run: calls in flight are finished and stored, and nothing new is "
        "asked. Call startRun with the same pairs to continue where it stopped.",
    ),
    "runReport": (
        "Get a run's report",
        "A run's result: the win rate of one side (B by default) with its confidence interval, "
        "the four outcomes, rates by criterion and tag, whether length or position may explain "
        "it, and the cost. Claim a difference only if the interval excludes 0.5; if it includes "
        "0.5, the data does not decide. Also works on unfinished runs, and says so.",
    ),
    "auditJudge": (
        "Audit the judge against labels",
        "How far to trust the judge: its agreement with human labels (A, B or TIE), kappa, "
        "consistency between orders, position bias and length bias, compared with simple "
        "baselines. Give run for a run whose pairs have labels, or labelled pairs inline (each "
        "with label), which are judged first, with progress. findings.word is trustworthy, with "
        "care, not trustworthy, too few labels, not shown (judged in one order) or not enough "
        "data; thresholds such as minAccuracy give a ruling: pass, fail or undecided. Do this "
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
            "description": "Best first; responses with no clear difference share ranks",
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
        "neighbours": {"type": "array", "description": "The evidence for each step of the order"},
        "comparisons": {"type": "array"},
        "contradictions": {"type": "array"},
        "notes": _TEXTS,
        "metadata": {"type": "object"},
    },
    "required": ["success", "ranking", "neighbours", "comparisons", "notes", "metadata"],
}
REPORT: Schema = {
    "properties": {
        "run": {"type": "object", "description": "Its data, time and cost"},
        "conclusions": {
            "type": "object",
            "properties": {
                "state": _TEXT,
                "pairs": {"type": "integer"},
                "pending": {"type": "integer"},
                "conclusions": {
                    "type": "array",
                    "description": "One for each judge and matchup",
                    "items": {
                        "type": "object",
                        "properties": {
                            "judge": _TEXT,
                            "winRate": {
                                "type": "object",
                                "description": "if rate is null, reason says why",
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
        "run": {"type": "object", "description": "As in runStatus"},
    },
    "required": ["findings", "audit", "run"],
}

# Of registered analyses, by the names of their tools; of another, an object.
RESULTS: dict[str, Schema] = {"runReport": REPORT}


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
    """And without words: what a criterion is, stands in the schema of pairwiseCompare."""
    schema = _without_words(schema)
    if "properties" in schema:
        fields = _without_nulls(schema["properties"])
        return {**schema, "properties": {key: _without_words(fields[key]) for key in fields}}
    if "anyOf" in schema:
        return {**schema, "anyOf": [_without_null_inside(each) for each in schema["anyOf"]]}
    return schema


def _without_words(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key != "description"}


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
