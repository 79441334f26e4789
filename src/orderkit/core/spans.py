"""
Spans: how long each step of a request or a command took, if somebody records them.

Nothing is recorded until `record_with` is called, and a span costs next to nothing then. An
adapter records for OpenTelemetry; docs/traces.md is for those who read the traces.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeAlias

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
