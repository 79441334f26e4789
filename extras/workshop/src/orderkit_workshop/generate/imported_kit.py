"""
Turn existing objects into a pack's files: remove fields that a server added, keep the rest.

The text of a file with one document keeps its comments and order, in the pack's YAML style. There
are two conversions: an XRD that a cluster returns as v1, without features that v2 lacks, is written
as v2; and what Crossplane drops, or replaces with its own, is left out of an XRD's schema.
"""

from __future__ import annotations

import contextlib
import copy
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ground.errors import InvalidInputError, OrderkitError, UsageError
from ground.names import NAME_MAX
from ground.objects.kube_objects import (
    COMPOSITION,
    CRD,
    TRACKING_ID,
    XRD,
    Kind,
    Manifest,
    annotations_of,
    dig,
    metadata,
)
from ground.objects.values import ABSENT
from kubeschema.xrd import (
    GROUP,
    default_composition,
    dropped,
    is_legacy,
    referenceable_version,
    xr_kind,
)
from orderkit_workshop.generate.imported_pipeline import source_packages
from yamlfiles import yaml11
from yamlfiles.edit import Edit, Op, edit
from yamlfiles.manifests import parse_documents
from yamlfiles.restyle import rewritten

SYNC_OPTIONS, WAVE = "argocd.argoproj.io/sync-options", "argocd.argoproj.io/sync-wave"
KEPT = "Prune=false,Delete=false"
"""Deleting an XRD deletes every order of its kind, so Argo CD must never do it."""
_SERVER_FIELDS = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "ownerReferences",
    "finalizers",
    "selfLink",
)
_V1_ONLY = {"defaultCompositeDeletePolicy"}
"""A server adds it to each XRD that it returns as v1; v2 has no such field."""
_SERVER_ANNOTATIONS = (
    "kubectl.kubernetes.io/last-applied-configuration",
    TRACKING_ID,
)


@dataclass(frozen=True, slots=True)
class ImportSource:
    """A file, or objects that a cluster returned (then without text)."""

    name: str
    objects: tuple[Manifest, ...]
    text: bytes | None = None
    """The file, if it is YAML and contains one document."""


@dataclass(frozen=True, slots=True)
class SourcedObject:
    """An object and the file it comes from."""

    manifest: Manifest
    source: ImportSource

    @property
    def name(self) -> str:
        return str(metadata(self.manifest).get("name", ""))


def read_source(name: str, data: bytes) -> ImportSource:
    """
    Read a file of objects.

    Raises:
        ManifestError: It is not YAML or JSON with Kubernetes objects.
    """
    from yamlfiles.manifests import objects_in

    documents = [
        (document, line) for document, line in parse_documents(name, data) if document is not None
    ]
    objects = tuple(
        source_object
        for document, line in documents
        for source_object in objects_in(name, document, line)
    )
    single = len(documents) == 1 and objects == (documents[0][0],) and not name.endswith(".json")
    return ImportSource(name, objects, data if single else None)


def the_xrd(sources: Iterable[ImportSource]) -> SourcedObject:
    """
    Return the one XRD among the sources.

    Raises:
        UsageError: There is none, or more than one.
    """
    sources = tuple(sources)
    xrds = [candidate for candidate in _all(sources) if _is(candidate.manifest, XRD)]
    if len(xrds) == 1:
        return xrds[0]
    names = ", ".join(source.name for source in sources)
    kinds = Counter(str(candidate.manifest.get("kind")) for candidate in _all(sources))
    found = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "no object"
    if xrds:
        hint = "one kit has one XRD: import them one by one, each with its Composition"
    elif any(_is(candidate.manifest, CRD) for candidate in _all(sources)):
        hint = "this is a CRD; Crossplane makes it of the XRD, and that is what is needed"
    else:
        hint = "give the file of kind CompositeResourceDefinition (apiextensions.crossplane.io) too"
    raise UsageError(f"{names} must hold one XRD, and holds {found}", hint=hint)


def compositions_for(
    xrd: Manifest, sources: Iterable[ImportSource], *, name: str = ""
) -> list[SourcedObject]:
    """
    Return the Compositions of an XRD among the sources, that of orders that choose none first.

    Args:
        name: The name of the first, if there are several and the XRD names no default.

    Raises:
        InvalidInputError: It does not exist, is not the one that the XRD enforces, or there are
            several to choose from.
    """
    kind = xr_kind(xrd)
    compositions = [
        candidate
        for candidate in _all(sources)
        if _is(candidate.manifest, COMPOSITION)
        and dig(candidate.manifest, "spec", "compositeTypeRef", "kind") == kind.kind
        and str(dig(candidate.manifest, "spec", "compositeTypeRef", "apiVersion")).startswith(
            f"{kind.group}/"
        )
    ]
    names = [composition.name for composition in compositions]
    default = default_composition(xrd)
    enforced = dig(xrd, "spec", "enforcedCompositionRef", "name")
    if name and enforced not in (None, name):
        raise InvalidInputError(
            "--composition", name, f"is not '{enforced}', which the XRD enforces",
            hint="leave --composition out, or change enforcedCompositionRef",
        )  # fmt: skip
    chosen_name = name or (default if default in names else "")
    chosen_name = chosen_name or (names[0] if len(names) == 1 else "")
    if chosen_name in names:
        first = compositions.pop(names.index(chosen_name))
        return [first, *compositions]
    if not compositions and not name:
        return []
    raise InvalidInputError(
        "Composition",
        name or names,
        f"must be one of {kind.kind}",
        hint=f"name it: {', '.join(names)}" if names else "none for this XRD was given",
    )


def example_of(xrd: Manifest, sources: Iterable[ImportSource]) -> Mapping[str, Any] | None:
    """Return the fields of the first order among the sources: an XR or a claim of the XRD's."""
    fields = dig(referenceable_version(xrd), "schema", "openAPIV3Schema", "properties", "spec")
    for candidate in _all(sources):
        if _is_order(candidate.manifest, xrd):
            spec = candidate.manifest.get("spec") or {}
            return {key: spec[key] for key in dig(fields, "properties", default={}) if key in spec}
    return None


def _is_order(manifest: Manifest, xrd: Manifest) -> bool:
    spec, kind = xrd["spec"], Kind.of(manifest)
    kinds = (dig(spec, names, "kind", default="") for names in ("names", "claimNames"))
    return kind.group == spec["group"] and kind.kind in kinds


def with_default(xrd: Manifest, compositions: Iterable[str]) -> Manifest:
    """Return an XRD that names the first of the pack's Compositions, if it has to name one."""
    names, spec = list(compositions), xrd["spec"]
    default = default_composition(xrd)
    if not names or spec.get("enforcedCompositionRef") or default == names[0]:
        return xrd
    if len(names) == 1 and not default:
        return xrd
    return {**xrd, "spec": {**spec, "defaultCompositionRef": {"name": names[0]}}}


def left_out(xrd: Manifest, sources: Iterable[ImportSource]) -> Iterator[str]:
    """Name the objects of the sources that an import has no place for."""
    kind = xr_kind(xrd)
    for candidate in _all(sources):
        manifest = candidate.manifest
        is_ours = dig(manifest, "spec", "compositeTypeRef", "kind") == kind.kind
        known = (
            _is(manifest, XRD)
            or _is_order(manifest, xrd)
            or Kind.of(manifest).group in _OF_PACKAGES
        )
        if not (known or (_is(manifest, COMPOSITION) and is_ours)):
            yield f"{manifest['kind']} '{candidate.name}' of {candidate.source.name}"


_OF_PACKAGES = {"pkg.crossplane.io", "meta.pkg.crossplane.io", "meta.dev.upbound.io"}


def packages_in(sources: Iterable[ImportSource]) -> dict[str, str]:
    """Return the packages of functions that the sources declare, by name."""
    return source_packages(candidate.manifest for candidate in _all(sources))


def _all(sources: Iterable[ImportSource]) -> Iterator[SourcedObject]:
    for source in sources:
        yield from (SourcedObject(manifest, source) for manifest in source.objects)


def _is(manifest: Manifest, kind: Kind) -> bool:
    manifest_kind = Kind.of(manifest)
    return (manifest_kind.group, manifest_kind.kind) == (kind.group, kind.kind)


def cleaned(manifest: Manifest) -> Manifest:
    """Return the object as it should be in Git: without status and without server fields."""
    meta = {key: value for key, value in metadata(manifest).items() if key not in _SERVER_FIELDS}
    annotations = {
        k: v for k, v in annotations_of(manifest).items() if k not in _SERVER_ANNOTATIONS
    }
    annotations |= _own_annotations(manifest, annotations)
    meta["annotations"] = annotations
    if not annotations:
        del meta["annotations"]
    body = {
        k: v for k, v in manifest.items() if k not in {"apiVersion", "kind", "metadata", "status"}
    }
    cleaned_manifest = {
        "apiVersion": _api_version(manifest),
        "kind": manifest["kind"],
        "metadata": meta,
        **body,
    }
    if cleaned_manifest["apiVersion"] != manifest["apiVersion"]:
        cleaned_manifest["spec"] = {k: v for k, v in manifest["spec"].items() if k not in _V1_ONLY}
    if _is(manifest, XRD):
        cleaned_manifest["spec"] = copy.deepcopy(cleaned_manifest["spec"])
        for cut in dropped(cleaned_manifest):
            parent = _at(cleaned_manifest, cut.steps[:-1])
            del parent[cut.steps[-1]]
    return cleaned_manifest


def _at(manifest: Manifest, steps: Sequence[str]) -> Any:
    value: Any = manifest
    for step in steps:
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def _api_version(manifest: Manifest) -> str:
    """Return v2 for an XRD that a server returned as v1 and whose scope is not the legacy one."""
    from_server = bool(metadata(manifest).get("uid"))
    if _is(manifest, XRD) and from_server and not is_legacy(manifest):
        return f"{GROUP}/v2"
    return str(manifest["apiVersion"])


def _own_annotations(manifest: Manifest, annotations: dict[str, str]) -> dict[str, str]:
    """Return Argo CD's annotations for definitions: no pruning, and the order of applying."""
    if Kind.of(manifest).group != GROUP:
        return {}
    options = [option for option in annotations.get(SYNC_OPTIONS, "").split(",") if option]
    option_names = {option.partition("=")[0] for option in options}
    options += [
        option for option in KEPT.split(",") if option.partition("=")[0] not in option_names
    ]
    wave = {WAVE: annotations.get(WAVE, "1")} if _is(manifest, COMPOSITION) else {}
    return {SYNC_OPTIONS: ",".join(options), **wave}


def texts_of(
    obj: SourcedObject, target: Manifest, *, prepare: Callable[[Any], None] | None = None
) -> Iterator[bytes]:
    """
    Yield an object as a file in the pack's style: as its author wrote it, in blocks, anew.

    All but the last have the comments of the text that the object comes from.

    Args:
        target: What to write: `cleaned`, or what a Composition became.
        prepare: As in `yamlfiles.restyle.rewritten`, where parts of ``spec`` moved.
    """
    text = obj.source.text
    if text is None:
        yield yaml11.dump(target).encode()
        return
    first = target if prepare is None else {**target, "spec": obj.manifest["spec"]}
    with contextlib.suppress(OrderkitError):  # a splice keeps new keys before later comments
        text = edit(text, list(_edits(obj.manifest, first)), name=obj.source.name)
    for in_blocks in (False, True):
        yield rewritten(text, target, prepare=prepare or (lambda _: None), in_blocks=in_blocks)
    yield yaml11.dump(target).encode()


def _edits(before: Any, after: Any, at: tuple[str | int, ...] = ()) -> Iterator[Edit]:
    """Yield the edits that turn one object into another."""
    if isinstance(before, dict) and isinstance(after, dict):
        yield from (Edit((*at, key), Op.UNSET) for key in before if key not in after)
        entries: Iterable[tuple[str | int, Any]] = after.items()
    else:
        entries = enumerate(after)
    for key, value in entries:
        old = before.get(key, ABSENT) if isinstance(before, dict) else before[int(key)]
        both = {type(old), type(value)}
        if both == {dict} or (both == {list} and len(old) == len(value)):
            yield from _edits(old, value, (*at, key))
        elif old is ABSENT or old != value:
            yield Edit((*at, key), Op.SET, value)


def kit_name(xrd: Manifest) -> str:
    """Return the kit name suggested by an XRD: ``XAgentBudget`` is ``agent-budget``."""
    bare = re.sub(r"^X(?=[A-Z])", "", str(dig(xrd, "spec", "names", "kind", default="")))
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", bare)
    return parts.lower()[:NAME_MAX].strip("-")
