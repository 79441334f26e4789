"""
What an object comes to when two sides changed it: field by field, as a merge of its text would.

Maps are followed, lists are one value. Where both sides changed a field differently, theirs is
taken and the conflict told: nobody should merge that unseen. Pure; called by the flow that plans
pull requests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from orderkit.core.objects.values import ABSENT, Steps, path_text, same, shown, value_at, with_value
from orderkit.core.order.change.differences import differences


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """A field that both sides changed, each its own way; `ABSENT` where it is not set."""

    steps: Steps
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        ours, theirs = shown(self.ours), shown(self.theirs)
        return f"{path_text(self.steps)}: main says {ours} meanwhile, this branch {theirs}"


def merged(
    base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]
) -> tuple[dict[str, Any], tuple[MergeConflict, ...]]:
    """Return `ours` with what `theirs` changed since `base`, and what is in conflict."""
    wanted: dict[str, Any] = ours
    conflicts: dict[Steps, MergeConflict] = {}
    for found in differences(base, theirs, whole=True):
        here, new = value_at(ours, found.steps), found.new
        if same(here, new):
            continue
        if found.old is ABSENT and isinstance(here, dict) and isinstance(new, dict):
            new, below = merged({}, here, new)  # both made a map there
            told = [replace(each, steps=(*found.steps, *each.steps)) for each in below]
            conflicts |= {each.steps: each for each in told}
        elif not same(here, found.old):
            conflicts[found.steps] = MergeConflict(found.steps, here, new)
        try:
            wanted = with_value(wanted, found.steps, new)
        except KeyError:  # ours has no map where theirs has one
            conflicts[found.steps] = MergeConflict(found.steps, here, new)
    return wanted, tuple(conflicts.values())
