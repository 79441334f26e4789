"""What an API server says that a ServiceAccount may do. It learns of new roles a moment later."""

from __future__ import annotations

from collections.abc import Mapping

from ground.objects.kube_objects import Kind
from orderkit.ports.cluster import Cluster

REVIEW = Kind("authorization.k8s.io", "v1", "SubjectAccessReview")


def may(cluster: Cluster, namespace: str, account: str, attributes: Mapping[str, str]) -> bool:
    """Say whether an account of a namespace may do something: verb, group, resource, where."""
    review = {
        "apiVersion": REVIEW.api_version,
        "kind": REVIEW.kind,
        "spec": {
            "user": f"system:serviceaccount:{namespace}:{account}",
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": dict(attributes),
        },
    }
    allowed: bool = cluster.create(review, owner="test")["status"]["allowed"]
    return allowed
