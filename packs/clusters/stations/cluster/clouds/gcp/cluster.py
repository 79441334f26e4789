"""A GKE cluster, its nodes' account, and its pools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orderkit.stations import OBSERVE

from ...order import Order, Pool
from ...part import Part, import_policies
from .. import Access, ClusterFacts, existing_policies
from .network import PODS, SERVICES
from .resources import ACCOUNT_ID_MAX, account_email, resource

_NODES = "nodes"


def cluster(order: Order, version: str) -> Iterator[Part]:
    """Return the control plane; and the account of its nodes, which may only log and pull."""
    if order.mode != "observe":
        yield from _nodes_account(order)
    project = order.project
    placement = {"project": project, "location": order.location}
    if not order.is_new:
        policies = existing_policies(order, facts(order))
        yield resource(
            order,
            "cluster",
            "Cluster.container",
            {**placement, **({} if policies == OBSERVE else {"minMasterVersion": version})},
            external_name=order.existing_name,
            connection_secret=order.kubeconfig_secret,
            policies=policies,
        )
        return
    private = {"masterIpv4CidrBlock": order.settings.get("network.controlPlane", str)}
    yield resource(
        order,
        "cluster",
        "Cluster.container",
        {
            **placement,
            "networkRef": order.parts.reference("network"),
            "subnetworkRef": order.parts.reference("subnet"),
            "ipAllocationPolicy": {
                "clusterSecondaryRangeName": PODS,
                "servicesSecondaryRangeName": SERVICES,
            },
            "privateClusterConfig": {
                "enablePrivateNodes": order.private,
                "enablePrivateEndpoint": False,
                **(private if order.private else {}),
            },
            **_authorized(order),
            "workloadIdentityConfig": {"workloadPool": f"{project}.svc.id.goog"},
            "minMasterVersion": version,
            "releaseChannel": {"channel": "UNSPECIFIED"},  # upgrades come from Git
            "removeDefaultNodePool": True,
            "initialNodeCount": 1,
            "deletionProtection": False,
        },
        uses=["network", "subnet", *(["router", "nat"] if order.private else [])],
        external_name=order.name_in_cloud("cluster"),
        connection_secret=order.kubeconfig_secret,
    )


def _authorized(order: Order) -> dict[str, Any]:
    blocks = [{"cidrBlock": network} for network in order.authorized_networks]
    return {"masterAuthorizedNetworksConfig": {"cidrBlocks": blocks}} if blocks else {}


def _nodes_account(order: Order) -> Iterator[Part]:
    project = order.project
    account = order.name_in_cloud(_NODES, "-nodes", longest=ACCOUNT_ID_MAX)
    yield resource(
        order,
        _NODES,
        "ServiceAccount.cloudplatform",
        {"project": project, "displayName": f"Nodes of {order.name}"},
        external_name=account,
    )
    yield resource(
        order,
        "nodes-role",
        "ProjectIAMMember.cloudplatform",
        {
            "project": project,
            "role": "roles/container.defaultNodeServiceAccount",
            "member": f"serviceAccount:{account_email(order, account)}",
        },
        after=[_NODES],
    )


def pool(order: Order, pool: Pool, version: str) -> Iterator[Part]:
    """Return a node pool, whose bounds hold for all zones together."""
    policies = import_policies(*pool_version(order, pool), exists=pool.exists)
    placement = {
        "project": order.project,
        "location": order.location,
        "clusterRef": order.parts.reference("cluster"),
    }
    bounds = {
        "version": version,
        "autoscaling": {
            "totalMinNodeCount": pool.min_nodes,
            "totalMaxNodeCount": pool.max_nodes,
            "locationPolicy": "BALANCED",
        },
        "management": {"autoRepair": True, "autoUpgrade": False},
    }
    yield resource(
        order,
        pool.part,
        "NodePool.container",
        {
            **placement,
            **({} if policies == OBSERVE else bounds),
            **({} if pool.exists else _machines(order, pool)),
        },
        uses=["cluster"] if pool.exists else ["cluster", "nodes-role"],
        external_name=order.pool_in_cloud(pool),
        policies=policies,
    )


def _machines(order: Order, pool: Pool) -> dict[str, Any]:
    """Return what can never be changed of a pool."""
    return {
        "initialNodeCount": 1,  # in each zone
        "nodeConfig": {
            "machineType": pool.machine,
            "labels": {"pool": pool.name},
            "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
            "serviceAccountRef": order.parts.reference(_NODES),
            "workloadMetadataConfig": {"mode": "GKE_METADATA"},
        },
        "upgradeSettings": {"maxSurge": 1, "maxUnavailable": 0},
    }


def facts(order: Order) -> ClusterFacts:
    """Return what GKE says of the cluster."""
    endpoint = order.known("cluster", "endpoint")
    return ClusterFacts(
        endpoint=f"https://{endpoint}" if endpoint else "",
        ca=order.known("cluster", "masterAuth", "clusterCaCertificate") or "",
        version=order.known("cluster", "masterVersion") or "",
        asked_version=order.asked("cluster", "minMasterVersion"),
    )


def pool_version(order: Order, pool: Pool) -> tuple[str, str]:
    """Return the version that a pool runs, and the one that was asked for last."""
    return order.known(pool.part, "version") or "", order.asked(pool.part, "version")


def access(order: Order) -> Access:
    """Return the kubeconfig, which says where, and Google's credentials, which say who."""
    return Access("cluster", order.settings.get("access", dict))
