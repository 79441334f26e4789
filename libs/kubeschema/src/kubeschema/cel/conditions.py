"""
Conditions in CEL: over an object's ``spec``, ``status`` and ``metadata``, or over other variables.

`Subject` knows the types of the variables from their schemas. It says what is wrong with an
expression, and turns objects into values; `Condition` judges these, within the limits of
``evaluation``. It never raises.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ground.objects.kube_objects import dig
from kubeschema.cel.cel_binding import Unbound, bind
from kubeschema.cel.environments import Judge, UnavailableError, condition_runner
from kubeschema.cel.evaluation import Activation
from kubeschema.cel.expressions import Expression
from kubeschema.cel.type_shapes import CelType, shape_of

__all__ = [
    "METADATA_SCHEMA",
    "NOT_SET",
    "Subject",
    "condition",
    "expression",
    "plain_result",
    "value_at",
]

_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
METADATA_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "name": _TEXT,
        "namespace": _TEXT,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "creationTimestamp": {"type": "string", "format": "date-time"},
    },
}
NOT_SET = "NOT_FOUND"
"""How the library's error begins if a field is not set."""
_FIRST_FAULT = re.compile(r"ERROR: [^:]*:\d+:\d+: (.*?)(?: in struct '[^']*')?$", re.MULTILINE)


class Subject:
    """What conditions are about: the schema of each variable."""

    def __init__(self, schemas: Mapping[str, Mapping[str, Any]]) -> None:
        self.schema: Mapping[str, Any] = {
            "type": "object",
            "properties": {name: {**schema, "type": "object"} for name, schema in schemas.items()},
        }
        self._shape = shape_of(self.schema) or CelType("object")

    @classmethod
    def of_object(cls, spec: Mapping[str, Any], status: Mapping[str, Any]) -> Subject:
        """Return the subject of conditions over objects of one kind."""
        return cls({"spec": spec, "status": status, "metadata": METADATA_SCHEMA})

    def fault(self, source: str, *, is_condition: bool = True) -> str:
        """
        Return why an expression is no condition over these objects; empty if it is one.

        Args:
            is_condition: False: it may have any value.
        """
        try:
            verdict = Judge(self._shape, spread=True).judge(source)
        except UnavailableError:
            return ""
        if verdict.fault:
            match = _FIRST_FAULT.search(verdict.fault)
            return match[1] if match else verdict.fault.splitlines()[0]
        is_bool = not is_condition or verdict.result.lower() in {"", "bool", "dyn"}
        return "" if is_bool else f"it is {verdict.result.lower()}, not true or false"

    def values(self, manifest: Mapping[str, Any]) -> Activation | str:
        """Return the variables' values for `Condition.judge`, or why there are none."""
        try:
            values: Mapping[str, Any] = bind(
                self._shape, {name: manifest.get(name) or {} for name in self.schema["properties"]}
            )
        except (Unbound, RecursionError) as error:
            return f"a value does not fit the schema: {error}"
        return Activation(values)


@dataclass(frozen=True, slots=True)
class ConditionVerdict:
    """Whether a condition holds. One that cannot be evaluated does not."""

    holds: bool
    why_unknown: str = ""
    """Why it cannot be evaluated; empty if it can, or if a field that it reads is not set."""
    is_known: bool = True
    """False also if a field that it reads is not set."""


class Condition:
    """A compiled condition."""

    def __init__(self, source: str) -> None:
        self._expression = Expression(source, runner=condition_runner)

    def judge(self, values: Activation | str) -> ConditionVerdict:
        """Judge values that `Subject.values` returned."""
        if isinstance(values, str):
            return ConditionVerdict(holds=False, why_unknown=values, is_known=False)
        outcome = self._expression.evaluate(values)
        why = outcome.gap or outcome.error
        if why or not isinstance(outcome.value, bool):
            is_unset = outcome.error.startswith(NOT_SET)
            return ConditionVerdict(
                holds=False,
                why_unknown="" if is_unset else why or "it is not true or false",
                is_known=False,
            )
        return ConditionVerdict(outcome.value)


@functools.lru_cache(maxsize=1_000)
def condition(source: str) -> Condition:
    """Return a condition, compiled once per text."""
    return Condition(source)


@functools.lru_cache(maxsize=1_000)
def expression(source: str) -> Expression:
    """Return an expression of any value over a `Subject`'s variables, compiled once per text."""
    return Expression(source, runner=condition_runner)


def value_at(manifest: Mapping[str, Any], path: str) -> Any:
    """Return the value of a dotted path that begins with a variable; None if it is not set."""
    return dig(manifest, *path.split("."))


def plain_result(value: Any) -> Any:
    """
    Return a value of the CEL library, whose lists and maps wrap theirs, as JSON has it.

    Raises:
        TypeError: JSON has no such value: bytes, a duration or a time.
    """
    if callable(inner := getattr(value, "value", None)):
        value = inner()
    if isinstance(value, Mapping):
        return {str(plain_result(key)): plain_result(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [plain_result(child) for child in value]
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    raise TypeError(f"it is a {type(value).__name__}, which no field of an XR can be")
