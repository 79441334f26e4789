"""
Merge two versions of an object field by field.

Maps are merged key by key; a list is one value. If both sides changed a field differently, theirs
wins and the conflict is reported, because nobody should merge that unseen. Pure; called by the flow
that plans pull requests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ground.objects.values import ABSENT, Steps, path_text, same, shown, value_at, with_value
from orderkit.core.order.change.differences import differences


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """A field that both sides changed differently; `ABSENT` where it is not set."""

    steps: Steps
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        ours, theirs = shown(self.ours), shown(self.theirs)
        return f"{path_text(self.steps)}: main has {ours} now, this branch {theirs}"


def merged(
    base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]
) -> tuple[dict[str, Any], tuple[MergeConflict, ...]]:
    """Return `ours` with the changes of `theirs` since `base`, and the conflicts."""
    result: dict[str, Any] = ours
    conflicts: dict[Steps, MergeConflict] = {}
    for difference in differences(base, theirs, maps_whole=True):
        our_value, new = value_at(ours, difference.steps), difference.new
        if same(our_value, new):
            continue
        if difference.old is ABSENT and isinstance(our_value, dict) and isinstance(new, dict):
            new, below = merged({}, our_value, new)  # both added a map
            moved = [
                replace(conflict, steps=(*difference.steps, *conflict.steps)) for conflict in below
            ]
            conflicts |= {conflict.steps: conflict for conflict in moved}
        elif not same(our_value, difference.old):
            conflicts[difference.steps] = MergeConflict(difference.steps, our_value, new)
        try:
            result = with_value(result, difference.steps, new)
        except KeyError:  # ours has no map where theirs does
            conflicts[difference.steps] = MergeConflict(difference.steps, our_value, new)
    return result, tuple(conflicts.values())
