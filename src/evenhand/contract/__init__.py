"""The types that evenhand's callers see, and their JSON. `docs/contract.md` explains each field.

`pair` is what a caller gives, `ballot` what one pass says, `verdict` what all of them come to;
`labels` exchanges A and B, `model` is how every type behaves, `json_text` guards JSON from
outside.
"""

from evenhand.contract.ballot import (
    Analysis,
    Ballot,
    CriterionBallot,
    Probabilities,
    ResponseAnalysis,
    Scores,
    Unread,
    UnreadKind,
)
from evenhand.contract.labels import (
    ORDERS,
    WINNERS,
    Locale,
    Mode,
    Order,
    Winner,
    flip,
    flip_or_none,
    other_order,
    rename,
)
from evenhand.contract.message import ChatMessage, Segment
from evenhand.contract.pair import Criterion, Pair, criterion_key, read_criteria, read_pair
from evenhand.contract.verdict import (
    ConfidenceSource,
    CriterionOutcome,
    CriterionVerdict,
    DecidedBy,
    Differentiators,
    ErrorBody,
    Failure,
    MeanProbabilities,
    Metadata,
    Outcome,
    Pass,
    PositionConsistency,
    Reconciling,
    Usage,
    Verdict,
)

__all__ = [
    "ORDERS",
    "WINNERS",
    "Analysis",
    "Ballot",
    "ChatMessage",
    "ConfidenceSource",
    "Criterion",
    "CriterionBallot",
    "CriterionOutcome",
    "CriterionVerdict",
    "DecidedBy",
    "Differentiators",
    "ErrorBody",
    "Failure",
    "Locale",
    "MeanProbabilities",
    "Metadata",
    "Mode",
    "Order",
    "Outcome",
    "Pair",
    "Pass",
    "PositionConsistency",
    "Probabilities",
    "Reconciling",
    "ResponseAnalysis",
    "Scores",
    "Segment",
    "Unread",
    "UnreadKind",
    "Usage",
    "Verdict",
    "Winner",
    "criterion_key",
    "flip",
    "flip_or_none",
    "other_order",
    "read_criteria",
    "read_pair",
    "rename",
]
