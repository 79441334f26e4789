"""A part of a cluster as builders describe it: the document's third layer, composed objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orderkit.stations import MANAGE, OBSERVE, ManagementAction, Manifest

from .order import Order

IMPORTED: tuple[ManagementAction, ...] = ("Observe", "Update", "LateInitialize")
"""What was there before its order: never created and never deleted."""


def import_policies(*known: str, exists: bool) -> tuple[ManagementAction, ...]:
    """Return what may be done to a part; what exists is observed until its version is known."""
    if not exists:
        return MANAGE
    return IMPORTED if any(known) else OBSERVE


@dataclass(frozen=True, slots=True)
class Part:
    """One object, and the parts that it needs while it exists."""

    name: str
    manifest: Manifest
    uses: tuple[str, ...] = ()
    """They are ready before this one is created, and go after it."""


def compose(order: Order, part: Part) -> bool:
    """
    Want a part; return whether everything it says is known.

    A value that is None is one that the cloud has not given yet. A part that has one is not
    created yet; one that exists stays as it is.
    """
    manifest = part.manifest
    complete = not _lacks_a_value(manifest["spec"])
    if not complete:
        observed = order.parts.request.observed_resource(part.name)
        if observed is None:
            return False
        as_it_is = observed["spec"]["forProvider"]
        manifest = {**manifest, "spec": {**manifest["spec"], "forProvider": as_it_is}}
    order.parts.want(part.name, manifest, uses=part.uses)
    return complete


def _lacks_a_value(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_lacks_a_value(entry) for entry in value.values())
    if isinstance(value, list):
        return any(_lacks_a_value(entry) for entry in value)
    return value is None
