"""What all of Azure's managed resources have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orderkit.stations import MANAGE, ManagementAction, managed

from ...order import Order
from ...part import Part

GROUP = "resource-group"


def resource(
    order: Order,
    part: str,
    kind: str,
    for_provider: dict[str, Any],
    *,
    uses: Sequence[str] = (),
    after: Sequence[str] = (),
    external_name: str = "",
    connection_secret: str = "",
    policies: Sequence[ManagementAction] = MANAGE,
) -> Part:
    """Return a part; `kind` is ``Kind.group``, as ``Subnet.network``, or a kind of the family."""
    name, _, group = kind.partition(".")
    manifest = managed(
        f"{group + '.' if group else ''}azure.m.upbound.io/v1beta1",
        name,
        for_provider,
        provider_config=order.settings.get("providerConfig", str),
        external_name=external_name,
        connection_secret=connection_secret,
        policies=policies,
    )
    return Part(part, manifest, tuple(uses), tuple(after))


def in_group(order: Order) -> dict[str, Any]:
    """Return the field that places a resource into the cluster's resource group."""
    return {"resourceGroupNameRef": order.parts.reference(GROUP)}


def grant(order: Order, part: str, role: str, scope: str | None, principal: str | None) -> Part:
    """Return a role of Azure for an identity; None as long as Azure gave no id."""
    return resource(
        order,
        part,
        "RoleAssignment.authorization",
        {
            "scope": scope,
            "principalId": principal,
            "principalType": "ServicePrincipal",
            "roleDefinitionName": role,
        },
    )
