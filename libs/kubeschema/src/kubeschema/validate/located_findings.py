"""A finding with its file, line and column. Shared by every command that judges files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from ground.errors import shorten
from ground.objects.kube_objects import Manifest, metadata
from kubeschema.cel import Gap
from kubeschema.field_paths import steps_of
from kubeschema.validate.findings import Finding
from yamlfiles.positions import LocatedManifest

__all__ = ["Located", "explanation", "located", "remedy", "sentence", "to_json"]


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


def sentence(entry: Located) -> str:
    """Return file, line, field, message, value and rule of a finding, on one line."""
    place = f"{entry.file}:{entry.line}" if entry.line else str(entry.file)
    return f"{place}: {explanation(entry)}"


def explanation(entry: Located) -> str:
    """Return a finding's field and message, with value and rule where the message lacks them."""
    about = entry.about
    if isinstance(about, Gap):
        return f"{about.path}: not evaluated: {about.rule} ({about.why})"
    head = f"{about.path}: {about.message}" if about.path else about.message
    notes = []
    if about.value and about.value.strip('"') not in head:
        notes.append(f"value: {about.value}")
    if about.rule and not _is_told(about.rule, head):
        notes.append(f"rule: {shorten(about.rule)}")
    return f"{head} ({'; '.join(notes)})" if notes else head


def _is_told(rule: str, text: str) -> bool:
    """Say whether a message has the rule already, as the API server's have."""
    argument = rule.partition(" ")[2].strip('"')
    return rule in ("required", text) or rule.startswith("enum ") or (argument or rule) in text


def to_json(entry: Located) -> dict[str, Any]:
    """Return the stable shape of commands and service."""
    about = entry.about
    details = (
        about.to_json()
        if isinstance(about, Finding)
        else {"path": about.path, "rule": about.rule, "why": about.why}
    )
    location = {"file": str(entry.file), "line": entry.line, "column": entry.column}
    return {**location, "subject": entry.subject, **details}


def remedy(entry: Located) -> str:
    """Return what a person can do about a finding."""
    return getattr(entry.about, "hint", "") or "correct the value, as the rule says"
