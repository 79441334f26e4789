"""What is wrong with ``import`` of kit.yaml; part of ``core.kit.consistency``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orderkit.core.kit.field_problems import KitProblem, nearest
from orderkit.core.kit.kit_file import Direction, How, Import
from orderkit.core.kit.kit_reader import is_covered
from orderkit.core.kit.model import Kit
from orderkit.core.kit.xrd_fields import FieldShape, KitFields


def import_problems(kit: Kit, fields: KitFields, spec: Mapping[str, Any]) -> Iterator[KitProblem]:
    """
    Yield what is wrong.

    Args:
        spec: ``spec`` of kit.yaml as it was written.
    """
    if kit.imports is None:
        return
    yield from _field_problems(kit.imports, fields)
    if not spec.get("changes"):
        rule = "needs changes: without them every field may change directly"
        hint = "name what else may change below spec.changes; those of the import are added"
        yield KitProblem("kit", ("spec", "import"), kit.imports.manage, rule, hint)
    for at, change in enumerate(kit.changes):
        if change.how is How.REVIEW or change.direction is Direction.NEVER:
            continue
        for path in (*dict.fromkeys(kit.imports.names.values()), kit.imports.manage):
            if is_covered(path, change.fields):
                rule = "is a field of an import: its change needs a review"
                yield KitProblem("kit", ("spec", "changes", at), path, rule, "write how: review")


def _field_problems(imports: Import, fields: KitFields) -> Iterator[KitProblem]:
    name_fields = [
        (("names", part_name), path, FieldShape.TEXT) for part_name, path in imports.names.items()
    ]
    for key, path, shape in (*name_fields, (("manage",), imports.manage, FieldShape.BOOLEAN)):
        field, steps = fields.find(path), ("spec", "import", *key)
        if field is None:
            hint = nearest(path, fields.paths) or f"fields: {', '.join(fields.paths) or 'none'}"
            yield KitProblem("kit", steps, path, "is not a field of the XRD", hint)
        elif field.shape is not shape:
            rule = f"is not {'a text' if shape is FieldShape.TEXT else 'yes-or-no'}"
            yield KitProblem("kit", steps, path, rule)
        elif field.required or field.schema.get("default"):
            hint = "make it optional in the XRD, without a default"
            yield KitProblem("kit", steps, path, "is set in every order", hint)
