"""
Fetch a value that many requests need, once at a time, and remember a failure.

Strangers can make the service ask an identity provider: their tokens name keys that nobody knows.
If the provider is slow, only one thread may wait for it and a few for that thread; all others are
answered at once. Thread-safe.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from ground.errors import RemoteError, UnreachableError

WAITERS_MAX = 4
"""Bound on the threads that wait for an identity provider."""
WAIT_S = 12.0

Value = TypeVar("Value")


class SingleFlight(Generic[Value]):
    """The last fetched value, and the fetch under way."""

    def __init__(self, fetch: Callable[[], Value], *, kept_s: Callable[[], float]) -> None:
        """
        Prepare; nothing is fetched.

        Args:
            fetch: Fetches the value; called without a lock, by one thread at a time.
            kept_s: How long a value or a failure lasts before it is fetched again.
        """
        self._fetch, self._kept_s = fetch, kept_s
        self._state = threading.Condition()
        self._under_way = False
        self._waiting = 0
        self._ended_at: float | None = None
        self.value: Value | None = None
        """The value fetched last; None: never."""
        self._failure: RemoteError | None = None

    def refresh(self) -> Value:
        """
        Return the value, fetched now unless that was tried moments ago.

        Raises:
            UnreachableError: It cannot be had, could not moments ago, or too many wait for it.
        """
        with self._state:
            if self._under_way:
                self._join()
            is_due = not self._is_recent()
            self._under_way = is_due
        if is_due:
            self._fly()
        if self._failure is not None:
            raise UnreachableError(str(self._failure), hint=self._failure.hint) from self._failure
        if self.value is None:
            raise RuntimeError("the fetch ended without a value")
        return self.value

    def _is_recent(self) -> bool:
        ended_at = self._ended_at
        return ended_at is not None and time.monotonic() - ended_at < self._kept_s()

    def _join(self) -> None:
        """Wait for the fetch under way; the caller holds the condition."""
        if self._waiting >= WAITERS_MAX:
            raise provider_busy()
        self._waiting += 1
        try:
            if not self._state.wait_for(lambda: not self._under_way, WAIT_S):
                raise provider_busy()
        finally:
            self._waiting -= 1

    def _fly(self) -> None:
        value, failure = self.value, None
        try:
            value = self._fetch()
        except RemoteError as error:
            failure = error
        finally:
            with self._state:
                self.value, self._failure = value, failure
                self._ended_at, self._under_way = time.monotonic(), False
                self._state.notify_all()


def provider_busy() -> UnreachableError:
    """Make the error for a request that would have to wait behind others."""
    return UnreachableError(
        "the identity provider is slow, and others wait for it already",
        hint="send the request again in a few seconds",
    )
