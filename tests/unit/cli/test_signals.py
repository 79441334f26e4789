"""Handlers of signals: what they may set, and that nothing is left of them."""

from __future__ import annotations

import signal
import threading
from typing import Any

from orderkit.cli.signals import asked_to_end, set_by_signal


def test_a_handler_sets_what_the_interrupted_thread_is_about_to_wait_for() -> None:
    event: Any = threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: set_by_signal(event))
    try:
        with event._cond:  # noqa: SLF001  as `wait` does when it begins; no other way to be there
            signal.raise_signal(signal.SIGUSR1)
            assert not event.is_set()
        assert event.wait(60)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_signals_are_handled_as_before_once_a_command_is_over() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    told: list[int] = []
    with asked_to_end(lambda number, _: told.append(number)):
        for number in numbers:
            signal.raise_signal(number)
    assert told == list(numbers)
    assert [signal.getsignal(number) for number in numbers] == before
