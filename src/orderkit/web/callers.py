"""
Who calls the service, and for which teams they may act.

A caller comes with the portal's secret header, a bearer token, or both. The secret alone is the
portal itself, or whoever holds the platform's credentials: it may do everything, and the
requester it names is a claim. A token proves a person or a program; then a requester in a body is
not looked at, and teams are those of the proof: a member of a platform group acts for every
team, the others for teams whose group ``group:default/<team>`` the proof names.

Called by ``request_pipeline`` and the handlers.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass, field

from starlette.requests import Request

from orderkit.core.errors import RefusedError
from orderkit.core.names import check_requester
from orderkit.core.platform.access import PLATFORM_GROUP, Right
from orderkit.ports.requesters import UNKNOWN, Requester, Requesters, UnprovedError

_TEAM_GROUP = "group:default/"


@dataclass(frozen=True, slots=True)
class CallerAccess:
    """How callers of one service prove themselves."""

    secret: str = field(repr=False)
    header: str
    """In which a portal's proxy sends the secret."""
    requesters: Requesters | None = None
    """Who checks bearer tokens; None: nobody, and tokens that a portal adds are passed over."""
    persons: bool = False
    """The portal signs for its users: what it does for somebody needs that proof."""
    platform_groups: frozenset[str] = frozenset({PLATFORM_GROUP})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls. `proof` is None for the portal itself."""

    access: CallerAccess
    portal: bool
    proof: Requester | None

    @property
    def name(self) -> str:
        """Who it is, for the audit log and the rate limit."""
        return self.proof.ref if self.proof else "portal"

    @property
    def via(self) -> str:
        """How that is known."""
        return self.proof.proof if self.proof else "the portal's secret"

    def requester(self, claimed: str | None) -> Requester:
        """
        Return who asks: proved if it is, else as claimed.

        Raises:
            InvalidInputError: The claim is no catalog reference.
        """
        return self.proof or Requester(check_requester(claimed or UNKNOWN))

    def teams(self, right: Right) -> frozenset[str] | None:
        """
        Return the teams for which the caller has a right; None: all.

        Raises:
            RefusedError: For none: the proof does not give it.
        """
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
        Return unless the portal should have proved a person and did not.

        Raises:
            UnprovedError: That is so.
        """
        if self.proof is None and self.access.persons:
            raise UnprovedError(
                "who asks is not proved: no token of the portal came with the request",
                hint="the portal's proxy must let Authorization pass (allowedHeaders)",
            )


def identify(request: Request, access: CallerAccess) -> Caller:
    """
    Say who calls. May ask a portal or provider for its keys: call it in a thread.

    Raises:
        UnprovedError: Neither secret nor token, or one of them is wrong.
        UnreachableError: What a token is checked with cannot be had now.
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
            f"nobody is let in without {access.header} or a token",
            hint="send Authorization: Bearer <token> (docs/service.md)",
        )
    return Caller(access, portal=True, proof=None)
