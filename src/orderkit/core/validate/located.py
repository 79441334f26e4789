"""
A finding and where it stands: file, line, column. Shared by every command that judges files.

Called by ``flows.validating`` and by ``core.kit.checking``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from orderkit.core.cel import Gap
from orderkit.core.objects import Manifest, metadata
from orderkit.core.placing import Placed
from orderkit.core.validate.findings import Finding
from orderkit.core.validate.hints import steps_of


@dataclass(frozen=True, slots=True)
class Located:
    """A finding, or a rule that was not evaluated, and where it stands."""

    file: PurePath
    line: int | None
    column: int | None
    subject: str
    """Kind and name of the object; empty for a whole file."""
    about: Finding | Gap


def located(file: PurePath, placed: Placed, path: str, about: Finding | Gap) -> Located:
    """Place something at a field of an object, or at the nearest field above it."""
    mark = placed.find(steps_of(path))
    line, column = mark or (placed.line, None)
    return Located(file, line, column, subject_of(placed.manifest), about)


def subject_of(manifest: Manifest) -> str:
    """Return kind and name, as messages call an object."""
    return f"{manifest.get('kind')} {metadata(manifest).get('name') or ''}".strip()
