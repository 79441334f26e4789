"""A YAML text before and after its edits, for ``orderkit edit``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ground.unified_diff import unified_diff
from yamlfiles import edit
from yamlfiles.edit import Edit

__all__ = ["EditedText", "edit_bytes"]


@dataclass(frozen=True, slots=True)
class EditedText:
    """A text before and after its edits."""

    name: str
    before: bytes
    after: bytes

    @property
    def changed(self) -> bool:
        """Say whether the edits changed anything."""
        return self.before != self.after

    def diff(self) -> str:
        """Return the difference as ``diff -u`` writes it; empty if there is none."""
        return unified_diff(self.before, self.after, f"a/{self.name}", f"b/{self.name}")


def edit_bytes(name: str, before: bytes, edits: Sequence[Edit]) -> EditedText:
    """
    Make all edits, or none.

    Raises:
        EditRefusedError: One of them cannot be made, or not be proved.
    """
    return EditedText(name, before, edit.edit(before, edits, name=name))
