"""What all of Azure's managed resources have in common."""

from __future__ import annotations

from typing import Any, Unpack

from ...order import Order
from ...part import Part, PartOptions, managed_part

GROUP = "resource-group"


def resource(
    order: Order,
    part: str,
    kind: str,
    for_provider: dict[str, Any],
    **options: Unpack[PartOptions],
) -> Part:
    """Return a part; `kind` is ``Kind.group``, as ``Subnet.network``, or a kind of the family."""
    name, _, group = kind.partition(".")
    api_version = f"{group + '.' if group else ''}azure.m.upbound.io/v1beta1"
    return managed_part(order, part, api_version, name, for_provider, **options)


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
