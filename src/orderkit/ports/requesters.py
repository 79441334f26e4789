"""
Who asks, and what proves it.

A requester that only a body or a flag names is a *claim*: any author of a template can write
anything there. A token proves more: the portal's, which it signed for the person who is signed in
(``adapters.tokens.backstage_signatures``), an OpenID provider's (``adapters.tokens.oidc``), or one
that we gave to a program (``adapters.tokens.access_tokens``). Called by ``web``; flows take its
`Requester`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from orderkit.core.errors import RefusedError
from orderkit.core.platform.access import RIGHTS, Right

UNKNOWN = "user:default/unknown"
"""Who asks when nobody says so."""


class UnprovedError(RefusedError):
    """The token proves nobody: none, not of this portal, expired, or without a person in it."""

    http_status = 401


@dataclass(frozen=True, slots=True)
class Requester:
    """
    A catalog reference, and what proves it; without a proof it is a claim.

    `groups` are those the proof names, as catalog references. `everywhere` says that the proof
    is good for every team.
    """

    ref: str
    proof: str = ""
    groups: frozenset[str] = frozenset()
    rights: frozenset[Right] = RIGHTS
    everywhere: bool = False


class Requesters(Protocol):
    """Tells who stands behind a request, by its ``Authorization`` header."""

    def describe(self) -> str:
        """
        Say in a few words whose signatures are checked, after fetching the keys.

        Raises:
            UnreachableError: The portal's keys cannot be had now.
        """
        ...

    def proved(self, authorization: str) -> Requester:
        """
        Return the person whom the portal vouches for.

        Raises:
            UnprovedError: The header proves nobody.
            UnreachableError: The portal's keys cannot be had now.
        """
        ...
