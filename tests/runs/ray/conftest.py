"""The fixtures of these tests."""

from ray_workers import crowd

__all__ = ["crowd"]
