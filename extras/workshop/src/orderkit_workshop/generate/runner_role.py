"""
Read rights of Orderkit's Jobs in the cluster for a kit: a ClusterRole aggregated to theirs.

Jobs check whether an order's XR, its parts and the objects it refers to exist, and nothing else:
their changes go to Git. (``day2/job/rights.yaml`` has their rights on Applications.) Secrets are
left out: no role reads that one is there without its values.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from ground.objects.kube_objects import Manifest
from orderkit.core.kit.generated_mark import comment
from orderkit.core.kit.kit_resources import read_resources
from orderkit.core.kit.model import Kit
from yamlfiles import yaml11

AGGREGATE = "orderkit.dev/aggregate-to-runner"


def runner_role(kit: Kit) -> dict[PurePosixPath, bytes]:
    """Return ``gitops/apis/<kit>/runner.yaml``."""
    role: Manifest = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"orderkit-run-{kit.name}", "labels": {AGGREGATE: "true"}},
        "rules": [
            {"apiGroups": [group], "resources": sorted(names), "verbs": ["get", "list"]}
            for group, names in sorted(read_resources(kit).items())
        ],
    }
    path = PurePosixPath("gitops", "apis", kit.name, "runner.yaml")
    return {path: (comment(kit.name) + yaml11.dump(role)).encode()}
