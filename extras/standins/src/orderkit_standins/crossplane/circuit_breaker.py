"""
Crossplane's circuit breaker: an XR that too many events concern is looked at every 30 s only.

Each XR has a bucket of tokens that fills by one a second. An event takes two, as an update does in
Crossplane; the few creations and deletions take one there. A closed circuit opens when the bucket
is empty. It closes with the first event after five minutes, so that a quiet XR stays as it is.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ground.objects.conditions import RESPONSIVE, Condition
from ground.objects.kube_objects import Manifest, ObjectKey, metadata

BURST = 1000
"""As ``gitops/crossplane`` starts the real core; its default is 100."""
_COST, _REFILL_PER_S = 2.0, 1.0
_COOLDOWN_S, _PROBE_S = 300.0, 30.0


@dataclass(slots=True)
class _Circuit:
    tokens: float
    filled_s: float
    sources: deque[str] = field(default_factory=lambda: deque(maxlen=100))
    opened_s: float | None = None
    allowed_s: float = 0.0
    trigger: str = ""


class CircuitBreaker:
    """The circuits of one kind of XR. Thread-safe."""

    def __init__(self) -> None:
        self._circuits: dict[ObjectKey, _Circuit] = {}
        self._lock = threading.Lock()

    def passing(self, changed: Manifest, xrs: Iterable[ObjectKey]) -> Iterator[ObjectKey]:
        """Count an event for each of the XRs that it concerns; yield those that it may wake."""
        for xr in xrs:
            with self._lock:
                is_allowed = self._take(xr, _name(changed))
            if is_allowed:
                yield xr

    def responsive(self, xr: ObjectKey) -> Condition:
        """Return the condition Responsive."""
        with self._lock:
            circuit = self._circuits.get(xr)
        if circuit is None or circuit.opened_s is None:
            return RESPONSIVE
        text = f"Too many watch events from {circuit.trigger}. Allowing events periodically."
        return Condition(RESPONSIVE.type, "False", "WatchCircuitOpen", text)

    def forget(self, xr: ObjectKey) -> None:
        with self._lock:
            self._circuits.pop(xr, None)

    def _take(self, xr: ObjectKey, source: str) -> bool:
        now = time.monotonic()
        circuit = self._circuits.setdefault(xr, _Circuit(BURST, now))
        filled = circuit.tokens + _REFILL_PER_S * (now - circuit.filled_s)
        circuit.tokens, circuit.filled_s = min(BURST, filled), now
        circuit.sources.append(source)
        if circuit.opened_s is not None and now - circuit.opened_s >= _COOLDOWN_S:
            circuit.opened_s = None
            circuit.sources.clear()
        if circuit.opened_s is None:
            if circuit.tokens >= _COST:
                circuit.tokens -= _COST
                return True
            circuit.opened_s = circuit.allowed_s = now
            circuit.trigger = Counter(circuit.sources).most_common(1)[0][0]
            return True  # so that the condition is written
        if now - circuit.allowed_s < _PROBE_S:
            return False
        circuit.allowed_s = now
        return True


def _name(manifest: Manifest) -> str:
    meta = metadata(manifest)
    home = f" ({meta['namespace']})" if meta.get("namespace") else ""
    return f"{manifest.get('kind')}/{meta.get('name')}{home}"
