"""
The part of the forge port about who may do what, and who is told.

Teams of an organisation and webhooks: the values, and the Protocol that
``ports.forge.Forge`` is composed of.

Called by flows that set up a platform or a team; reached through ``ports.forge``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from orderkit.core.names import RepoId


class TeamRight(StrEnum):
    """What a team may do with its repositories; each includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Webhook:
    """Whom the forge tells, and of what. A target has at most one for each `url`."""

    url: str
    events: tuple[str, ...] = ("push",)
    secret: str = field(default="", repr=False)
    """Signs each delivery; it cannot be read back."""


class ForgeAccess(Protocol):
    """
    Teams and webhooks.

    What every method may raise stands at `ports.forge.Forge`.
    """

    def ensure_access(
        self,
        org: str,
        team: str,
        *,
        right: TeamRight,
        members: Sequence[str],
        repositories: Sequence[str] | None = None,
    ) -> None:
        """
        Make sure the organisation's team has exactly this right, members and repositories.

        Idempotent. Who is not named is removed from the team. After a failure the same call
        finishes: rights are added after they were narrowed, never the other way round.

        Args:
            repositories: Names inside `org`; None means all, also those made later.

        Raises:
            NotFoundError: No such organisation, user or repository.
            InvalidInputError: The forge refuses the team's name.
            RefusedError: The team of owners is not ours to change.
        """
        ...

    def ensure_webhook(self, target: str | RepoId, webhook: Webhook) -> None:
        """
        Make sure the organisation or repository has exactly one active webhook for that URL.

        Idempotent. It is brought up to date, and doubles are removed. Where a forge cannot
        change a secret, one with a secret is made anew before the old one is removed.

        Args:
            target: Name of an organisation, or a repository.

        Raises:
            NotFoundError: No such organisation or repository.
            InvalidInputError: The forge refuses the URL.
        """
        ...
