"""
Changes of live orders as data: fields, edits, differences, and the kit's rules for them.

Pure; reads and writes no files. ``yamlfiles.edit`` edits the text, ``kubeschema.validate`` checks
the objects.
"""

from ground.objects.values import ABSENT, Absent, Steps, same, shown, value_at
from orderkit.core.order.change.change_fields import EditTarget, FieldEdit, apply, resolve
from orderkit.core.order.change.change_rules import (
    ChangeRequester,
    ChangeVerdict,
    judge_rules,
    judge_who,
    refuse_unchanged,
)
from orderkit.core.order.change.conflicts import FieldConflict, FieldConflictError
from orderkit.core.order.change.differences import (
    Difference,
    FieldDifference,
    differences,
    in_group,
)

__all__ = [
    "ABSENT",
    "Absent",
    "ChangeRequester",
    "ChangeVerdict",
    "Difference",
    "EditTarget",
    "FieldConflict",
    "FieldConflictError",
    "FieldDifference",
    "FieldEdit",
    "Steps",
    "apply",
    "differences",
    "in_group",
    "judge_rules",
    "judge_who",
    "refuse_unchanged",
    "resolve",
    "same",
    "shown",
    "value_at",
]
