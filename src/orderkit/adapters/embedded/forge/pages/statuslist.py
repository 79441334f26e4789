"""
The statuses of a commit, ready to show: the newest of each context.

Called by the pages of commits and pull requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from orderkit.adapters.embedded.forge.statuses import Status

_BADGES = {"success": "good", "skipped": "good", "failure": "bad", "error": "bad"}


@dataclass(frozen=True, slots=True)
class ShownStatus:
    """One status. `link` is empty where there is no address that a browser may open."""

    context: str
    state: str
    badge: str
    description: str
    link: str


def shown_statuses(latest: Iterable[Status]) -> list[ShownStatus]:
    """Return the newest statuses of a commit by context."""
    return sorted(map(_shown, latest), key=lambda status: status.context)


def _shown(status: Status) -> ShownStatus:
    link = status.target_url if _opens(status.target_url) else ""
    badge = _BADGES.get(status.state, "warn")
    return ShownStatus(status.context, status.state, badge, status.description, link)


def _opens(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)
