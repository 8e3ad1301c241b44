"""Attacks by outputs; see `scripts.attacks`."""

from __future__ import annotations

from scripts.attacks import Attack

ATTACKS: tuple[Attack, ...] = ()
