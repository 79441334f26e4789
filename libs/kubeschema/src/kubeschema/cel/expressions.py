"""
Expressions of admission policies: compiled once, evaluated exactly or not at all.

As on the server, ``variables`` are evaluated on first use. They are bound around the expression, so
that no value leaves the CEL library in between. Objects are plain data, also as on the server: no
schema, lists keep their order, nulls stay null. If the server's result cannot be reproduced
(functions the library lacks, ``authorizer``, integers beyond 64 bits), the outcome is a gap.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kubeschema.cel.cel_binding import INT64
from kubeschema.cel.environments import (
    ADMISSION,
    UnavailableError,
    admission_judge,
    admission_runner,
    is_unplanned,
    load,
)
from kubeschema.cel.evaluation import Activation, EvaluationOutcome, Program

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
            return "", ""
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
