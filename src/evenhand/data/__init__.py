"""Files to pairs, and pairs to files; streamed, never whole in memory.

`source` and `remote` open files, streams and URLs; `tables` chooses among the modules of
`evenhand.formats`, which yield raw rows (`records`); `columns` finds their fields; `pairs`,
`outputs` (with `answers`), `battles` and `votes` make records of them; `llm_comparator` reads and
writes that tool's JSON; `frames` reads DataFrames. `options` is what a caller chooses, `orders`
draws the orders of pairs at random.
"""
