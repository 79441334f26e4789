"""Zones of Route 53, and cert-manager's right to write into the public one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...order import CERT_MANAGER, Order
from ...part import Part
from .resources import policy, resource, role

_AGENT, _ROLE = "pod-identity-agent", "role-cert-manager"


def zones(order: Order) -> Iterator[Part]:
    """Return the public zone, and one that the VPC sees."""
    yield resource(
        order,
        "zone-public",
        "Zone.route53",
        {
            "name": order.domain,
            "comment": f"Services of cluster {order.name}",
            "forceDestroy": True,
        },
    )
    if order.has_private_zone:
        vpc = {"vpcIdRef": order.parts.reference("network"), "vpcRegion": order.location}
        yield resource(
            order,
            "zone-private",
            "Zone.route53",
            {
                "name": order.internal_domain,
                "comment": f"Internal services of cluster {order.name}",
                "forceDestroy": True,
                "vpc": [vpc],
            },
            uses=["network"],
        )


def dns_rights(order: Order) -> Iterator[Part]:
    """Return a role for cert-manager's service account, and the agent that hands it out."""
    yield resource(
        order,
        _AGENT,
        "Addon.eks",
        {
            "clusterNameRef": order.parts.reference("cluster"),
            "addonName": "eks-pod-identity-agent",
        },
        uses=["cluster"],
    )
    yield role(order, _ROLE, "pods.eks.amazonaws.com", "sts:TagSession")
    yield resource(
        order,
        "cert-manager-dns",
        "RolePolicy.iam",
        {"roleRef": order.parts.reference(_ROLE), "policy": _policy(order)},
        after=[_ROLE, "zone-public"],
    )
    namespace, account = CERT_MANAGER
    yield resource(
        order,
        "cert-manager-identity",
        "PodIdentityAssociation.eks",
        {
            "clusterNameRef": order.parts.reference("cluster"),
            "roleArnRef": order.parts.reference(_ROLE),
            "namespace": namespace,
            "serviceAccount": account,
        },
        uses=["cluster"],
        after=[_ROLE],
    )


def _policy(order: Order) -> str | None:
    """
    Return the right to answer challenges in the order's own zone, or None until it has an id.

    Another zone may have the same domain, and whoever answers for it gets its certificates.
    """
    zone = order.known("zone-public", "zoneId")
    if not zone:
        return None
    names = [f"_acme-challenge.{order.domain}", f"_acme-challenge.*.{order.domain}"]
    key = "route53:ChangeResourceRecordSets"
    condition = {
        f"{key}NormalizedRecordNames": names,
        f"{key}RecordTypes": ["TXT"],
    }
    zones = {"Resource": f"arn:aws:route53:::hostedzone/{zone}"}
    return policy(
        ([key], {**zones, "Condition": {"ForAllValues:StringLike": condition}}),
        (["route53:ListResourceRecordSets"], zones),
        (["route53:GetChange"], {"Resource": "arn:aws:route53:::change/*"}),
    )


def name_servers(order: Order) -> list[str]:
    """Return the name servers of the public zone."""
    return list(order.known("zone-public", "nameServers") or ())


def chart_values(order: Order, chart: str) -> dict[str, Any]:
    """Return the load balancer of ingress-nginx; a pod identity needs no value."""
    if chart != "ingress-nginx":
        return {}
    scheme = "true" if order.private else "false"
    annotations = {
        "service.beta.kubernetes.io/aws-load-balancer-type": "nlb",
        "service.beta.kubernetes.io/aws-load-balancer-internal": scheme,
    }
    return {"controller": {"service": {"annotations": annotations}}}
