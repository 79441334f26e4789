"""
The main loop of a controller: one pass per interval, only while it leads, until it has to stop.

A pass that raises has a bug: the exception is logged and the next pass runs anyway. After
``stop_requested`` is set, the loop ends as soon as the current pass returns, and gives up the
Lease so that the next leader need not wait.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from orderkit.cli.signals import asked_to_end, set_by_signal
from orderkit.flows.leader_election import LeaderElection
from orderkit.ports.clock import Clock

logger = logging.getLogger(__name__)
_STANDBY_INTERVAL_S = 1.0
"""How often a controller that does not lead checks whether it may start."""


class Work(Protocol):
    """One pass. It asks `may_continue` before each write and returns early if that is False."""

    def __call__(self, may_continue: Callable[[], bool], /) -> object: ...


@dataclass(slots=True)
class Loop:
    """Runs passes. Without an `election` the loop always works."""

    work: Work
    clock: Clock
    interval_s: float
    election: LeaderElection | None = None
    hang_s: float = 600.0
    """How long a pass may take until `alive` returns False."""
    stop_requested: threading.Event = field(default_factory=threading.Event)
    _finished_s: float | None = None
    _started_s: float | None = None

    def is_leader(self) -> bool:
        return self.election is None or self.election.is_leader()

    def may_continue(self) -> bool:
        """Return whether the current pass may go on writing."""
        return not self.stop_requested.is_set() and self.is_leader()

    def alive(self) -> bool:
        """Return False once the current pass has taken longer than `hang_s`."""
        started_s = self._started_s
        return started_s is None or self.clock.monotonic_s() - started_s < self.hang_s

    def ready(self) -> bool:
        """Return whether the first turn has ended."""
        return self._finished_s is not None

    def run(self) -> None:
        """Run until `stop_requested` is set; then give up the Lease."""
        if self.election is not None:
            self.election.start()
        try:
            while not self.stop_requested.is_set():
                self._turn()
                self.stop_requested.wait(self._pause_s())
        finally:
            if self.election is not None:
                self.election.release()

    def _turn(self) -> None:
        self._started_s = self.clock.monotonic_s()
        if self.is_leader():
            try:
                self.work(self.may_continue)
            except Exception:
                logger.exception("a bug ended this pass; the next pass runs anyway")
        self._finished_s, started_s = self.clock.monotonic_s(), self._started_s
        self._started_s = None
        logger.debug("the turn took %.2f s", self._finished_s - started_s)

    def _pause_s(self) -> float:
        return self.interval_s if self.is_leader() else min(self.interval_s, _STANDBY_INTERVAL_S)


@contextlib.contextmanager
def stop_on_signals(stop_requested: threading.Event) -> Iterator[None]:
    """Set `stop_requested` on SIGTERM or SIGINT, inside the ``with`` block. Main thread only."""

    def stop(number: int, _frame: object) -> None:
        logger.info("stopping after %s", signal.Signals(number).name)
        set_by_signal(stop_requested)

    with asked_to_end(stop):
        yield
