"""
Spans and counts: what a process measures of its requests and commands.

Spans say how long each step of a request or a command took. Nothing is recorded until `record_with`
is called, and a span costs next to nothing then. An adapter records for OpenTelemetry;
docs/traces.md is for those who read the traces.

Counts say what this process did since its start. There is one registry for each process, as an
exporter wants it. Whoever does something counts it under a name of `COUNTED` with one label's
value; the service shows all at ``/metrics``. Thread-safe.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, Protocol, TypeAlias

Attributes: TypeAlias = dict[str, str | int]
"""What is said of a span, by the names of OpenTelemetry's conventions. No texts of users."""


class Recorder(Protocol):
    """Records spans. Safe to use from several threads."""

    def root(
        self, name: str, attributes: Attributes, headers: Mapping[str, str] | None
    ) -> AbstractContextManager[Attributes]:
        """Record the span of a request with these headers, or of a command (None)."""

    def child(self, name: str, attributes: Attributes) -> AbstractContextManager[Attributes]:
        """Record a step of the current span; without one, nothing."""


_recorder: Recorder | None = None


def record_with(recorder: Recorder | None) -> None:
    """Let a recorder record all spans from now on; None: nobody."""
    global _recorder  # noqa: PLW0603  one for the process, as OpenTelemetry's own
    _recorder = recorder


def root_span(
    name: str, attributes: Attributes, headers: Mapping[str, str] | None = None
) -> AbstractContextManager[Attributes]:
    """
    Record what is done within the block as a trace of its own, or as a part of the caller's.

    Attributes that are known at the end are put into the mapping that it hands out.
    """
    return _recorder.root(name, attributes, headers) if _recorder else nullcontext({})


def span(name: str, attributes: Attributes) -> AbstractContextManager[Attributes]:
    """
    Record what is done within the block as a step of what this thread traces, if it does.

    What the service does in the background belongs to no request and is not recorded.
    """
    return _recorder.child(name, attributes) if _recorder else nullcontext({})


Counted = Literal["forge_requests", "lost_races", "lease_sweeps"]
COUNTED: Mapping[Counted, tuple[str, str]] = {
    "forge_requests": ("outcome", "Requests to the forge, by class of status."),
    "lost_races": ("end", "Writes that another writer was faster with, and how they ended."),
    "lease_sweeps": ("action", "What sweeps of leases did about orders."),
}
"""The label and the description of each."""
_lock = threading.Lock()
_counts: Counter[tuple[Counted, str]] = Counter()


def count(name: Counted, value: str) -> None:
    """Count once more."""
    with _lock:
        _counts[name, value] += 1


def counts() -> Mapping[tuple[Counted, str], int]:
    """Return all counts, by name and value."""
    with _lock:
        return dict(_counts)
