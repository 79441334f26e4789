"""Find the Compositions of a pack that may assemble the XRs of a kit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePosixPath

from ground.errors import shorten
from ground.names import Files
from ground.objects.kube_objects import (
    COMPOSITION,
    Kind,
    Manifest,
    annotations_of,
    dig,
    metadata,
)
from ground.suggestions import did_you_mean
from kubeschema.validate.findings import Finding, Reason
from kubeschema.xrd import is_legacy
from orderkit.core.kit.model import Kit
from orderkit.core.secret_values import APPLIED
from yamlfiles.manifests import parse_manifests


def name_shown(xrd: Manifest, composition: Manifest) -> str:
    """Return the Composition's name for ``spec.crossplane``; empty for legacy XRs."""
    return "" if is_legacy(xrd) else str(metadata(composition).get("name", ""))


def composition_of(files: Files, kit: Kit, xr: Manifest | None = None) -> Manifest | None:
    """
    Return the Composition for an XR of the kit that names one, else the default one.

    Raises:
        ManifestError: A file of ``gitops/apis/<kit>`` is malformed.
    """
    candidates = compositions_of(files, kit)
    named_by_xr = chosen_composition(kit, xr) if xr else ""
    for named_composition in (
        dig(kit.xrd, "spec", "enforcedCompositionRef", "name"),
        named_by_xr,
        dig(kit.xrd, "spec", "defaultCompositionRef", "name"),
    ):
        for manifest in candidates if named_composition else ():
            if metadata(manifest).get("name") == named_composition:
                return manifest
    return candidates[0] if candidates else None


def chosen_composition(kit: Kit, xr: Manifest) -> str:
    """Return the Composition that an XR names in the field that the kit offers; empty: none."""
    path = kit.composition_path
    name = dig(xr, "spec", *path.split("."), default="") if path else ""
    return name if isinstance(name, str) else ""


def choice_findings(kit: Kit, xr: Manifest, old: Manifest | None = None) -> Iterator[Finding]:
    """
    Yield what is wrong with how an XR chooses its Composition.

    Args:
        old: The XR before, in Git or as the cluster has it.
    """
    # Argo CD applies on the client's side, as kubectl does, and removes a map that Git has no more
    # with all that is in it: Crossplane's resourceRefs, too, without which it makes parts a second
    # time
    if dig(_applied(old), "spec", "crossplane") and not isinstance(
        dig(xr, "spec", "crossplane"), dict
    ):
        yield Finding(
            "spec.crossplane",
            Reason.NOT_ALLOWED,
            "is removed, and Crossplane's list of the order's parts would go with it",
            rule="spec.crossplane stays once it was there",
            hint="put spec.crossplane back; to use another Composition, name it there",
        )
    name = chosen_composition(kit, xr)
    if not name or name in kit.offered:
        return
    path = f"spec.{kit.composition_path}"
    yield Finding(
        path,
        Reason.NOT_ALLOWED,
        f'Composition "{shorten(name)}" is not one that kit {kit.name} offers',
        rule=f"compositions of kit {kit.name}",
        value=shorten(name),
        hint=did_you_mean(name, kit.offered, f"Compositions: {', '.join(kit.offered)}"),
    )


def _applied(old: Manifest | None) -> Manifest | None:
    """Return what was in Git of an XR that may be the cluster's; None if that is not known."""
    if old is None or "uid" not in metadata(old):
        return old
    try:
        applied = json.loads(annotations_of(old).get(APPLIED, ""))
    except (ValueError, RecursionError):
        return None
    return applied if isinstance(applied, dict) else None


def compositions_of(files: Files, kit: Kit) -> list[Manifest]:
    """
    Return every Composition for XRs of the kit.

    Raises:
        ManifestError: A file of ``gitops/apis/<kit>`` is malformed.
    """
    room = PurePosixPath("gitops", "apis", kit.name)
    return [
        manifest
        for path, data in files.items()
        if path.is_relative_to(room) and path.suffix in {".yaml", ".yml"}
        for manifest in parse_manifests(str(path), data)
        if Kind.of(manifest) == COMPOSITION
        and dig(manifest, "spec", "compositeTypeRef", "kind") == kit.kind.kind
    ]
