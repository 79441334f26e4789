"""
The delay before the forge reports whether a pull request can be merged.

Gitea checks in the background after every push to head or base, after a creation and after a failed
merge, for up to two seconds; until then a pull request is not mergeable and a merge request gets
"try again later". Here the result is computed at once but withheld for a fixed time, so that
clients see the same states. A restart forgets the running checks.

Tests hold and release it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

DELAY_S = 0.05


class Checks:
    """Which pull requests are being checked, by the id of their issue."""

    def __init__(self, delay_s: float = DELAY_S) -> None:
        self.delay_s = delay_s
        self._until: dict[int, float] = {}
        self._lock = threading.Lock()
        self._held = 0

    def start(self, pull_id: int) -> None:
        """Restart the check."""
        with self._lock:
            self._until[pull_id] = time.monotonic() + self.delay_s

    def running(self, pull_id: int) -> bool:
        """Say whether the check is still going on."""
        with self._lock:
            until = self._until.get(pull_id)
            if until is None or (not self._held and time.monotonic() >= until):
                self._until.pop(pull_id, None)
                return False
            return True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep all checks running inside the block."""
        with self._lock:
            self._held += 1
        try:
            yield
        finally:
            with self._lock:
                self._held -= 1
