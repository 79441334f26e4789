"""
Check that the cluster is ready for orders of another version, and say when the old one may go.

The cluster's own definition counts, not the pack's: it may not have taken the pack yet.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ground.errors import InvalidInputError, RefusedError
from ground.objects.kube_objects import CRD, Manifest, ObjectKey, dig, metadata
from kubeschema.validate import Validator
from orderkit.core.kit.conversion_proof import conversion_problems, dropped_fields
from orderkit.core.kit.converting import Converter, converter
from orderkit.core.kit.model import Kit
from orderkit.flows.platform import Platform, get_object


def check_version(platform: Platform, kit: Kit, version: str) -> tuple[str, ...]:
    """
    Check what a campaign to a version needs; return what to know about it.

    Raises:
        InvalidInputError: It is not the kit's version, or the kit's conversions lose something.
        RefusedError: The cluster does not serve or store the version, or would drop fields.
        RemoteError: The cluster does not answer.
    """
    if version != kit.kind.version:
        raise InvalidInputError(
            "spec.what.version.to", version,
            f"is not the version that the Compositions of kit {kit.name} refer to",
            hint=f"write {kit.kind.version}; for another one, make it referenceable in the XRD",
        )  # fmt: skip
    for problem in conversion_problems(kit):
        place = ".".join(map(str, problem.steps))
        raise InvalidInputError(
            f"kit {kit.name}: {place}", problem.value, problem.rule, hint=problem.hint
        )
    crd = _crd(platform, kit)
    versions = {str(v.get("name")): v for v in dig(crd, "spec", "versions", default=[])}
    _check_served(kit, version, versions)
    strategy = str(dig(crd, "spec", "conversion", "strategy", default=None) or "None")
    validator = Validator(kit.xrd)
    for other in _others(kit):
        way = converter(kit, other, version, validator)
        _check_dropped(kit, way, strategy)
    words = "a webhook" if strategy == "Webhook" else "renaming the version (strategy None)"
    return (f"the cluster stores {version}, and converts by {words}",)


def _crd(platform: Platform, kit: Kit) -> Manifest:
    name = str(metadata(kit.xrd)["name"])
    crd = get_object(platform, ObjectKey(CRD, name))
    if crd is None:
        raise RefusedError(
            f"the cluster has no CustomResourceDefinition {name}",
            hint="'orderkit platform status' shows whether the pack is delivered",
        )
    return crd


def _others(kit: Kit) -> list[str]:
    """Return the versions that the kit converts to its own one."""
    ends = [(c.from_, c.to) for c in kit.conversions if kit.kind.version in (c.from_, c.to)]
    if not ends:
        raise InvalidInputError(
            f"kit {kit.name}: spec.conversions", None, "is missing",
            hint=f"say in kit.yaml how fields get to {kit.kind.version}, and publish the pack",
        )  # fmt: skip
    return [a if b == kit.kind.version else b for a, b in ends]


def _check_served(kit: Kit, version: str, versions: Mapping[str, Any]) -> None:
    served = [name for name, found in versions.items() if found.get("served")]
    hint = "deliver the pack first: orderkit platform upgrade; then wait for its layer 'apis'"
    if version not in served:
        names = ", ".join(served) or "none"
        raise RefusedError(
            f"the cluster does not serve {version} of {kit.kind.kind}: served: {names}", hint=hint
        )
    stored = next((name for name, found in versions.items() if found.get("storage")), "")
    if stored != version:
        text = f"the cluster stores {kit.kind.kind} as {stored}, not as {version}"
        raise RefusedError(text, hint=hint)


def _check_dropped(kit: Kit, way: Converter, strategy: str) -> None:
    dropped = dropped_fields(kit, way, strategy)
    if dropped:
        raise RefusedError(
            f"the cluster's conversion strategy is None, which drops spec.{dropped[0]} of"
            f" {way.source}: {way.target} does not declare it",
            hint=f"declare spec.{dropped[0]} in {way.target} too until no order has it, or set up"
            " a conversion webhook in spec.conversion of the XRD",
        )


def retirement(
    platform: Platform, kit: Kit, versions: Mapping[str, str], orders: Collection[str]
) -> tuple[str, ...]:
    """
    Say of each older version whether it can be switched off.

    Args:
        versions: The version of each order's XR in Git; empty where that is not known.
        orders: The names of XRs that are orders.

    Raises:
        RemoteError: The cluster does not answer.
    """
    crd = _crd(platform, kit)
    stored = dig(crd, "status", "storedVersions", default=None) or []
    xrs = {str(metadata(xr)["name"]) for xr in platform.cluster.list(kit.kind).items}
    strangers = sorted(xrs - set(orders))
    unknown = [order for order, version in versions.items() if not version]
    return tuple(
        _retired(other, kit, versions, stored, [*strangers, *unknown]) for other in _others(kit)
    )


def _retired(
    other: str, kit: Kit, versions: Mapping[str, str], stored: Collection[str], unknown: list[str]
) -> str:
    users = [order for order, version in versions.items() if version == other]
    if users:
        return f"{other} cannot be switched off: {len(users)} orders have it, such as {users[0]}"
    if unknown:
        return (
            f"{other} has no order, but nobody knows the version of {len(unknown)} other XRs, such"
            f" as {unknown[0]}: look before you switch it off"
        )
    if other in stored:
        return (
            f"{other} can be switched off (served: false): no order has it. Before it leaves the"
            f" XRD: store every {kit.kind.kind} once more (kubectl get -o yaml | kubectl replace"
            f" -f -), and take {other} out of status.storedVersions of its CRD"
        )
    return f"{other} can be switched off (served: false), and then leave the XRD: nothing has it"
