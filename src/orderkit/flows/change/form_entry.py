"""
Change an order by the values of a form, as a portal sends them.

The form was opened on a commit (`ChangeRequest.base`): a value that is still the same as then is no
edit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ground.objects.values import ABSENT
from orderkit.core.kit.change_forms import ANY_CHANGE, change_named, form_paths
from orderkit.core.kit.yaml_settings import yaml_roots
from orderkit.core.order.change import refuse_unchanged
from orderkit.core.order.change.change_fields import entered_edits
from orderkit.flows.change.applying import change
from orderkit.flows.change.request import Changed, ChangeRequest, tidied
from orderkit.flows.order.live_order import LiveOrder, find_commit, read_xr
from orderkit.flows.platform import Platform


@dataclass(frozen=True, slots=True)
class FormEntry:
    """A form's values by parameter; null removes a field."""

    values: Mapping[str, Any]
    whole_form: bool = False
    """These are all values of the form: a missing one removes its field."""


def change_by_form(
    platform: Platform, live: LiveOrder, entry: FormEntry, template_request: ChangeRequest
) -> Changed:
    """
    Carry out `template_request` with the edits of a form. Idempotent like `change`.

    Raises:
        InvalidInputError: There is no such base or change; and all that `change` raises.
    """
    request = form_request(platform, live, entry, template_request)
    if request.edits:
        return change(platform, request)
    head = platform.forge.head(live.repository)
    if head is not None and entry.values:
        spec = read_xr(platform, live, head).xr.get("spec") or {}
        change_ = template_request.change if live.kit.changes else None
        refuse_unchanged(live.kit, spec, paths=(), change=change_)
    return Changed(order=live.entry.order, state="unchanged", operation="", commit=head)


def form_request(
    platform: Platform, live: LiveOrder, entry: FormEntry, template_request: ChangeRequest
) -> ChangeRequest:
    """
    Return `template_request` with the edits of a form.

    Raises:
        InvalidInputError: There is no such base or change, or a field cannot have a value.
    """
    base, base_spec = template_request.base, ABSENT
    if base is not None:
        base = find_commit(platform, live, base, field="base").id
        base_spec = read_xr(platform, live, base).spec
    change_name, form, paths = template_request.change, None, None
    if entry.whole_form or (change_name and live.kit.changes):
        kit_change = change_named(live.kit, change_name or ANY_CHANGE)
        paths = kit_change.fields
        form = form_paths(live.kit, kit_change) if entry.whole_form else None
    roots = yaml_roots(live.kit, paths)
    edits = entered_edits(live.kit, entry.values, shown_spec=base_spec, form=form, roots=roots)
    return tidied(
        replace(
            template_request,
            base=base,
            edits=edits,
            change=change_name if live.kit.changes else None,
        )
    )
