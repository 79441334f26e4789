"""
The change of a live order as data: fields, edits, what differs, which rules of the kit hold.

Pure; reads no file and writes none. Text is edited by ``core.yamledit``, objects are judged by
``core.validate``. Called by the flows that change, revert and tell the history of orders.
"""

from orderkit.core.change.conflicts import FieldConflict, FieldConflictError
from orderkit.core.change.differences import FieldDifference, differences
from orderkit.core.change.fields import FieldEdit, Target, apply, resolve
from orderkit.core.change.rules import Asking, Verdict, judge_rules, judge_who, refuse_unchanged
from orderkit.core.change.values import ABSENT, Absent, Steps, same, shown, value_at

__all__ = [
    "ABSENT",
    "Absent",
    "Asking",
    "FieldConflict",
    "FieldConflictError",
    "FieldDifference",
    "FieldEdit",
    "Steps",
    "Target",
    "Verdict",
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
