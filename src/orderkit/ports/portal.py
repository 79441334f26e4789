"""
The portal: where scaffolder steps send their HTTP requests.

It has the one call that the action ``http:backstage:request`` needs. The adapter
``adapters.backstage`` answers from a real portal or from targets configured beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PortalResponse:
    """An answer, whatever its status. Header names are lower case; unusual ones are left out."""

    code: int
    headers: Mapping[str, str]
    body: bytes


class Portal(Protocol):
    """HTTP through the portal, with the credentials it adds."""

    def request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: float = 60.0,
    ) -> PortalResponse:
        """
        Send one request and return its answer, failures of the service and redirects included.

        Args:
            path: Below the portal, for example ``/proxy/orderkit/v1/orders``; a query may follow.
            headers: The portal's proxy lets through what it is set up for, and adds its own.

        Raises:
            UnreachableError: Nobody answers in time.
            RemoteError: The answer is too large.
            InvalidInputError: The path climbs, or names no endpoint that is configured.
        """
        ...
