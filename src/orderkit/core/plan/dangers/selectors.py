"""
Selectors and references that lose their target.

Selectors of Services, NetworkPolicies and disruption budgets are followed to the Pods of workloads
in the same order, autoscalers to their target. Only targets that were reached before the change
and are not reached after it count. ``matchExpressions`` are not followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ground.objects.kube_objects import Kind, Manifest, dig, labels_of, metadata
from orderkit.core.plan.assembly import Assembly
from orderkit.core.plan.dangers.danger_codes import Code, Danger
from orderkit.core.plan.dangers.restarts import pod_specs
from orderkit.core.plan.object_texts import key_text
from orderkit.core.plan.outcome_objects import OutcomeObject, objects_of

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
