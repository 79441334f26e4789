"""
Updates of Kubernetes' own kinds that an API server refuses: fields that are set once.

The rules and words are those of Kubernetes 1.37 (``pkg/apis/*/validation``), as a real server says
them; ``tests/conformance/cluster/test_immutable_fields.py`` compares. Missing values count as the
server's defaults, of the fields of the table only: in a Pod template, a default that is written out
is another value here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ground.objects import quantities
from ground.objects.kube_objects import Kind, Manifest, dig
from ground.objects.quantities import NoQuantity, Unsure

__all__ = ["RefusedUpdate", "refused_updates"]

_RBAC, _STORAGE = "rbac.authorization.k8s.io", "storage.k8s.io"
_SELECTOR = ("spec.selector",)
_FIELDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "Secret"): ("type",),
    ("apps", "Deployment"): _SELECTOR,
    ("apps", "ReplicaSet"): _SELECTOR,
    ("apps", "DaemonSet"): _SELECTOR,
    ("apps", "StatefulSet"): (
        "spec.selector", "spec.volumeClaimTemplates", "spec.serviceName",
        "spec.podManagementPolicy",
    ),
    ("batch", "Job"): (
        "spec.completions", "spec.selector", "spec.template", "spec.completionMode",
        "spec.podFailurePolicy", "spec.backoffLimitPerIndex", "spec.managedBy",
        "spec.successPolicy",
    ),
    (_RBAC, "RoleBinding"): ("roleRef",),
    (_RBAC, "ClusterRoleBinding"): ("roleRef",),
    (_STORAGE, "StorageClass"): (
        "provisioner", "parameters", "reclaimPolicy", "volumeBindingMode",
    ),
    ("networking.k8s.io", "IngressClass"): ("spec.controller",),
}  # fmt: skip
_DEFAULTS: dict[str, Any] = {
    "type": "Opaque",
    "spec.podManagementPolicy": "OrderedReady",
    "spec.completionMode": "NonIndexed",
    "spec.completions": 1,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
}
_SEALED = "Forbidden: field is immutable when `immutable` is set"
_CLAIM = (
    "Forbidden: spec is immutable after creation except resources.requests and "
    "volumeAttributesClassName for bound claims"
)
_SCHEDULING = ("nodeSelector", "tolerations", "affinity", "schedulingGates")
"""What may change in the Pod of a Job that is suspended."""


@dataclass(frozen=True, slots=True)
class RefusedUpdate:
    """One error of an update, in the server's words."""

    path: str
    """The field that the server names."""
    message: str
    field: str = ""
    """The field that differs, if the server names one above it."""

    @property
    def rule(self) -> str:
        """The rule that the update breaks, without the value."""
        return self.message.rpartition(": ")[2]


def refused_updates(old: Manifest, new: Manifest) -> Iterator[RefusedUpdate]:
    """Yield what an API server refuses in an update of an object of its own kinds."""
    kind = Kind.of(new)
    group_kind = (kind.group, kind.kind)
    for path in _FIELDS.get(group_kind, ()):
        was, now = (_value(manifest, path) for manifest in (old, new))
        if was != now and not _may_change(group_kind, path, old, new):
            shown = None if kind.kind == "StorageClass" else now
            yield RefusedUpdate(path, f"Invalid value: {_json(shown)}: field is immutable")
    if group_kind in {("", "ConfigMap"), ("", "Secret")}:
        yield from _sealed(old, new)
    if group_kind == ("", "Service"):
        yield from _service(old, new)
    if group_kind == ("", "PersistentVolumeClaim"):
        yield from _claim(old, new)
    if kind.kind == "PriorityClass" and old.get("value") != new.get("value"):
        yield RefusedUpdate("value", "Forbidden: may not be changed in an update.")


def _value(manifest: Manifest, path: str) -> Any:
    value = dig(manifest, *path.split("."), default=None)
    return _DEFAULTS.get(path) if value in (None, [], {}) else value


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _may_change(kind: tuple[str, str], path: str, old: Manifest, new: Manifest) -> bool:
    if kind != ("batch", "Job"):
        return False
    if path == "spec.completions":  # an Indexed Job scales
        return bool(_value(new, "spec.completionMode") == "Indexed")
    is_suspended = dig(old, "spec", "suspend") is True
    return path == "spec.template" and is_suspended and _bare(old) == _bare(new)


def _bare(job: Manifest) -> Any:
    """Return a Job's template without what may change while it is suspended."""
    template = dig(job, "spec", "template", default=None) or {}
    pod = {k: v for k, v in (template.get("spec") or {}).items() if k not in _SCHEDULING}
    containers = pod.get("containers")
    if isinstance(containers, list):
        pod["containers"] = [
            {k: v for k, v in entry.items() if k != "resources"} for entry in containers
        ]
    return pod


def _sealed(old: Manifest, new: Manifest) -> Iterator[RefusedUpdate]:
    if old.get("immutable") is not True:
        return
    for field in ("data", "binaryData", "immutable"):
        if (old.get(field) or None) != (new.get(field) or None):
            yield RefusedUpdate(field, _SEALED)


def _service(old: Manifest, new: Manifest) -> Iterator[RefusedUpdate]:
    if "ExternalName" in {dig(old, "spec", "type"), dig(new, "spec", "type")}:
        return
    was, now = _address(old), _address(new)
    if was and now and was != now:
        message = f"Invalid value: {_json([now])}: may not change once set"
        yield RefusedUpdate("spec.clusterIPs[0]", message, "spec.clusterIP")


def _address(service: Manifest) -> Any:
    spec = service.get("spec") or {}
    return next(iter(spec.get("clusterIPs") or ()), None) or spec.get("clusterIP")


def _claim(old: Manifest, new: Manifest) -> Iterator[RefusedUpdate]:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    is_bound = dig(old, "status", "phase", default="Bound") == "Bound"
    set_once = {"volumeName", "storageClassName"}
    grows = {"volumeAttributesClassName", "resources"} if is_bound else set()
    for name in sorted((before.keys() | after.keys()) - grows):
        was, now = before.get(name), after.get(name)
        is_new = name in set_once and was is None
        is_filled = name in {"volumeName", "volumeMode"} and now is None
        if was != now and not (is_new or is_filled):
            yield RefusedUpdate("spec", _CLAIM, f"spec.{name}")
    sizes = [_size(spec) for spec in (before, after)]
    if is_bound and None not in sizes and sizes[1] < sizes[0]:
        field = "spec.resources.requests.storage"
        yield RefusedUpdate(field, "Forbidden: field can not be less than status.capacity")


def _size(spec: Any) -> Any:
    try:
        return quantities.parse(str(dig(spec, "resources", "requests", "storage")))
    except (NoQuantity, Unsure):
        return None
