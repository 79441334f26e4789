"""
The part of the forge port about access and notification: who may write, who reads, teams, webhooks.

Defines the values and the Protocol `ForgeAccess`, one of the parts of ``ports.forge.Forge``.

Reached through ``ports.forge``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol

from ground.names import RepoId
from orderkit.ports.pulls import ForgeUser


@dataclass(frozen=True, slots=True)
class Repository:
    """What the forge knows of a repository."""

    id: RepoId
    default_branch: str
    empty: bool
    archived: bool
    private: bool
    description: str
    web_url: str
    clone_url: str
    can_write: bool = False
    can_admin: bool = False
    """Whether our credentials have admin rights; `can_write`: whether they may push."""
    may_squash: bool = False
    """Whether pull requests may be squashed, which loses signatures."""
    number: int = 0
    """The forge's own id of the repository."""
    owner: str = ""
    """Login of the user or organisation that owns it, where `foreign_access` needs it."""
    mirror_of: str = ""
    """What it is a mirror of, likewise; empty: of nothing."""


class TeamRight(StrEnum):
    """What a team may do with its repositories; each includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Webhook:
    """A URL that the forge calls, and on which events. A target has at most one per `url`."""

    url: str
    events: tuple[str, ...] = ("push",)
    secret: str = field(default="", repr=False)
    """Signs each delivery; it cannot be read back."""


@dataclass(frozen=True, slots=True)
class ReaderAccount:
    """An account that may read one organisation, and its token, which cannot be read back."""

    name: str
    token: str = field(repr=False)
    secret: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What Argo CD's Secret holds instead of name and token, by its entries there."""


AccessRight = Literal["owner", "admin", "write", "listen"]
"""``listen``: learns what is pushed, and can write nothing."""


@dataclass(frozen=True, slots=True)
class AccessGrant:
    """A way into an organisation or repository that is not our account's."""

    target: str
    holder: str
    """A login, or ``deploy-key:TITLE:FINGERPRINT``, ``runner:NAME:ID``, ``webhook:URL`` etc."""
    right: AccessRight


class ForgeAccess(Protocol):
    """
    Who has access, teams, accounts that read, and webhooks.

    `ports.forge.Forge` lists the errors that every method may raise.
    """

    def foreign_access(
        self, target: str | RepoId, seen: Repository | None = None
    ) -> tuple[AccessGrant, ...]:
        """
        Return every way to write to a target, or to learn of pushes, besides our own account.

        Of an organisation: members of teams that may write or create repositories, runners,
        webhooks. Of a repository: its owner if that is a user, collaborators, deploy keys, runners,
        mirrors, webhooks; not what its organisation grants. Site admins and pending invitations
        are invisible to the API. Sorted by holder; empty if the target does not exist.

        Args:
            seen: The repository if it was just read; may save one request.

        Raises:
            RefusedError: We are not even a member of the organisation.
        """
        ...

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

        Idempotent. Members that are not listed are removed from the team. If a call fails, repeat
        it to finish. Members are removed first and added last, so that nobody who leaves the team
        gets a wider right, and nobody who joins it gets the old one.

        Args:
            repositories: Names inside `org`; None means all, including those created later.

        Raises:
            NotFoundError: No such organisation, user or repository.
            InvalidInputError: The forge refuses the team's name.
            RefusedError: `team` is the owners team, which is never changed.
        """
        ...

    def members(self, org: str, team: str = "") -> tuple[ForgeUser, ...]:
        """
        Return the members of an organisation's team, or of all its teams. Idempotent.

        Empty if there is no such organisation or team. Of all teams, those that our account may
        not look into are left out.
        """
        ...

    def add_reader(self, org: str) -> ReaderAccount:
        """
        Make a new account that may read the organisation's repositories and nothing else.

        The account of an earlier call loses that right. Not idempotent: an account that was made
        before a lost answer stays, without any right.

        Raises:
            NotFoundError: No such organisation.
            AccessError: Our credentials may not make accounts.
        """
        ...

    def remove_reader(self, org: str, name: str) -> None:
        """
        Remove an account of `add_reader` with its token. Idempotent.

        Raises:
            AccessError: Our credentials may not remove accounts.
        """
        ...

    def has_webhook(self, target: str | RepoId, webhook: Webhook) -> bool:
        """
        Say whether there is an active webhook for that URL and those events; secrets do not count.

        Raises:
            NotFoundError: No such organisation or repository.
            AccessError: Our account does not own it.
        """
        ...

    def ensure_webhook(self, target: str | RepoId, webhook: Webhook) -> None:
        """
        Make sure the organisation or repository has exactly one active webhook for that URL.

        Idempotent. An existing webhook is updated, and duplicates are removed. If a forge cannot
        change a secret, a webhook with a secret is created anew before the old one is removed, so
        no event is missed in between.

        Args:
            target: Name of an organisation, or a repository.

        Raises:
            NotFoundError: No such organisation or repository.
            InvalidInputError: The forge refuses the URL.
        """
        ...
