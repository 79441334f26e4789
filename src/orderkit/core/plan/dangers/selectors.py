"""
What selects what, who refers to whom, and which fences stand: whatever is lost of it.

Selectors of Services, NetworkPolicies and disruption budgets are followed to the Pods of workloads
of the same order, autoscalers to their target. Only what was reached before and is reached no
more is told; matchExpressions are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from orderkit.core.objects.kube_objects import Kind, Manifest, dig, labels_of, metadata
from orderkit.core.plan.assembly import Assembly, key_text
from orderkit.core.plan.dangers.danger_codes import Code, Danger
from orderkit.core.plan.dangers.restarts import pod_specs
from orderkit.core.plan.outcome_objects import Part, pairs_of, parts_of

_SELECTORS = {
    ("", "Service"): ("spec", "selector"),
    ("networking.k8s.io", "NetworkPolicy"): ("spec", "podSelector", "matchLabels"),
    ("policy", "PodDisruptionBudget"): ("spec", "selector", "matchLabels"),
}
_SCALER = ("autoscaling", "HorizontalPodAutoscaler")
_FENCES = {
    "NetworkPolicy": "traffic that it held back is let through",
    "PodDisruptionBudget": "an eviction may take every Pod at once",
    "ResourceQuota": "there is no bound on what its namespace uses",
    "LimitRange": "containers have no bounds of their own any more",
    "Usage": "what it protected may be deleted",
    "ClusterUsage": "what it protected may be deleted",
    "ValidatingAdmissionPolicy": "nobody checks what it checked",
    "ValidatingAdmissionPolicyBinding": "nobody checks what it checked",
    "Policy": "nobody checks what it checked",
    "ClusterPolicy": "nobody checks what it checked",
    "BucketPublicAccessBlock": "the bucket may be opened to everybody",
}
_NAMESPACE_FENCES = re.compile(
    r"pod-security\.kubernetes\.io/(enforce|audit|warn)(-version)?\Z|istio(-injection|\.io/rev)\Z"
    r"|linkerd\.io/inject\Z"
)


def reaching(before: Assembly, after: Assembly) -> Iterator[Danger]:
    """Yield what is selected, referred to or fenced no more."""
    yield from _unselected(before, after)
    yield from _dangling(before, after)
    yield from _fences(before, after)


def _unselected(before: Assembly, after: Assembly) -> Iterator[Danger]:
    was, now = dict(_selected(before)), dict(_selected(after))
    still = {part.path: part for part in parts_of(after)}
    for (path, target), told in sorted(was.items()):
        if (path, target) in now or path not in still:
            continue
        left = [other for other, _ in now if other == path]
        alone = "" if left else "; it selects nothing any more"
        yield Danger(path, Code.UNSELECTED, f"{told} no more{alone}")


def _selected(assembly: Assembly) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield who selects whom, by path, and how to say it."""
    workloads = [(part, labels) for part in parts_of(assembly) if (labels := _pod_labels(part))]
    for part in parts_of(assembly):
        kind = (part.kind.group, part.kind.kind)
        if kind == _SCALER:
            yield from _scaled(part, assembly)
        selector = dig(part.manifest, *_SELECTORS[kind]) if kind in _SELECTORS else None
        if not isinstance(selector, Mapping):
            continue
        home = metadata(part.manifest).get("namespace")
        for target, labels in workloads:
            same_home = metadata(target.manifest).get("namespace") == home
            if same_home and selector.items() <= labels.items():
                told = f"{key_text(part.manifest)} selects {key_text(target.manifest)}"
                yield (part.path, target.path), told


def _pod_labels(part: Part) -> Mapping[str, Any]:
    labels = dig(part.manifest, "spec", "template", "metadata", "labels")
    if isinstance(labels, dict):
        return labels
    return labels_of(part.manifest) if part.kind == Kind("", "v1", "Pod") else {}


def _scaled(part: Part, assembly: Assembly) -> Iterator[tuple[tuple[str, str], str]]:
    target = dig(part.manifest, "spec", "scaleTargetRef", default=None) or {}
    home = metadata(part.manifest).get("namespace")
    for other in parts_of(assembly):
        meta = metadata(other.manifest)
        if (other.kind.kind, meta.get("name"), meta.get("namespace")) == (
            target.get("kind"), target.get("name"), home,
        ):  # fmt: skip
            told = f"{key_text(part.manifest)} scales {key_text(other.manifest)}"
            yield (part.path, other.path), told


def _dangling(before: Assembly, after: Assembly) -> Iterator[Danger]:
    names = {_place(part.manifest) for part in parts_of(after)}
    gone = {_place(part.manifest) for part in parts_of(before)} - names
    for path, manifest in sorted(after.resources.items()):
        home = str(metadata(manifest).get("namespace") or "")
        told = {
            f"{key_text(manifest)} refers to {kind} {name}, which goes"
            for pod in pod_specs(manifest)
            for kind, name in references_of(pod)
            if (kind, home, name) in gone
        }
        yield from (Danger(path, Code.DANGLING, each) for each in sorted(told))


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


def _fences(before: Assembly, after: Assembly) -> Iterator[Danger]:
    kept = {(part.path, part.kind.kind) for part in parts_of(after)}
    for part in parts_of(before):
        told = _FENCES.get(part.kind.kind)
        if told and (part.path, part.kind.kind) not in kept:
            text = f"{key_text(part.manifest)} is removed: {told}"
            yield Danger(part.path, Code.UNGUARDED, text)
    for pair in pairs_of(before, after):
        if pair.kind.kind != "Namespace":
            continue
        was, now = labels_of(pair.old), labels_of(pair.new)
        for key in sorted(key for key in was if _NAMESPACE_FENCES.match(key)):
            if was[key] != now.get(key):
                text = f"{key_text(pair.new)}: {key} {was[key]} → {now.get(key, 'none')}"
                yield Danger(pair.path, Code.UNGUARDED, text)
