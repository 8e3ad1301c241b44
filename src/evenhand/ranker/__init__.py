"""Several responses to one prompt, ranked with the fewest comparisons.

`responses` asks, `merge_insertion` says which comparisons come next, `ranking` makes the places
and notes of what was heard.
"""
