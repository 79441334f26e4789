"""
Render a skeleton into a folder, or check it, for ``orderkit render``.

Skeletons of the installed pack are trusted and rendered in this process; all others in a child
process with limits (`ConfinedRenderer`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from orderkit.core.errors import OrderkitError
from orderkit.core.portal.render import (
    FileOutcome,
    RenderError,
    Tree,
    TreeOptions,
    judge_tree,
    lint_tree,
)
from orderkit.ports.processes import ConfinedRenderer

WriteFiles = Callable[[Sequence[FileOutcome]], Collection[PurePosixPath]]
"""Writes what was rendered, all or nothing; returns the targets that exist and stay unchanged."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """The outcome of one file: written, skipped, refused, or (when only checked) fits."""

    path: str
    outcome: str
    how: str
    target: str | None = None
    error: OrderkitError | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the entry as the command prints it."""
        fields: dict[str, Any] = {
            "path": self.path,
            "outcome": self.outcome,
            "how": self.how,
            "target": self.target,
        }
        if self.error is None:
            return fields
        problem, line, column = str(self.error), None, None
        if isinstance(self.error, RenderError):
            problem = self.error.problem
            if self.error.position is not None:
                line, column = self.error.position.line, self.error.position.column
        reason = {"problem": problem, "line": line, "column": column, "hint": self.error.hint}
        return {**fields, "error": reason}


@dataclass(frozen=True, slots=True)
class SkeletonReport:
    """The outcome of every file of a skeleton."""

    entries: list[FileResult] = field(default_factory=list)

    def count(self, outcome: str) -> int:
        """Return how many files had this outcome."""
        return sum(entry.outcome == outcome for entry in self.entries)

    @property
    def refused(self) -> list[FileResult]:
        return [entry for entry in self.entries if entry.outcome == "refused"]


def check(files: Tree, options: TreeOptions, confined: ConfinedRenderer | None) -> SkeletonReport:
    """
    Compile every file and path of a skeleton, without values.

    Args:
        confined: Checks an untrusted skeleton in a confined child; None: it is trusted.
    """
    outcomes = _judged(files, None, options, confined)
    return SkeletonReport([_entry(outcome, "fits") for outcome in outcomes])


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
    return SkeletonReport([_written(outcome, kept) for outcome in outcomes])


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


def _written(outcome: FileOutcome, kept: Collection[PurePosixPath]) -> FileResult:
    if outcome.target in kept:
        target = str(outcome.target)
        return FileResult(str(outcome.path), "skipped", "skipped: it exists", target)
    return _entry(outcome, "written")


def _entry(outcome: FileOutcome, word: str) -> FileResult:
    target = None if outcome.target is None else str(outcome.target)
    if outcome.error is not None:
        return FileResult(str(outcome.path), "refused", outcome.how, target, outcome.error)
    skipped = outcome.how.startswith("skipped")
    return FileResult(str(outcome.path), "skipped" if skipped else word, outcome.how, target)
