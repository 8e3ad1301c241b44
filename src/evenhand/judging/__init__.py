"""One comparison, in the order in which data meets it: `config` says how to judge, `comparison` is
the heart, `passes` asks each order, `ballots` reads a completion with `answers`, `ballot_set`,
`reconciliation` and `explanation` make one verdict of the ballots, `notes` adds what any reader
should know of the pair.
"""
