"""
What robots said of a commit: the last status of each context, ready to show.

Called by the pages of commits and pull requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from orderkit.adapters.embedded.forge.pages.places import Home
from orderkit.adapters.embedded.forge.statuses import Status

_BADGES = {
    "success": "good",
    "skipped": "good",
    "failure": "bad",
    "error": "bad",
}


@dataclass(frozen=True, slots=True)
class Said:
    """One status. `link` is empty where the robot gave no address that a browser may open."""

    context: str
    state: str
    badge: str
    description: str
    link: str


def said_of(here: Home, commit_id: str) -> list[Said]:
    """Return what was said last of a commit, by context."""
    latest = here.call.forge.statuses.latest(here.row.id, commit_id)
    return sorted((_said(each) for each in latest), key=lambda each: each.context)


def _said(status: Status) -> Said:
    said = status.said
    return Said(
        said.context,
        said.state,
        _BADGES.get(said.state, "warn"),
        said.description,
        said.target_url if _opens(said.target_url) else "",
    )


def _opens(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)
