"""A thread that works until it is stopped; ``live.row_masks`` and ``notify.channel_worker`` are."""

from __future__ import annotations

import threading


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
