"""
Child processes for flows: they answer messages within limits, or render templates.

An entry is named as ``module:function``, because only the child imports it. Implemented by
``adapters.processes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ground.errors import OrderkitError

if TYPE_CHECKING:  # children import this module, and not all of them render
    from softwaretemplates.render import FileOutcome, Tree, TreeOptions


class ChildTimeoutError(OrderkitError):
    """The child gave no answer in time."""


class ChildEndedError(OrderkitError):
    """The child ended, or answered more than it may."""


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """What a child may use; 0 means no limit."""

    data_bytes: int = 0
    """Data memory."""
    address_bytes: int = 0
    """All memory, mapped files and stacks included."""
    cpu_s: int = 0
    answer_bytes: int = 0
    """Size of one answer, and of a file that the child writes."""
    is_isolated: bool = False
    """
    For code of others: no environment, files, network or processes, and its output is discarded.
    """
    folder: str = ""
    """Of an isolated child: what it may read."""
    is_silent: bool = False
    """What the child prints is discarded."""
    hash_seed: str = ""
    """Of Python's hashes in the child; empty: a random one."""


class ChildProcess(Protocol):
    """One process. Use it from one thread only, except `kill`."""

    def send(self, message: bytes, timeout_s: float) -> None:
        """
        Send a message; the first one goes to the entry itself.

        Raises:
            ChildTimeoutError: The child did not take it. ChildEndedError: the child is gone.
        """
        ...

    def receive(self, timeout_s: float) -> bytes:
        """
        Return the answer to the oldest unanswered message.

        Raises:
            ChildTimeoutError: There was none in time. ChildEndedError: the child is gone.
        """
        ...

    def kill(self) -> None:
        """End the process now; a caller that waits for its answer gets a ChildEndedError."""
        ...

    def stop(self) -> None:
        """End the process and remove its temporary folder. Safe to call twice."""
        ...


class Processes(Protocol):
    """Starts children."""

    def start(self, entry: str, limits: ProcessLimits) -> ChildProcess:
        """
        Start a child that serves an entry.

        The child calls the entry with the first message. The entry returns the first answer, and
        a function that answers further messages, or None if it accepts no more.
        """
        ...


class ConfinedRenderer(Protocol):
    """Renders untrusted templates where they can do no harm."""

    def __call__(
        self, files: Tree, values: Mapping[str, Any] | None, options: TreeOptions
    ) -> list[FileOutcome]:
        """
        Do what `judge_tree` does, or `lint_tree` if `values` is None, within limits.

        Raises:
            LimitError: It exceeded its time, memory or output limit.
            RenderError: The options or the total size are refused.
        """
        ...


class ProgramRunner(Protocol):
    """Runs a program of a campaign where it can do no harm."""

    def __call__(self, program: str, order: Mapping[str, Any]) -> Mapping[str, str | None]:
        """
        Return the files that the program's ``edit(order)`` returns: path and text, None: removed.

        Raises:
            RefusedError: It failed, exceeded a limit, or answered something else.
        """
        ...
