"""Files to pairs, and pairs to files: one module a format, streamed, never whole in memory."""

from evenhand.data.llm_comparator import Example, Rating, write_llm_comparator
from evenhand.data.options import Limits, Reading
from evenhand.data.outputs import OutputFile, read_outputs
from evenhand.data.pairs import Place, pairs_from, read_files, read_pairs
from evenhand.data.record import BadRow, Record, Records, Unpaired
from evenhand.data.source import Source, file_digest, open_source, spool

__all__ = [
    "BadRow",
    "Example",
    "Limits",
    "OutputFile",
    "Place",
    "Rating",
    "Reading",
    "Record",
    "Records",
    "Source",
    "Unpaired",
    "file_digest",
    "open_source",
    "pairs_from",
    "read_files",
    "read_outputs",
    "read_pairs",
    "spool",
    "write_llm_comparator",
]
