"""
GitLab's limits of speed: whatever its answers say; it counts by minutes.

Source: doc/administration/settings/user_and_ip_rate_limits.md (`RateLimit-*`, `Retry-After`).
"""

from __future__ import annotations

from typing import ClassVar

from orderkit.adapters.forges.pacing import ForgePacer


class GitLabPacer(ForgePacer):
    """The limits of one credential of GitLab."""

    title: ClassVar[str] = "GitLab"
    prefix: ClassVar[str] = "ratelimit-"
    unnamed_s: ClassVar[float] = 1.0
    longest_s: ClassVar[float] = 60.0
