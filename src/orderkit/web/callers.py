"""
Who calls the service, and for which teams they may act.

A caller sends the portal's secret header, a bearer token, or both. The secret alone proves the
portal itself, or whoever holds the platform's credentials: it may do everything, and the requester
it names is a claim. A token proves a person or a program; then the requester in the body is
ignored, and the teams come from the proof: a member of a platform group may act for every team,
others for the teams whose group ``group:default/<team>`` the proof names.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass, field

from starlette.requests import Request

from ground.errors import RefusedError
from ground.names import check_requester
from orderkit.core.platform.service_access import Right
from orderkit.ports.requesters import UNKNOWN, Requester, Requesters, UnprovedError

_TEAM_GROUP = "group:default/"


@dataclass(frozen=True, slots=True)
class CallerAccess:
    """How callers of one service prove themselves."""

    secret: str = field(repr=False)
    header: str
    """The header in which a portal's proxy sends the secret."""
    requesters: Requesters | None = None
    """Checks bearer tokens; None: tokens that a portal adds are ignored."""
    persons: bool = False
    """The portal signs for its users: requests on behalf of a user need that proof."""
    platform_groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls. `proof` is None for the portal itself."""

    access: CallerAccess
    portal: bool
    proof: Requester | None

    @property
    def name(self) -> str:
        """The caller's name for the audit log and the rate limit."""
        return self.proof.ref if self.proof else "portal"

    @property
    def via(self) -> str:
        """What proves the caller."""
        return self.proof.proof if self.proof else "the portal's secret"

    def requester(self, claimed: str | None) -> Requester:
        """
        Return the requester: proved if there is a proof, else as claimed.

        Raises:
            InvalidInputError: The claim is not a catalog reference.
        """
        return self.proof or Requester(check_requester(claimed or UNKNOWN))

    def teams(self, right: Right) -> frozenset[str] | None:
        """
        Return the teams for which the caller has a right; None: all.

        Raises:
            RefusedError: For none: the proof lacks the right.
        """
        # the portal's secret alone, which may do everything
        if self.proof is None:
            return None
        if right not in self.proof.rights:
            raise RefusedError(
                f"{self.name} lacks the right '{right}'",
                hint=f"rights of this token: {', '.join(sorted(self.proof.rights))}",
            )
        if self.proof.everywhere or self.proof.groups & self.access.platform_groups:
            return None
        return frozenset(
            group.removeprefix(_TEAM_GROUP)
            for group in self.proof.groups
            if group.startswith(_TEAM_GROUP)
        )

    def check(self, right: Right, team: str | None) -> None:
        """
        Return if the caller has a right for a team; None: for the whole platform.

        Raises:
            RefusedError: It has not.
        """
        teams = self.teams(right)
        if teams is not None and team not in teams:
            subject = f"team '{team}'" if team else "the whole platform"
            raise self.foreign(subject, teams)

    def foreign(self, subject: str, teams: Collection[str]) -> RefusedError:
        """Make the error for something that is none of the caller's teams'."""
        return RefusedError(
            f"{self.name} may not act for {subject}",
            hint=f"teams of {self.name}: {', '.join(sorted(teams)) or 'none'}",
        )

    def check_person(self) -> None:
        """
        Check that a portal that signs for its users sent a user's token.

        Raises:
            UnprovedError: It did not.
        """
        if self.proof is None and self.access.persons:
            raise UnprovedError(
                "the requester is not proved: the portal sent no token with the request",
                hint="let the portal's proxy forward the Authorization header (allowedHeaders)",
            )


def identify(request: Request, access: CallerAccess) -> Caller:
    """
    Say who calls. May ask a portal or provider for its keys: call it in a thread.

    Raises:
        UnprovedError: Neither secret nor token, or one of them is wrong.
        UnreachableError: The keys that check a token cannot be read now.
    """
    portal_secret = request.headers.get(access.header)
    if portal_secret is not None and not secrets.compare_digest(
        portal_secret.encode(), access.secret.encode()
    ):
        raise UnprovedError(f"header {access.header} is wrong")
    authorization = request.headers.get("authorization", "")
    if authorization and access.requesters is not None:
        return Caller(access, portal_secret is not None, access.requesters.proved(authorization))
    if portal_secret is None:
        raise UnprovedError(
            f"the request has neither {access.header} nor a token",
            hint="send Authorization: Bearer <token> (docs/service.md)",
        )
    return Caller(access, portal=True, proof=None)
