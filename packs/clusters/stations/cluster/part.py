"""A part of a cluster as builders describe it: the document's third layer, composed objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from orderkit.stations import MANAGE, OBSERVE, ManagementAction, Manifest, managed

from .order import Order

IMPORTED: tuple[ManagementAction, ...] = ("Observe", "Update", "LateInitialize")
"""What was there before its order: never created and never deleted."""


def import_policies(*running_versions: str, exists: bool) -> tuple[ManagementAction, ...]:
    """Return what may be done to a part; what exists is observed until its version is known."""
    if not exists:
        return MANAGE
    return IMPORTED if any(running_versions) else OBSERVE


@dataclass(frozen=True, slots=True)
class Part:
    """One object, and the parts that it needs while it exists."""

    name: str
    manifest: Manifest
    uses: tuple[str, ...] = ()
    """They are ready before this one is created, and go after it: a Usage holds each."""
    after: tuple[str, ...] = ()
    """They are ready before this one is created. In an end the cloud itself keeps the order."""


class PartOptions(TypedDict, total=False):
    """What a managed part may say besides its fields: `Part` and `managed` explain it."""

    uses: Sequence[str]
    after: Sequence[str]
    external_name: str
    connection_secret: str
    policies: Sequence[ManagementAction]


def managed_part(
    order: Order,
    part: str,
    api_version: str,
    kind: str,
    for_provider: dict[str, Any],
    **options: Unpack[PartOptions],
) -> Part:
    """Return a part that is a managed resource of the order's account."""
    manifest = managed(
        api_version,
        kind,
        for_provider,
        provider_config=order.settings.get("providerConfig", str),
        external_name=options.get("external_name", ""),
        connection_secret=options.get("connection_secret", ""),
        policies=options.get("policies", MANAGE),
    )
    return Part(part, manifest, tuple(options.get("uses", ())), tuple(options.get("after", ())))


def compose(order: Order, part: Part, lacking: set[str]) -> None:
    """
    Want a part, or add its name to `lacking` if something that it says is not known yet.

    A value that is None is one that the cloud has not given yet, and a part in `lacking` cannot be
    used yet. A part that exists stays as it is.
    """
    manifest = part.manifest
    observed = order.parts.request.observed_resource(part.name)
    unknown = _lacks_a_value(manifest["spec"])
    too_early = not lacking.isdisjoint(part.uses) or not all(map(order.parts.is_ready, part.after))
    if observed is None and (unknown or too_early):
        lacking.add(part.name)
        return
    if observed is not None and unknown:
        as_it_is = observed["spec"]["forProvider"]
        manifest = {**manifest, "spec": {**manifest["spec"], "forProvider": as_it_is}}
    order.parts.want(part.name, manifest, uses=[use for use in part.uses if use not in lacking])


def _lacks_a_value(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_lacks_a_value(entry) for entry in value.values())
    if isinstance(value, list):
        return any(_lacks_a_value(entry) for entry in value)
    return value is None
