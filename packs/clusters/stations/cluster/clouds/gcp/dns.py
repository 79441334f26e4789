"""Zones of Cloud DNS, and cert-manager's right to write into the public one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...order import CERT_MANAGER, Order
from ...part import Part
from .resources import ACCOUNT_ID_MAX, account_email, resource

_ACCOUNT = "cert-manager"


def zones(order: Order) -> Iterator[Part]:
    """Return the public zone, and one that the cluster's network sees."""
    common = {"project": order.project, "forceDestroy": True}
    yield resource(
        order,
        "zone-public",
        "ManagedZone.dns",
        {
            **common,
            "dnsName": f"{order.domain}.",
            "description": f"Services of cluster {order.name}",
            "visibility": "public",
        },
    )
    if order.has_private_zone:
        network = {"networkUrlRef": order.parts.reference("network")}
        yield resource(
            order,
            "zone-private",
            "ManagedZone.dns",
            {
                **common,
                "dnsName": f"{order.internal_domain}.",
                "description": f"Internal services of cluster {order.name}",
                "visibility": "private",
                "privateVisibilityConfig": {"networks": [network]},
            },
            uses=["network"],
        )


def dns_rights(order: Order) -> Iterator[Part]:
    """Return an account that cert-manager's service account may use, and its right."""
    project = order.project
    yield resource(
        order,
        _ACCOUNT,
        "ServiceAccount.cloudplatform",
        {"project": project, "displayName": f"cert-manager of {order.name}"},
        external_name=_account_id(order),
    )
    yield resource(
        order,
        "cert-manager-identity",
        "ServiceAccountIAMMember.cloudplatform",
        {
            "serviceAccountIdRef": order.parts.reference(_ACCOUNT),
            "role": "roles/iam.workloadIdentityUser",
            "member": f"serviceAccount:{project}.svc.id.goog[{'/'.join(CERT_MANAGER)}]",
        },
        uses=["cluster"],
        after=[_ACCOUNT],
    )
    yield resource(
        order,
        "cert-manager-dns",
        "ManagedZoneIAMMember.dns",
        {
            "project": project,
            "managedZone": order.parts.name("zone-public"),
            "role": "roles/dns.admin",
            "member": f"serviceAccount:{account_email(order, _account_id(order))}",
        },
        after=[_ACCOUNT, "zone-public"],
    )


def name_servers(order: Order) -> list[str]:
    """Return the name servers of the public zone."""
    return list(order.known("zone-public", "nameServers") or ())


def chart_values(order: Order, chart: str) -> dict[str, Any]:
    """Return cert-manager's account, and an internal load balancer for a private cluster."""
    if chart == "cert-manager" and order.needs_dns_rights:
        account = account_email(order, _account_id(order))
        return {"serviceAccount": {"annotations": {"iam.gke.io/gcp-service-account": account}}}
    if chart == "ingress-nginx" and order.private:
        internal = {"networking.gke.io/load-balancer-type": "Internal"}
        return {"controller": {"service": {"annotations": internal}}}
    return {}


def _account_id(order: Order) -> str:
    return order.name_in_cloud(_ACCOUNT, "-cert-mgr", longest=ACCOUNT_ID_MAX)
