"""Iterate over the objects of an outcome, including those wrapped by provider-kubernetes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ground.objects.kube_objects import WRAPPED, Kind, Manifest, metadata, wrapped_object
from orderkit.core.plan.assembly import Assembly


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
