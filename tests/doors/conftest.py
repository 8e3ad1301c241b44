"""The fixtures of the doors' tests."""

from command_line import command

__all__ = ["command"]
