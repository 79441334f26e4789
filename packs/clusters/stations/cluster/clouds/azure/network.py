"""Resource group and network of an AKS cluster, and NAT if it is private."""

from __future__ import annotations

from collections.abc import Iterator

from ...order import Order
from ...part import Part
from .resources import GROUP, in_group, resource


def network(order: Order) -> Iterator[Part]:
    """Return resource group, network and subnet; a NAT gateway for nodes of a private cluster."""
    placement = {**in_group(order), "location": order.location}
    yield resource(
        order,
        GROUP,
        "ResourceGroup",
        {"location": order.location},
        external_name=order.name_in_cloud(GROUP),
    )
    yield resource(
        order,
        "network",
        "VirtualNetwork.network",
        {**placement, "addressSpace": [order.settings.get("network.cidr", str)]},
        after=[GROUP],
    )
    yield resource(
        order,
        "subnet",
        "Subnet.network",
        {
            **in_group(order),
            "virtualNetworkNameRef": order.parts.reference("network"),
            "addressPrefixes": [order.settings.get("network.nodes", str)],
        },
        after=["network"],
    )
    if order.private:
        yield from _nat(order)


def _nat(order: Order) -> Iterator[Part]:
    reference = order.parts.reference
    placement = {**in_group(order), "location": order.location}
    yield resource(
        order,
        "nat-address",
        "PublicIP.network",
        {**placement, "allocationMethod": "Static", "sku": "Standard"},
        after=[GROUP],
    )
    yield resource(
        order, "nat", "NATGateway.network", {**placement, "skuName": "Standard"}, after=[GROUP]
    )
    yield resource(
        order,
        "nat-with-address",
        "NATGatewayPublicIPAssociation.network",
        {
            "natGatewayIdRef": reference("nat"),
            "publicIpAddressIdRef": reference("nat-address"),
        },
        after=["nat", "nat-address"],
    )
    yield resource(
        order,
        "nat-of-subnet",
        "SubnetNATGatewayAssociation.network",
        {"natGatewayIdRef": reference("nat"), "subnetIdRef": reference("subnet")},
        after=["nat-with-address", "subnet"],
    )
