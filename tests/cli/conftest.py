"""The fixtures that the commands' tests share."""

from command_line import command
from postgres_server import empty_database, postgres

__all__ = ["command", "empty_database", "postgres"]
