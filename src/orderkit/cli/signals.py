"""How a thread waits for what the handler of a signal sets, and how the handler sets it."""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

_LOOK_EVERY_S = 1.0


@contextlib.contextmanager
def asked_to_end(handler: Callable[[int, object], None]) -> Iterator[None]:
    """Handle SIGINT and SIGTERM meanwhile, and leave both as they were. Main thread only."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, handled in before.items():
            signal.signal(number, handled)


def set_by_signal(event: threading.Event) -> None:
    """Set an event, from a signal handler; returns at once, a moment before it is set."""
    # `Event.set` takes a lock that the interrupted thread holds whenever it begins or ends to wait
    # for that very event: the handler would wait for its own thread, for ever
    _thread.start_new_thread(event.set, ())


def wait_for_signal(event: threading.Event) -> None:
    """Wait until a handler has set an event. Main thread only."""
    # in slices: the system may hand a signal to any thread (it does when the process was stopped
    # meanwhile), but Python runs handlers in the main one, which nobody wakes for that
    while not event.wait(_LOOK_EVERY_S):
        pass
