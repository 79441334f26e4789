"""A campaign of one wave from edits as people type them: ``orderkit change --kit``. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ground.errors import InvalidInputError
from orderkit.core.campaign.definition import Campaign, FieldValues, What, Which
from orderkit.core.kit.kit_file import How
from orderkit.core.kit.model import Kit
from orderkit.core.order.change import EditTarget, FieldEdit, resolve

_PLAIN_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


def campaign_of(
    name: str,
    kit: Kit,
    which: Which,
    edits: Sequence[FieldEdit],
    *,
    how: How | None = None,
    reason: str = "",
) -> Campaign:
    """
    Return the campaign that makes these edits in all orders.

    Raises:
        InvalidInputError: A field or value is refused, or an edit works on one order only.
    """
    set_: dict[str, Any] = {}
    compute: dict[str, str] = {}
    grow: dict[str, list[Any]] = {}
    remove: list[str] = []
    for edit in edits:
        target = resolve(kit, edit)
        if target.op == "set":
            set_[target.path] = target.value
        elif target.op == "unset":
            remove.append(target.path)
        elif target.is_sum:
            compute[target.path] = _sum(edit, target)
        elif target.op == "add":
            grow.setdefault(target.path, []).append(target.value)
        else:
            raise InvalidInputError(
                edit.path, edit.value, "cannot be taken out of the lists of many orders",
                hint="set the whole list, or compute it in the file of a campaign:"
                f" spec.{target.path}.filter(x, x != ...)",
            )  # fmt: skip
    fields = FieldValues(set=set_, compute=compute, grow=grow, remove=tuple(remove))
    return Campaign(
        name=name,
        reason=reason or f"{', '.join(fields.named)} of all orders of {kit.name}",
        what=What(fields=fields),
        which=which,
        how=how.value if how else "kit",
    )


def _sum(edit: FieldEdit, target: EditTarget) -> str:
    if not _PLAIN_PATH.fullmatch(target.path):
        hint = "write the file of a campaign, and compute it there"
        raise InvalidInputError(edit.path, edit.value, "is no plain field to add to", hint=hint)
    sign = "+" if target.op == "add" else "-"
    return f"spec.{target.path} {sign} {target.value}"
