"""Runs by a provider's batch API: requests are submitted, collected hours later, and settled.

`executor` repeats, for each judge: `polling` (what is at the provider), settles pairs whose answers
have come in, and submits what is wanted next (`requests`). They share a `context`.
"""
