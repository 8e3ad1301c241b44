"""The fixtures that the tests share."""

from servers import start_server

__all__ = ["start_server"]
