"""
Labels of a repository: made, changed and removed. Two may have the same name, as in Gitea.

Which issue has which label is in ``issues``. Called by ``api.labels``.
"""

from __future__ import annotations

import re

from orderkit.adapters.embedded.forge.issues import Issues, Label
from orderkit.adapters.embedded.forge.store import Store
from orderkit.core.errors import InvalidInputError, NotFoundError

_COLOR = re.compile(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})\Z")
_SHORT = 3


class Labels:
    """The labels of one forge."""

    def __init__(self, store: Store, issues: Issues) -> None:
        self._store, self._issues = store, issues

    def find(self, repo_id: int, label_id: int) -> Label | None:
        """Return a label of a repository, or None."""
        found = self._issues.labels(repo_id, [label_id])
        return found[0] if found else None

    def create(
        self, repo_id: int, name: str, color: str, *, description: str = "", exclusive: bool = False
    ) -> Label:
        """
        Add a label, also beside one of the same name.

        Raises:
            InvalidInputError: `color` is none.
        """
        new_id = self._store.insert(
            "INSERT INTO labels (repo_id, name, color, description, exclusive)"
            " VALUES (?, ?, ?, ?, ?)",
            repo_id,
            name,
            normal_color(color),
            description,
            int(exclusive),
        )
        return self._by_id(repo_id, new_id)

    def edit(  # one UPDATE, named columns
        self,
        label: Label,
        *,
        name: str | None,
        color: str | None,
        description: str | None,
        exclusive: bool | None,
        archived: bool | None,
    ) -> Label:
        """
        Change what is given.

        Raises:
            InvalidInputError: `color` is none.
            NotFoundError: The label was deleted meanwhile.
        """
        self._store.change(
            "UPDATE labels SET name = coalesce(?, name), color = coalesce(?, color),"
            " description = coalesce(?, description), exclusive = coalesce(?, exclusive),"
            " archived = coalesce(?, archived) WHERE id = ?",
            name,
            None if color is None else normal_color(color),
            description,
            None if exclusive is None else int(exclusive),
            None if archived is None else int(archived),
            label.id,
        )
        return self._by_id(label.repo_id, label.id)

    def delete(self, repo_id: int, label_id: int) -> None:
        """Remove a label from the repository and its issues. Idempotent."""
        self._store.change("DELETE FROM labels WHERE repo_id = ? AND id = ?", repo_id, label_id)

    def _by_id(self, repo_id: int, label_id: int) -> Label:
        found = self.find(repo_id, label_id)
        if found is None:
            raise NotFoundError(f"no label {label_id}")
        return found


def normal_color(color: str) -> str:
    """
    Return six lower-case hex digits.

    Raises:
        InvalidInputError: Neither ``rgb`` nor ``rrggbb``, with or without ``#``.
    """
    found = _COLOR.match(color.strip())
    if not found:
        raise InvalidInputError("color", color, "is no color (#rrggbb)")
    digits = found[1].lower()
    return "".join(each * 2 for each in digits) if len(digits) == _SHORT else digits
