"""
Who sends a request, and what proves it.

A requester named only in a body or a flag is a *claim*: any template author can write anything
there. A token is a proof. Three kinds are accepted: one that the portal signed for the user who is
signed in, one of an OpenID provider (``adapters.tokens.bearers`` checks both), and one that we
issued to a program (``adapters.tokens.access_tokens``).

`SignIn` signs a person in with a provider: authorization code with PKCE.
``adapters.tokens.sign_in`` implements it, for OpenID Connect and for GitHub.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from ground.errors import RefusedError
from ground.names import UNKNOWN_PERSON
from orderkit.core.platform.service_access import RIGHTS, Right

UNKNOWN = UNKNOWN_PERSON
"""The requester of a request that names none."""


class UnprovedError(RefusedError):
    """The token proves no requester: missing, of another portal, expired, or without a person."""

    http_status = 401


@dataclass(frozen=True, slots=True)
class Requester:
    """
    A catalog reference and its proof; without a proof it is a claim.

    `groups` are the catalog references that the proof names. `everywhere`: the proof is valid for
    every team.
    """

    ref: str
    proof: str = ""
    groups: frozenset[str] = frozenset()
    rights: frozenset[Right] = RIGHTS
    everywhere: bool = False
    expires_s: float | None = field(default=None, compare=False)
    """When the proof ends, in seconds since 1970; None: not known."""
    agent: str = ""
    """The AI agent that asks on behalf of the person; empty: the person asks."""


class Requesters(Protocol):
    """Finds the requester of a request from its ``Authorization`` header."""

    def describe(self) -> str:
        """
        Fetch the keys and describe whose signatures are checked.

        Raises:
            UnreachableError: The portal's keys cannot be had now.
        """
        ...

    def proved(self, authorization: str) -> Requester:
        """
        Return the requester that the header proves.

        Raises:
            UnprovedError: The header proves no requester.
            UnreachableError: The portal's keys cannot be had now.
        """
        ...


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """What one browser has to bring back so that its code is redeemed."""

    state: str
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    """PKCE: whose digest the provider was sent."""


class SignIn(Protocol):
    """One provider."""

    @property
    def name(self) -> str:
        """The provider's host, for the button."""
        ...

    def begin(self, redirect_uri: str) -> tuple[str, SignInAttempt]:
        """
        Return the provider's address for a browser, and the attempt to keep for it.

        Raises:
            UnreachableError: The provider's discovery document cannot be had now.
        """
        ...

    def finish(self, code: str, attempt: SignInAttempt, redirect_uri: str) -> Requester:
        """
        Redeem a code; return the person that the ID token proves. Other tokens are discarded.

        Raises:
            UnprovedError: The provider refuses the code, or its token is not for this attempt.
            UnreachableError: The provider, or its keys, cannot be had now.
        """
        ...
