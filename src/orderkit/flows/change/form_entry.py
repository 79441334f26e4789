"""
Change an order by what somebody entered into a form, as a portal sends it.

The form was opened on a commit (`Entered.base`): what it still shows as then is no edit. Called by
the service and by ``orderkit change --values``, which a portal's Job runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from orderkit.core.kit.change_forms import ANY_CHANGE, change_named, form_paths
from orderkit.core.objects.values import ABSENT
from orderkit.core.order.change import refuse_unchanged
from orderkit.core.order.change.form_answers import entered_edits
from orderkit.flows.change.applying import change
from orderkit.flows.change.request import Changed, ChangeRequest, tidied
from orderkit.flows.order.live_order import LiveOrder, find_commit, read_xr
from orderkit.flows.platform import Platform


@dataclass(frozen=True, slots=True)
class Entered:
    """What a form sent: values by form parameter; null takes a field away."""

    values: Mapping[str, Any]
    whole: bool = False
    """These are all values of the change's form: a missing one is taken away."""


def change_entered(
    platform: Platform, live: LiveOrder, entered: Entered, wanted: ChangeRequest
) -> Changed:
    """
    Carry out `wanted` with the edits that were entered. Idempotent like `change`.

    Raises:
        InvalidInputError: There is no such base or change; and all that `change` raises.
    """
    request = entered_request(platform, live, entered, wanted)
    if request.edits:
        return change(platform, request)
    head = platform.forge.head(live.repository)
    if head is not None and entered.values:
        held = read_xr(platform, live, head).xr.get("spec") or {}
        change_ = wanted.change if live.kit.changes else None
        refuse_unchanged(live.kit, held, paths=(), change=change_)
    return Changed(order=live.entry.order, state="unchanged", operation="", commit=head)


def entered_request(
    platform: Platform, live: LiveOrder, entered: Entered, wanted: ChangeRequest
) -> ChangeRequest:
    """
    Return `wanted` with the edits that were entered.

    Raises:
        InvalidInputError: There is no such base or change, or a value is none of its field.
    """
    base, seen = wanted.base, ABSENT
    if base is not None:
        base = find_commit(platform, live, base, field="base").id
        seen = read_xr(platform, live, base).spec
    named, form = wanted.change, None
    if entered.whole:
        form = form_paths(live.kit, change_named(live.kit, named or ANY_CHANGE))
    edits = entered_edits(live.kit, entered.values, shown_spec=seen, form=form)
    return tidied(
        replace(wanted, base=base, edits=edits, change=named if live.kit.changes else None)
    )
