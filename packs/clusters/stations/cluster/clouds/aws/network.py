"""The VPC of an EKS cluster: public subnets, and private ones behind NAT if it is private."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network

from ...order import Order
from ...part import Part
from .resources import resource

_EVERYWHERE = "0.0.0.0/0"
_SUBNET_BITS = 3
"""Eight subnets fit into the VPC: a public and a private one in each of at most four zones."""


def refusal(_order: Order) -> str:
    """Return nothing: AWS can have every cluster that can be ordered."""
    return ""


def subnets(order: Order, kind: str) -> list[str]:
    """Return the parts of the subnets of a kind, ``public`` or ``private``, one in each zone."""
    return [f"subnet-{kind}-{zone}" for zone in order.settings.get("zones", list)]


def node_subnets(order: Order) -> list[str]:
    """Return the parts of the subnets in which nodes run."""
    return subnets(order, "private" if order.private else "public")


def ways_out(order: Order) -> list[str]:
    """Return the parts without which nodes cannot reach their cluster."""
    kind = "private" if order.private else "public"
    return [f"route-{kind}", *(f"association-{subnet}" for subnet in node_subnets(order))]


def network(order: Order) -> Iterator[Part]:
    """Return VPC, gateways, subnets and routes."""
    reference = order.parts.reference
    in_vpc = {"vpcIdRef": reference("network")}
    yield resource(
        order,
        "network",
        "VPC.ec2",
        {
            "cidrBlock": order.settings.get("network.cidr", str),
            "enableDnsHostnames": True,
            "enableDnsSupport": True,
            "tags": {"Name": order.name},
        },
    )
    yield resource(order, "internet-gateway", "InternetGateway.ec2", in_vpc, after=["network"])
    yield from _subnets(order, "public")
    yield from _routes(
        order, "public", {"gatewayIdRef": reference("internet-gateway")}, "internet-gateway"
    )
    if order.private:
        yield resource(
            order, "nat-address", "EIP.ec2", {"domain": "vpc"}, after=["internet-gateway"]
        )
        first = subnets(order, "public")[0]
        yield resource(
            order,
            "nat",
            "NATGateway.ec2",
            {"allocationIdRef": reference("nat-address"), "subnetIdRef": reference(first)},
            after=["nat-address", first, "route-public"],
        )
        yield from _subnets(order, "private")
        yield from _routes(order, "private", {"natGatewayIdRef": reference("nat")}, "nat")


def _subnets(order: Order, kind: str) -> Iterator[Part]:
    """Return a subnet in each zone, tagged for the load balancers that may use it."""
    blocks = list(ip_network(order.settings.get("network.cidr", str)).subnets(_SUBNET_BITS))
    zones = order.settings.get("zones", list)
    offset = 0 if kind == "public" else len(blocks) // 2
    tag = "kubernetes.io/role/elb" if kind == "public" else "kubernetes.io/role/internal-elb"
    for number, (zone, part) in enumerate(zip(zones, subnets(order, kind), strict=True)):
        yield resource(
            order,
            part,
            "Subnet.ec2",
            {
                "vpcIdRef": order.parts.reference("network"),
                "availabilityZone": f"{order.location}{zone}",
                "cidrBlock": str(blocks[offset + number]),
                "mapPublicIpOnLaunch": kind == "public",
                "tags": {"Name": f"{order.name}-{kind}-{zone}", tag: "1"},
            },
            after=["network"],
        )


def _routes(order: Order, kind: str, target: dict[str, object], gateway: str) -> Iterator[Part]:
    """Return a table with one way out, for all subnets of a kind."""
    reference = order.parts.reference
    table = f"routes-{kind}"
    in_vpc = {"vpcIdRef": reference("network")}
    yield resource(order, table, "RouteTable.ec2", in_vpc, after=["network"])
    yield resource(
        order,
        f"route-{kind}",
        "Route.ec2",
        {"routeTableIdRef": reference(table), "destinationCidrBlock": _EVERYWHERE, **target},
        after=[table, gateway],
    )
    for subnet in subnets(order, kind):
        yield resource(
            order,
            f"association-{subnet}",
            "RouteTableAssociation.ec2",
            {"routeTableIdRef": reference(table), "subnetIdRef": reference(subnet)},
            after=[table, subnet],
        )
