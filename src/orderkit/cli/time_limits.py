"""End a command whose stations never end: code of a pack may hang, a plan must not."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from ground.errors import OrderkitError


class _OutOfTime(BaseException):
    """No Exception: whoever runs stations turns those into results."""


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """
    Do something within a time. Only in the main thread, and not on Windows; else without limit.

    Raises:
        OrderkitError: It took longer.
    """
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(_: int, __: FrameType | None) -> None:
        raise _OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _OutOfTime:
        raise OrderkitError(
            f"the plan was not done within {seconds:g} s",
            hint="a station may not end, or the platform does not answer; --limit gives more time",
        ) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
