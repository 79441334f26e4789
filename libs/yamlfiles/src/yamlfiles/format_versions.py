"""Versions of the formats of our files (pack.yaml, records in repositories): newer is refused."""

from __future__ import annotations

import re

from ground.errors import RefusedError

__all__ = [
    "API_VERSION",
    "UPGRADE",
    "refuse_newer",
]

API_VERSION = "orderkit.dev/v1alpha1"
UPGRADE = "upgrade Orderkit: pip install --upgrade orderkit"
_VERSION = re.compile(
    r"(?P<group>[a-z.]+)/v(?P<major>\d{1,6})(?:(?P<stage>alpha|beta)(?P<minor>\d{1,6}))?"
)


def refuse_newer(found: object, name: str, *, known: str = API_VERSION) -> None:
    """
    Refuse a file of a later format than `known`; other values are not judged here.

    Called before a schema is asked: it would complain of the first key that only the later format
    has. Versions are ordered as Kubernetes orders them: v1alpha1, v1alpha2, v1beta1, v1.

    Args:
        name: The file's name in messages.

    Raises:
        RefusedError: It is newer; the message names file, version found and version known.
    """
    theirs, ours = _rank(found), _rank(known)
    if theirs and ours and theirs[0] == ours[0] and theirs[1] > ours[1]:
        raise RefusedError(
            f"{name}: format {found} is newer than {known}, the newest that this Orderkit knows",
            hint=UPGRADE,
        )


def _rank(version: object) -> tuple[str, tuple[int, int, int]] | None:
    match = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if match is None:
        return None
    stage = {"alpha": 0, "beta": 1, None: 2}[match["stage"]]
    return match["group"], (int(match["major"]), stage, int(match["minor"] or 0))
