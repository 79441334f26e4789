"""The network of a GKE cluster: a subnetwork for nodes, pods and services, and NAT if private."""

from __future__ import annotations

from collections.abc import Iterator

from ...order import Order
from ...part import Part
from .resources import resource

PODS, SERVICES = "pods", "services"


def refusal(_order: Order) -> str:
    """Return nothing: Google Cloud can have every cluster that can be ordered."""
    return ""


def network(order: Order) -> Iterator[Part]:
    """Return network and subnetwork; router and NAT for nodes without public addresses."""
    project = {"project": order.project}
    regional = {**project, "region": order.location}
    ranges = order.settings.get("network", dict)
    yield resource(
        order,
        "network",
        "Network.compute",
        {**project, "autoCreateSubnetworks": False, "routingMode": "REGIONAL"},
    )
    yield resource(
        order,
        "subnet",
        "Subnetwork.compute",
        {
            **regional,
            "networkRef": order.parts.reference("network"),
            "ipCidrRange": ranges["nodes"],
            "privateIpGoogleAccess": True,
            "secondaryIpRange": [
                {"rangeName": PODS, "ipCidrRange": ranges["pods"]},
                {"rangeName": SERVICES, "ipCidrRange": ranges["services"]},
            ],
        },
        after=["network"],
    )
    if order.private:
        yield resource(
            order,
            "router",
            "Router.compute",
            {**regional, "networkRef": order.parts.reference("network")},
            after=["network"],
        )
        yield resource(
            order,
            "nat",
            "RouterNAT.compute",
            {
                **regional,
                "routerRef": order.parts.reference("router"),
                "natIpAllocateOption": "AUTO_ONLY",
                "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
            },
            after=["router"],
        )
