"""
The template engine: compile one template, or render JSON-like data whose strings are templates.

The language is the part of Nunjucks 3.2.4 and Nunjitsu 0.7 that both read alike; Backstage has used
both. Our own front end (``lexer``, ``grammar``, ``parser``) emits Jinja2's syntax tree, Jinja2
compiles it, and ``operations`` implements the semantics. Everything outside the common part is
refused: before rendering if the syntax shows it, otherwise when the operation runs, with line and
column; ``refusals`` has the table. Limited: source, nesting, loop rounds, calls, strings, lists,
output. Not limited: time, which ``adapters.processes`` limits for untrusted templates. Compiled
templates are cached: the 2,048 used last, up to 64 KB each. All share one environment.

Data is rendered by the rules of scaffolder steps since Backstage 1.56; keys are no templates. A
string that is exactly one ``${{ }}`` keeps the type of its value. A string that is exactly one
block, such as ``{% if %}`` to ``{% endif %}``, is read as JSON if its text is JSON. Any other
string becomes text, and an empty text becomes undefined. Undefined drops the key, and becomes null
in a list. A failing expression is an error here, while Backstage would pass on the raw source.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator
from jinja2.compiler import Frame as CompilerFrame
from jinja2.sandbox import ImmutableSandboxedEnvironment

from softwaretemplates.render import javascript as js
from softwaretemplates.render.builtins import FILTERS, FUNCTIONS
from softwaretemplates.render.integrations import is_planning
from softwaretemplates.render.javascript import (
    SAFE_INTEGER,
    UNDEFINED,
    Closed,
    Function,
    Safe,
    Undefined,
    Value,
    normal,
)
from softwaretemplates.render.lexer import BACKSTAGE, Delimiters
from softwaretemplates.render.operations import OPERATIONS
from softwaretemplates.render.parser import Statement, TemplateParser
from softwaretemplates.render.refusals import (
    LimitError,
    LimitFault,
    OperationFault,
    RenderError,
)
from softwaretemplates.render.scopes import Budget, Encoded, Frame

__all__ = ["OUTPUT_MAX"]

OUTPUT_MAX = 1 << 24
"""Maximum characters that one template, or one part of it, may write."""


class _Generator(CodeGenerator):
    """Jinja2's code generator, with JavaScript's truthiness in ``and`` and ``or``."""

    def visit_And(self, node: nodes.BinExpr, frame: CompilerFrame) -> None:  # noqa: N802 - Jinja2's name
        self._choose(node, frame, "if")

    def visit_Or(self, node: nodes.BinExpr, frame: CompilerFrame) -> None:  # noqa: N802 - Jinja2's name
        self._choose(node, frame, "if not")

    def _choose(self, node: nodes.BinExpr, frame: CompilerFrame, condition: str) -> None:
        identifier = self.temporary_identifier()
        self.write("(")
        self.visit(node.right, frame)
        self.write(f" {condition} environment.truthy({identifier} := ")
        self.visit(node.left, frame)
        self.write(f") else {identifier})")


class _Environment(ImmutableSandboxedEnvironment):
    code_generator_class = _Generator
    truthy = staticmethod(js.truthy)


def _environment() -> _Environment:
    # The optimizer would fold constants with Python's semantics, and Jinja2's own filters and
    # globals have them, too: templates reach only our operations.
    environment = _Environment(optimized=False, cache_size=0)
    environment.filters.clear()
    environment.globals.clear()
    environment.filters.update(OPERATIONS)
    return environment


_ENVIRONMENT = _environment()


class Renderable:
    """A compiled template. Immutable; several threads may render it at once."""

    def __init__(self, source: str, delimiters: Delimiters, *, capture: bool) -> None:
        parsed = TemplateParser(source, delimiters, capture=capture).parse()
        self.sole_expression = parsed.sole_expression
        """The template is exactly one expression, so `value` keeps its type."""
        self.sole_block = parsed.sole_block
        """The template is exactly one block, so its text may be JSON: see `Encoded`."""
        self._changes_lists = parsed.changes_lists
        self._statements: list[Statement] = parsed.statements
        self._bodies = [_compiled(body, at) for at, body in enumerate(parsed.bodies)]

    def render(self, context: Mapping[str, Value], *, strict: bool = False) -> str:
        """
        Return the text.

        Args:
            context: The names that the template may use. Not changed.
            strict: Printing a name that does not exist is an error.

        Raises:
            RenderError: An operation failed; the error has line and column.
        """
        return self._run(context, strict=strict)[0]

    def value(self, context: Mapping[str, Value]) -> Value:
        """
        Return the value of a sole expression with its type; it may be `UNDEFINED`.

        Raises:
            RenderError: An operation failed.
        """
        return _without_functions(self._run(context, strict=False)[1])

    def _run(self, context: Mapping[str, Value], *, strict: bool) -> tuple[str, Value]:
        variables = {**FUNCTIONS, **context}
        # A template that calls push or the like must not change the caller's lists.
        if self._changes_lists:
            variables = {name: _copied(value) for name, value in variables.items()}
        budget = Budget(self._body)
        outside = Frame(variables, None, budget, strict=strict)
        scope = outside.inner(barrier=True)
        scope.exports = variables
        try:
            return self._body(-1, scope), budget.captured
        except OperationFault as fault:
            raise self._located(fault, fault.__traceback__) from fault
        except RecursionError as error:
            raise LimitError("a value is nested too deeply") from error

    def _body(self, number: int, frame: Frame) -> str:
        template = self._bodies[number]
        pieces: list[str] = []
        size, is_encoded = 0, False
        scope = _ENVIRONMENT.context_class(_ENVIRONMENT, {"f0": frame}, None, {})
        for piece in template.root_render_func(scope):
            pieces.append(piece)
            size += len(piece)
            if piece.__class__ is Encoded:
                is_encoded = True
                size += len(piece.json)
            if size > OUTPUT_MAX:
                raise LimitFault(f"more than {OUTPUT_MAX} characters of output")
        text = "".join(pieces)
        if not is_encoded:
            return text
        return Encoded(text, "".join(getattr(piece, "json", piece) for piece in pieces))

    def _located(self, fault: OperationFault, trace: TracebackType | None) -> RenderError:
        number = 0
        # The innermost template frame wins: the place in a macro's body, not that of its call.
        while trace is not None:
            name = trace.tb_frame.f_code.co_filename
            if name.startswith(_FILE):
                body = self._bodies[int(name.removeprefix(_FILE))]
                number = body.get_corresponding_lineno(trace.tb_lineno)
            trace = trace.tb_next
        if not 0 < number <= len(self._statements):
            return fault.error(fault.problem, hint=fault.hint)
        statement = self._statements[number - 1]
        return fault.error(
            f"{fault.problem} in `{statement.source}`", statement.position, hint=fault.hint
        )


_FILE = "<template>:"
KEPT_MAX = 1 << 16
"""Longest source that is kept compiled, in characters."""


def _compiled(body: nodes.Template, number: int) -> jinja2.Template:
    try:
        code = _ENVIRONMENT.compile(body, filename=f"{_FILE}{number}")
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise LimitError("the template is nested too deeply to be compiled") from error
    return jinja2.Template.from_code(_ENVIRONMENT, code, {})


def _without_functions(value: Value) -> Any:
    """Return a value as JSON has it: no functions."""
    if isinstance(value, list):
        return [None if isinstance(item, Function) else _without_functions(item) for item in value]
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if not isinstance(item, Function)}
        return type(value)((key, _without_functions(item)) for key, item in kept.items())
    return UNDEFINED if isinstance(value, Function) else value


def _copied(value: Value) -> Any:
    if isinstance(value, list):
        return [_copied(item) for item in value]
    if isinstance(value, dict):
        kind = Closed if isinstance(value, Closed) else dict
        return kind((key, _copied(item)) for key, item in value.items())
    return value


def compile_template(
    source: str, delimiters: Delimiters = BACKSTAGE, *, capture: bool = False
) -> Renderable:
    """
    Return a compiled template, from the cache if possible.

    Args:
        capture: Keep the value of a sole expression (`Renderable.value`) instead of printing it.

    Raises:
        RenderError: The source is malformed; with line and column.
        UnsupportedError: It uses a construct that the engines read differently.
        LimitError: It is too long or nested too deeply.
    """
    if len(source) > KEPT_MAX:
        return Renderable(source, delimiters, capture=capture)
    return _cached_renderable(source, delimiters, capture=capture, _planning=is_planning())


def used_backstage_filters(source: str) -> list[str]:
    """
    Return the filters of a template that the engines do not have themselves, sorted.

    Raises:
        RenderError: The source is malformed or refused.
    """
    bodies = TemplateParser(source, BACKSTAGE).parse().bodies
    names = {node.name for body in bodies for node in body.find_all(nodes.Filter)}
    return sorted(name for name in FILTERS if f"| {name}" in names and FILTERS[name].of_backstage)


@functools.lru_cache(maxsize=2048)
def _cached_renderable(
    source: str, delimiters: Delimiters, *, capture: bool, _planning: bool
) -> Renderable:
    return Renderable(source, delimiters, capture=capture)


def render_data(value: Value, context: Mapping[str, Value], *, name: str) -> Value:
    """
    Return `value` with every string in it rendered; undefined strings are dropped.

    Args:
        name: The place of the value, for messages: ``steps.fetch.input``.

    Raises:
        RenderError: A template in it is malformed, refused or fails; the message has its path.
    """
    if isinstance(value, str):
        return _render_text(value, context, name=name)
    if isinstance(value, list):
        items = [render_data(v, context, name=f"{name}[{at}]") for at, v in enumerate(value)]
        return [None if isinstance(item, Undefined) else item for item in items]
    if isinstance(value, dict):
        rendered = {k: render_data(v, context, name=f"{name}.{k}") for k, v in value.items()}
        return {k: v for k, v in rendered.items() if not isinstance(v, Undefined)}
    return _as_double(value)


def _render_text(source: str, context: Mapping[str, Value], *, name: str) -> Value:
    if "${{" not in source and "{%" not in source and "{#" not in source and "#}" not in source:
        return source or UNDEFINED
    try:
        template = compile_template(source, capture=True)
        if template.sole_expression:
            return _detached(template.value(context))
        text = template.render(context)
        return _decoded(text) if template.sole_block else text or UNDEFINED
    except RenderError as error:
        raise error.named(name) from error


def _decoded(text: str) -> Value:
    """Return the value of a block: that of its JSON, else its text."""
    source = text.json if isinstance(text, Encoded) else text
    try:
        return _detached(
            json.loads(
                source,
                parse_int=_read_number,
                parse_float=_read_number,
                parse_constant=_refuse_constant,
                object_pairs_hook=_read_map,
            )
        )
    except ValueError:
        return str.__str__(text) or UNDEFINED
    except RecursionError as error:
        raise LimitError("a value is nested too deeply") from error


def _read_number(text: str) -> float:
    return normal(float(text))


def _refuse_constant(name: str) -> None:
    raise ValueError(name)  # Python reads NaN and Infinity, JSON does not have them


def _read_map(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    if any(key == "__proto__" for key, _ in pairs):
        raise RenderError("a map has the key `__proto__`, which Backstage refuses")
    return dict(pairs)


def _detached(value: Value) -> Value:
    """Copy a value, so that parameters and outputs cannot be changed through it."""
    if isinstance(value, list):
        return [None if isinstance(item, Undefined) else _detached(item) for item in value]
    if isinstance(value, dict):
        return {k: _detached(v) for k, v in value.items() if not isinstance(v, Undefined)}
    if isinstance(value, Safe):
        return str.__str__(value)
    return UNDEFINED if isinstance(value, Undefined) else _as_double(value)


def _as_double(value: Value) -> Value:
    """Round an integer to a double, JavaScript's only kind of number; JSON has no infinite one."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) <= SAFE_INTEGER:
        return value
    try:
        return int(float(value))
    except OverflowError:
        return None
