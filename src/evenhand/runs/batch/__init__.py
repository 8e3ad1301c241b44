"""Runs by a provider's batch API: passes are submitted, collected hours later, and settled."""
