"""Packs that tests change: copies of the reference pack, and the published one for a while."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from orderkit.adapters.folders.pack_folder import ROOMS, reference_pack
from orderkit.flows.platform import Platform
from orderkit.ports.forge import FileChange, Operation

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


@contextmanager
def published(platform: Platform, path: PurePosixPath, text: str | None) -> Iterator[None]:
    """Let the published pack have another text at a path, or none, and then again its own."""
    forge, repo = platform.forge, platform.pack_repo
    before = forge.read(repo, path, "main")
    assert before is not None

    def put(data: bytes | None) -> None:
        now, name = forge.read(repo, path, "main"), f"publish-{secrets.token_hex(4)}"
        change = FileChange(path, data, now.sha if now else None)
        forge.write(repo, [change], Operation(name, "user:default/x", name))

    put(None if text is None else text.encode())
    try:
        yield
    finally:
        put(before.data)


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
