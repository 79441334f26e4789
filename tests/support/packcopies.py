"""Copies of the reference pack that tests change: a version, a layer more, a layer less."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from orderkit.adapters.folders.pack_folder import ROOMS, reference_pack

UNRUNNABLE = (
    "apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-sun}\n"
    "spec: {package: registry.example.org/x/provider-sun:v1.0.0}\n"
)
"""A manifest that never becomes healthy where nobody plays that provider."""


def copied_pack(folder: Path) -> Path:
    """Copy the reference pack into a new folder; return it."""
    for room in ROOMS:
        if (reference_pack() / room).is_dir():
            shutil.copytree(reference_pack() / room, folder / room)
    shutil.copy(reference_pack() / "pack.yaml", folder / "pack.yaml")
    return folder


@dataclass(frozen=True)
class ExtraLayer:
    """A layer `extra` of a pack, between functions and apis."""

    pack: Path

    def add(self, manifest: str) -> None:
        """Give the pack the layer, with one manifest in it."""
        text = (self.pack / "gitops/apps/functions.yaml").read_text()
        text = text.replace(": functions", ": extra").replace("gitops/functions", "gitops/extra")
        text = text.replace('"40"', '"45"').replace("crossplane-system", "default")
        self._application.write_text(text)
        self._folder.mkdir()
        (self._folder / "it.yaml").write_text(manifest)

    def take_away(self) -> None:
        """Take the layer from the pack again, if it is there."""
        self._application.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _application(self) -> Path:
        return self.pack / "gitops/apps/extra.yaml"

    @property
    def _folder(self) -> Path:
        return self.pack / "gitops/extra"
