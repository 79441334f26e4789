"""An EKS cluster, its roles, what writes its kubeconfig, and its node groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orderkit.stations import OBSERVE

from ...order import Order, Pool
from ...part import Part, import_policies
from .. import Access, ClusterFacts, existing_policies
from .network import node_subnets, subnets, ways_out
from .resources import attachments, resource, role

_POLICY = "AmazonEKSClusterPolicy"
_NODE_POLICIES = (
    "AmazonEKS_CNI_Policy",  # first: without it, the addresses of nodes that end are left over
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
)


def cluster(order: Order, version: str) -> Iterator[Part]:
    """Return the control plane with its role, the nodes' role, and ClusterAuth."""
    if order.is_new:
        yield role(order, "role-cluster", "eks.amazonaws.com")
        yield from attachments(order, "role-cluster", _POLICY)
        yield _new_cluster(order, version)
    else:
        yield _existing_cluster(order, version)
    yield resource(
        order,
        "auth",
        "ClusterAuth.eks",
        {"clusterNameRef": order.parts.reference("cluster")},
        uses=["cluster"],
        connection_secret=order.kubeconfig_secret,
    )
    if order.mode != "observe":
        yield role(order, "role-nodes", "ec2.amazonaws.com")
        yield from _node_rights(order)


def _node_rights(order: Order) -> list[Part]:
    return attachments(order, "role-nodes", *_NODE_POLICIES)


def _new_cluster(order: Order, version: str) -> Part:
    networks = order.authorized_networks
    all_subnets = [
        *subnets(order, "public"),
        *(subnets(order, "private") if order.private else []),
    ]
    rights = [part.name for part in attachments(order, "role-cluster", _POLICY)]
    return resource(
        order,
        "cluster",
        "Cluster.eks",
        {
            "version": version,
            "roleArnRef": order.parts.reference("role-cluster"),
            "vpcConfig": {
                "subnetIdRefs": [order.parts.reference(subnet) for subnet in all_subnets],
                "endpointPrivateAccess": True,
                "endpointPublicAccess": True,
                **({"publicAccessCidrs": networks} if networks else {}),
            },
            "accessConfig": {
                "authenticationMode": "API_AND_CONFIG_MAP",
                "bootstrapClusterCreatorAdminPermissions": True,
            },
        },
        uses=["network", *rights, *all_subnets, *(["nat"] if order.private else [])],
        external_name=order.name_in_cloud("cluster"),
    )


def _existing_cluster(order: Order, version: str) -> Part:
    """Return an imported cluster; what AWS requires to be said is what was observed of it."""
    policies = existing_policies(order, facts(order))
    vpc = ("subnetIds", "endpointPrivateAccess", "endpointPublicAccess")
    managed_fields = {
        "version": version,
        "roleArn": order.known("cluster", "roleArn"),
        "vpcConfig": {key: order.known("cluster", "vpcConfig", key) for key in vpc},
    }
    return resource(
        order,
        "cluster",
        "Cluster.eks",
        {} if policies == OBSERVE else managed_fields,
        external_name=order.existing_name,
        policies=policies,
    )


def pool(order: Order, pool: Pool, version: str) -> Iterator[Part]:
    """Return a node group; the autoscaler, not the order, sets how many nodes it has now."""
    policies = import_policies(*pool_version(order, pool), exists=pool.exists)
    bounds = {
        "version": version,
        "scalingConfig": {"minSize": pool.min_nodes, "maxSize": pool.max_nodes},
    }
    rights = [] if pool.exists else [part.name for part in _node_rights(order)]
    part = resource(
        order,
        pool.part,
        "NodeGroup.eks",
        {
            "clusterNameRef": order.parts.reference("cluster"),
            **({} if policies == OBSERVE else bounds),
            **({} if pool.exists else _machines(order, pool)),
        },
        uses=["cluster", *rights[:1]],
        after=[*rights[1:], *(ways_out(order) if order.is_new else [])],
        external_name=order.pool_in_cloud(pool),
        policies=policies,
    )
    if not pool.exists:
        part.manifest["spec"]["initProvider"] = {"scalingConfig": {"desiredSize": pool.min_nodes}}
    yield part


def _machines(order: Order, pool: Pool) -> dict[str, Any]:
    """Return what can never be changed of a node group."""
    refs = [order.parts.reference(subnet) for subnet in node_subnets(order)]
    existing = {"subnetIds": order.known("cluster", "vpcConfig", "subnetIds")}
    return {
        "nodeRoleArnRef": order.parts.reference("role-nodes"),
        **({"subnetIdRefs": refs} if order.is_new else existing),
        "instanceTypes": [pool.machine],
        "labels": {"pool": pool.name},
        "updateConfig": {"maxUnavailable": 1},
    }


def facts(order: Order) -> ClusterFacts:
    """Return what EKS says of the cluster."""
    return ClusterFacts(
        endpoint=order.known("cluster", "endpoint") or "",
        ca=order.known("cluster", "certificateAuthority", 0, "data") or "",
        version=order.known("cluster", "version") or "",
        asked_version=order.asked("cluster", "version"),
    )


def pool_version(order: Order, pool: Pool) -> tuple[str, str]:
    """Return the version that a pool runs, and the one that was asked for last."""
    return order.known(pool.part, "version") or "", order.asked(pool.part, "version")


def access(_order: Order) -> Access:
    """Return ClusterAuth, whose kubeconfig holds a token that it renews."""
    return Access("auth")
