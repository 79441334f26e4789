"""Find the Compositions of a pack that may assemble the XRs of a kit."""

from __future__ import annotations

from pathlib import PurePosixPath

from ground.objects.kube_objects import COMPOSITION, Kind, Manifest, dig, metadata
from kubeschema.xrd import is_legacy
from orderkit.core.kit.model import Kit
from yamlfiles.documents import Files
from yamlfiles.manifests import parse_manifests


def name_shown(xrd: Manifest, composition: Manifest) -> str:
    """Return the Composition's name for ``spec.crossplane``; empty for legacy XRs."""
    return "" if is_legacy(xrd) else str(metadata(composition).get("name", ""))


def composition_of(files: Files, kit: Kit) -> Manifest | None:
    """
    Return the default Composition for XRs of the kit.

    Raises:
        ManifestError: A file of ``gitops/apis/<kit>`` is malformed.
    """
    candidates = compositions_of(files, kit)
    for key in ("enforcedCompositionRef", "defaultCompositionRef"):
        named_composition = dig(kit.xrd, "spec", key, "name")
        for manifest in candidates if named_composition else ():
            if metadata(manifest).get("name") == named_composition:
                return manifest
    return candidates[0] if candidates else None


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
