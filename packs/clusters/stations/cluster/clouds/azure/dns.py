"""Zones of Azure DNS, and cert-manager's right to write into the public one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...order import CERT_MANAGER, Order
from ...part import Part
from .resources import GROUP, grant, in_group, resource

_IDENTITY = "cert-manager"
_AUDIENCE = "api://AzureADTokenExchange"


def zones(order: Order) -> Iterator[Part]:
    """Return the public zone; and the private one, which is another kind, with its link."""
    yield resource(
        order,
        "zone-public",
        "DNSZone.network",
        in_group(order),
        after=[GROUP],
        external_name=order.domain,
    )
    if order.has_private_zone:
        yield resource(
            order,
            "zone-private",
            "PrivateDNSZone.network",
            in_group(order),
            after=[GROUP],
            external_name=order.internal_domain,
        )
        yield resource(
            order,
            "zone-private-link",
            "PrivateDNSZoneVirtualNetworkLink.network",
            {
                **in_group(order),
                "privateDnsZoneNameRef": order.parts.reference("zone-private"),
                "virtualNetworkIdRef": order.parts.reference("network"),
                "registrationEnabled": False,
            },
            after=["zone-private", "network"],
        )


def dns_rights(order: Order) -> Iterator[Part]:
    """Return an identity that cert-manager's service account may use, and its right."""
    yield resource(
        order,
        _IDENTITY,
        "UserAssignedIdentity.managedidentity",
        {**in_group(order), "location": order.location, "name": f"{order.name}-cert-manager"},
        after=[GROUP],
    )
    yield resource(
        order,
        "cert-manager-identity",
        "FederatedIdentityCredential.managedidentity",
        {
            "parentIdRef": order.parts.reference(_IDENTITY),
            "audience": [_AUDIENCE],
            "issuer": order.known("cluster", "oidcIssuerUrl"),
            "subject": f"system:serviceaccount:{':'.join(CERT_MANAGER)}",
        },
        after=[_IDENTITY],
    )
    yield grant(
        order,
        "cert-manager-dns",
        "DNS Zone Contributor",
        order.known("zone-public", "id"),
        order.known(_IDENTITY, "principalId"),
    )


def name_servers(order: Order) -> list[str]:
    """Return the name servers of the public zone."""
    return list(order.known("zone-public", "nameServers") or ())


def chart_values(order: Order, chart: str) -> dict[str, Any]:
    """Return cert-manager's identity, and an internal load balancer for a private cluster."""
    if chart == "cert-manager" and order.needs_dns_rights:
        workload_label = {"azure.workload.identity/use": "true"}
        return {"podLabels": workload_label, "serviceAccount": {"labels": workload_label}}
    if chart == "ingress-nginx" and order.private:
        internal = {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}
        return {"controller": {"service": {"annotations": internal}}}
    return {}
