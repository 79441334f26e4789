"""
Check that the objects exist that an order's fields refer to.

kit.yaml's ``refers`` lists these fields. Checked before anything is written, so that a person gets
the answer at once. Stations check it again, because an object may vanish a moment later.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection
from functools import partial
from typing import Any

from ground.errors import InvalidInputError, every
from ground.objects.kube_objects import Kind, ObjectKey, dig
from orderkit.core.kit.form_shapes import FieldPath, Refers
from orderkit.core.kit.model import Kit
from orderkit.flows.platform import Platform, get_object
from orderkit.ports.cluster import NoSuchKindError

_LISTED = 10


def check_references(
    platform: Platform,
    kit: Kit,
    spec: Any,
    *,
    changed: Collection[FieldPath] | None = None,
) -> None:
    """
    Look up every object that a ``spec`` refers to.

    Args:
        changed: Only these fields, or what is below them; None: all.

    Raises:
        InvalidInputError: An object is not there (the nearest is named), or is not ready.
        UnreachableError, RemoteError: The cluster cannot be read.
    """
    checks = []
    for path, hints in kit.fields.items():
        name = dig(spec, *path.split("."))
        if hints.refers is None or not isinstance(name, str):
            continue
        if changed is None or any(path == c or path.startswith(f"{c}.") for c in changed):
            checks.append(partial(_check, platform, kit.parameter(path), name, hints.refers))
    every(checks)


def _check(platform: Platform, parameter: str, name: str, refers: Refers) -> None:
    kind = Kind.parse(refers.api_version, refers.kind)
    manifest = get_object(platform, ObjectKey(kind, name))
    if manifest is None:
        names = _names(platform, kind)
        near = difflib.get_close_matches(name, names, n=1)
        shown_names = ", ".join(names[:_LISTED]) or "none"
        raise InvalidInputError(
            parameter,
            name,
            f"is not a {refers.kind} of this platform",
            hint=f"did you mean '{near[0]}'?" if near else f"there are: {shown_names}",
        )
    if refers.ready and dig(manifest, *refers.ready.split(".")) is not True:
        raise InvalidInputError(
            parameter,
            name,
            f"is a {refers.kind} that is not ready",
            hint=f"wait until its {refers.ready} is true, or choose another {refers.kind}",
        )


def _names(platform: Platform, kind: Kind) -> list[str]:
    try:
        items = platform.cluster.list(kind).items
    except NoSuchKindError:
        return []
    return sorted(str(item["metadata"]["name"]) for item in items)
