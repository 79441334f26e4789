"""
Workloads that stop or start, values that disappear, and selectors that lose their target.

Workloads count both composed and wrapped in an Object. A resource whose status says ``paused`` is
assumed to hold something back.

Selectors of Services, NetworkPolicies and disruption budgets are followed to the Pods of workloads
in the same order, autoscalers to their target. Only targets that were reached before the change
and are not reached after it count. ``matchExpressions`` are not followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compositions.paused import is_paused
from ground.objects.kube_objects import Kind, Manifest, dig, labels_of, metadata
from orderkit.core.order.change import ABSENT, differences, value_at
from orderkit.core.plan.assembly import (
    Assembly,
    OutcomeObject,
    Pair,
    key_text,
    objects_of,
    pairs_of,
)
from orderkit.core.plan.dangers.danger_codes import Code, Danger

_POD_SPECS = (
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
    ("spec",),
)
_SUSPENDED = (("spec", "suspend"), ("spec", "paused"), ("spec", "suspended"))


def restart_dangers(before: Assembly, after: Assembly) -> Iterator[Danger]:
    """Yield what stops, starts, or is no longer set."""
    if before.ready and after.readiness == "not Ready" and not _fails(after):
        yield Danger("", Code.NOT_READY, "the order was Ready before and ends up not Ready")
    for pair in pairs_of(before, after):
        yield from _switched(pair)
        yield from _managed(pair)
        yield from _connection(pair)
        yield from _version(pair)
    for path, manifest in after.resources.items():
        yield from _images(path, manifest, before.resources.get(path))
    yield from _released(before, after)
    yield from _status(before, after)


def _fails(after: Assembly) -> bool:
    """Return whether the pipeline failed: that is a fault already, and nothing changes."""
    return any(fault.code == "pipeline" and not fault.path for fault in after.faults)


def _switched(pair: Pair) -> Iterator[Danger]:
    was, now = (value_at(manifest, ("spec", "replicas")) for manifest in (pair.old, pair.new))
    if now == 0 and was != 0:
        message = f"{key_text(pair.new)} stops: replicas is 0"
        yield Danger(pair.path, Code.STOPS, message)
    elif was == 0 and now != 0:
        message = f"{key_text(pair.new)} runs again: replicas 0 → {1 if now is ABSENT else now}"
        yield Danger(pair.path, Code.STARTS, message)
    for steps in _SUSPENDED:
        was, now = (value_at(manifest, steps) is True for manifest in (pair.old, pair.new))
        if now and not was:
            message = f"{key_text(pair.new)} stops: {'.'.join(steps)} is set"
            yield Danger(pair.path, Code.STOPS, message)
        elif was and not now:
            message = f"{key_text(pair.new)} runs again: {'.'.join(steps)} is no longer set"
            yield Danger(pair.path, Code.STARTS, message)


def _managed(pair: Pair) -> Iterator[Danger]:
    """Yield changes of who manages the external resource, and of what happens at its end."""
    if is_paused(pair.new) and not is_paused(pair.old):
        message = f"{key_text(pair.new)} is paused: nothing reconciles it, not even its deletion"
        yield Danger(pair.path, Code.STOPS, message)
    old_policy, new_policy = (
        dig(manifest, "spec", "deletionPolicy") for manifest in (pair.old, pair.new)
    )
    if old_policy != new_policy and "Orphan" in (old_policy, new_policy):
        end = "stays when the order ends" if new_policy == "Orphan" else "is deleted with the order"
        message = f"{key_text(pair.new)}: deletionPolicy {old_policy} → {new_policy}: it {end}"
        yield Danger(pair.path, Code.DELETE_POLICY, message)
    yield from _policies(pair)


def _policies(pair: Pair) -> Iterator[Danger]:
    was, now = (_allowed(manifest) for manifest in (pair.old, pair.new))
    for name in sorted(was - now):
        message = (
            f"{key_text(pair.new)}: managementPolicies no longer include {name}: {_WITHOUT[name]}"
        )
        code = Code.DELETE_POLICY if name == "Delete" else Code.STOPS
        yield Danger(pair.path, code, message)
    if "Delete" in now - was:
        message = (
            f"{key_text(pair.new)}: managementPolicies include Delete now: it ends with the order"
        )
        yield Danger(pair.path, Code.DELETE_POLICY, message)


_ALL = frozenset({"Create", "Update", "Delete", "Observe"})
_WITHOUT = {
    "Create": "a missing resource is not created",
    "Update": "changes are no longer applied",
    "Delete": "it stays when the order ends",
    "Observe": "its state is no longer observed",
}


def _allowed(manifest: Manifest) -> frozenset[str]:
    policies = dig(manifest, "spec", "managementPolicies", default=None)
    if policies is None or "*" in policies:
        return _ALL
    return _ALL & frozenset(str(policy) for policy in policies)


def _connection(pair: Pair) -> Iterator[Danger]:
    steps = ("spec", "writeConnectionSecretToRef")
    was, now = (value_at(manifest, steps) for manifest in (pair.old, pair.new))
    if was is not ABSENT and was != now:
        old_secret = f"Secret {dig(was, 'name')}"
        message = f"{key_text(pair.new)} no longer writes its connection details to {old_secret}"
        yield Danger(pair.path, Code.CONNECTION_LOST, message)
    if pair.kind.kind != "Secret" or pair.kind.group:
        return
    old_keys, new_keys = (_keys(manifest) for manifest in (pair.old, pair.new))
    if old_keys - new_keys:
        message = f"{key_text(pair.new)} loses {', '.join(sorted(old_keys - new_keys))}"
        yield Danger(pair.path, Code.CONNECTION_LOST, message)


def _keys(secret: Manifest) -> set[str]:
    return {str(key) for name in ("data", "stringData") for key in secret.get(name) or {}}


def _version(pair: Pair) -> Iterator[Danger]:
    old_version, new_version = (
        str(manifest.get("apiVersion")) for manifest in (pair.old, pair.new)
    )
    if old_version != new_version:
        message = (
            f"{key_text(pair.new)} is written as {new_version} instead of {old_version}: a field "
            "that only one version has is lost"
        )
        yield Danger(pair.path, Code.API_VERSION, message)


def _images(path: str, manifest: Manifest, old: Manifest | None) -> Iterator[Danger]:
    old_images = set(images_of(old)) if old is not None else set()
    for image in images_of(manifest):
        if image not in old_images and not is_pinned(image):
            message = f"{key_text(manifest)}: {image} is not pinned to a version"
            yield Danger(path, Code.UNPINNED, message)


def images_of(manifest: Manifest) -> Iterator[str]:
    """Yield the images of a workload's containers, also inside an Object."""
    for pod in pod_specs(manifest):
        for name in ("initContainers", "containers"):
            for container in pod.get(name) or ():
                if isinstance(container, dict) and isinstance(container.get("image"), str):
                    yield container["image"]


def pod_specs(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield the Pod specs of an object, also of one wrapped in an Object."""
    inner = dig(manifest, "spec", "forProvider", "manifest")
    for obj in (manifest, inner):
        for steps in _POD_SPECS:
            pod_spec = dig(obj, *steps)
            if isinstance(pod_spec, dict) and isinstance(pod_spec.get("containers"), list):
                yield pod_spec


def is_pinned(image: str) -> bool:
    """Return whether an image has a digest, or a tag that does not move."""
    if "@sha256:" in image:
        return True
    tag = image.rpartition("/")[2].partition(":")[2]
    return bool(tag) and tag not in {"latest", "main", "master", "edge", "nightly", "stable"}


def _released(before: Assembly, after: Assembly) -> Iterator[Danger]:
    for path in before.resources.keys() - after.resources.keys():
        living = before.observed.get(path) or {}
        if dig(living, "status", "paused") is True:
            message = f"{key_text(living)} is paused and removed: what it holds back runs again"
            yield Danger(path, Code.STARTS, message)


def _status(before: Assembly, after: Assembly) -> Iterator[Danger]:
    if _fails(after):
        return
    old_status, new_status = ({**(assembly.xr.get("status") or {})} for assembly in (before, after))
    for status in (old_status, new_status):
        status.pop("conditions", None)
    for field in differences(old_status, new_status, maps_whole=True):
        if field.new is ABSENT:
            message = f"status.{field.path} is no longer set"
            yield Danger("", Code.STATUS_LOST, message)


_SELECTORS = {
    ("", "Service"): ("spec", "selector"),
    ("networking.k8s.io", "NetworkPolicy"): ("spec", "podSelector", "matchLabels"),
    ("policy", "PodDisruptionBudget"): ("spec", "selector", "matchLabels"),
}
_SCALER = ("autoscaling", "HorizontalPodAutoscaler")


def selector_dangers(before: Assembly, after: Assembly) -> Iterator[Danger]:
    """Yield selectors and references that lose their target."""
    yield from _unselected(before, after)
    yield from _dangling(before, after)


def _unselected(before: Assembly, after: Assembly) -> Iterator[Danger]:
    was, now = dict(_selected(before)), dict(_selected(after))
    still = {obj.path: obj for obj in objects_of(after)}
    for (path, target), message in sorted(was.items()):
        if (path, target) in now or path not in still:
            continue
        remaining = [selecting_path for selecting_path, _ in now if selecting_path == path]
        alone = "" if remaining else "; it selects nothing now"
        yield Danger(path, Code.UNSELECTED, f"{message}{alone}")


def _selected(assembly: Assembly) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the paths of selecting and selected object, with the message for the lost pair."""
    workloads = [(obj, labels) for obj in objects_of(assembly) if (labels := _pod_labels(obj))]
    for obj in objects_of(assembly):
        kind = (obj.kind.group, obj.kind.kind)
        if kind == _SCALER:
            yield from _scaled(obj, assembly)
        selector = dig(obj.manifest, *_SELECTORS[kind]) if kind in _SELECTORS else None
        if not isinstance(selector, Mapping):
            continue
        home = metadata(obj.manifest).get("namespace")
        for target, labels in workloads:
            same_home = metadata(target.manifest).get("namespace") == home
            if same_home and selector.items() <= labels.items():
                message = f"{key_text(obj.manifest)} no longer selects {key_text(target.manifest)}"
                yield (obj.path, target.path), message


def _pod_labels(obj: OutcomeObject) -> Mapping[str, Any]:
    labels = dig(obj.manifest, "spec", "template", "metadata", "labels")
    if isinstance(labels, dict):
        return labels
    return labels_of(obj.manifest) if obj.kind == Kind("", "v1", "Pod") else {}


def _scaled(scaler: OutcomeObject, assembly: Assembly) -> Iterator[tuple[tuple[str, str], str]]:
    target = dig(scaler.manifest, "spec", "scaleTargetRef", default=None) or {}
    home = metadata(scaler.manifest).get("namespace")
    for other in objects_of(assembly):
        meta = metadata(other.manifest)
        if (other.kind.kind, meta.get("name"), meta.get("namespace")) == (
            target.get("kind"), target.get("name"), home,
        ):  # fmt: skip
            message = f"{key_text(scaler.manifest)} no longer scales {key_text(other.manifest)}"
            yield (scaler.path, other.path), message


def _dangling(before: Assembly, after: Assembly) -> Iterator[Danger]:
    names = {_place(obj.manifest) for obj in objects_of(after)}
    removed = {_place(obj.manifest) for obj in objects_of(before)} - names
    for path, manifest in sorted(after.resources.items()):
        home = str(metadata(manifest).get("namespace") or "")
        messages = {
            f"{key_text(manifest)} refers to {kind} {name}, which is removed"
            for pod in pod_specs(manifest)
            for kind, name in references_of(pod)
            if (kind, home, name) in removed
        }
        yield from (Danger(path, Code.DANGLING, message) for message in sorted(messages))


def _place(manifest: Manifest) -> tuple[str, str, str]:
    meta = metadata(manifest)
    return (Kind.of(manifest).kind, str(meta.get("namespace") or ""), str(meta.get("name") or ""))


def references_of(pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield kind and name of what a Pod's spec refers to; what is optional is left out."""
    if pod.get("serviceAccountName"):
        yield "ServiceAccount", str(pod["serviceAccountName"])
    for entry in pod.get("imagePullSecrets") or ():
        yield "Secret", str(entry.get("name"))
    for volume in pod.get("volumes") or ():
        for key, kind, name in _VOLUMES:
            source = volume.get(key)
            if isinstance(source, dict) and not source.get("optional"):
                yield kind, str(source.get(name))
    for group in ("initContainers", "containers"):
        for container in pod.get(group) or ():
            yield from _of_container(container)


_VOLUMES = (
    ("configMap", "ConfigMap", "name"),
    ("secret", "Secret", "secretName"),
    ("persistentVolumeClaim", "PersistentVolumeClaim", "claimName"),
)
_SOURCES = (
    ("configMapRef", "ConfigMap"),
    ("secretRef", "Secret"),
    ("configMapKeyRef", "ConfigMap"),
    ("secretKeyRef", "Secret"),
)


def _of_container(container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    entries = [entry.get("valueFrom") or {} for entry in container.get("env") or ()]
    for entry in (*(container.get("envFrom") or ()), *entries):
        for key, kind in _SOURCES:
            source = entry.get(key)
            if isinstance(source, dict) and not source.get("optional"):
                yield kind, str(source.get("name"))
