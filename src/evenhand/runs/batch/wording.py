"""Counts in words."""

from __future__ import annotations


def counted_requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count:,} requests"


def counted_batches(count: int) -> str:
    return "1 batch" if count == 1 else f"{count:,} batches"
