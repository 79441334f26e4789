"""
Share reads among those who ask at the same time, and keep answers about orders for a moment.

One read of an order costs a dozen requests and a run of its pipeline. Fifty readers who each make
their own hold up each other, and those who write. So a reader gets the outcome of a read that began
after they asked: what they would have read themselves, or newer.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")
KEPT_S = 1.0
"""How long an answer is kept while nothing says that the order changed."""
KEYS_MAX = 2_000
"""Things that are remembered; of others, only reads at the same moment are shared."""


@dataclass(slots=True)
class _Turns(Generic[T]):
    """The reads of one thing, which take turns."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    counting: threading.Lock = field(default_factory=threading.Lock)
    begun: int = 0
    """Number of the newest read, which may not have ended."""
    ended: int = 0
    outcome: T | None = None
    error: Exception | None = None

    def run(self, read: Callable[[], T]) -> T:
        with self.counting:
            needed = self.begun + 1  # a read that runs already may have missed a write
        with self.turn:
            if self.ended < needed:
                self._read(read)
            if self.error is not None:
                raise self.error
            outcome: T = self.outcome  # type: ignore[assignment]  # set, as there is no error
            return outcome

    def _read(self, read: Callable[[], T]) -> None:
        with self.counting:
            self.begun += 1
            number = self.begun
        self.outcome = self.error = None
        try:
            self.outcome = read()
        except Exception as error:  # noqa: BLE001 - everyone who waits gets it
            self.error = error
        self.ended = number


class SharedReads:
    """Reads by key. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: OrderedDict[Hashable, _Turns[Any]] = OrderedDict()

    def read(self, key: Hashable, read: Callable[[], T]) -> T:
        """
        Return the outcome of a read that began after this call, own or another's.

        Raises:
            Exception: What that read raised.
        """
        with self._lock:
            turns: _Turns[T] = self._turns.setdefault(key, _Turns())
            self._turns.move_to_end(key)
            if len(self._turns) > KEYS_MAX:
                self._turns.popitem(last=False)
        return turns.run(read)


@dataclass(frozen=True, slots=True)
class _Kept:
    versions: Hashable
    read_s: float
    answer: Mapping[str, Any]


class OrderAnswers:
    """Answers about single orders. Safe to use from several threads."""

    def __init__(self) -> None:
        self._reads = SharedReads()
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()

    def get(
        self,
        key: Hashable,
        versions: Callable[[], Hashable],
        make: Callable[[], Mapping[str, Any]],
    ) -> Mapping[str, Any]:
        """
        Return an answer made after this call, or one of a moment ago with the same versions.

        Args:
            key: The order, and the question.
            versions: Reads what changes whenever the order does.
            make: Makes the answer.

        Raises:
            OrderkitError: As `versions` and `make` say.
        """

        def read() -> Mapping[str, Any]:
            read_s, now = time.monotonic(), versions()  # before the answer, which may be newer
            with self._lock:
                kept = self._kept.get(key)
            if kept and kept.versions == now and read_s - kept.read_s < KEPT_S:
                return kept.answer
            answer = make()
            with self._lock:
                self._kept[key] = _Kept(now, read_s, answer)
                self._kept.move_to_end(key)
                if len(self._kept) > KEYS_MAX:
                    self._kept.popitem(last=False)
            return answer

        return self._reads.read(key, read)
