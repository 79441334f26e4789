"""
Who asks, and what proves it.

A requester that only a body or a flag names is a *claim*: any author of a template can write
anything there. A portal can do better: its requests carry a token that it signed for the person
who is signed in. ``adapters.backstage.signatures`` checks Backstage's. Called by ``web``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from orderkit.core.errors import RefusedError

UNKNOWN = "user:default/unknown"
"""Who asks when nobody says so."""


class UnprovedError(RefusedError):
    """The token proves nobody: none, not of this portal, expired, or without a person in it."""


@dataclass(frozen=True, slots=True)
class Requester:
    """A catalog reference, and what proves it; without a proof it is a claim."""

    ref: str
    proof: str = ""
    groups: frozenset[str] = frozenset()
    """Who else they are, as the proof says: references of groups."""


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
