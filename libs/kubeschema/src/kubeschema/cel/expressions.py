"""
Expressions and conditions of admission policies: compiled once, evaluated exactly or not at all.

As on the server, ``variables`` are evaluated on first use. They are bound around the expression, so
that no value leaves the CEL library in between. Objects are plain data, also as on the server: no
schema, lists keep their order, nulls stay null. If the server's result cannot be reproduced
(functions the library lacks, ``authorizer``, integers beyond 64 bits), the outcome is a gap.

A condition is over an object's ``spec``, ``status`` and ``metadata``, or over other variables.
`Subject` knows the types of the variables from their schemas. It says what is wrong with an
expression, and turns objects into values; `Condition` judges these, within the limits of
``evaluation``. It never raises.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ground.objects.kube_objects import dig
from kubeschema.cel.environments import (
    ADMISSION,
    Judge,
    UnavailableError,
    admission_judge,
    admission_runner,
    condition_runner,
    is_unplanned,
    load,
)
from kubeschema.cel.evaluation import Activation, EvaluationOutcome, Program
from kubeschema.cel.type_shapes import INT64, CelType, Unbound, bind, shape_of

__all__ = [
    "METADATA_SCHEMA",
    "NOT_SET",
    "Expression",
    "Subject",
    "bound",
    "condition",
    "expression",
    "plain_result",
    "value_at",
]


Variables = Mapping[str, str]
"""Name -> expression. An expression may use the variables before it."""

_BOUND = "orderkit_variable_"
_TOKEN = re.compile(
    r"""[rRbB]{0,2}(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"""|//[^\n]*|(?<![\w.])variables\s*\.\s*([A-Za-z_]\w*)""",
    re.DOTALL,
)
_ON_LISTS = "ndexOf"
_BEYOND = "object or parameter holds a number beyond 64 bits"


class Expression:
    """One expression. Can be made from any source; errors in it show up on evaluation."""

    def __init__(
        self,
        source: str,
        variables: Variables | None = None,
        *,
        runner: Callable[..., Any] = admission_runner,
    ) -> None:
        self._runner = runner
        self.source = source.strip()
        self._text = _with_variables(self.source, variables or {})
        self._programs: list[Program] = []
        self._gap = ""
        self._compiled = False

    def judged(self) -> tuple[str, str]:
        """
        Return why the server would refuse the expression, in cel-cpp's words, and the result type.

        The first is empty if the expression is valid, the second if the type is unknown.
        """
        try:
            compiled = admission_judge().compile(self._text)
        except UnavailableError:
            return "", ""  # no build of the library for this machine: nothing is known
        except RuntimeError as error:
            text = str(error)
            harmless = is_unplanned(text) or "'authorizer" in text
            return "" if harmless else text.removeprefix("INVALID_ARGUMENT: ").split("\n")[0], ""
        return "", str(compiled.return_type().name()).lower()

    def evaluate(self, data: Activation) -> EvaluationOutcome:
        """Evaluate with the runner's variables, for those of policies made by `bound`."""
        self._compile()
        outcome = EvaluationOutcome(gap=self._gap)
        for program in self._programs:
            outcome = program.evaluate(data)
            if not outcome.gap:
                break
        return outcome

    def _compile(self) -> None:
        if self._compiled:
            return
        programs: list[Program] = []
        gap = ""
        try:
            load()
        except UnavailableError as error:
            self._gap = str(error)
            self._compiled = True
            return
        for positions in (False, True) if _ON_LISTS in self._text else (False,):
            try:
                programs.append(Program(self._runner(positions=positions).compile(self._text)))
            except RuntimeError as error:
                message = str(error).partition("ERROR: ")[2].partition("\n")[0]
                gap = gap or f"Orderkit's CEL library cannot read it: {message or error}"
        self._programs, self._gap = programs, gap
        self._compiled = True  # last: another thread may evaluate it meanwhile


def bound(**values: Any) -> Activation:
    """
    Return the variables to evaluate an expression with. Missing ones are null.

    Raises:
        OverflowError: A number cannot be passed to the CEL library without changing it.
    """
    if any(map(_is_beyond, values.values())):
        raise OverflowError(_BEYOND)
    return Activation({name: values.get(name) for name in ADMISSION})


def _is_beyond(value: Any) -> bool:
    """Say whether plain data holds an integer beyond 64 bits."""
    kind = type(value)
    if kind is int:
        return value not in INT64
    if kind is dict:
        value = value.values()
    elif kind is not list and kind is not tuple:
        return False
    return any(type(entry) is not str and _is_beyond(entry) for entry in value)


def _with_variables(source: str, variables: Variables) -> str:
    """Bind the variables that the expression needs around it, the first one outermost."""
    used_names = _needed(source, variables)
    text = _renamed(source)
    for name in reversed([name for name in variables if name in used_names]):
        text = f"cel.bind({_BOUND}{name}, (\n{_renamed(variables[name].strip())}\n), (\n{text}\n))"
    return text


def _needed(source: str, variables: Variables) -> set[str]:
    used_names: set[str] = set()
    waiting = [source]
    while waiting:
        for match in _TOKEN.finditer(waiting.pop()):
            name = match[1]
            if name in variables and name not in used_names:
                used_names.add(name)
                waiting.append(variables[name])
    return used_names


def _renamed(source: str) -> str:
    return _TOKEN.sub(lambda m: f"{_BOUND}{m[1]}" if m[1] else m[0], source)


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
            return ""  # no build of the library for this machine: nothing is known
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
