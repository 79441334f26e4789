"""
Tokens that Orderkit itself issued to programs: one file with their digests.

Its shape is ``core.platform.service_access``'s.

The file is read again when it changes, so that clients can be added or removed while the service
runs. Thread-safe.
"""

from __future__ import annotations

import secrets
import threading
from pathlib import Path

from ground.errors import InvalidInputError, UnreachableError
from orderkit.core.platform.service_access import Client, digest_of, read_clients
from orderkit.ports.clock import Clock
from orderkit.ports.requesters import Requester, UnprovedError

PREFIX = "okt_"
"""Prefix of our tokens, so that secret scanners recognise them."""


def new_token() -> str:
    """Return a random token (256 bits)."""
    return PREFIX + secrets.token_urlsafe(32)


class TokenRequesters:
    """The clients of one file."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._clients: tuple[Client, ...] = ()

    def describe(self) -> str:
        """
        Say how many clients there are.

        Raises:
            UnreachableError: The file cannot be read.
        """
        return f"{len(self._read())} clients in {self._path}"

    def proved(self, authorization: str) -> Requester:
        """
        Return the client whose token this is.

        Raises:
            UnprovedError: No client has it, or it has expired.
            UnreachableError: The file cannot be read.
        """
        digest = digest_of(authorization.partition(" ")[2])
        # every digest, in constant time: the time of an answer tells nothing of a token
        clients = [c for c in self._read() if secrets.compare_digest(c.digest, digest)]
        if not clients:
            raise _unproved("no client of this service has this token")
        client = clients[0]
        if client.expires is not None and self._clock.now().date() > client.expires:
            raise _unproved(f"the token of client '{client.name}' expired on {client.expires}")
        return Requester(
            client.requester,
            f"token of client {client.name}",
            frozenset(f"group:default/{team}" for team in client.teams),
            client.rights,
            everywhere=client.platform,
        )

    def _read(self) -> tuple[Client, ...]:
        with self._lock:
            try:
                file_stat = self._path.stat()
                now = (file_stat.st_mtime_ns, file_stat.st_size, file_stat.st_ino)
                if now != self._seen:
                    text = self._path.read_text()
                    self._clients, self._seen = read_clients(text, name=self._path.name), now
            except (OSError, InvalidInputError) as error:
                # a file that cannot be read proves nobody, not even those whom it named before
                self._clients, self._seen = (), None
                raise UnreachableError(
                    f"the clients' file cannot be used: {error}",
                    hint="correct the file that service.access.tokensFile in platform.yaml names",
                ) from error
            return self._clients


def _unproved(why: str) -> UnprovedError:
    return UnprovedError(
        f"the requester is not proved: {why}",
        hint="create a new one: orderkit access add",
    )
