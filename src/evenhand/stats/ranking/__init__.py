"""Rankings of many models. Columns of battles (`battles`) become sums for each pair (`tally`), a
fit (`bradley_terry`), limits and rank ranges (`uncertainty`) and a `Ranking` (`leaderboard`
makes it, `result` is it). `elo` is the other rating. `posterior` and `adaptive` choose which
pairs to compare next.
"""
