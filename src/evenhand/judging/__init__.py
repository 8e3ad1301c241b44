"""One comparison, in the order in which data meets it: `config` says how to judge, `comparison` is
the heart, `passes` asks each order, `ballots` reads a completion with `answers`, `reconciliation`
and `explanation` make one verdict of the ballots, `signals` says what it shows of how sure it is,
`notes` adds what any reader should know of the pair; `criteria` asks a judge to suggest some.
"""
