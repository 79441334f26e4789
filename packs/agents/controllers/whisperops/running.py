"""
The life of a controller: pass after pass at an interval, while it leads, until told to end.

SIGTERM and SIGINT end it after the write that is under way; the Lease is given back, so that the
next one need not wait. A pass that raises is a bug: it is logged, counted as failed, and the
next one is tried all the same.

Called by ``commands``.
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
from orderkit.ports.clock import Clock
from whisperops.leading import Leadership

logger = logging.getLogger(__name__)


class Work(Protocol):
    """One pass. `going` is asked before each write."""

    def __call__(self, going: Callable[[], bool], /) -> object: ...


@dataclass(slots=True)
class Loop:
    """Runs passes. `leadership` None: always lead."""

    work: Work
    clock: Clock
    interval_s: float
    leadership: Leadership | None = None
    hang_s: float = 600.0
    """How long a turn may take before the controller counts as hanging."""
    ending: threading.Event = field(default_factory=threading.Event)
    _turned_s: float | None = None
    _begun_s: float | None = None

    def leads(self) -> bool:
        return self.leadership is None or self.leadership.held()

    def going(self) -> bool:
        """Say whether the pass that is under way may go on writing."""
        return not self.ending.is_set() and self.leads()

    def alive(self) -> bool:
        """Say whether turns still end."""
        begun_s = self._begun_s
        return begun_s is None or self.clock.monotonic_s() - begun_s < self.hang_s

    def ready(self) -> bool:
        """Say whether a first turn ended."""
        return self._turned_s is not None

    def run(self) -> None:
        """Run until `ending` is set; give the Lease back."""
        if self.leadership is not None:
            self.leadership.start()
        try:
            while not self.ending.is_set():
                self._turn()
                self.ending.wait(self._pause_s())
        finally:
            if self.leadership is not None:
                self.leadership.release()

    def _turn(self) -> None:
        self._begun_s = self.clock.monotonic_s()
        if self.leads():
            try:
                self.work(self.going)
            except Exception:
                logger.exception("the pass failed by a bug; the next one is tried all the same")
        self._turned_s, begun_s = self.clock.monotonic_s(), self._begun_s
        self._begun_s = None
        logger.debug("a turn took %.2f s", self._turned_s - begun_s)

    def _pause_s(self) -> float:
        """Return how long to wait: who does not lead looks more often."""
        return self.interval_s if self.leads() else min(self.interval_s, 1.0)


@contextlib.contextmanager
def ended_by_signals(ending: threading.Event) -> Iterator[None]:
    """Let SIGTERM and SIGINT set `ending` meanwhile. Main thread only."""

    def end(number: int, _frame: object) -> None:
        logger.info("%s: ending", signal.Signals(number).name)
        set_by_signal(ending)

    with asked_to_end(end):
        yield
