"""
Kubernetes objects as plain data: kinds, keys, conditions, and small questions about a manifest.

No schema, no client. Everything that speaks of cluster objects (ports, pipeline, delivery, flows)
uses these types. Here is also what an Object of provider-kubernetes wraps, what managed resources
may create, and which kinds of Kubernetes and Crossplane are cluster-scoped.

A condition is replaced as a whole, time included, as soon as anything but its time differs; an
equal one stays untouched, so writing it again changes nothing. The clock is the caller's: times
come in as RFC 3339 text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

__all__ = [
    "APPLICATION",
    "APP_PROJECT",
    "ARGOCD_NAMESPACE",
    "AVAILABLE",
    "CLUSTER_SCOPED_HOME",
    "CLUSTER_USAGE",
    "COMPOSITION",
    "COMPOSITION_REVISION",
    "CONFIG_MAP",
    "CRD",
    "CREATING",
    "DELETING",
    "DELETION_ATTEMPT",
    "EVENT",
    "EXTERNAL_NAME",
    "FUNCTION",
    "IN_USE",
    "NAMESPACE",
    "RECONCILE_PAUSED",
    "RECONCILE_SUCCESS",
    "RESPONSIVE",
    "SYSTEM_TYPES",
    "TRACKING_ID",
    "USAGE",
    "WRAPPED",
    "XRD",
    "Condition",
    "ConditionStatus",
    "Kind",
    "Manifest",
    "ObjectKey",
    "annotations_of",
    "condition",
    "controller",
    "controller_reference",
    "dig",
    "first_and_more",
    "is_namespaced",
    "labels_of",
    "makes_nothing",
    "merged",
    "metadata",
    "only_observes",
    "plural_of",
    "reconcile_error",
    "secret_references",
    "unknown_after_fatal",
    "used_by",
    "wrapped_object",
]

Manifest = dict[str, Any]
"""One Kubernetes object as JSON-like data. `Any`: its shape is known only to its schema."""


@dataclass(frozen=True, slots=True, order=True)
class Kind:
    """Group, version and kind; the core group is the empty string."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @classmethod
    @functools.lru_cache(maxsize=1_000)  # of every object, many times over; there are few kinds
    def parse(cls, api_version: str, kind: str) -> Self:
        """Read ``group/version`` or ``version``."""
        group, _, version = api_version.rpartition("/")
        return cls(group, version, kind)

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """
        Return the kind of a manifest.

        Raises:
            ValueError: ``apiVersion`` or ``kind`` is missing or no text.
        """
        api_version, kind = manifest.get("apiVersion"), manifest.get("kind")
        if not isinstance(api_version, str) or not isinstance(kind, str) or not kind:
            raise ValueError("not a Kubernetes object: apiVersion or kind is missing")
        return cls.parse(api_version, kind)

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


@dataclass(frozen=True, slots=True, order=True)
class ObjectKey:
    """Where an object lives. `namespace` is empty for cluster-scoped objects."""

    kind: Kind
    name: str
    namespace: str = ""

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """
        Return the key of a manifest.

        Raises:
            ValueError: Kind or name is missing.
        """
        name = metadata(manifest).get("name")
        if not isinstance(name, str) or not name:
            raise ValueError(f"{Kind.of(manifest)} without metadata.name")
        return cls(Kind.of(manifest), name, metadata(manifest).get("namespace") or "")

    def to_json(self) -> dict[str, str]:
        """Return it as Kubernetes writes a reference."""
        identity = {"apiVersion": self.kind.api_version, "kind": self.kind.kind, "name": self.name}
        return identity | ({"namespace": self.namespace} if self.namespace else {})

    @classmethod
    def from_json(cls, reference: Mapping[str, str]) -> Self:
        """Read a reference with apiVersion, kind, name and perhaps namespace."""
        kind = Kind.parse(reference["apiVersion"], reference["kind"])
        return cls(kind, reference.get("name", ""), reference.get("namespace", ""))

    def __str__(self) -> str:
        qualified_name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {qualified_name}"


NAMESPACE = Kind("", "v1", "Namespace")
CONFIG_MAP = Kind("", "v1", "ConfigMap")
EVENT = Kind("", "v1", "Event")
CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
APPLICATION = Kind("argoproj.io", "v1alpha1", "Application")
APP_PROJECT = Kind("argoproj.io", "v1alpha1", "AppProject")
XRD = Kind("apiextensions.crossplane.io", "v2", "CompositeResourceDefinition")
COMPOSITION = Kind("apiextensions.crossplane.io", "v1", "Composition")
COMPOSITION_REVISION = Kind("apiextensions.crossplane.io", "v1", "CompositionRevision")
FUNCTION = Kind("pkg.crossplane.io", "v1", "Function")
USAGE = Kind("protection.crossplane.io", "v1beta1", "Usage")
CLUSTER_USAGE = Kind("protection.crossplane.io", "v1beta1", "ClusterUsage")
IN_USE = "crossplane.io/in-use"
"""Label of objects that a Usage protects."""
DELETION_ATTEMPT = "usage.crossplane.io/deletion-attempt-with-policy"
"""Annotation: the propagation of a deletion that a Usage refused; ``replayDeletion`` repeats it."""

ARGOCD_NAMESPACE = "argocd"
"""Where Argo CD looks for Applications and AppProjects by default."""
TRACKING_ID = "argocd.argoproj.io/tracking-id"
"""Where Argo CD notes which Application delivers an object."""
CLUSTER_SCOPED_HOME = "default"
"""The namespace of Events about objects that have none."""


def metadata(manifest: Manifest) -> dict[str, Any]:
    """Return ``metadata``, or an empty dict when it is missing or no map."""
    meta = manifest.get("metadata")
    return meta if isinstance(meta, dict) else {}


def annotations_of(manifest: Manifest) -> dict[str, str]:
    """Return the annotations, or an empty dict."""
    return metadata(manifest).get("annotations") or {}


def labels_of(manifest: Manifest) -> dict[str, str]:
    """Return the labels, or an empty dict."""
    return metadata(manifest).get("labels") or {}


def dig(value: object, *path: str, default: Any = None) -> Any:
    """Follow map keys; return `default` as soon as one is missing or the value is not a map."""
    for step in path:
        # what is a dict, or None, is known at once
        if value is None or not isinstance(value, (dict, Mapping)) or step not in value:
            return default
        value = value[step]
    return value


def condition(manifest: Manifest, type_: str) -> dict[str, Any] | None:
    """Return the entry of ``status.conditions`` with this type, or None."""
    conditions: Iterable[object] | None = dig(manifest, "status", "conditions")
    for entry in conditions or ():  # a fresh CRD has null there for a moment
        if isinstance(entry, dict) and entry.get("type") == type_:
            return entry
    return None


def controller(manifest: Manifest) -> dict[str, Any] | None:
    """Return the owner reference that is marked as controller, or None."""
    for reference in metadata(manifest).get("ownerReferences") or ():
        if isinstance(reference, dict) and reference.get("controller"):
            return reference
    return None


def controller_reference(owner: Manifest, *, uid: str) -> dict[str, Any]:
    """Return the owner reference that marks an object as the controller of another."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata(owner).get("name", ""),
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def used_by(usage: Manifest, side: Literal["of", "by"]) -> ObjectKey:
    """Return what a Usage says is used (``of``) or uses it (``by``); its name is '' if unknown."""
    resource: Any = dig(usage, "spec", side, default={})
    kind = Kind.parse(str(resource.get("apiVersion", "")), str(resource.get("kind", "")))
    home = str(metadata(usage).get("namespace") or "")
    namespace = dig(resource, "resourceRef", "namespace", default="") if side == "of" else ""
    return ObjectKey(kind, str(dig(resource, "resourceRef", "name", default="")), namespace or home)


def plural_of(kind: str) -> str:
    """Return the probable plural of a kind in lower case, by English rules."""
    name = kind.lower()
    if name.endswith("endpoints"):
        return name
    if name.endswith(("s", "x", "z", "ch", "sh")):
        return f"{name}es"
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}s"


WRAPPED = ("spec", "forProvider", "manifest")
EXTERNAL_NAME = "crossplane.io/external-name"
"""The annotation with a managed resource's name in the cloud."""
_SECRET_FIELD = re.compile(r"(?!.*onfigMap).*Secret(Key)?Refs?|secret(Key)?Ref")


def wrapped_object(manifest: Manifest) -> Manifest | None:
    """Return what a provider-kubernetes Object wraps; without a name it gets the Object's."""
    kind = Kind.of(manifest)
    if kind.kind != "Object" or not kind.group.startswith("kubernetes."):
        return None
    inner = dig(manifest, *WRAPPED)
    if not isinstance(inner, dict) or not inner.get("kind") or not inner.get("apiVersion"):
        return None
    inner_metadata = {"name": metadata(manifest).get("name"), **metadata(inner)}
    return {**inner, "metadata": inner_metadata}


def makes_nothing(manifest: Manifest) -> bool:
    """Return whether a managed resource never creates: then a partial object is enough."""
    policies = dig(manifest, "spec", "managementPolicies", default=None)
    return policies is not None and not {"*", "Create"} & set(policies)


def only_observes(manifest: Manifest) -> bool:
    """Return whether a managed resource only observes: no change or end of it reaches the cloud."""
    policies = dig(manifest, "spec", "managementPolicies", default=None)
    return policies is not None and not {"*", "Create", "Update", "Delete"} & set(policies)


def secret_references(for_provider: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name and value of each reference to a Secret's key that has to exist."""
    if isinstance(for_provider, list):
        for entry in for_provider:
            yield from secret_references(entry)
    elif isinstance(for_provider, dict):
        for name, value in for_provider.items():
            is_secret = _SECRET_FIELD.fullmatch(name)
            if is_secret and isinstance(value, dict) and value.get("name") and value.get("key"):
                if not value.get("optional"):
                    yield name, value
            else:
                yield from secret_references(value)


_CLUSTER_KINDS = {
    "": {"Namespace", "Node", "PersistentVolume"},
    "apiextensions.k8s.io": {"CustomResourceDefinition"},
    "admissionregistration.k8s.io": {
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    },
    "rbac.authorization.k8s.io": {"ClusterRole", "ClusterRoleBinding"},
    "storage.k8s.io": {"StorageClass", "CSIDriver", "VolumeAttachment"},
    "scheduling.k8s.io": {"PriorityClass"},
    "networking.k8s.io": {"IngressClass"},
    "apiregistration.k8s.io": {"APIService"},
    "certificates.k8s.io": {"CertificateSigningRequest"},
    "apiextensions.crossplane.io": {
        "CompositeResourceDefinition",
        "Composition",
        "CompositionRevision",
        "EnvironmentConfig",
    },
    "pkg.crossplane.io": {"Provider", "Function", "Configuration"},
    "protection.crossplane.io": {"ClusterUsage"},
}


def is_namespaced(kind: Kind) -> bool:
    """Say whether a kind is namespaced; all but Kubernetes' and Crossplane's known ones are."""
    return kind.kind not in _CLUSTER_KINDS.get(kind.group, ())


ConditionStatus = Literal["True", "False", "Unknown"]

SYSTEM_TYPES = frozenset({"Ready", "Synced", "Healthy", "UpToDate", "Responsive"})
"""Types that belong to Crossplane; what a function says about them is ignored."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One statement about an object, without time and generation."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""
    dated: bool = field(default=True, compare=False)
    """Whether it says of which generation it is. What a function says does not, in Crossplane."""


_NAMED = 3
RESPONSIVE = Condition("Responsive", "True", "WatchCircuitClosed")
RECONCILE_SUCCESS = Condition("Synced", "True", "ReconcileSuccess")
RECONCILE_PAUSED = Condition(
    "Synced",
    "False",
    "ReconcilePaused",
    "Reconciliation (including deletion) is paused via the pause annotation",
)
AVAILABLE = Condition("Ready", "True", "Available")
CREATING = Condition("Ready", "False", "Creating")
DELETING = Condition("Ready", "False", "Deleting")


def reconcile_error(message: str) -> Condition:
    """Return ``Synced=False`` with this error."""
    return Condition("Synced", "False", "ReconcileError", message)


def unknown_after_fatal(type_: str) -> Condition:
    """Return what becomes of a function's condition that a fatal result left unsaid."""
    return Condition(
        type_,
        "Unknown",
        "FatalError",
        "A fatal error occurred before the status of this condition could be determined.",
    )


def merged(
    present: Sequence[dict[str, Any]], *new: Condition, generation: int, now: str
) -> list[dict[str, Any]]:
    """
    Return `present` with `new` set in it.

    Known types keep their position, new ones are appended. `present` is not changed.
    """
    result = [dict(entry) for entry in present]
    for condition in new:
        _set(result, condition, generation, now)
    return result


def _set(entries: list[dict[str, Any]], new: Condition, generation: int, now: str) -> None:
    entry: dict[str, Any] = {
        "type": new.type,
        "status": new.status,
        "reason": new.reason,
        "lastTransitionTime": now,
    }
    if new.dated:
        entry["observedGeneration"] = generation
    if new.message:
        entry["message"] = new.message
    for index, old in enumerate(entries):
        if old.get("type") == new.type:
            if not _same(old, entry):
                entries[index] = entry
            return
    entries.append(entry)


def _same(old: dict[str, Any], new: dict[str, Any]) -> bool:
    keys = ("status", "reason", "message", "observedGeneration")
    return all((old.get(key) or "") == (new.get(key) or "") for key in keys)


def first_and_more(names: Sequence[str]) -> str:
    """Join sorted names as Crossplane does: ``a, b, and c`` or ``a, b, c, and 2 more``."""
    ordered = sorted(names)
    if len(ordered) > _NAMED:
        return f"{', '.join(ordered[:_NAMED])}, and {len(ordered) - _NAMED} more"
    if len(ordered) == _NAMED:
        return f"{', '.join(ordered[:-1])}, and {ordered[-1]}"
    return ", ".join(ordered)
