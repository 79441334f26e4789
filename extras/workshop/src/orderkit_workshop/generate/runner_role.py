"""
Read rights of Orderkit's Jobs in the cluster for a kit: a ClusterRole aggregated to theirs.

Jobs check whether an order's XR, its parts and the objects it refers to exist, and nothing else:
their changes go to Git. (``day2/job/rights.yaml`` has their rights on Applications.) Secrets are
left out: no role reads that one is there without its values.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from ground.objects.kube_objects import Kind, Manifest
from orderkit.core.kit.generated_mark import comment
from orderkit.core.kit.kit_file import KindRef
from orderkit.core.kit.model import Kit
from orderkit_workshop.generate.crossplane_role import plural
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
            for group, names in sorted(_resources(kit).items())
        ],
    }
    path = PurePosixPath("gitops", "apis", kit.name, "runner.yaml")
    return {path: (comment(kit.name) + yaml11.dump(role)).encode()}


def _resources(kit: Kit) -> dict[str, set[str]]:
    resources = {kit.kind.group: {str(kit.xrd["spec"]["names"]["plural"])}}
    for ref in (*kit.composes, *_referred(kit)):
        group = Kind.parse(ref.api_version, ref.kind).group
        if (group, ref.kind) == ("", "Secret"):
            continue
        resources.setdefault(group, set()).add(plural(ref))
    return resources


def _referred(kit: Kit) -> Iterator[KindRef]:
    """Yield the kinds that fields refer to, with the plural from ``requires``."""
    required = {(ref.api_version, ref.kind): ref for ref in kit.requires}
    for hints in kit.fields.values():
        if hints.refers:
            key = (hints.refers.api_version, hints.refers.kind)
            yield required.get(key, KindRef(*key))
