"""
What the API server refuses of a ValidatingAdmissionPolicy itself: expressions that are not sound.

Compiled, never run. Not here: names, limits, the cost of expressions. Called by the embedded
cluster when a policy is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from orderkit.core.objects.kube_objects import Manifest
from orderkit.core.schema.cel.expressions import Expression


def policy_faults(policy: Manifest) -> Iterator[tuple[str, str]]:
    """Yield field and sentence of each expression that the server would not take."""
    spec = policy.get("spec") or {}
    known: dict[str, str] = {}
    for index, condition in enumerate(spec.get("matchConditions") or ()):
        at = f"spec.matchConditions[{index}].expression"
        yield from _faults(at, Expression(condition["expression"]), "bool")
    for index, variable in enumerate(spec.get("variables") or ()):
        at = f"spec.variables[{index}].expression"
        found = list(_faults(at, Expression(variable["expression"], known), ""))
        yield from found
        known[variable["name"]] = "dyn(null)" if found else variable["expression"]
    for index, validation in enumerate(spec.get("validations") or ()):
        at = f"spec.validations[{index}]"
        expression = Expression(validation["expression"], known)
        yield from _faults(f"{at}.expression", expression, "bool")
        if told := validation.get("messageExpression"):
            yield from _faults(f"{at}.messageExpression", Expression(told, known), "string")


def _faults(at: str, expression: Expression, wanted: str) -> Iterator[tuple[str, str]]:
    shown = json.dumps(expression.source, ensure_ascii=False)
    fault, result = expression.judged()
    if fault:
        yield at, f"Invalid value: {shown}: compilation failed: {fault}"
    elif wanted and result and result != wanted:
        yield at, f"Invalid value: {shown}: must evaluate to {wanted} but got {result}"
