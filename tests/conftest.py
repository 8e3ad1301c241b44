"""The fixtures that the tests share."""

from servers import start_server
from transports import transport

__all__ = ["start_server", "transport"]
