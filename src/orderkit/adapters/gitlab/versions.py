"""What a version text of a GitLab tells. The client never decides by it."""

from __future__ import annotations

import re

from orderkit.core.platform.neighbours import ReleaseVerdict

OLDEST = (18, 0)
"""The first release with deletion in every tier as the client expects it (epic 17208)."""
_NUMBER = re.compile(r"(\d+)\.(\d+)\.")


def judge_gitlab(version: str) -> ReleaseVerdict:
    """Return how well a server with this version text is known: no suite ran against a GitLab."""
    number = _NUMBER.match(version)
    if version.endswith("+orderkit"):
        return ReleaseVerdict(version, "embedded", f"GitLab {version}: the embedded forge")
    if number is None:
        return ReleaseVerdict(version, "unknown", f"GitLab {version[:40]}: the version is unclear")
    if (int(number[1]), int(number[2])) < OLDEST:
        detail = f"GitLab {version} is older than 18.0, the oldest that Orderkit expects"
        return ReleaseVerdict(version, "too old", detail, "install GitLab 18.0 or newer")
    detail = f"GitLab {version}: read from GitLab's description; no suite ran against a GitLab"
    return ReleaseVerdict(version, "unknown", detail, "try it in a group of its own first")
