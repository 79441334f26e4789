"""
How long to wait before the next request, by what GitLab's answers say.

Source: doc/administration/settings/user_and_ip_rate_limits.md (`RateLimit-*`, `Retry-After`).
"""

from __future__ import annotations

from collections.abc import Mapping

WAIT_MAX_S = 60.0
"""GitLab counts by minutes: after one, every limit has begun anew."""
TOO_MANY = 429


def pause_s(status: int, headers: Mapping[str, str], now: float) -> float:
    """
    Return the seconds to wait before the next request; 0 if there is nothing to wait for.

    Args:
        now: Seconds since 1970, as the forge counts them.
    """
    remaining, reset = _number(headers, "ratelimit-remaining"), _number(headers, "ratelimit-reset")
    until_reset = reset - now if reset is not None else None
    if status == TOO_MANY:
        wait = _number(headers, "retry-after")
        wait = until_reset if wait is None else wait
        return min(max(1.0 if wait is None else wait, 0.0), WAIT_MAX_S)
    if remaining == 0 and until_reset is not None:
        return min(max(until_reset, 0.0), WAIT_MAX_S)
    return 0.0


def _number(headers: Mapping[str, str], name: str) -> float | None:
    text = headers.get(name, "")
    return float(text) if text.isascii() and text.isdigit() else None
