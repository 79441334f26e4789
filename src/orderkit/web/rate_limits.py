"""
Limit the requests of each caller by a token bucket that fills at a steady rate.

Kept in memory, per process. Thread-safe.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.requests import Request

_CALLERS_MAX = 10_000
"""Bound on the callers in memory; the one idle longest is dropped, and starts anew."""
_IPV6_SITE_BITS = 64
"""One customer usually has so many bits of an address to themselves."""
_BURST_S = 10.0
_BURST_MIN = 5.0


class RateLimit:
    """The buckets of all callers."""

    def __init__(
        self, per_minute: int, *, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Allow bursts of ten seconds' worth of requests, at least five."""
        self._per_s = per_minute / 60
        self._burst = max(_BURST_MIN, self._per_s * _BURST_S)
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, caller: str) -> float:
        """Take a permit; return 0, or the seconds until one is available."""
        now = self._monotonic_s()
        with self._lock:
            level, updated_s = self._buckets.pop(caller, (self._burst, now))
            level = min(self._burst, level + (now - updated_s) * self._per_s)
            is_allowed = level >= 1
            self._buckets[caller] = (level - 1 if is_allowed else level, now)
            if len(self._buckets) > _CALLERS_MAX:
                self._buckets.popitem(last=False)
        return 0.0 if is_allowed else (1 - level) / self._per_s


def network_of(request: Request) -> str:
    """Return what limits a request without a proof: its address, or its network in IPv6."""
    host = request.client.host if request.client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return f"address {host}"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped  # a socket of both families shows all of IPv4 so
    if isinstance(address, ipaddress.IPv4Address):
        return f"address {address}"
    return f"network {ipaddress.ip_network((address, _IPV6_SITE_BITS), strict=False)}"
