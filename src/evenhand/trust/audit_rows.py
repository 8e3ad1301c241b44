"""The judged pairs of a run as an audit counts them: verdicts, passes and lengths, by rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.store import OutcomeColumns
from evenhand.store.columns import TIE, WIN_A, WIN_B
from evenhand.trust.biases import NONE, SAYS_A, SAYS_B, SAYS_TIE


@dataclass(frozen=True, slots=True)
class AuditRows:
    numbers: NDArray[np.int64]
    prompts: NDArray[np.int64]
    outcomes: NDArray[np.int8]
    verdicts: NDArray[np.int8]  # a winner; none where the pair is inconsistent or invalid
    labels: NDArray[np.int8]
    first: NDArray[np.int8]
    second: NDArray[np.int8]
    both_orders: NDArray[np.bool_]
    length_a: NDArray[np.int32]
    length_b: NDArray[np.int32]

    @classmethod
    def of(cls, columns: OutcomeColumns, labels: NDArray[np.int8] | None = None) -> AuditRows:
        """With the data's own labels, unless others are given."""
        outcomes = np.asarray(columns.outcome, dtype=np.int8)
        verdict_of = np.full(5, NONE, dtype=np.int8)
        verdict_of[[WIN_A, WIN_B, TIE]] = SAYS_A, SAYS_B, SAYS_TIE
        return cls(
            numbers=np.asarray(columns.number, dtype=np.int64),
            prompts=np.asarray(columns.prompt_key),
            outcomes=outcomes,
            verdicts=verdict_of[outcomes],
            labels=np.asarray(columns.label, dtype=np.int8) if labels is None else labels,
            first=np.asarray(columns.first_winner, dtype=np.int8),
            second=np.asarray(columns.second_winner, dtype=np.int8),
            both_orders=np.asarray(columns.both_orders, dtype=np.bool_),
            length_a=np.asarray(columns.length_a),
            length_b=np.asarray(columns.length_b),
        )

    @property
    def labelled(self) -> NDArray[np.bool_]:
        known: NDArray[np.bool_] = self.labels != NONE
        return known

    @property
    def one_sided(self) -> bool:
        """Whether both orders were shown, and every label names the same response: as where one
        column holds the chosen one."""
        side, shown = self.labels[self.labelled], self.both_orders[self.labelled]
        alike = bool(side.size) and side[0] in (SAYS_A, SAYS_B) and bool((side == side[0]).all())
        return alike and bool(shown.all())

    def only(self, chosen: NDArray[Any]) -> AuditRows:
        return AuditRows(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))
