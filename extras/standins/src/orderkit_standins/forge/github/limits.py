"""
What GitHub restricts: how many requests, how many that create content, and how soon reads follow.

Source: GitHub's page "Rate limits for the REST API". A refusal creates nothing.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from orderkit_standins.forge.api.calls import ApiError, Call

_REMEMBERED = 10_000
_MINUTE_S, _HOUR_S = 60.0, 3600.0
_READ, _WRITE = 1, 5


@dataclass(slots=True)
class Limits:
    """All callers count as one credential. 0: no limit; tests and benches set them low."""

    created_per_minute: int = 0
    created_per_hour: int = 0
    requests_per_hour: int = 0
    """Of each resource, the API and GraphQL; unchanged answers are free."""
    points_per_minute: dict[str, int] = field(default_factory=dict)
    """Of each resource: a read is 1 point, a write 5, an unchanged answer too."""
    retry_after_s: int = 1
    """What a refusal of content says; 0: as long as it takes."""
    statuses_max: int = 1_000
    """Of one context and commit."""
    tree_entries_max: int = 100_000
    """In one answer; whatever is beyond is left out, and the answer says ``truncated``."""
    stale_reads_s: float = 0.0
    """How long a branch that moved is still shown where it was."""
    now: Callable[[], float] = time.monotonic
    today: Callable[[], float] = time.time
    created: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    """The last requests that create content, by method and path: what a story costs."""
    refused: int = 0
    """Requests that were too fast."""
    refused_again: int = 0
    """Those of them that followed one of their kind, with none between that was not."""
    points_spent: Counter[str] = field(default_factory=Counter)
    """Of all minutes, by resource."""
    _spent: dict[str, deque[float]] = field(default_factory=dict)
    _were_refused: set[str] = field(default_factory=set)
    _times: deque[float] = field(default_factory=deque)
    _used: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By resource: the requests of this hour, and when it ends."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _before: dict[tuple[int, str], tuple[str, float]] = field(default_factory=dict)

    def take(self, call: Call) -> None:
        """
        Count a request that creates content.

        Raises:
            ApiError: 403, there were too many in the last minute or hour.
        """
        with self._lock:
            try:
                self.take_one()
            except ApiError:
                self._note_refusal("content")
                raise
            self._were_refused.discard("content")
            self.created.append(f"{call.request.method} {call.request.url.path}")

    def take_one(self) -> None:
        """
        Count something that creates content, also by another user of the same credential.

        Raises:
            ApiError: 403, as `take` says.
        """
        now = self.now()
        while self._times and self._times[0] <= now - _HOUR_S:
            self._times.popleft()
        bounds = ((self.created_per_minute, _MINUTE_S), (self.created_per_hour, _HOUR_S))
        for bound, window_s in bounds:
            if bound and len(self._times) >= bound and self._times[-bound] > now - window_s:
                due_s = math.ceil(self._times[-bound] + window_s - now)
                after = {"Retry-After": str(self.retry_after_s or due_s)}
                raise ApiError(403, "You have exceeded a secondary rate limit.", headers=after)
        self._times.append(now)

    def admit(self, resource: str, *, writes: bool = False) -> None:
        """
        Count a request.

        Raises:
            ApiError: 403, none is left in this hour, or too many points were spent this minute.
        """
        self._spend(resource, _WRITE if writes else _READ)
        if not self.requests_per_hour:
            return
        with self._lock:
            used, end = self._used.get(resource, (0, 0.0))
            if self.now() >= end:
                used, end = 0, self.now() + _HOUR_S
            self._used[resource] = used + 1, end
            is_refused = used >= self.requests_per_hour
            if is_refused:
                self._note_refusal(resource)
            else:
                self._were_refused.discard(resource)
        if is_refused:
            raise ApiError(403, "API rate limit exceeded", headers=self.headers(resource))

    def _spend(self, resource: str, points: int) -> None:
        bound = self.points_per_minute.get(resource)
        if not bound:
            return
        with self._lock:
            now, spent = self.now(), self._spent.setdefault(resource, deque())
            while spent and spent[0] <= now - _MINUTE_S:
                spent.popleft()
            if len(spent) + points > bound:
                self._note_refusal(f"{resource} points")
                due_s = math.ceil(spent[len(spent) + points - bound - 1] + _MINUTE_S - now)
                after = {"Retry-After": str(due_s)}
                raise ApiError(403, "You have exceeded a secondary rate limit.", headers=after)
            self._were_refused.discard(f"{resource} points")
            spent.extend([now] * points)
            self.points_spent[resource] += points

    def give_back(self, resource: str) -> None:
        """Count a request as free."""
        if not self.requests_per_hour:
            return
        with self._lock:
            used, end = self._used.get(resource, (1, 0.0))
            self._used[resource] = used - 1, end

    def headers(self, resource: str) -> dict[str, str]:
        """Return what an answer says of the limits."""
        limit = self.requests_per_hour or 15_000
        used, end = self._used.get(resource, (1, self.now() + _HOUR_S))
        return {
            "X-RateLimit-Limit": str(limit),
            "X-RateLimit-Remaining": str(max(limit - used, 0)),
            "X-RateLimit-Reset": str(math.ceil(self.today() + end - self.now())),
            "X-RateLimit-Resource": resource,
        }

    def _note_refusal(self, kind: str) -> None:
        self.refused += 1
        self.refused_again += kind in self._were_refused
        self._were_refused.add(kind)

    def note_move(self, repo_id: int, branch: str, before: str) -> None:
        """Remember where a branch was."""
        if self.stale_reads_s and before:
            self._before[repo_id, branch] = (before, time.monotonic() + self.stale_reads_s)

    def shown(self, repo_id: int, branch: str, head: str) -> str:
        """Return the commit that reads still show."""
        before, until = self._before.get((repo_id, branch), ("", 0.0))
        return before if time.monotonic() < until else head
