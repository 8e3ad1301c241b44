"""One comparison, in the order in which data meets it: `config` says how to judge, `comparison` is
the heart, `preparation` has texts written beforehand, `passes` asks each order, `ballots` reads a
completion with `answers`, `reconciliation` makes a `decision` of the ballots, `signals` measures
how sure it is, and `explanation` adds prose and notes; `criteria` asks a judge to suggest some.
"""
