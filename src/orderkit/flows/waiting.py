"""Wait for a condition with a deadline, without hiding the last reason why it does not hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from orderkit.core.errors import IncompleteError
from orderkit.ports.clock import Clock

T = TypeVar("T")

POLL_S = 0.05
_POLL_LONGEST_S = 1.0


def until(
    clock: Clock,
    look: Callable[[], T],
    done: Callable[[T], bool],
    *,
    timeout_s: float,
    what: str,
    why_not: Callable[[T], str] = lambda _: "",
    advice: Callable[[T], str] = lambda _: "",
    on_look: Callable[[T], object] = lambda _: None,
) -> T:
    """
    Look until `done`, first often, then once a second; return what was seen last.

    Raises:
        IncompleteError: `timeout_s` passed; the message says `what` and `why_not`, its hint
            `advice`.
    """
    deadline = clock.monotonic_s() + timeout_s
    pause_s = POLL_S
    while True:
        seen = look()
        on_look(seen)
        if done(seen):
            return seen
        if clock.monotonic_s() >= deadline:
            reason = why_not(seen)
            going_on = "repeat the same command to go on, or look with 'orderkit trace'"
            raise IncompleteError(
                f"{what} did not happen within {timeout_s:g} s" + (f": {reason}" if reason else ""),
                hint="; ".join(filter(None, (advice(seen), going_on))),
            )
        clock.sleep(pause_s)
        pause_s = min(pause_s * 1.2, _POLL_LONGEST_S)
