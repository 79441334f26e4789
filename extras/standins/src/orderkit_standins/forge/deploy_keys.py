"""
Deploy keys of repositories. Whoever serves the forge names them; nobody can push with one.

The faces of GitHub and GitLab list them. A platform has to notice them.
"""

from __future__ import annotations

from dataclasses import dataclass

from orderkit_standins.forge.api.shapes import Json

_CREATED = "2026-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class DeployKey:
    """A key of one repository."""

    id: int
    title: str
    key: str
    """As in ``authorized_keys``."""
    fingerprint: str
    may_push: bool = False

    def on_github(self, api: str) -> Json:
        """Return it as GitHub shows it; `api` is the address of its repository."""
        shape = {"id": self.id, "key": self.key, "title": self.title, "created_at": _CREATED}
        return {
            **shape,
            "url": f"{api}/keys/{self.id}",
            "verified": True,
            "read_only": not self.may_push,
        }

    def on_gitlab(self) -> Json:
        """Return it as GitLab shows it."""
        shape = {"id": self.id, "key": self.key, "title": self.title, "created_at": _CREATED}
        return {**shape, "fingerprint_sha256": self.fingerprint, "can_push": self.may_push}
