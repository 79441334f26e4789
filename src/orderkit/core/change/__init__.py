"""
The change of a live order as data: fields, edits, what differs, which rules of the kit hold.

Pure; reads no file and writes none. Text is edited by ``core.yamledit``, objects are judged by
``core.validate``. Called by the flows that change, revert and tell the history of orders.
"""

from orderkit.core.change.conflicts import FieldConflict, FieldConflictError
from orderkit.core.change.differences import FieldDifference, differences
from orderkit.core.change.fields import ABSENT, Absent, FieldEdit, Target, resolve
from orderkit.core.change.rules import Verdict, judge_rules

__all__ = [
    "ABSENT",
    "Absent",
    "FieldConflict",
    "FieldConflictError",
    "FieldDifference",
    "FieldEdit",
    "Target",
    "Verdict",
    "differences",
    "judge_rules",
    "resolve",
]
