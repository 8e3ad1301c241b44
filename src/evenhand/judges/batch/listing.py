"""Going back through a provider's list of batches, for one that was sent at a certain time."""

from __future__ import annotations

from evenhand.judges.batch.protocol import Sought

# Clocks differ; a batch that seems this much older than its submission is another one.
_CLOCKS_DIFFER_S = 3600.0
_OLDER_IN_A_ROW = 100


class Listing:
    """Newest first, as far as is documented; one out of its place ends nothing."""

    def __init__(self, sought: Sought) -> None:
        self._since = sought.sent_at - _CLOCKS_DIFFER_S
        self._in_a_row = 0

    def is_older(self, created_at: float) -> bool:
        """Of the next one in the list."""
        older = created_at < self._since
        self._in_a_row = self._in_a_row + 1 if older else 0
        return older

    @property
    def is_past(self) -> bool:
        """Whether all that follow are older, too."""
        return self._in_a_row >= _OLDER_IN_A_ROW
