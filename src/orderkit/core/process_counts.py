"""
What this process did since its start, counted: requests to the forge, lost races, sweeps.

One registry for each process, as an exporter wants it. Whoever does something counts it under a
name of `COUNTED` with one label's value; the service shows all at ``/metrics``. Thread-safe.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Literal

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
