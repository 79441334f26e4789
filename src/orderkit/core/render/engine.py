"""
The template engine: ``compile_template(source, delimiters)`` gives a `Renderable`.

The language is the part of Nunjucks 3.2.4 and Nunjitsu 0.6 that both read alike; Backstage
has used either. An own front end (``lexer``, ``grammar``, ``parser``) emits Jinja2's syntax
tree, Jinja2 compiles it, and ``javascript`` and ``library`` do what expressions mean. What is
outside the common part is refused with line and column before anything is rendered.

Exact: expressions with JavaScript's precedence, truth, equality, printing and undefined;
``if``, ``for`` with ``loop``, ``set`` with Nunjucks' scopes, ``raw``; ``-`` trimming; the
filters and tests of ``library``. Not yet, and refused: macro, call, filter, switch, block,
``set`` with a body, slices, regular expressions, keyword arguments, and the filters in
``library.FILTERS_OF_BACKSTAGE``. Bounded: source, nesting, loop rounds, output.

Compiled templates are kept (``functools.lru_cache``); one environment serves the process.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator
from jinja2.compiler import Frame as CompilerFrame
from jinja2.sandbox import ImmutableSandboxedEnvironment

from orderkit.core.render import javascript as js
from orderkit.core.render import library
from orderkit.core.render.faults import Fault, LimitError, LimitFault, RenderError
from orderkit.core.render.javascript import UNDEFINED, Undefined, Value
from orderkit.core.render.lexer import BACKSTAGE, Delimiters
from orderkit.core.render.parser import Statement, TemplateParser

OUTPUT_MAX = 1 << 22
"""Most characters one template may write."""
ROUNDS_MAX = 200_000
"""Most rounds all loops of one rendering may take together."""

Function = Callable[..., Value]


class Budget:
    """What one rendering may still do, and what it caught."""

    def __init__(self) -> None:
        self.rounds = ROUNDS_MAX
        self.captured: Value = UNDEFINED

    def spend_round(self) -> None:
        self.rounds -= 1
        if self.rounds < 0:
            raise LimitFault(f"more than {ROUNDS_MAX} rounds of loops")


class Frame:
    """One scope: the context, or a loop in it. Look-ups go outwards, as Nunjucks' do."""

    __slots__ = ("budget", "parent", "strict", "variables")

    def __init__(
        self, variables: dict[str, Value], *, parent: Frame | None, strict: bool, budget: Budget
    ) -> None:
        self.variables, self.parent = variables, parent
        self.strict, self.budget = strict, budget

    def find(self, name: str) -> Value:
        frame: Frame | None = self
        while frame is not None:
            if name in frame.variables and not isinstance(
                value := frame.variables[name], Undefined
            ):
                return value
            frame = frame.parent
        return self._unknown(name)

    def _unknown(self, name: str) -> Value:
        if not self.strict:
            return UNDEFINED
        outermost = self
        while outermost.parent is not None:
            outermost = outermost.parent
        known = ", ".join(outermost.variables)
        return Undefined(f"'{name}' is used, but there is no such name here", f"names: {known}")

    def assign(self, name: str, value: Value) -> None:
        """Write where the name is already set in a loop or above, else here."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.variables and frame.variables[name] is not UNDEFINED:
                frame.variables[name] = value
                return
            frame = frame.parent
        self.variables[name] = value


def _lookup(frame: Frame, name: str, *keys: str) -> Value:
    value = frame.find(name)
    for key in keys:
        value = js.member(value, key)
    return value


def _loop(frame: Frame, sequence: Value, *targets: str) -> Iterator[Frame]:
    """Yield the loop's scope once per item, with the item and ``loop`` in it."""
    items = _items(sequence, len(targets))
    size = len(items)
    scope = Frame({}, parent=frame, strict=frame.strict, budget=frame.budget)
    for at, item in enumerate(items):
        frame.budget.spend_round()
        if len(targets) == 1:
            scope.variables[targets[0]] = item
        else:
            for place, target in enumerate(targets):
                scope.variables[target] = js.member(item, place)
        scope.variables["loop"] = {
            "index": at + 1,
            "index0": at,
            "revindex": size - at,
            "revindex0": size - at - 1,
            "first": at == 0,
            "last": at == size - 1,
            "length": size,
        }
        yield scope


def _items(sequence: Value, targets: int) -> list[Value]:
    if isinstance(sequence, Undefined):
        sequence.use()
        return []
    if isinstance(sequence, list):
        if targets > 1 and not all(isinstance(item, list) for item in sequence):
            raise Fault("a loop with several names needs a list of lists")
        return list(sequence)
    if isinstance(sequence, str) and targets == 1:
        return list(sequence)
    if isinstance(sequence, dict):
        if targets == 2:  # noqa: PLR2004 - a key and its value
            return [[key, value] for key, value in js.ordered(sequence)]
        raise Fault(
            "a loop with one name over a map takes no rounds in Backstage",
            hint="write `for key, value in map`",
        )
    if js.truthy(sequence):
        raise Fault("a loop needs a list, a text or a map")
    return []


def _assign(frame: Frame, value: Value, *names: str) -> Value:
    for name in names:
        frame.assign(name, value)
    return value


def _chain(first: Value, *rest: Value) -> Value:
    """Apply operators of one precedence from left to right."""
    result = first
    for at in range(0, len(rest), 2):
        operator, operand = rest[at], rest[at + 1]
        if operator == "+":
            result = js.add(result, operand)
        else:
            result = js.calculate(operator, result, operand)
    return result


def _call(function: Value, *arguments: Value) -> Value:
    if not callable(function):
        if isinstance(function, Undefined):
            function.use()
        raise Fault("what is called here is no function", hint="functions: range")
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        raise Fault(f"the function is called with {len(arguments)} arguments") from error
    return function(*arguments)


@jinja2.pass_context
def _print(context: jinja2.runtime.Context, value: Value) -> str:  # noqa: ARG001 - keeps Jinja2 from folding constants with Python's semantics
    return js.printed(value)


@jinja2.pass_context
def _capture(context: jinja2.runtime.Context, value: Value) -> str:
    context["f0"].budget.captured = value
    return ""


def _negative(value: Value) -> Value:
    return js.normal(-float(js.number(value)))


_OPERATIONS: Mapping[str, Function] = {
    "above": lambda a, b: js.less(b, a),
    "assign": _assign,
    "at_least": lambda a, b: js.less(b, a, or_equal=True),
    "at_most": lambda a, b: js.less(a, b, or_equal=True),
    "below": js.less,
    "call": _call,
    "capture": _capture,
    "chain": _chain,
    "contains": js.contains,
    "different": lambda a, b: not js.strictly_equal(a, b),
    "equal": js.loosely_equal,
    "floor": lambda a: js.calculate("//", a, 1),
    "lookup": _lookup,
    "loop": _loop,
    "member": js.member,
    "method": library.method,
    "negative": _negative,
    "numeric": lambda a: js.normal(js.number(a)),
    "power": lambda a, b: js.calculate("**", a, b),
    "print": _print,
    "same": js.strictly_equal,
    "truthy": js.truthy,
    "unequal": lambda a, b: not js.loosely_equal(a, b),
    "untrue": lambda a: not js.truthy(a),
}


class _Generator(CodeGenerator):
    """Jinja2's code generator, with JavaScript's truth in ``and`` and ``or``."""

    def visit_And(self, node: nodes.BinExpr, frame: CompilerFrame) -> None:  # noqa: N802 - Jinja2's name
        self._choose(node, frame, "if")

    def visit_Or(self, node: nodes.BinExpr, frame: CompilerFrame) -> None:  # noqa: N802 - Jinja2's name
        self._choose(node, frame, "if not")

    def _choose(self, node: nodes.BinExpr, frame: CompilerFrame, condition: str) -> None:
        left = self.temporary_identifier()
        self.write("(")
        self.visit(node.right, frame)
        self.write(f" {condition} environment.truthy({left} := ")
        self.visit(node.left, frame)
        self.write(f") else {left})")


class _Environment(ImmutableSandboxedEnvironment):
    code_generator_class = _Generator
    truthy = staticmethod(js.truthy)


def _environment() -> _Environment:
    environment = _Environment(optimized=False, cache_size=0)
    environment.filters.clear()
    environment.globals.clear()
    environment.filters.update(_OPERATIONS)
    environment.filters.update({f"| {name}": f.run for name, f in library.FILTERS.items()})
    environment.filters.update({f"is {name}": test for name, test in library.TESTS.items()})
    return environment


_ENVIRONMENT = _environment()


class Renderable:
    """A compiled template. Immutable; may be rendered by several threads at once."""

    def __init__(self, source: str, delimiters: Delimiters, *, capture: bool) -> None:
        parser = TemplateParser(source, delimiters, capture=capture)
        parsed = parser.parse()
        self.sole_expression = parsed.sole_expression
        """The template is exactly one expression, so `value` keeps its type."""
        self._statements: list[Statement] = parsed.statements
        try:
            code = _ENVIRONMENT.compile(parsed.tree, filename=_FILE)
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise LimitError("the template is nested too deeply to be compiled") from error
        self._template = jinja2.Template.from_code(_ENVIRONMENT, code, {})

    def render(self, context: Mapping[str, Value], *, strict: bool = False) -> str:
        """
        Return the text.

        Args:
            context: The names the template may use. Not changed.
            strict: Printing a name that does not exist is an error.

        Raises:
            RenderError: An operation failed; the error has line and column.
        """
        return self._run(context, strict=strict)[0]

    def value(self, context: Mapping[str, Value]) -> Value:
        """
        Return the value of a sole expression with its type, `UNDEFINED` included.

        Raises:
            RenderError: An operation failed.
        """
        return self._run(context, strict=False)[1]

    def _run(self, context: Mapping[str, Value], *, strict: bool) -> tuple[str, Value]:
        budget = Budget()
        functions = Frame(dict(library.FUNCTIONS), parent=None, strict=strict, budget=budget)
        frame = Frame(dict(context), parent=functions, strict=strict, budget=budget)
        written: list[str] = []
        size = 0
        try:
            scope = self._template.new_context({"f0": frame})
            for part in self._template.root_render_func(scope):
                written.append(part)
                size += len(part)
                if size > OUTPUT_MAX:
                    raise LimitFault(f"more than {OUTPUT_MAX} characters of output")
        except Fault as fault:
            raise self._located(fault, fault.__traceback__) from fault
        except RecursionError as error:
            raise LimitError("a value is nested too deeply") from error
        return "".join(written), budget.captured

    def _located(self, fault: Fault, trace: TracebackType | None) -> RenderError:
        line = 0
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == _FILE:
                line = trace.tb_lineno
            trace = trace.tb_next
        number = self._template.get_corresponding_lineno(line) if line else 0
        if not 0 < number <= len(self._statements):
            return fault.error(fault.problem, hint=fault.hint)
        statement = self._statements[number - 1]
        return fault.error(
            f"{fault.problem} in `{statement.source}`", statement.position, hint=fault.hint
        )


_FILE = "<template>"


@functools.lru_cache(maxsize=2048)
def compile_template(
    source: str, delimiters: Delimiters = BACKSTAGE, *, capture: bool = False
) -> Renderable:
    """
    Compile a template, or return the one compiled before.

    Args:
        capture: Keep the value of a sole expression (`Renderable.value`) instead of printing.

    Raises:
        RenderError: The source is malformed; with line and column.
        UnsupportedError: It uses what the engines read differently.
        LimitError: It is too long or nested too deeply.
    """
    return Renderable(source, delimiters, capture=capture)
