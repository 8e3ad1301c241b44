"""Texts to tokens, roughly: for estimates and pacing, never for bills."""

from __future__ import annotations

# Measured orders of magnitude for current tokenizers: English runs at about four characters a
# token, Chinese at a little more than one and a half.
_ASCII_CHARACTERS = 4.0
_OTHER_CHARACTERS = 1.6


def tokens_of(text: str) -> float:
    return len(text) / (_ASCII_CHARACTERS if text.isascii() else _OTHER_CHARACTERS)
