"""The fixtures that the tests share."""

from recorded import recorded_data
from servers import start_server
from transports import transport

__all__ = ["recorded_data", "start_server", "transport"]
