"""
The change of a live order as data: fields, edits, what differs, which rules of the kit hold.

Pure; reads no file and writes none. Text is edited by ``core.yaml.edit``, objects are judged by
``core.schema.validate``. Called by the flows that change, revert and tell the history of orders.
"""

from orderkit.core.objects.values import ABSENT, Absent, Steps, same, shown, value_at
from orderkit.core.order.change.change_fields import EditTarget, FieldEdit, apply, resolve
from orderkit.core.order.change.change_rules import (
    ChangeRequester,
    ChangeVerdict,
    judge_rules,
    judge_who,
    refuse_unchanged,
)
from orderkit.core.order.change.conflicts import FieldConflict, FieldConflictError
from orderkit.core.order.change.differences import FieldDifference, differences

__all__ = [
    "ABSENT",
    "Absent",
    "ChangeRequester",
    "ChangeVerdict",
    "EditTarget",
    "FieldConflict",
    "FieldConflictError",
    "FieldDifference",
    "FieldEdit",
    "Steps",
    "apply",
    "differences",
    "judge_rules",
    "judge_who",
    "refuse_unchanged",
    "resolve",
    "same",
    "shown",
    "value_at",
]
