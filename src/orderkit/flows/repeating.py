"""
Repeat: wait for a condition, make a lost write again, work in a thread until it is stopped.

`until` waits for a condition with a deadline and does not hide the last reason why it does not
hold. `in_rounds` repeats a compare-and-swap that another writer won. `WorkerThread` works until it
is stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from ground.errors import ConflictError, IncompleteError
from orderkit.core.telemetry import count
from orderkit.ports.clock import Clock

T = TypeVar("T")

POLL_S = 0.05
_POLL_LONGEST_S = 1.0


def until(
    clock: Clock,
    look: Callable[[], T],
    is_done: Callable[[T], bool],
    *,
    is_hopeless: Callable[[T], bool] = lambda _: False,
    timeout_s: float,
    goal: str,
    why_not: Callable[[T], str] = lambda _: "",
    advice: Callable[[T], str] = lambda _: "",
    on_look: Callable[[T], object] = lambda _: None,
    on_wait: Callable[[str], object] | None = None,
) -> T:
    """
    Look until `is_done`, first often, then once a second; return the last state.

    Args:
        on_wait: Told after each look what is waited for, and why it is not there yet.

    Raises:
        IncompleteError: `timeout_s` passed, or waiting `is_hopeless`; the message says `goal` and
            `why_not`, its hint `advice`.
    """
    deadline = clock.monotonic_s() + timeout_s
    pause_s = POLL_S
    while True:
        state = look()
        on_look(state)
        if is_done(state):
            return state
        if is_hopeless(state):
            raise IncompleteError(f"{goal} does not happen: {why_not(state)}", hint=advice(state))
        if on_wait is not None:
            on_wait(": ".join(filter(None, (goal, why_not(state)))))
        if clock.monotonic_s() >= deadline:
            reason = why_not(state)
            going_on = "repeat the same command to continue, or look with 'orderkit trace'"
            raise IncompleteError(
                f"{goal} did not happen within {timeout_s:g} s" + (f": {reason}" if reason else ""),
                hint="; ".join(filter(None, (advice(state), going_on))),
            )
        clock.sleep(pause_s)
        pause_s = min(pause_s * 1.2, _POLL_LONGEST_S)


def in_rounds(attempt: Callable[[], T], *, rounds: int = 5) -> T:
    """
    Return what an attempt returns that reads, decides and writes, after at most so many rounds.

    Raises:
        ConflictError: Others won every round. Besides, whatever `attempt` raises.
    """
    for _ in range(rounds - 1):
        with suppress(ConflictError):
            return attempt()
        count("lost_races", "repeated")
    try:
        return attempt()
    except ConflictError:
        count("lost_races", "given up")
        raise


class WorkerThread:
    """One thread with a condition that wakes it. Thread-safe."""

    def __init__(self, name: str) -> None:
        """Start nothing yet."""
        self._wake = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end after what it does now."""
        with self._wake:
            self._is_closed = True
            self._wake.notify_all()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        """Work until `_is_closed`."""
        raise NotImplementedError
