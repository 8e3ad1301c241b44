"""Runs by a provider's batch API: requests are submitted, collected hours later, and settled.

`executor` repeats, for each judge: `polling` (what is at the provider), `settlement` (pairs
whose answers have come in), `submitting` (what is wanted next, written by `requests`). They
share a `context`.
"""
