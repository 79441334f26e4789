"""
The pipeline that composes an XR in a plan: the pack's Composition, or what the XR is pinned to.

The choice is Crossplane's (``compositions.composition_choice``). A Composition of the pack stands
for its newest revision, because Crossplane makes one of whatever is delivered. Older revisions, and
Compositions that the pack lacks, are the cluster's. Where nobody could be asked for one, the pack's
Composition is assumed, and the plan says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from compositions.composed import Lookup, PipelineStep, steps_of
from compositions.composition_choice import (
    NAME_LABEL,
    Choice,
    choose_in_the_end,
    connection_namespace,
)
from compositions.station import Selector
from ground.objects.kube_objects import (
    COMPOSITION,
    COMPOSITION_REVISION,
    Kind,
    Manifest,
    controller,
    dig,
    labels_of,
    metadata,
)
from kubeschema.xrd import is_legacy, machinery_path
from orderkit.core.selector_words import NO_COMPOSITION, what_there_is

_NEWEST = 1 << 40
"""The number of the revision that the pack's Composition stands for."""
_PACK_UID = "of-the-pack"
_ASSUMED = "orderkit.dev/assumed"


@dataclass(frozen=True, slots=True)
class ComposingRevision:
    """How one XR is composed."""

    steps: Sequence[PipelineStep] = ()
    composition: str = ""
    """As shown in ``spec.crossplane``; empty for legacy XRs."""
    connection: str = ""
    """The namespace of the connection Secret of a legacy XR that names none."""
    pinned: str = ""
    """Why a changed Composition does not reach the XR; empty: it does."""
    error: str = ""
    """Crossplane's words if it can choose none."""
    unknowns: tuple[str, ...] = ()
    requirements: tuple[Selector, ...] = ()
    """What was looked up outside the pack."""
    assumed: tuple[Manifest, ...] = ()
    """The revision that was assumed, as an object: with it another pack assumes the same."""


def composing_revision(
    xr: Manifest,
    xrd: Manifest,
    compositions: Mapping[str, Manifest],
    lookup: Lookup,
    *,
    asks_cluster: bool,
) -> ComposingRevision:
    """
    Return what composes an XR.

    Args:
        compositions: Those of the pack for this kind, by name.
        lookup: Where other Compositions and revisions are found.
        asks_cluster: `lookup` reaches the cluster: what it does not find does not exist.
    """
    shelf = _PackFirst(compositions, lookup)
    choice = choose_in_the_end(xr, xrd, shelf, lambda names: names[0])
    assumed: tuple[Manifest, ...] = ()
    if choice.revision is None and not asks_cluster and compositions:
        assumed = (_assumed(xr, xrd, choice, compositions),)
        shelf = _PackFirst(compositions, lookup, assumed)
        choice = choose_in_the_end(xr, xrd, shelf, lambda names: names[0])
    requirements = tuple(shelf.elsewhere)
    if choice.revision is None:
        error = _with_reason(choice.error, xr, xrd, compositions)
        return ComposingRevision(error=error, requirements=requirements)
    return ComposingRevision(
        steps_of(choice.revision["spec"]),
        "" if is_legacy(xrd) else choice.composition,
        connection_namespace(xrd, choice.revision),
        _pinned(xr, xrd, choice),
        unknowns=tuple(_unknowns(choice)),
        requirements=requirements,
        assumed=assumed,
    )


def _with_reason(
    error: str, xr: Manifest, xrd: Manifest, compositions: Mapping[str, Manifest]
) -> str:
    """Return Crossplane's error, with what its selector asks for and what the pack has."""
    if NO_COMPOSITION not in error:
        return error
    selector = dig(xr, *machinery_path(xrd), "compositionSelector", default=None)
    labels = dig(selector or {}, "matchLabels", default=None) or {}
    there = what_there_is(f"Composition of {Kind.of(xr).kind}", labels, compositions.values())
    return f"{error}: {there}"


@dataclass(slots=True)
class _PackFirst:
    """Finds the pack's Compositions and their newest revisions; everything else elsewhere."""

    compositions: Mapping[str, Manifest]
    lookup: Lookup
    assumed: Sequence[Manifest] = ()
    elsewhere: list[Selector] = field(default_factory=list)

    def __call__(self, selector: Selector) -> list[Manifest]:
        if Kind.parse(selector.api_version, selector.kind) == COMPOSITION:
            return self._compositions(selector)
        name = selector.name or selector.labels.get(NAME_LABEL, "")
        newest = [_newest(self.compositions[name])] if name in self.compositions else []
        if newest and (selector.name or len(selector.labels) == 1):
            return newest
        matching = [r for r in newest if selector.labels.items() <= labels_of(r).items()]
        present = [*self._elsewhere(selector), *self._assumed(selector)]
        return [*(_owned_by_pack(r, name) if newest else r for r in present), *matching]

    def _compositions(self, selector: Selector) -> list[Manifest]:
        if selector.name in self.compositions:
            return [_with_uid(self.compositions[selector.name])]
        if selector.name:
            return self._elsewhere(selector)
        ours = [
            manifest
            for manifest in self.compositions.values()
            if selector.labels.items() <= labels_of(manifest).items()
        ]
        others = [
            manifest
            for manifest in self._elsewhere(selector)
            if metadata(manifest)["name"] not in self.compositions
        ]
        return [*ours, *others]

    def _assumed(self, selector: Selector) -> list[Manifest]:
        return [
            manifest
            for manifest in self.assumed
            if (selector.name or metadata(manifest)["name"]) == metadata(manifest)["name"]
            and selector.labels.items() <= labels_of(manifest).items()
        ]

    def _elsewhere(self, selector: Selector) -> list[Manifest]:
        self.elsewhere.append(selector)
        return list(self.lookup(selector))


def _with_uid(composition: Manifest) -> Manifest:
    return {**composition, "metadata": {**metadata(composition), "uid": _PACK_UID}}


def _owned_by_pack(revision: Manifest, name: str) -> Manifest:
    """Return a revision of the cluster as one of the pack's Composition of the same name."""
    owner = controller(revision)
    if owner is None or owner.get("name") != name:
        return revision
    return {**revision, "metadata": {**metadata(revision), "ownerReferences": [_owner(name)]}}


def _owner(name: str) -> dict[str, object]:
    return {"kind": COMPOSITION.kind, "name": name, "uid": _PACK_UID, "controller": True}


def _newest(composition: Manifest) -> Manifest:
    name = str(metadata(composition)["name"])
    return _revision(name, composition, _NEWEST, labels_of(composition))


def _revision(name: str, composition: Manifest, number: int, labels: Mapping[str, str]) -> Manifest:
    source = str(metadata(composition)["name"])
    return {
        "apiVersion": COMPOSITION_REVISION.api_version,
        "kind": COMPOSITION_REVISION.kind,
        "metadata": {
            "name": name,
            "labels": {**labels, NAME_LABEL: source},
            "ownerReferences": [_owner(source)],
        },
        "spec": {**(composition.get("spec") or {}), "revision": number},
    }


def _assumed(
    xr: Manifest, xrd: Manifest, choice: Choice, compositions: Mapping[str, Manifest]
) -> Manifest:
    """Return the revision that an XR is taken to have: the pack's Composition, under its name."""
    composition = compositions.get(choice.composition) or next(iter(compositions.values()))
    own = {**(dig(xr, *machinery_path(xrd), default=None) or {}), **choice.machinery}
    labels = dig(own, "compositionRevisionSelector", "matchLabels", default=None) or {}
    name = dig(own, "compositionRevisionRef", "name") or f"{metadata(composition)['name']}-assumed"
    revision = _revision(str(name), composition, 1, labels)
    revision["metadata"]["annotations"] = {_ASSUMED: "true"}
    return revision


def _pinned(xr: Manifest, xrd: Manifest, choice: Choice) -> str:
    """Say why an XR is not composed by the newest revision; empty if it is."""
    revision = choice.revision or {}
    if dig(revision, "spec", "revision") == _NEWEST:
        return ""
    name = metadata(revision)["name"]
    own = dig(xr, *machinery_path(xrd), default=None) or {}
    if dig(own, "compositionUpdatePolicy") == "Manual":
        return f"compositionUpdatePolicy Manual pins it to CompositionRevision {name}"
    labels = dig(own, "compositionRevisionSelector", "matchLabels", default=None)
    labels = labels or dig(choice.machinery, "compositionRevisionSelector", "matchLabels")
    if labels:
        text = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
        return f"compositionRevisionSelector {text} keeps it at CompositionRevision {name}"
    return f"Composition {choice.composition} composes it, which is not the pack's"


def _unknowns(choice: Choice) -> list[str]:
    texts = []
    if choice.matching:
        texts.append(
            f"Crossplane picks one of {len(choice.matching)} Compositions at random "
            f"({', '.join(choice.matching)}); this plan takes {choice.composition}"
        )
    revision = choice.revision or {}
    if dig(revision, "metadata", "annotations", _ASSUMED):
        name = labels_of(revision)[NAME_LABEL]
        texts.append(
            f"the cluster was not asked for CompositionRevision {metadata(revision)['name']}: "
            f"Composition {name} of the pack is assumed"
        )
    return texts
