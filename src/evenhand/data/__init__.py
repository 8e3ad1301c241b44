"""Files to pairs, and pairs to files; streamed, never whole in memory.

`source` and `remote` open files, streams and URLs; `tables` chooses among the modules of
`evenhand.formats`, which yield raw rows (`records`); `columns` finds their fields; `pairs`,
`outputs` (with `answers`), `battles` and `votes` make records of them; `llm_comparator` reads and
writes that tool's JSON; `frames` reads DataFrames. `options` is what a caller chooses, `orders`
draws the orders of pairs at random.
"""

from evenhand.data.llm_comparator import ComparatorExample, ComparatorRating, llm_comparator_blocks
from evenhand.data.options import ReadLimits, ReadOptions
from evenhand.data.orders import OrderDraw
from evenhand.data.outputs import OutputFile, read_outputs
from evenhand.data.pairs import ReadPosition, read_files, read_pairs, read_rows
from evenhand.data.records import BadRow, Record, Records, Unpaired
from evenhand.data.source import Source, file_digest, open_source, spool

__all__ = [
    "BadRow",
    "ComparatorExample",
    "ComparatorRating",
    "OrderDraw",
    "OutputFile",
    "ReadLimits",
    "ReadOptions",
    "ReadPosition",
    "Record",
    "Records",
    "Source",
    "Unpaired",
    "file_digest",
    "llm_comparator_blocks",
    "open_source",
    "read_files",
    "read_outputs",
    "read_pairs",
    "read_rows",
    "spool",
]
