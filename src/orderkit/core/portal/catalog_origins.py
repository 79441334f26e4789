"""
Which entities of the portal's catalog the platform vouches for, and which any order may bring.

Whoever can push to an order writes its ``catalog-info.yaml``: kind, name and annotations. The
catalog itself writes where an entity came from, over whatever the file says (observed on Backstage
1.55), so that alone can be believed.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ground.objects.kube_objects import Manifest, annotations_of

FROM_ORDERS = ("Component", "API", "Resource", "System")
"""
Kinds that a file of an order may bring.

Users and Groups say who somebody is, Templates run as whoever starts them, and Locations make the
portal read other files with its own credentials.
"""
_ORIGINS = ("backstage.io/managed-by-origin-location", "backstage.io/managed-by-location")
"""The location that is registered, and the file that a Location in it may have led to."""
_BELOW = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)*", re.ASCII)
"""Only plain names: `..` and its encodings lead out of a folder, and browsers' rules undo them."""


def is_owned(entity: Manifest, owned: Iterable[str]) -> bool:
    """Say whether an entity came from one of the locations; one that ends in ``/*`` is a folder."""
    annotations = annotations_of(entity)
    return all(
        any(_covers(location, str(annotations.get(key, ""))) for location in owned)
        for key in _ORIGINS
    )


def _covers(owned: str, location: str) -> bool:
    if not owned.endswith("/*"):
        return location == owned
    folder = owned[:-1]
    return location.startswith(folder) and bool(_BELOW.fullmatch(location[len(folder) :]))


def came_from(entity: Manifest, base_url: str) -> bool:
    """Say whether the registered location of an entity is on this server."""
    return str(annotations_of(entity).get(_ORIGINS[0], "")).startswith(f"url:{base_url}/")


def pack_location(folder_url: str) -> str:
    """
    Return the folder of locations that is the platform's own: files of its pack on ``main``.

    Args:
        folder_url: Their address on the forge, with a final slash.
    """
    return f"url:{folder_url}*"


def catalog_config(templates: Sequence[str]) -> dict[str, Any]:
    """
    Return the part of a Backstage's configuration that says what its catalog admits from where.

    Locations are named exactly: a pattern would match addresses that lead elsewhere.

    Args:
        templates: The addresses of the pack's templates.
    """
    return {
        "rules": [{"allow": [*FROM_ORDERS]}],
        "locations": [
            {"type": "url", "target": url, "rules": [{"allow": ["Template"]}]} for url in templates
        ],
    }
