"""The fixtures that the commands' tests share."""

from command_line import command

__all__ = ["command"]
