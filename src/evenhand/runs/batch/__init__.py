"""Runs through a provider's batch API: requests are submitted, collected hours later, and settled.

`executor` repeats for each judge: `polling` collects what is at the provider, pairs with all
answers are settled, and the next requests (`requests`) are submitted. They share a `context`.
"""
