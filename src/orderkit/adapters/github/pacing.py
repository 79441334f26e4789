"""
Keep within GitHub's limits: one pacer for each credential of this process.

At most one content-creating request at a time, 80 a minute and 500 an hour on GitHub.com (GitHub's
page "Rate limits for the REST API", secondary limits; an Enterprise Server has none unless its
admin sets some). A refusal for speed is recognised by its status and headers, 429, or 403 with
``retry-after``, no requests left, or a link to that page: GitHub did not carry it out, so it is
sent again after the time that GitHub names.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from ground.errors import TooFastError
from orderkit.adapters.forges.answers import ForgeResponse

log = logging.getLogger(__name__)

PER_MINUTE, PER_HOUR = 80, 500
PATIENCE_S = 90.0
"""The longest wait before a request; a longer one is an error that says how long."""
_UNNAMED_S = 60.0
"""GitHub's rule for a refusal that names no time: at least a minute."""
_FORBIDDEN, _TOO_MANY = 403, 429


def too_fast(seconds: float) -> TooFastError:
    """Return the error that says how long GitHub's limit is used up: longer than we wait."""
    return TooFastError(
        f"GitHub's limit for these credentials is used up for {seconds:.0f} s more",
        hint=f"repeat the command in {seconds:.0f} s",
        seconds=seconds,
    )


@dataclass(frozen=True, slots=True)
class Clock:
    """What a pacer asks for the time; tests have their own."""

    now: Callable[[], float] = time.monotonic
    today: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


class Pacer:
    """The limits of one credential. Safe to use from threads."""

    def __init__(
        self,
        *,
        per_minute: int = 0,
        per_hour: int = 0,
        patience_s: float = PATIENCE_S,
        clock: Clock = Clock(),
    ) -> None:
        """Keep within these numbers of content-creating requests; 0: only what GitHub says."""
        self._bounds = tuple((n, s) for n, s in ((per_minute, 60.0), (per_hour, 3600.0)) if n)
        self._patience_s, self._clock = patience_s, clock
        self._created: deque[float] = deque()
        self._free_at: dict[str, float] = {}
        self._creating = threading.Lock()
        self._lock = threading.Lock()

    @contextmanager
    def turn(self, resource: str, *, creates: bool) -> Iterator[None]:
        """
        Wait until a request may be sent; hold others back that create something.

        Raises:
            TooFastError: That would take too long.
        """
        with self._creating if creates else nullcontext():
            self._wait(self._due_s(resource, creates=creates))
            if creates:
                with self._lock:
                    self._created.append(self._clock.now())
            yield

    def _due_s(self, resource: str, *, creates: bool) -> float:
        with self._lock:
            now = self._clock.now()
            due = self._free_at.get(resource, now)
            while self._created and self._created[0] <= now - 3600:
                self._created.popleft()
            for bound, window_s in self._bounds if creates else ():
                if len(self._created) >= bound:
                    due = max(due, self._created[-bound] + window_s)
            return due - now

    def _wait(self, seconds: float) -> None:
        if seconds <= 0:
            return
        if seconds > self._patience_s:
            raise too_fast(seconds)
        log.info("GitHub's limit: waiting %.0f s", seconds)
        self._clock.sleep(seconds)

    def wait_s(self, resource: str) -> float:
        """Return for how long GitHub lets nothing of a kind pass, as it said last."""
        return max(self._due_s(resource, creates=False), 0)

    def is_refusal(self, resource: str, answer: ForgeResponse) -> bool:
        """Note what an answer says of the limits; say whether it was refused for speed."""
        headers = answer.headers
        left, after = headers.get("x-ratelimit-remaining"), _number(headers, "retry-after")
        reset = _number(headers, "x-ratelimit-reset")
        is_refused = answer.status == _TOO_MANY or (
            answer.status == _FORBIDDEN
            and (after is not None or left == "0" or "rate-limits" in _documentation(answer))
        )
        wait_s = None
        if is_refused:
            wait_s = after if after is not None else None if left == "0" else _UNNAMED_S
        if wait_s is None and left == "0" and reset is not None:
            wait_s = max(reset - self._clock.today(), 0) + 1
        if wait_s is None and is_refused:
            wait_s = _UNNAMED_S
        if wait_s is not None:
            with self._lock:
                self._free_at[resource] = self._clock.now() + wait_s
        return is_refused


def _number(headers: Mapping[str, str], name: str) -> float | None:
    try:
        return float(headers.get(name, ""))
    except ValueError:
        return None


def _documentation(answer: ForgeResponse) -> str:
    try:
        document = json.loads(answer.body)
    except ValueError:
        return ""
    return str(document.get("documentation_url", "")) if isinstance(document, dict) else ""


_pacers: dict[object, Pacer] = {}
_pacers_lock = threading.Lock()


def pacer_of(key: object, *, has_limits: bool) -> Pacer:
    """Return the one pacer of a credential in this process."""
    with _pacers_lock:
        if key not in _pacers:
            _pacers[key] = (
                Pacer(per_minute=PER_MINUTE, per_hour=PER_HOUR) if has_limits else Pacer()
            )
        return _pacers[key]
