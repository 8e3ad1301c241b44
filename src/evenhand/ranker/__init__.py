"""Several responses to one prompt, ranked with the fewest comparisons.

`responses` asks, `merge_insertion` chooses comparisons, `ranking` makes places and notes of the
results.
"""
