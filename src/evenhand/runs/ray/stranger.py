"""Whether Ray may be what listens at an address. Ray itself tries for a minute, and prints what it
thinks of it."""

from __future__ import annotations

import os
import socket
import time

from evenhand.errors import ClusterError

_ANSWERS_WITHIN_S = 10.0
# Ray speaks gRPC, and that is HTTP/2 (RFC 9113, 3.4): each side begins with a frame of settings.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_FRAME_HEAD_BYTES = 9
_SETTINGS = 4
_NO_SETTINGS = bytes((0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0))


def refuse_stranger(address: str, *, within_s: float = _ANSWERS_WITHIN_S) -> None:
    """Raises ClusterError where nothing listens at HOST:PORT, or something that cannot be Ray."""
    host, colon, port = address.rpartition(":")
    if not (colon and port.isdigit()):
        return  # Ray has its own words for what is no address
    until = time.monotonic() + within_s
    try:
        with socket.create_connection((host.strip("[]"), int(port)), within_s) as connection:
            if os.environ.get("RAY_USE_TLS", "").lower() in ("1", "true"):
                return  # who it is shows behind its certificate, which Ray looks at
            connection.sendall(_PREFACE + _NO_SETTINGS)
            said = _first_bytes(connection, until)
    except TimeoutError:
        raise _refusal(address, f"nothing answers there within {within_s:g} s") from None
    except (OSError, OverflowError) as error:
        raise _refusal(address, getattr(error, "strerror", None) or str(error)) from None
    if len(said) < _FRAME_HEAD_BYTES or said[3] != _SETTINGS or any(said[5:]):
        raise _refusal(address, "what listens there is not Ray")


def _first_bytes(connection: socket.socket, until: float) -> bytes:
    """As many as a frame's head has, or fewer where the other side hangs up."""
    said = b""
    while len(said) < _FRAME_HEAD_BYTES:
        left_s = until - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        connection.settimeout(left_s)
        more = connection.recv(_FRAME_HEAD_BYTES - len(said))
        if not more:
            break
        said += more
    return said


def _refusal(address: str, why: str) -> ClusterError:
    return ClusterError(
        f"the Ray cluster at {address} cannot be joined: {why}; give the address that ray start "
        "--head told, or leave out --ray-address"
    )
