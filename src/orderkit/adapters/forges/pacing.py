"""
Keep within a forge's limits of speed: one pacer for each credential of this process.

At most one request that creates content is under way, and no more in a minute and an hour than the
forge documents; nor do all requests of a minute cost more points. What its answers say counts too:
a refusal for speed was not carried out and is sent again after the time that the forge names.
People go first: background work waits while a person's request does, and leaves a tenth of every
limit to people.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, TypeVar, cast

from ground.errors import TooFastError
from orderkit.adapters.forges.answers import ForgeResponse, has_turn
from orderkit.ports.urgency import is_background, waiting

log = logging.getLogger(__name__)

PATIENCE_S, BACKGROUND_PATIENCE_S = 90.0, 3_700.0
"""The longest wait before a request; a longer one is an error that says how long."""
TOO_MANY = 429
_TRIES = 3
_KEPT_FOR_PEOPLE = 0.1
"""The part of each limit that background work leaves."""
_READ, _WRITE = 1, 5
"""The points that a request costs where a forge counts points: GitHub does."""
_TOLD_S = 5.0
"""Shorter waits are not told."""
PacerT = TypeVar("PacerT", bound="ForgePacer")


@dataclass(frozen=True, slots=True)
class Clock:
    """What a pacer asks for the time; tests have their own."""

    now: Callable[[], float] = time.monotonic
    today: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


class ForgePacer:
    """The limits of one credential. Safe to use from threads."""

    title: ClassVar[str]
    prefix: ClassVar[str]
    """How the headers begin that say what is left of a limit."""
    unnamed_s: ClassVar[float]
    """How long a refusal lasts that names no time."""
    longest_s: ClassVar[float] = float("inf")
    """The longest time after which every limit has begun anew."""

    def __init__(
        self,
        *,
        per_minute: int = 0,
        per_hour: int = 0,
        points: Mapping[str, int] | None = None,
        patience_s: float = PATIENCE_S,
        clock: Clock = Clock(),
    ) -> None:
        """
        Keep within these numbers; without them, within what the forge says.

        Args:
            per_minute: Requests that create content; 0: any number.
            per_hour: The same.
            points: By resource, what its requests may cost in a minute: see `_READ` and `_WRITE`.
            patience_s: The longest wait before a request of a person.
            clock: What tells the time.
        """
        self._bounds = tuple((n, s) for n, s in ((per_minute, 60.0), (per_hour, 3600.0)) if n)
        self._patience_s, self._clock = patience_s, clock
        self._created: deque[float] = deque()
        self._points = dict(points or {})
        self._spent: dict[str, deque[float]] = {name: deque() for name in self._points}
        """When each point of the last minute was spent, by resource."""
        self._free_at: dict[tuple[str, bool], float] = {}
        """By resource, for people (False) and for background work (True)."""
        self._queued = {False: 0, True: 0}
        """How many requests that create content want to be sent, of people and in background."""
        self._is_creating = False
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, resource: str, *, creates: bool) -> Iterator[None]:
        """
        Wait until a request may be sent; hold others back that create something.

        Raises:
            TooFastError: That would take too long.
        """
        self._enter(resource, creates=creates, behind=is_background())
        try:
            yield
        finally:
            if creates:
                with self._changed:
                    self._is_creating = False
                    self._changed.notify_all()

    def _enter(self, resource: str, *, creates: bool, behind: bool) -> None:
        with self._changed:
            self._queued[behind] += creates
            try:
                while True:
                    due_s = self._due_s(resource, creates=creates, behind=behind)
                    if due_s > 0:
                        self._sleep(due_s, behind=behind)
                    # at most one at a time, and people's before those of background work
                    elif creates and (self._is_creating or (behind and self._queued[False])):
                        self._changed.wait()
                    else:
                        break
                if creates:
                    self._is_creating = True
                    self._created.append(self._clock.now())
                if resource in self._spent:
                    cost = _WRITE if creates else _READ
                    self._spent[resource].extend([self._clock.now()] * cost)
            finally:
                self._queued[behind] -= creates
                self._changed.notify_all()

    def _due_s(self, resource: str, *, creates: bool, behind: bool) -> float:
        now = self._clock.now()
        due = self._free_at.get((resource, behind), now)
        while self._created and self._created[0] <= now - 3600:
            self._created.popleft()
        for bound, window_s in self._bounds if creates else ():
            usable = _usable(bound, behind=behind)
            if len(self._created) >= usable:
                due = max(due, self._created[-usable] + window_s)
        if spent := self._spent.get(resource):
            while spent and spent[0] <= now - 60:
                spent.popleft()
            room = _usable(self._points[resource], behind=behind) - (_WRITE if creates else _READ)
            if len(spent) > room:
                due = max(due, spent[-room - 1] + 60)
        return due - now

    def _sleep(self, seconds: float, *, behind: bool) -> None:
        """Sleep while others may pass; our lock is held before and after."""
        # People who write to the same repository would wait behind a long sleep.
        is_patient = behind and not has_turn()
        if seconds > (BACKGROUND_PATIENCE_S if is_patient else self._patience_s):
            raise self._too_fast(seconds)
        self._changed.release()
        try:
            if seconds >= _TOLD_S:
                who = "; people go first" if behind else ""
                log.warning("waiting %.0f s for %s's limit of speed%s", seconds, self.title, who)
            with waiting(self.title, seconds):
                self._clock.sleep(seconds)
        finally:
            self._changed.acquire()

    def send(
        self, resource: str, send: Callable[[], ForgeResponse], *, creates: bool
    ) -> ForgeResponse:
        """
        Send a request when the limits allow it, and again if it is refused for speed.

        Raises:
            TooFastError: They do not for long; nothing was carried out.
            OrderkitError: As `send`.
        """
        for _ in range(_TRIES):
            with self.turn(resource, creates=creates):
                answer = send()
            if not self.is_refusal(resource, answer):
                return answer
        with self._changed:
            due_s = self._due_s(resource, creates=False, behind=False)
        raise self._too_fast(max(due_s, 0))

    def _too_fast(self, seconds: float) -> TooFastError:
        return TooFastError(
            f"{self.title}'s limit for these credentials is used up for {seconds:.0f} s more",
            hint=f"repeat the command in {seconds:.0f} s",
            seconds=seconds,
        )

    def is_refusal(self, resource: str, answer: ForgeResponse) -> bool:
        """Note what an answer says of the limits; say whether it was refused for speed."""
        is_refused = self._is_refused(answer)
        left, reset_s = self._number(answer, "remaining"), self._until_reset_s(answer)
        wait_s = reset_s if left == 0 else None
        if is_refused:
            after_s = _number(answer.headers, "retry-after")
            wait_s = next((s for s in (after_s, wait_s) if s is not None), self.unnamed_s)
        self._note(resource, wait_s, (False, True))
        limit = self._number(answer, "limit")
        if limit and left is not None and left <= limit * _KEPT_FOR_PEOPLE:
            self._note(resource, reset_s, (True,))
        return is_refused

    def _is_refused(self, answer: ForgeResponse) -> bool:
        return answer.status == TOO_MANY

    def _number(self, answer: ForgeResponse, name: str) -> float | None:
        return _number(answer.headers, self.prefix + name)

    def _until_reset_s(self, answer: ForgeResponse) -> float | None:
        reset = self._number(answer, "reset")
        return None if reset is None else max(reset - self._clock.today(), 0) + 1

    def _note(self, resource: str, wait_s: float | None, whose: tuple[bool, ...]) -> None:
        if wait_s is None:
            return
        with self._changed:
            free_at = self._clock.now() + min(wait_s, self.longest_s)
            for behind in whose:
                before = self._free_at.get((resource, behind), free_at)
                self._free_at[resource, behind] = max(before, free_at)


def _usable(bound: int, *, behind: bool) -> int:
    return bound - int(bound * _KEPT_FOR_PEOPLE) if behind else bound


def _number(headers: Mapping[str, str], name: str) -> float | None:
    text = headers.get(name, "")
    return float(text) if text.isascii() and text.isdigit() else None


_pacers: dict[object, ForgePacer] = {}
_pacers_lock = threading.Lock()


def pacer_of(key: object, make: Callable[[], PacerT]) -> PacerT:
    """Return the one pacer of a credential in this process."""
    with _pacers_lock:
        return cast("PacerT", _pacers.setdefault((make, key), make()))
