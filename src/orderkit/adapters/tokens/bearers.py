"""
Bearer tokens of several kinds: each is passed to the checker of its kind.

The kind is read from the token itself and proves nothing; it only chooses who has to. Called by
``web`` through the port ``requesters``.
"""

from __future__ import annotations

from dataclasses import dataclass

from orderkit.adapters.tokens.published_keys import header
from orderkit.ports.requesters import Requester, Requesters, UnprovedError

_BACKSTAGE = "vnd.backstage."
_DOTS_OF_SIGNED = 2


@dataclass(frozen=True, slots=True)
class BearerRequesters:
    """The checker of each kind; None: that kind is not accepted."""

    portal: Requesters | None = None
    oidc: Requesters | None = None
    tokens: Requesters | None = None

    def describe(self) -> str:
        """
        Say what is accepted.

        Raises:
            UnreachableError: What somebody checks with cannot be had now.
        """
        descriptions = [
            checker.describe() for checker in (self.portal, self.oidc, self.tokens) if checker
        ]
        return "; ".join(descriptions) or "claims: nothing is checked"

    def proved(self, authorization: str) -> Requester:
        """
        Return who stands behind the token.

        Raises:
            UnprovedError: No bearer token, of a kind that is not accepted, or it proves nobody.
            UnreachableError: What it has to be checked with cannot be had now.
        """
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise _unproved("no token came with the request")
        checker = self._checker(token)
        if checker is None:
            raise _unproved("this service accepts no such token")
        return checker.proved(authorization)

    def _checker(self, token: str) -> Requesters | None:
        if token.count(".") != _DOTS_OF_SIGNED:
            return self.tokens or self.portal
        if str(header(token, _unproved).get("typ", "")).startswith(_BACKSTAGE):
            return self.portal
        return self.oidc or self.portal


def _unproved(why: str) -> UnprovedError:
    return UnprovedError(
        f"the requester is not proved: {why}",
        hint="send Authorization: Bearer <token>; a portal's proxy must forward it "
        "(allowedHeaders)",
    )
