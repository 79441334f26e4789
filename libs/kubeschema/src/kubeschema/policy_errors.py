"""
Why the API server would refuse a ValidatingAdmissionPolicy: expressions that are not valid.

Expressions are compiled, never run. Not covered: names, limits, the cost of expressions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from ground.objects.kube_objects import Manifest
from kubeschema.cel.expressions import Expression

__all__ = ["policy_faults"]


def policy_faults(policy: Manifest) -> Iterator[tuple[str, str]]:
    """Yield field and message for each expression that the server would refuse."""
    spec = policy.get("spec") or {}
    variables: dict[str, str] = {}
    for index, condition in enumerate(spec.get("matchConditions") or ()):
        at = f"spec.matchConditions[{index}].expression"
        yield from _faults(at, Expression(condition["expression"]), "bool")
    for index, variable in enumerate(spec.get("variables") or ()):
        at = f"spec.variables[{index}].expression"
        faults = list(_faults(at, Expression(variable["expression"], variables), ""))
        yield from faults
        variables[variable["name"]] = "dyn(null)" if faults else variable["expression"]
    for index, validation in enumerate(spec.get("validations") or ()):
        at = f"spec.validations[{index}]"
        expression = Expression(validation["expression"], variables)
        yield from _faults(f"{at}.expression", expression, "bool")
        if message_expression := validation.get("messageExpression"):
            yield from _faults(
                f"{at}.messageExpression", Expression(message_expression, variables), "string"
            )


def _faults(at: str, expression: Expression, expected_type: str) -> Iterator[tuple[str, str]]:
    source_text = json.dumps(expression.source, ensure_ascii=False)
    fault, result = expression.judged()
    if fault:
        yield at, f"Invalid value: {source_text}: compilation failed: {fault}"
    elif expected_type and result and result != expected_type:
        yield at, f"Invalid value: {source_text}: must evaluate to {expected_type} but got {result}"
