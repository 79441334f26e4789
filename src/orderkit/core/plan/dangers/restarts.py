"""
Workloads that stop or start, and values that disappear.

Workloads count both composed and wrapped in an Object. A resource whose status says ``paused`` is
assumed to hold something back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compositions.paused import is_paused
from ground.objects.kube_objects import Manifest, dig
from orderkit.core.order.change import ABSENT, differences, value_at
from orderkit.core.plan.assembly import Assembly
from orderkit.core.plan.dangers.danger_codes import Code, Danger
from orderkit.core.plan.object_texts import key_text
from orderkit.core.plan.outcome_objects import Pair, pairs_of

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
