"""
Sign in with an OpenID Connect provider: authorization code with PKCE.

``adapters.tokens.oidc_sign_in`` does it; the console calls it (``web.console``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from orderkit.ports.requesters import Requester


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
