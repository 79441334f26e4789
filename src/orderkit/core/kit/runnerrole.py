"""
What Orderkit's Jobs in the cluster may read for a kit: a ClusterRole that is aggregated to theirs.

They look whether an order's XR and its parts are there, and nothing else: they change things in
Git. (``day2/job/rights.yaml`` has what they may do to Applications.) Called by
``core.kit.generating``.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from orderkit.core import yamltext
from orderkit.core.kit.marking import comment
from orderkit.core.kit.model import Kit
from orderkit.core.kit.rbac import plural
from orderkit.core.objects import Kind, Manifest

AGGREGATE = "orderkit.dev/aggregate-to-runner"


def runner_role(kit: Kit) -> dict[PurePosixPath, bytes]:
    """Return ``gitops/apis/<kit>/runner.yaml``."""
    role: Manifest = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"orderkit-run-{kit.name}", "labels": {AGGREGATE: "true"}},
        "rules": [
            {"apiGroups": [group], "resources": sorted(names), "verbs": ["get", "list"]}
            for group, names in sorted(_resources(kit).items())
        ],
    }
    path = PurePosixPath("gitops", "apis", kit.name, "runner.yaml")
    return {path: (comment(kit.name) + yamltext.dump(role)).encode()}


def _resources(kit: Kit) -> dict[str, set[str]]:
    found = {kit.kind.group: {str(kit.xrd["spec"]["names"]["plural"])}}
    for ref in kit.composes:
        group = Kind.parse(ref.api_version, ref.kind).group
        found.setdefault(group, set()).add(plural(ref))
    return found
