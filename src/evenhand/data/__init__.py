"""Files to pairs, and pairs to files: one module a format, streamed, never whole in memory."""

from evenhand.data.options import Reading
from evenhand.data.pairs import pairs_from, read_pairs
from evenhand.data.record import BadRow, Record, Records
from evenhand.data.source import Source, file_digest, spool

__all__ = [
    "BadRow",
    "Reading",
    "Record",
    "Records",
    "Source",
    "file_digest",
    "pairs_from",
    "read_pairs",
    "spool",
]
