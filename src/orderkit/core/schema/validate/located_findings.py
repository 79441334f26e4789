"""
A finding with its file, line and column. Shared by every command that judges files.

Called by ``file_check`` and by ``core.check``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from orderkit.core.objects.kube_objects import Manifest, metadata
from orderkit.core.schema.cel import Gap
from orderkit.core.schema.validate.findings import Finding
from orderkit.core.schema.validate.hints import steps_of
from orderkit.core.yaml.positions import LocatedManifest


@dataclass(frozen=True, slots=True)
class Located:
    """A finding, or a rule that was not evaluated, with its position."""

    file: PurePath
    line: int | None
    column: int | None
    subject: str
    """Kind and name of the object; empty for a whole file."""
    about: Finding | Gap


def located(file: PurePath, manifest: LocatedManifest, path: str, about: Finding | Gap) -> Located:
    """Return the finding positioned at its field, or at the nearest enclosing field."""
    mark = manifest.find(steps_of(path))
    line, column = mark or (manifest.line, None)
    return Located(file, line, column, subject_of(manifest.manifest), about)


def subject_of(manifest: Manifest) -> str:
    """Return kind and name as messages show them."""
    return f"{manifest.get('kind')} {metadata(manifest).get('name') or ''}".strip()
