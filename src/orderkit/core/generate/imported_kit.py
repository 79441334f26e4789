"""
Turn existing objects into a pack's files: remove fields that a server added, keep the rest.

The text of a file with one document is kept, including comments and order, if the edits can be
proved (``core.yaml.edit``); otherwise the object is written anew. There is one conversion: an XRD
that a cluster returns as v1, without features that v2 lacks, is written as v2.

Called by ``flows.kit.import_kit``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from orderkit.core.crossplane.composed import steps_of
from orderkit.core.crossplane.python_functions import NAMES, STATION_FUNCTION
from orderkit.core.errors import InvalidInputError, OrderkitError, RefusedError
from orderkit.core.objects.kube_objects import (
    COMPOSITION,
    CRD,
    FUNCTION,
    TRACKING_ID,
    XRD,
    Kind,
    Manifest,
    annotations_of,
    dig,
    metadata,
)
from orderkit.core.schema.xrd import GROUP, is_legacy, xr_kind
from orderkit.core.yaml import yaml11
from orderkit.core.yaml.edit import Edit, Op, edit
from orderkit.core.yaml.manifests import parse_documents

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
    from orderkit.core.yaml.manifests import objects_in

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
        InvalidInputError: There is none, or more than one.
    """
    sources = tuple(sources)
    xrds = [candidate for candidate in _all(sources) if _is(candidate.manifest, XRD)]
    if len(xrds) == 1:
        return xrds[0]
    names = ", ".join(source.name for source in sources)
    if not xrds and any(_is(candidate.manifest, CRD) for candidate in _all(sources)):
        hint = "this is a CRD; Crossplane makes it of the XRD, and that is what is needed"
    else:
        hint = "one kit has one CompositeResourceDefinition"
    raise InvalidInputError(names, [xrd.name for xrd in xrds], "must hold one XRD", hint=hint)


def composition_for(
    xrd: Manifest, sources: Iterable[ImportSource], *, name: str = ""
) -> SourcedObject | None:
    """
    Return the Composition of an XRD among the sources; None if there is none.

    Args:
        name: The name of the Composition, if there are several and the XRD names no default.

    Raises:
        InvalidInputError: It does not exist, or there are several to choose from.
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
    refs = (dig(xrd, "spec", key, "name") for key in ("enforcedCompositionRef", _DEFAULT_REF))
    default = next((ref for ref in refs if ref in names), "")
    chosen_name = name or default or (names[0] if len(names) == 1 else "")
    if chosen_name in names:
        return compositions[names.index(chosen_name)]
    if not compositions and not name:
        return None
    raise InvalidInputError(
        "Composition",
        name or names,
        f"must be one of {kind.kind}",
        hint=f"name it: {', '.join(names)}" if names else "none for this XRD was given",
    )


_DEFAULT_REF = "defaultCompositionRef"


def functions_in(sources: Iterable[ImportSource]) -> dict[str, Manifest]:
    """Return the Crossplane functions that the sources declare, by name."""
    return {
        declared.name: declared.manifest
        for declared in _all(sources)
        if Kind.of(declared.manifest).group == FUNCTION.group
        and Kind.of(declared.manifest).kind == FUNCTION.kind
    }


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
    return cleaned_manifest


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


def text_of(obj: SourcedObject) -> bytes:
    """Return the cleaned object as a file, with the original text kept if that can be proved."""
    cleaned_manifest = cleaned(obj.manifest)
    if obj.source.text is not None:
        try:
            text = edit(
                obj.source.text, _edits(obj.manifest, cleaned_manifest), name=obj.source.name
            )
            if _objects(text, obj.source.name) == [cleaned_manifest]:
                return text
        except OrderkitError:
            pass  # the edits cannot be proved: write anew
    return yaml11.dump(cleaned_manifest).encode()


def _objects(text: bytes, name: str) -> list[object]:
    return [document for document, _ in parse_documents(name, text) if document is not None]


def _edits(before: Manifest, after: Manifest) -> list[Edit]:
    """Return the edits that clean a text."""
    edits = [Edit(("status",), Op.UNSET)] if "status" in before else []
    old, new = metadata(before), metadata(after)
    edits += [Edit(("metadata", key), Op.UNSET) for key in old if key not in new]
    if "annotations" in new:
        notes, kept = annotations_of(before), annotations_of(after)
        path = ("metadata", "annotations")
        edits += [Edit((*path, key), Op.UNSET) for key in notes if key not in kept]
        edits += [
            Edit((*path, key), Op.SET, value)
            for key, value in kept.items()
            if notes.get(key) != value
        ]
    if before["apiVersion"] != after["apiVersion"]:
        edits += [Edit(("spec", key), Op.UNSET) for key in before["spec"] if key in _V1_ONLY]
        edits.append(Edit(("apiVersion",), Op.SET, after["apiVersion"]))
    return edits


def kit_name(xrd: Manifest) -> str:
    """Return the kit name suggested by an XRD: ``XAgentBudget`` is ``agent-budget``."""
    bare = re.sub(r"^X(?=[A-Z])", "", str(dig(xrd, "spec", "names", "kind", default="")))
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", bare)
    return parts.lower()[:40].strip("-")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What a Composition requires of a pack."""

    foreign: tuple[tuple[str, str], ...]
    """Step and function, for functions that do not run as Python in this process."""
    stations: tuple[str, ...]
    functions: tuple[str, ...]


def pipeline_of(composition: Manifest) -> Pipeline:
    """
    Read a Composition's pipeline.

    Raises:
        RefusedError: It has none: mode Resources was removed in Crossplane 2.
    """
    steps = steps_of(composition.get("spec") or {})
    if not steps:
        raise RefusedError(
            f"Composition {metadata(composition).get('name')} has no pipeline",
            hint="mode Resources is gone since Crossplane 2; convert it with its own tools first",
        )
    stations: Sequence[Any] = [
        step.input.get("name", "") for step in steps if step.function == STATION_FUNCTION
    ]
    return Pipeline(
        tuple((step.name, step.function) for step in steps if step.function not in NAMES),
        tuple(sorted({str(name) for name in stations})),
        tuple(sorted({step.function for step in steps})),
    )
