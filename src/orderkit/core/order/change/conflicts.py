"""Conflicts: another writer changed a field after the requester had looked at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ground.errors import ConflictError
from ground.names import CommitSha, OrderId
from ground.objects.values import shown, to_json
from ground.shapes import Answer
from orderkit.core.order.order_state import short


class Conflict(Answer, frozen=True):
    """A field that somebody else changed; null where it is not set."""

    field: str
    seen: Any
    now: Any
    wanted: Any
    commit: str | None
    author: str
    requester: str


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """One field: its value on the base commit, now, and as requested; and who changed it."""

    path: str
    base: Any
    now: Any
    requested: Any
    commit: CommitSha | None = None
    """The newest commit that changed it since the base; None if unknown."""
    author: str = ""
    requester: str = ""

    def __str__(self) -> str:
        who = self.requester or self.author or "somebody"
        by_whom = f", by {who} in {short(self.commit)}" if self.commit else ""
        return (
            f"{self.path} is {shown(self.now)} now (it was {shown(self.base)}{by_whom}),"
            f" requested was {shown(self.requested)}"
        )

    @property
    def answer(self) -> Conflict:
        """What commands and service say of it."""
        return Conflict(
            self.path,
            to_json(self.base),
            to_json(self.now),
            to_json(self.requested),
            self.commit,
            self.author,
            self.requester,
        )


class FieldConflictError(ConflictError):
    """Another writer changed a field of this change. Nothing was written."""

    def __init__(self, order: OrderId, conflicts: Sequence[FieldConflict], head: CommitSha) -> None:
        super().__init__(
            f"{order}: {'; '.join(map(str, conflicts))}; nothing was written",
            hint=f"check the present values, then repeat the command with --base {head[:8]}",
            form_hint="check the present values: the portal's START OVER changes them all the same;"
            f" a program sends them with base {head[:8]}",
        )
        self.conflicts, self.head = tuple(conflicts), head
