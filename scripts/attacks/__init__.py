"""Attacks on evenhand, each a function that tries one and reports what it measured.

A module a target: `answers` (hostile completions), `uploads` (hostile data), `service` (hostile
clients), `outputs` (what may reach a store, a terminal or a page). Each has `ATTACKS`, in the order
in which docs/security.md lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """`figure` is what was measured, with its limit: "peak 61 MB above idle (limit 200)"."""

    held: bool
    figure: str


@dataclass(frozen=True, slots=True)
class Attack:
    """`name` is a line of docs/security.md; `run` is called in a process of its own."""

    name: str
    run: Callable[[], Outcome]
    limit_s: float = 120.0
