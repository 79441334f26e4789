"""
What stops, what runs again, and what is no longer shown.

Workloads are looked at wherever they are: composed or wrapped. A part whose status says ``paused``
is taken for what holds something back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orderkit.core.objects.kube_objects import Manifest, annotations_of, dig
from orderkit.core.order.change import ABSENT, differences, value_at
from orderkit.core.plan.assembly import Assembly, key_text
from orderkit.core.plan.dangers.danger_codes import Code, Danger
from orderkit.core.plan.outcome_objects import Pair, pairs_of

PAUSED = "crossplane.io/paused"
_POD_SPECS = (
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
    ("spec",),
)
_SUSPENDED = (("spec", "suspend"), ("spec", "paused"), ("spec", "suspended"))


def running(before: Assembly, after: Assembly) -> Iterator[Danger]:
    """Yield what stops, starts, or is shown no more."""
    if before.ready and after.readiness == "not Ready" and not _fails(after):
        yield Danger("", Code.NOT_READY, "the order is not Ready in the end, as it was before")
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
    """Say whether the pipeline failed: that is told as a fault, and nothing changes."""
    return any(fault.code == "pipeline" and not fault.path for fault in after.faults)


def _switched(pair: Pair) -> Iterator[Danger]:
    was, now = (value_at(each, ("spec", "replicas")) for each in (pair.old, pair.new))
    if now == 0 and was != 0:
        told = f"{key_text(pair.new)} stops: no replicas"
        yield Danger(pair.path, Code.STOPS, told)
    elif was == 0 and now != 0:
        told = f"{key_text(pair.new)} runs again: replicas 0 → {1 if now is ABSENT else now}"
        yield Danger(pair.path, Code.STARTS, told)
    for steps in _SUSPENDED:
        was, now = (value_at(each, steps) is True for each in (pair.old, pair.new))
        if now and not was:
            told = f"{key_text(pair.new)} stops: {'.'.join(steps)} is set"
            yield Danger(pair.path, Code.STOPS, told)
        elif was and not now:
            told = f"{key_text(pair.new)} runs again: {'.'.join(steps)} was set"
            yield Danger(pair.path, Code.STARTS, told)


def _managed(pair: Pair) -> Iterator[Danger]:
    """What becomes of the real thing, and whether anybody looks after it."""
    paused = [str(annotations_of(each).get(PAUSED)) == "true" for each in (pair.old, pair.new)]
    if paused == [False, True]:
        told = f"{key_text(pair.new)} is paused: nobody looks after it, not even at its end"
        yield Danger(pair.path, Code.STOPS, told)
    one, other = (dig(each, "spec", "deletionPolicy") for each in (pair.old, pair.new))
    if one != other and "Orphan" in (one, other):
        end = "stays when the order ends" if other == "Orphan" else "is deleted with the order"
        told = f"{key_text(pair.new)}: deletionPolicy {one} → {other}: it {end}"
        yield Danger(pair.path, Code.DELETE_POLICY, told)
    yield from _policies(pair)


def _policies(pair: Pair) -> Iterator[Danger]:
    was, now = (_allowed(each) for each in (pair.old, pair.new))
    for name in sorted(was - now):
        told = f"{key_text(pair.new)}: managementPolicies no longer have {name}: {_WITHOUT[name]}"
        code = Code.DELETE_POLICY if name == "Delete" else Code.STOPS
        yield Danger(pair.path, code, told)
    if "Delete" in now - was:
        told = f"{key_text(pair.new)}: managementPolicies have Delete now: it ends with the order"
        yield Danger(pair.path, Code.DELETE_POLICY, told)


_ALL = frozenset({"Create", "Update", "Delete", "Observe"})
_WITHOUT = {
    "Create": "what is missing is not made",
    "Update": "no change is carried out any more",
    "Delete": "it stays when the order ends",
    "Observe": "nobody looks at it any more",
}


def _allowed(manifest: Manifest) -> frozenset[str]:
    found = dig(manifest, "spec", "managementPolicies", default=None)
    if found is None or "*" in found:
        return _ALL
    return _ALL & frozenset(str(each) for each in found)


def _connection(pair: Pair) -> Iterator[Danger]:
    steps = ("spec", "writeConnectionSecretToRef")
    was, now = (value_at(each, steps) for each in (pair.old, pair.new))
    if was is not ABSENT and was != now:
        named = f"Secret {dig(was, 'name')}"
        told = f"{key_text(pair.new)} writes its connection details no more into {named}"
        yield Danger(pair.path, Code.CONNECTION_LOST, told)
    if pair.kind.kind != "Secret" or pair.kind.group:
        return
    keys, left = (_keys(each) for each in (pair.old, pair.new))
    if keys - left:
        told = f"{key_text(pair.new)} loses {', '.join(sorted(keys - left))}"
        yield Danger(pair.path, Code.CONNECTION_LOST, told)


def _keys(secret: Manifest) -> set[str]:
    return {str(key) for name in ("data", "stringData") for key in secret.get(name) or {}}


def _version(pair: Pair) -> Iterator[Danger]:
    one, other = (str(each.get("apiVersion")) for each in (pair.old, pair.new))
    if one != other:
        told = (
            f"{key_text(pair.new)} is written as {other} instead of {one}: a field that only "
            "one of them knows is lost"
        )
        yield Danger(pair.path, Code.API_VERSION, told)


def _images(path: str, manifest: Manifest, old: Manifest | None) -> Iterator[Danger]:
    had = set(images_of(old)) if old is not None else set()
    for image in images_of(manifest):
        if image not in had and not is_pinned(image):
            told = f"{key_text(manifest)}: {image} is whatever that name is tomorrow"
            yield Danger(path, Code.UNPINNED, told)


def images_of(manifest: Manifest) -> Iterator[str]:
    """Yield the images of a workload's containers, also inside an Object."""
    for pod in pod_specs(manifest):
        for name in ("initContainers", "containers"):
            for container in pod.get(name) or ():
                if isinstance(container, dict) and isinstance(container.get("image"), str):
                    yield container["image"]


def pod_specs(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield the specs of Pods that an object makes or is, also inside an Object."""
    inner = dig(manifest, "spec", "forProvider", "manifest")
    for each in (manifest, inner):
        for steps in _POD_SPECS:
            found = dig(each, *steps)
            if isinstance(found, dict) and isinstance(found.get("containers"), list):
                yield found


def is_pinned(image: str) -> bool:
    """Say whether an image's name has a digest, or a tag that is none of the moving ones."""
    if "@sha256:" in image:
        return True
    tag = image.rpartition("/")[2].partition(":")[2]
    return bool(tag) and tag not in {"latest", "main", "master", "edge", "nightly", "stable"}


def _released(before: Assembly, after: Assembly) -> Iterator[Danger]:
    for path in before.resources.keys() - after.resources.keys():
        living = before.observed.get(path) or {}
        if dig(living, "status", "paused") is True:
            told = f"{key_text(living)} says paused, and goes: what it holds back runs again"
            yield Danger(path, Code.STARTS, told)


def _status(before: Assembly, after: Assembly) -> Iterator[Danger]:
    if _fails(after):
        return
    one, other = ({**(each.xr.get("status") or {})} for each in (before, after))
    for status in (one, other):
        status.pop("conditions", None)
    for field in differences(one, other, whole=True):
        if field.new is ABSENT:
            told = f"status.{field.path} is shown no more"
            yield Danger("", Code.STATUS_LOST, told)
