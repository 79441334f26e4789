"""How long our HTTP servers wait for a client."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClientTimeLimits:
    """How long a server waits for a request, and for its answer to be read."""

    headers_s: float = 15.0
    """From the first byte, or from the connection, to the last header."""
    body_s: float = 30.0
    """For a body; every `body_bytes` that arrive give as much time again."""
    body_bytes: int = 64 * 1024
    reading_s: float = 30.0
    """For a client that has to read before more can be sent to it."""


CLIENT_TIME_LIMITS = ClientTimeLimits()
