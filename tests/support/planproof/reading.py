"""
What a cluster holds, read with Kubernetes' own Python client and nothing of ours.

An XR's resources are found from below: an object belongs to the XR that is its controller, under
the logical name in its annotation; one that controls such objects in turn is a nested XR. The
XR's own list of references is not looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

Manifest = dict[str, Any]
LOGICAL_NAME = "crossplane.io/composition-resource-name"
_BORING = frozenset({"componentstatuses", "events", "apiservices", "controllerrevisions"})
_BORING_GROUPS = (
    "admissionregistration.k8s.io", "authentication.k8s.io", "certificates.k8s.io",
    "coordination.k8s.io", "discovery.k8s.io", "flowcontrol.apiserver.k8s.io", "node.k8s.io",
    "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "internal.apiserver.k8s.io",
)  # fmt: skip
"""What nobody composes here. It is not looked at; a kit that composes it would miss it."""


@dataclass(frozen=True)
class Outcome:
    """One XR as the cluster has it, and everything that is composed for it, by path."""

    xr: Manifest
    parts: Mapping[str, Manifest]


@dataclass(frozen=True)
class Seen:
    """Every object of a cluster, kind by kind a moment apart."""

    objects: tuple[Manifest, ...]

    def named(self, kind: str) -> frozenset[str]:
        """Return the names of all objects of a kind."""
        return frozenset(o["metadata"]["name"] for o in self.objects if o["kind"] == kind)

    def outcome(self, kind: str, name: str, namespace: str = "") -> Outcome | None:
        """Return an XR and what hangs on it; None if it is not there."""
        for each in self.objects:
            meta = each["metadata"]
            if (each["kind"], meta["name"], meta.get("namespace", "")) == (kind, name, namespace):
                return Outcome(each, dict(self._below(meta["uid"], "")))
        return None

    def _below(self, uid: str, above: str) -> Iterator[tuple[str, Manifest]]:
        for each in self.objects:
            name = (each["metadata"].get("annotations") or {}).get(LOGICAL_NAME)
            if name is None or _controller(each) != uid:
                continue
            yield above + name, each
            yield from self._below(each["metadata"]["uid"], f"{above}{name}/")


def _controller(found: Manifest) -> str:
    owners = found["metadata"].get("ownerReferences") or ()
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")


class Reader:
    """The official client on one API server. Close it."""

    def __init__(self, kubeconfig: Path) -> None:
        from kubernetes import config

        self._client: Any = config.new_client_from_config(str(kubeconfig))  # type: ignore[no-untyped-call]
        self._paths: dict[str, tuple[str, str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.rest_client.pool_manager.clear()

    def discover(self) -> None:
        """Ask which kinds there are; again when there may be new ones."""
        groups = [g for g in self._get("/apis")["groups"] if g["name"] not in _BORING_GROUPS]
        found: dict[tuple[str, str], tuple[str, str, str]] = {}
        for group in [{"name": "", "versions": [{"groupVersion": "v1"}]}, *groups]:
            # the preferred version comes first, and need not have every kind of its group
            for version in [each["groupVersion"] for each in group["versions"]]:
                root = f"/apis/{version}" if group["name"] else "/api/v1"
                for entry in self._get(root)["resources"]:
                    name = entry["name"]
                    if "list" in entry["verbs"] and "/" not in name and name not in _BORING:
                        found.setdefault((group["name"], name), (root, version, entry["kind"]))
        self._paths = {
            f"{root}/{name}": (version, kind) for (_, name), (root, version, kind) in found.items()
        }

    def revision(self) -> str:
        """Return what changes whenever anything in the cluster changes, of whatever kind."""
        return str(self._get("/api/v1/namespaces")["metadata"]["resourceVersion"])

    def look(self) -> Seen:
        """Return everything there is now."""
        return Seen(
            tuple(
                {"apiVersion": version, "kind": kind, **item}
                for path, (version, kind) in self._paths.items()
                for item in self._get(path)["items"]
            )
        )

    def _get(self, path: str) -> Any:
        request = self._client.param_serialize(
            "GET", path, query_params=[("resourceVersion", "")], auth_settings=["BearerToken"]
        )
        answer = self._client.call_api(*request, _request_timeout=30)
        data = answer.read()
        assert answer.status == 200, f"{path}: {answer.status} {data[:200]!r}"
        return json.loads(data)
