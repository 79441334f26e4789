"""An AKS cluster with the system pool that Azure asks for, and its other pools."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

from orderkit.stations import OBSERVE

from ...order import Order, Pool
from ...part import Part, import_policies
from .. import Access, ClusterFacts, existing_policies
from .resources import GROUP, grant, in_group, resource

_SYSTEM = "system"
_CA = "kubeconfig.clustercacertificate"
_DNS_ADDRESS = 10
"""Which address of the services' network answers names."""


def refusal(order: Order) -> str:
    """Return why there cannot be such a cluster on Azure."""
    if order.is_new and any(pool.name == _SYSTEM for pool in order.pools):
        return f"spec.pools: {_SYSTEM} is the pool of AKS itself: give yours another name"
    if not order.is_new and "/" not in order.existing_name:
        return (
            f"spec.existing.name: {order.existing_name} names no resource group: "
            "write GROUP/CLUSTER"
        )
    return ""


def cluster(order: Order, version: str) -> Iterator[Part]:
    """Return the control plane with its system pool, and its right to use the subnet."""
    if not order.is_new:
        yield _existing_cluster(order, version)
        return
    yield resource(
        order,
        "cluster",
        "KubernetesCluster.containerservice",
        {
            **in_group(order),
            "location": order.location,
            "dnsPrefix": order.name,
            "nodeResourceGroup": order.asked("cluster", "nodeResourceGroup")
            or f"{order.name_in_cloud(GROUP)}_nodes",  # no cluster's name has a _
            "kubernetesVersion": version,
            "skuTier": order.settings.get("tier", str),
            "identity": {"type": "SystemAssigned"},
            "defaultNodePool": _system_pool(order, version),
            "networkProfile": _network_profile(order),
            **_authorized(order),
            "oidcIssuerEnabled": True,
            "workloadIdentityEnabled": True,
            "roleBasedAccessControlEnabled": True,
        },
        uses=[GROUP, "network", "subnet", *(["nat-of-subnet", "nat"] if order.private else [])],
        external_name=order.name,
        connection_secret=order.kubeconfig_secret,
    )
    identity = order.known("cluster", "identity", "principalId")
    subnet = order.known("subnet", "id")
    yield grant(order, "network-role", "Network Contributor", subnet, identity)


def _system_pool(order: Order, version: str) -> dict[str, Any]:
    running = order.known("cluster", "currentKubernetesVersion")
    return {
        "name": _SYSTEM,
        "vmSize": order.settings.get("systemPool.machine", str),
        "nodeCount": order.settings.get("systemPool.nodes", int),
        "onlyCriticalAddonsEnabled": True,
        "orchestratorVersion": running or version,  # never newer than the control plane
        "temporaryNameForRotation": "systemtmp",
        "vnetSubnetIdRef": order.parts.reference("subnet"),
    }


def _network_profile(order: Order) -> dict[str, Any]:
    services = order.settings.get("network.services", str)
    return {
        "networkPlugin": "azure",
        "networkPluginMode": "overlay",
        "networkPolicy": "calico",
        "outboundType": "userAssignedNATGateway" if order.private else "loadBalancer",
        "podCidr": order.settings.get("network.pods", str),
        "serviceCidr": services,
        "dnsServiceIp": str(ip_network(services)[_DNS_ADDRESS]),
    }


def _authorized(order: Order) -> dict[str, Any]:
    networks = order.authorized_networks
    return {"apiServerAccessProfile": {"authorizedIpRanges": networks}} if networks else {}


def _existing_cluster(order: Order, version: str) -> Part:
    """Return an imported cluster; what Azure requires to be said is what was observed of it."""
    policies = existing_policies(order, facts(order))
    group, _, name = order.existing_name.partition("/")
    pool = {key: order.known("cluster", "defaultNodePool", key) for key in ("name", "vmSize")}
    managed_fields = {
        "location": order.location,
        "kubernetesVersion": version,
        "dnsPrefix": order.known("cluster", "dnsPrefix"),
        "identity": {"type": order.known("cluster", "identity", "type")},
        "defaultNodePool": pool,
    }
    return resource(
        order,
        "cluster",
        "KubernetesCluster.containerservice",
        {"resourceGroupName": group, **({} if policies == OBSERVE else managed_fields)},
        external_name=name,
        connection_secret=order.kubeconfig_secret,
        policies=policies,
    )


def pool(order: Order, pool: Pool, version: str) -> Iterator[Part]:
    """Return a pool beside the system pool."""
    policies = import_policies(*pool_version(order, pool), exists=pool.exists)
    bounds = {
        "orchestratorVersion": version,
        "autoScalingEnabled": True,
        "minCount": pool.min_nodes,
        "maxCount": pool.max_nodes,
    }
    yield resource(
        order,
        pool.part,
        "KubernetesClusterNodePool.containerservice",
        {
            "kubernetesClusterIdRef": order.parts.reference("cluster"),
            **({} if policies == OBSERVE else bounds),
            **({} if pool.exists else _machines(order, pool)),
        },
        uses=["cluster"],
        external_name=order.pool_in_cloud(pool, longest=12, joint=""),
        policies=policies,
    )


def _machines(order: Order, pool: Pool) -> dict[str, Any]:
    """Return what can never be changed of a pool."""
    subnet = {"vnetSubnetIdRef": order.parts.reference("subnet")}
    existing = {"vnetSubnetId": order.known("cluster", "defaultNodePool", "vnetSubnetId")}
    return {
        "vmSize": pool.machine,
        "mode": "User",
        "nodeLabels": {"pool": pool.name},
        **(subnet if order.is_new else existing),
    }


def facts(order: Order) -> ClusterFacts:
    """Return what AKS says of the cluster; its certificate authority is in the Secret only."""
    host = order.known("cluster", "fqdn")
    ca = order.parts.connection("cluster", _CA)
    return ClusterFacts(
        endpoint=f"https://{host}:443" if host else "",
        ca=base64.b64encode(ca.encode()).decode(),
        version=order.known("cluster", "currentKubernetesVersion") or "",
        asked_version=order.asked("cluster", "kubernetesVersion"),
    )


def pool_version(order: Order, pool: Pool) -> tuple[str, str]:
    """Return the version that a pool runs, and the one that was asked for last."""
    running = order.known(pool.part, "orchestratorVersion") or ""
    return running, order.asked(pool.part, "orchestratorVersion")


def access(_order: Order) -> Access:
    """Return the cluster, whose kubeconfig holds a client certificate."""
    return Access("cluster")
