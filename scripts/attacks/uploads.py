"""Attacks by uploads; see `scripts.attacks`."""

from __future__ import annotations

from scripts.attacks import Attack

ATTACKS: tuple[Attack, ...] = ()
