"""
What comes of assembling an XR: its resources, what is refused, and what is not known.

``composed_tree`` makes an `Assembly`; plans, checks and graphs read it. Here is also how they go
through its objects, including those wrapped by provider-kubernetes, and how they name them for a
person.

Which composed resources refer to which others is recognized by the naming conventions of Kubernetes
and Crossplane: a map with ``kind`` and ``name``, a key ``…Ref`` or ``…Name`` that begins with a
kind (``serviceAccountName``, ``configMapKeyRef``, ``bucketRef``), or a key that is a kind and
contains a name. A bare name that happens to be equal is not a reference. The content of a
provider-kubernetes Object counts as the object it creates. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from compositions.layered_settings import LayeredValue
from compositions.station import Selector
from ground.objects.kube_objects import WRAPPED, Kind, Manifest, dig, metadata, wrapped_object
from ground.objects.values import Steps


def key_text(manifest: Manifest) -> str:
    """Name an object for a person: kind, namespace, name."""
    meta = metadata(manifest)
    home = f"{meta['namespace']}/" if meta.get("namespace") else ""
    return f"{Kind.of(manifest).kind} {home}{meta.get('name', '')}"


def selector_text(selector: Selector) -> str:
    """Write a requirement for a person."""
    kind = Kind.parse(selector.api_version, selector.kind)
    home = f"{selector.namespace}/" if selector.namespace else ""
    if selector.name:
        return f"{kind} {home}{selector.name}"
    labels = ", ".join(f"{key}={value}" for key, value in sorted(selector.labels.items()))
    return f"any {kind} {home}{f'with {labels}' if labels else ''}".rstrip()


_SUFFIX = re.compile(r"(Key|Id|Arn)?(Ref|Refs|Reference)$|(?<=[a-z])Name$")
_SHORT = {
    "claim": "persistentvolumeclaim",
    "volume": "persistentvolume",
}
"""Beginnings of keys that abbreviate a kind."""
_NAMESPACE = "namespace"


def references(resources: Mapping[str, Manifest]) -> set[tuple[str, str]]:
    """Return pairs of paths: the first refers to the second. Nothing refers to itself."""
    index = _index(resources)
    return {
        (path, target)
        for path, manifest in resources.items()
        for kind, name, home in _references(manifest)
        for namespace, target in index.get((kind, name), ())
        if target != path and namespace in {home, ""}
    }


def namespace_edges(resources: Mapping[str, Manifest]) -> set[tuple[str, str]]:
    """Return pairs of paths: the second is the Namespace of the first."""
    index = _index(resources)
    return {
        (path, target)
        for path, manifest in resources.items()
        for identity in identities(manifest)
        for _, target in index.get((_NAMESPACE, metadata(identity).get("namespace")), ())
        if target != path
    }


def _index(resources: Mapping[str, Manifest]) -> dict[tuple[str, Any], list[tuple[str, str]]]:
    """Return namespace and path of every object, by its lower-case kind and its name."""
    index: dict[tuple[str, Any], list[tuple[str, str]]] = {}
    for path, manifest in resources.items():
        for identity in identities(manifest):
            meta = metadata(identity)
            key = (Kind.of(identity).kind.lower(), meta.get("name"))
            index.setdefault(key, []).append((meta.get("namespace") or "", path))
    return index


def identities(manifest: Manifest) -> Iterator[Manifest]:
    """Yield the object, and the object it creates if it is a provider's wrapper."""
    yield manifest
    inner = dig(manifest, "spec", "forProvider", "manifest")
    if isinstance(inner, dict) and isinstance(inner.get("apiVersion"), str) and inner.get("kind"):
        yield inner


def _references(manifest: Manifest) -> Iterator[tuple[str, str, str]]:
    """Yield kind, name and namespace of everything that a manifest refers to."""
    home = ""
    for identity in identities(manifest):
        home = metadata(identity).get("namespace") or home
    for key, value in manifest.items():
        if key not in {"metadata", "status", "apiVersion", "kind"}:
            yield from _references_below(key, value, home)


def _references_below(key: str, value: Any, home: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(value, list):
        for entry in value:
            yield from _references_below(key, entry, home)
    elif isinstance(value, dict):
        yield from _reference_in(key, value, home)
        for name, entry in value.items():
            if name not in {"metadata", "status"}:
                yield from _references_below(str(name), entry, home)
    elif isinstance(value, str) and key.endswith("Name"):
        yield _kind(key), value, home


def _reference_in(
    key: str, reference: Mapping[str, Any], home: str
) -> Iterator[tuple[str, str, str]]:
    name, kind = reference.get("name"), reference.get("kind")
    if isinstance(name, str):
        namespace = reference.get("namespace")
        at = namespace if isinstance(namespace, str) else home
        yield (kind.lower() if isinstance(kind, str) else _kind(key)), name, at


def _kind(key: str) -> str:
    prefix = _SUFFIX.sub("", key).lower()
    return _SHORT.get(prefix, prefix)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that the API server or the pipeline refuses, and the resource it concerns."""

    path: str
    """Of the resource; empty for the XR itself."""
    message: str
    field: str = ""
    hint: str = ""
    code: str = "schema"
    """The broken rule: ``schema``, ``pipeline``, or one of ``judging.Rule``."""
    value: str = ""
    """The offending value as JSON, shortened; empty if there is none."""
    rule: str = ""
    """The keyword and its argument, or the CEL rule."""

    @property
    def where(self) -> str:
        """Resource and field; empty for the pipeline of the XR itself."""
        return ".".join(segment for segment in (self.path, self.field) if segment)


@dataclass(frozen=True, slots=True, order=True)
class Guess:
    """A field of a resource that depends on a value only the cluster assigns, such as a uid."""

    path: str
    field: str


@dataclass(frozen=True, slots=True, order=True)
class Note:
    """Something to check that shows in no resource."""

    path: str
    code: str
    """A `dangers.Code`."""
    message: str


SecretField = tuple[str, Steps]
"""Path of a resource and of a field in it; no steps: the whole resource. Path '': the XR."""


@dataclass(frozen=True, slots=True)
class SecretTraces:
    """What of an outcome follows from the values of Secrets (``secret_traces``)."""

    values: frozenset[str] = frozenset()
    """Of every Secret that stations could see."""
    fields: frozenset[SecretField] = frozenset()
    keys: frozenset[SecretField] = frozenset()
    """Those of the fields that exist for some values only."""
    texts: frozenset[str] = frozenset()
    """Messages, and paths of resources."""
    complete: bool = True
    """False: stations refuse other values, so any field may follow from a Secret."""
    outcomes: tuple[Mapping[str, Manifest], ...] = ()
    """What exists in the end with other values, by path."""
    easy: frozenset[str] = frozenset()
    """Values of these Secrets that are easy to guess, under keys that name nothing public."""
    public_keys: frozenset[str] = frozenset()
    """Keys of Secrets that the kit declares public: nothing of the above follows from them."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """The final state of one XR."""

    xr: Manifest
    """With defaults and its final status."""
    resources: Mapping[str, Manifest]
    """The desired resources by path, as they are applied."""
    observed: Mapping[str, Manifest]
    """What exists in the end, by path."""
    waves: tuple[tuple[str, ...], ...] = ()
    """Paths in the order they first appear; a nested XR comes before what it composes."""
    ready: bool = False
    faults: tuple[Fault, ...] = ()
    unknowns: tuple[str, ...] = ()
    requirements: tuple[Selector, ...] = ()
    """Every requirement of any round, each once."""
    guesses: tuple[Guess, ...] = ()
    """Fields whose values only the cluster knows."""
    input_xr: Manifest = field(default_factory=dict)
    """The XR as passed in, without defaults."""
    missing: tuple[str, ...] = ()
    """Requirements of the last round that were not met."""
    notes: tuple[Note, ...] = ()
    """Warnings of the pipeline, and objects of the cluster that are in the way."""
    is_opaque: bool = False
    """A step was skipped: it may compose more, change anything, and decide readiness."""
    waits: tuple[str, ...] = ()
    """If it is not ready only until providers write what nobody knows here: its unready parts."""
    kept: Mapping[str, Manifest] = field(default_factory=dict)
    """Existing resources that no known step composes, by path; their future is unknown."""
    at_once: Mapping[str, Manifest] = field(default_factory=dict)
    """What the pipeline composes in its first round, before anything becomes ready, by path."""
    made_by: Mapping[str, str] = field(default_factory=dict)
    """The step that composed a resource, by path."""
    renamed: bool = False
    """A new order would get other names for some resources."""
    stuck: frozenset[str] = frozenset()
    """XRs whose pipeline fails, by path ("": the order's own): their resources stay as they are."""
    secret_traces: SecretTraces = field(default_factory=SecretTraces)
    pinned: Mapping[str, str] = field(default_factory=dict)
    """Why a changed Composition does not reach an XR, by path ("": the order's own)."""
    assumed: tuple[Manifest, ...] = ()
    """CompositionRevisions that nobody could be asked for, as they were assumed."""
    settings: Mapping[str, LayeredValue] = field(default_factory=dict)

    def keeps(self, path: str) -> bool:
        """Return whether a resource may stay although no known step composes it."""
        above = path.rpartition("/")[0]
        while above and above not in self.stuck:
            above = above.rpartition("/")[0]
        return path in self.kept or above in self.stuck

    @property
    def readiness(self) -> Literal["Ready", "not Ready", "not known"]:
        """Return, for a person, whether the order ends up Ready."""
        if self.ready:
            return "Ready"
        return "not known" if self.is_opaque or self.waits else "not Ready"


@dataclass(frozen=True, slots=True)
class OutcomeObject:
    """One object of an outcome: a composed resource, or what an Object wraps."""

    path: str
    manifest: Manifest
    prefix: str = ""
    """Path of a wrapped object inside the resource."""

    @property
    def kind(self) -> Kind:
        return Kind.of(self.manifest)

    def field(self, path: str) -> str:
        """Return the path of one of its fields inside the resource."""
        return ".".join(text for text in (self.prefix, path) if text)


@dataclass(frozen=True, slots=True)
class Pair:
    """The same cluster object before and after a change."""

    path: str
    old: Manifest
    new: Manifest

    @property
    def kind(self) -> Kind:
        return Kind.of(self.new)


def objects_of(assembly: Assembly) -> Iterator[OutcomeObject]:
    """Yield every object of an outcome, each wrapped object after its wrapper."""
    for path, manifest in sorted(assembly.resources.items()):
        yield OutcomeObject(path, manifest)
        inner = wrapped_object(manifest)
        if inner is not None:
            yield OutcomeObject(path, inner, ".".join(WRAPPED))


def pairs_of(before: Assembly, after: Assembly) -> Iterator[Pair]:
    """Yield the objects that exist before and after, each wrapped object after its wrapper."""
    for path in sorted(before.resources.keys() & after.resources.keys()):
        old, new = before.resources[path], after.resources[path]
        if is_same(old, new):
            yield Pair(path, old, new)
        inner, became = wrapped_object(old), wrapped_object(new)
        if inner is not None and became is not None and is_same(inner, became):
            yield Pair(path, inner, became)


def is_same(manifest: Manifest, other_manifest: Manifest) -> bool:
    """Return whether two manifests are the same object, in any API version."""
    return _identity(manifest) == _identity(other_manifest)


def _identity(manifest: Manifest) -> tuple[str, ...]:
    kind, meta = Kind.of(manifest), metadata(manifest)
    home, name = meta.get("namespace") or "", meta.get("name") or ""
    return (kind.group, kind.kind, str(home), str(name))


def parent_of(path: str, assembly: Assembly) -> Manifest:
    """Return the XR that composes a resource."""
    above, slash, _ = path.rpartition("/")
    return assembly.resources.get(above, assembly.xr) if slash else assembly.xr
