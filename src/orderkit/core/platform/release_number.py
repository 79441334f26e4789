"""
Release numbers in version texts: read and compared.

A text that does not begin with a number is not read: a version is never guessed. What a vendor adds
(``-eks-a1b2c3``, ``+k3s1``, ``-rootless``) does not change the number. ``-rc1`` and
``+dev-12-gabc`` name builds before their number. A text with two numbers names no patch release.

Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_RELEASE = re.compile(r"v?([0-9]{1,6})\.([0-9]{1,6})(?:\.([0-9]{1,6}))?(?![0-9.])(.*)", re.DOTALL)
_BEFORE = re.compile(r"[-+~]?(rc|alpha|beta|pre|dev|nightly|snapshot)(?![a-z])", re.IGNORECASE)
_AFTER = re.compile(r"[-+][0-9]+-g[0-9a-f]{4,}")
"""Gitea's and git's mark of a build some commits after a release: ``1.27.3+12-gabcd``."""


@dataclass(frozen=True, order=True, slots=True)
class ReleaseNumber:
    """Three numbers; a build before a release sorts before it."""

    numbers: tuple[int, int, int]
    final: bool = True
    """False for a release candidate or a development build: it comes before the release."""
    between: bool = field(default=False, compare=False)
    """Whether it is a build between two releases, so its number does not tell its fixes."""
    exact: bool = field(default=True, compare=False)
    """False if the text names no patch release."""
    plain: bool = field(default=True, compare=False)
    """Whether nothing follows the number: it is the project's own build of that release."""

    @property
    def series(self) -> tuple[int, int]:
        """The numbers of its line of releases."""
        return self.numbers[:2]


def read_release(text: str) -> ReleaseNumber | None:
    """Return the release that a version text names; None if it names none."""
    match = _RELEASE.fullmatch(text)
    if match is None:
        return None
    major, minor, patch, rest = match.groups()
    is_before = bool(_BEFORE.match(rest))
    return ReleaseNumber(
        (int(major), int(minor), int(patch or 0)),
        final=not is_before,
        between=is_before or bool(_AFTER.match(rest)),
        exact=patch is not None,
        plain=not rest,
    )
