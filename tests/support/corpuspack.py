"""The corpus: a pack of kits of many shapes (``tests/corpus``), and what is generated of it."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from ground.names import Files
from ground.objects.kube_objects import Manifest
from orderkit.adapters.folders.pack_folder import read_folder
from orderkit.core.kit.checked_kits import checked_kit
from orderkit.core.kit.model import Kit
from orderkit_workshop.folders.local_pack import LocalPack
from orderkit_workshop.generate.kit_files import generate
from orderkit_workshop.stories.generate_kits import apply_generation, plan_generation
from softwaretemplates.render import SkeletonFile, render_data, render_tree
from softwaretemplates.template import Template, parse_template
from yamlfiles.manifests import parse_manifests

ROOT = Path(__file__).parents[1] / "corpus"
_REFERENCE = Path(__file__).parents[2] / "gitops"
BAKED = {"forge_host": "forge.example.org", "pack_commit": "a" * 40}
"""What is baked into every form when its pack is published."""
DOMAIN = "apps.example.org"
"""The value BASE_DOMAIN of a platform that serves the corpus."""
REQUESTER = "user:default/eve"


@functools.cache
def kit_names() -> tuple[str, ...]:
    """Return the names of all kits, sorted."""
    return tuple(sorted(path.parent.name for path in ROOT.glob("gitops/apis/*/definition.yaml")))


def definition_path(kit: str) -> Path:
    """Return the file of a kit's XRD."""
    return ROOT / "gitops/apis" / kit / "definition.yaml"


@functools.cache
def definition(kit: str) -> Manifest:
    """Return a kit's XRD, read as everything here reads manifests; do not change it."""
    path = definition_path(kit)
    (found,) = parse_manifests(path.name, path.read_bytes())
    return found


@functools.cache
def _files() -> Files:
    return read_folder(ROOT)


def whole_pack(folder: Path) -> Path:
    """Write the corpus as a platform can run it: generated files, and what delivers them."""
    shutil.copytree(ROOT, folder)
    for part in ("root.yaml", "apps", "argocd", "functions"):
        source = _REFERENCE / part
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, folder / "gitops" / part)
    pack = yaml.safe_load((folder / "pack.yaml").read_text())
    reference = yaml.safe_load((_REFERENCE.parent / "pack.yaml").read_text())
    pack["spec"]["versions"] = reference["spec"]["versions"]
    (folder / "pack.yaml").write_text(yaml.safe_dump(pack, sort_keys=False))
    apply_generation(LocalPack(folder), plan_generation(LocalPack(folder)))
    return folder


@functools.cache
def made(kit: str) -> Made:
    """Return a kit with its generated files."""
    found = checked_kit(kit, _files())
    return Made(found, generate(_files(), found))


class Made:
    """A kit of the corpus, its form, and what a filled-in form becomes."""

    def __init__(self, kit: Kit, files: Files) -> None:
        self.kit, self.files = kit, files
        data = files[PurePosixPath("templates", kit.name, "template.yaml")]
        self.template: Template = parse_template(data, name="template.yaml")
        root = PurePosixPath("templates", kit.name, "skeleton")
        self._tree = {
            path.relative_to(root): SkeletonFile(data)
            for path, data in files.items()
            if path.is_relative_to(root)
        }

    @property
    def pages(self) -> list[dict[str, Any]]:
        """The form's pages."""
        return [dict(page) for page in self.template.pages]

    def order(self, values: Mapping[str, Any]) -> Manifest:
        """
        Fill the form in, run its first step, and return the order's XR.

        Raises:
            InvalidInputError: The form does not accept the values.
        """
        parameters = self.template.validate(values)
        scope = {"parameters": parameters, "user": {"ref": REQUESTER}}
        given: Any = render_data(self.template.steps[0].input["values"], scope, name="values")
        files = render_tree(self._tree, given)
        (xr,) = (
            manifest
            for path, file in files.items()
            if path.parts[0] == "manifests"
            for manifest in parse_manifests(str(path), file.data)
        )
        return xr
