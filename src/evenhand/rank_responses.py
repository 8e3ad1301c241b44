"""Several responses to one prompt, ranked with the fewest comparisons."""
