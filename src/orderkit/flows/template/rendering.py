"""
Render a skeleton into a folder, or check it, for ``orderkit render``.

Skeletons of the installed pack are trusted and rendered in this process; all others in a child
process with limits (`ConfinedRenderer`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from orderkit.ports.processes import ConfinedRenderer
from softwaretemplates.render import (
    FileOutcome,
    RenderError,
    Tree,
    TreeOptions,
    judge_tree,
    lint_tree,
)

WriteFiles = Callable[[Sequence[FileOutcome]], Collection[PurePosixPath]]
"""Writes what was rendered, all or nothing; returns the targets that exist and stay unchanged."""


@dataclass(frozen=True, slots=True)
class SkeletonReport:
    """The outcome of every file of a skeleton."""

    files: Sequence[FileOutcome]
    success: str
    """What became of a file that was neither refused nor skipped: written, or fits."""

    def outcome(self, file: FileOutcome) -> str:
        """Return what became of a file: written, skipped, refused, or (when only checked) fits."""
        if file.error is not None:
            return "refused"
        return "skipped" if file.how.startswith("skipped") else self.success

    def count(self, outcome: str) -> int:
        """Return how many files had this outcome."""
        return sum(self.outcome(file) == outcome for file in self.files)

    @property
    def refused(self) -> list[FileOutcome]:
        return [file for file in self.files if file.error is not None]

    def to_json(self, file: FileOutcome) -> dict[str, Any]:
        """Return what became of a file as the command prints it."""
        fields: dict[str, Any] = {
            "path": str(file.path),
            "outcome": self.outcome(file),
            "how": file.how,
            "target": None if file.target is None else str(file.target),
        }
        if file.error is None:
            return fields
        problem, line, column = str(file.error), None, None
        if isinstance(file.error, RenderError):
            problem = file.error.problem
            if file.error.position is not None:
                line, column = file.error.position.line, file.error.position.column
        reason = {"problem": problem, "line": line, "column": column, "hint": file.error.hint}
        return {**fields, "error": reason}


def check(files: Tree, options: TreeOptions, confined: ConfinedRenderer | None) -> SkeletonReport:
    """
    Compile every file and path of a skeleton, without values.

    Args:
        confined: Checks an untrusted skeleton in a confined child; None: it is trusted.
    """
    return SkeletonReport(_judged(files, None, options, confined), "fits")


def render(
    files: Tree,
    values: Mapping[str, Any],
    options: TreeOptions,
    write: WriteFiles,
    *,
    confined: ConfinedRenderer | None,
    keep_going: bool = False,
) -> SkeletonReport:
    """
    Render a skeleton and write the result, all or nothing.

    Args:
        confined: Renders an untrusted skeleton in a confined child; None: it is trusted.
        keep_going: Write the files that render even if others are refused.

    Raises:
        OrderkitError: The first file that is refused, unless `keep_going`.
            Also what `write` raises.
    """
    outcomes = _judged(files, values, options, confined)
    failed = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
    if failed is not None and not keep_going:
        raise failed
    kept = write(outcomes)
    shown = [
        replace(outcome, how="skipped: it exists") if outcome.target in kept else outcome
        for outcome in outcomes
    ]
    return SkeletonReport(shown, "written")


def _judged(
    files: Tree,
    values: Mapping[str, Any] | None,
    options: TreeOptions,
    confined: ConfinedRenderer | None,
) -> list[FileOutcome]:
    """Judge trusted skeletons in this process, all others in a child."""
    if confined is not None:
        return confined(files, values, options)
    return lint_tree(files, options) if values is None else judge_tree(files, values, options)
