"""The corpus: a pack of kits of many shapes (``tests/corpus``), read once."""

from __future__ import annotations

import functools
from pathlib import Path

import yaml

from orderkit.core.objects import Manifest

ROOT = Path(__file__).parents[1] / "corpus"


@functools.cache
def kit_names() -> tuple[str, ...]:
    """Return the names of all kits, sorted."""
    return tuple(sorted(path.parent.name for path in ROOT.glob("gitops/apis/*/definition.yaml")))


def definition_path(kit: str) -> Path:
    """Return the file of a kit's XRD."""
    return ROOT / "gitops/apis" / kit / "definition.yaml"


@functools.cache
def _read(kit: str) -> Manifest:
    found: Manifest = yaml.safe_load(definition_path(kit).read_bytes())
    return found


def definition(kit: str) -> Manifest:
    """Return a kit's XRD; do not change it."""
    return _read(kit)
