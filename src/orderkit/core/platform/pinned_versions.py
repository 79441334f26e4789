"""
Releases that manifests pin: packages of Crossplane and charts of Applications.

Pure. Shows a person what an upgrade changes, so that they need not read the diff.
"""

from __future__ import annotations

from dataclasses import dataclass

from ground.objects.kube_objects import Manifest, dig, metadata
from yamlfiles.documents import Files
from yamlfiles.manifests import parse_manifests

_PACKAGES = ("Provider", "Function", "Configuration")


@dataclass(frozen=True, slots=True)
class VersionMove:
    """A pinned release before and after; empty where it is not pinned."""

    kind: str
    name: str
    before: str
    after: str

    def __str__(self) -> str:
        if not self.before:
            return f"{self.kind} {self.name} {self.after} is new"
        if not self.after:
            return f"{self.kind} {self.name} {self.before} goes"
        return f"{self.kind} {self.name} {self.before} → {self.after}"


def moves(before: Files, after: Files) -> tuple[VersionMove, ...]:
    """
    Return the pins that differ between two sets of files, sorted.

    Raises:
        ManifestError: A file is not a stream of Kubernetes objects.
    """
    old, new = _pins(before), _pins(after)
    return tuple(
        VersionMove(*key, old.get(key, ""), new.get(key, ""))
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    )


def _pins(files: Files) -> dict[tuple[str, str], str]:
    pins = {}
    for path, data in files.items():
        for manifest in parse_manifests(str(path), data):
            pin = _pin(manifest)
            if pin:
                pins[manifest["kind"], metadata(manifest).get("name", "")] = pin
    return pins


def _pin(manifest: Manifest) -> str:
    """Return the release that an object pins: a tag, a digest or a chart's version."""
    if manifest["kind"] in _PACKAGES:
        package = str(dig(manifest, "spec", "package", default=""))
        _, at, digest = package.partition("@")
        return digest if at else package.rpartition(":")[2]
    chart = dig(manifest, "spec", "source", "chart")
    return str(dig(manifest, "spec", "source", "targetRevision", default="")) if chart else ""
