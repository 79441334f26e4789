"""
The operations that a compiled template calls: look-ups, loops, assignments, calls, operators.

``engine`` registers them as Jinja2 filters, under names that no template can write. They work on
scopes and values and know nothing about syntax.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jinja2

from softwaretemplates.render import builtins, cookiecutter, methods, refusals
from softwaretemplates.render import javascript as js
from softwaretemplates.render.global_functions import Builtin, Cycler
from softwaretemplates.render.javascript import Safe, Undefined, Unknown, Value
from softwaretemplates.render.predicates import TESTS, calculate
from softwaretemplates.render.refusals import OperationFault, UnsupportedFault
from softwaretemplates.render.scopes import (
    Encoded,
    Frame,
    Keywords,
    Macro,
    Signature,
    given,
    set_parameter,
)

Operation = Callable[..., Any]


# --- names


def _lookup(frame: Frame, name: str, *keys: str) -> Value:
    value = frame.find(name)
    for key in keys:
        has_key = isinstance(value, dict) and key in value
        value = value[key] if has_key else _member(value, key)
    return value


def _member(value: Value, key: Value) -> Value:
    if value.__class__ is Cycler and key == "current":
        return value.current
    return js.member(value, key)


def _compat_lookup(frame: Frame, name: str, *keys: str) -> Value:
    value = frame.find(name)
    if isinstance(value, Undefined) and name in cookiecutter.CONSTANTS:
        value = cookiecutter.CONSTANTS[name]
    for key in keys:
        value = _compat_member(value, key)
    return value


def _compat_member(value: Value, key: Value) -> Value:
    if value.__class__ is Cycler and key == "current":
        return value.current
    return cookiecutter.member(value, key)


def _assign(frame: Frame, value: Value, *names: str) -> Value:
    for name in names:
        frame.assign(name, value)
    return value


def _assign_text(frame: Frame, body: int, *names: str) -> None:
    _assign(frame, frame.budget.run(body, frame), *names)


# --- loops


def _loop(frame: Frame, sequence: Value, *targets: str) -> Iterator[Frame]:
    """
    Yield the loop's scope once per item, with the item and ``loop`` in it.

    A list that changes inside its loop is read as it is then; ``loop`` keeps its first length.
    """
    items, hidden = _items(sequence, len(targets))
    size = len(items)
    scope = frame.inner()
    scope.hidden = hidden
    bound = scope.bound
    for at, item in enumerate(items):
        frame.budget.spend_round()
        scope.forget_macros()
        if len(targets) == 1:
            bound[targets[0]] = item
        else:
            parts = _parts(item, len(targets))
            for index, target in enumerate(targets):
                bound[target] = parts[index] if index < len(parts) else js.UNDEFINED
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


def _items(sequence: Value, targets: int) -> tuple[list[Value], bool]:
    """Return the items of a loop, and whether its names are hidden from other bodies."""
    if isinstance(sequence, Unknown):
        item = sequence.part("item")
        return [[sequence.part("key"), item] if targets > 1 else item], False
    if isinstance(sequence, Undefined):
        sequence.use()
        return [], False
    if isinstance(sequence, Safe):
        raise UnsupportedFault.of(refusals.SAFE_VALUE, "a loop")
    if isinstance(sequence, list):
        return sequence, targets > 1
    if isinstance(sequence, str):
        letters = js.whole(sequence)
        return [[str(at), c] for at, c in enumerate(letters)] if targets > 1 else [*letters], False
    if isinstance(sequence, dict):
        return _entries(sequence, targets), False
    if isinstance(sequence, js.Function):
        raise UnsupportedFault.of(refusals.FUNCTION_VALUE, "a loop")
    return [], False


def _entries(sequence: dict[str, Value], targets: int) -> list[Value]:
    if targets == 1:
        if "length" in sequence:
            raise UnsupportedFault.of(refusals.LENGTH_LOOP)
        return []
    if targets > 2:  # noqa: PLR2004 - a key and its value
        raise UnsupportedFault.of(refusals.PAIRS_LOOP)
    return [[key, value] for key, value in js.ordered(sequence)]


def _parts(item: Value, count: int) -> list[Value]:
    """Unpack an item for a loop with several names."""
    if item is None or isinstance(item, Undefined):
        raise OperationFault("a loop with several names over null or undefined")
    if isinstance(item, list):
        return item
    return [js.member(item, at) for at in range(count)]


# --- calls


def _macro(
    frame: Frame, name: str, body: int, names: tuple[str, ...], defaults: tuple[str, ...]
) -> None:
    frame.define_macro(name, Signature(names, defaults), body)


def _caller(frame: Frame, body: int, names: tuple[str, ...], defaults: tuple[str, ...]) -> Macro:
    return Macro(Signature(names, defaults), body, frame, around=True)


def _call(function: Value, frame: Frame, *arguments: Value) -> Value:
    keywords: Mapping[str, Value] = {}
    if arguments and isinstance(arguments[-1], Keywords):
        keywords, arguments = arguments[-1], arguments[:-1]
    if isinstance(function, Macro):
        return function.call(frame, arguments, keywords)
    if isinstance(function, Builtin):
        if keywords:
            raise UnsupportedFault.of(refusals.KEYWORD_IN_CALL)
        return function.call(arguments)
    if callable(function) and not arguments and not keywords:
        return function()  # always() and failure(), which the interpreter of steps supplies
    if isinstance(function, Undefined):
        function.use()
    raise OperationFault(
        "what is called here is not a function",
        hint=f"functions: {', '.join(builtins.FUNCTIONS)}, and macros of this file",
    )


def _call_with(function: Value, frame: Frame, content: Macro, *arguments: Value) -> Value:
    if not isinstance(function, Macro):
        raise UnsupportedFault.of(refusals.CALL_TARGET, "what is not a macro")
    keywords = Keywords()
    if arguments and isinstance(arguments[-1], Keywords):
        keywords.update(arguments[-1])
        arguments = arguments[:-1]
    keywords["caller"] = content
    return function.call(frame, arguments, keywords)


def _block(frame: Frame, body: int) -> str:
    return frame.budget.run(body, frame.inner(barrier=True))


def _text(frame: Frame, body: int) -> str:
    return frame.budget.run(body, frame)


# --- operators and output


def _chain(first: Value, *operations: Value) -> Value:
    """Apply operators of equal precedence from left to right."""
    result = first
    for at in range(0, len(operations), 2):
        operator, operand = operations[at], operations[at + 1]
        if operator == "+":
            result = js.add(result, operand)
        else:
            result = calculate(operator, result, operand)
    return result


@jinja2.pass_context
def _print(context: jinja2.runtime.Context, value: Value) -> str:  # noqa: ARG001 - keeps Jinja2 from folding constants with Python's semantics
    return js.printed(value)


@jinja2.pass_context
def _capture(context: jinja2.runtime.Context, value: Value) -> str:
    context["f0"].budget.captured = value
    return ""


@jinja2.pass_context
def _encode(context: jinja2.runtime.Context, value: Value) -> Encoded:  # noqa: ARG001 - see _print
    json = js.to_json(str(value) if isinstance(value, Safe) else value)
    return Encoded(js.printed(value), js.printed(json))


def _negative(value: Value) -> Value:
    number = js.number(value)
    return number if math.isnan(number) else js.normal(-float(number))


def _last(*values: Value) -> Value:
    if any(isinstance(value, js.Function) for value in values[:-1]):
        raise UnsupportedFault.of(refusals.FUNCTION_VALUE, "parentheses")
    return values[-1]


def _or_unknown(operation: Operation) -> Operation:
    """Let an operation that fails on what a dry run cannot know give something unknown as well."""

    def perform(*operands: Any) -> Any:
        try:
            return operation(*operands)
        except OperationFault as fault:
            unknown = next((operand for operand in operands if isinstance(operand, Unknown)), None)
            if unknown is None or isinstance(fault, UnsupportedFault):
                raise
            return unknown

    return perform


def _filter(name: str) -> Operation:
    apply = builtins.FILTERS[name].bound(name)
    if name not in _TAKES_APART:
        return _or_unknown(apply)
    return lambda value, *rest: value if isinstance(value, Unknown) else apply(value, *rest)


_TAKES_APART = frozenset({"first", "last", "list", "parseEntityRef", "parseRepoUrl", "projectSlug"})
"""Filters that take a text apart; the text of something unknown is not its own."""
OPERATIONS: Mapping[str, Operation] = {
    "above": lambda a, b: js.less(b, a),
    "assign": _assign,
    "assign_text": _assign_text,
    "at_least": lambda a, b: js.less(b, a, or_equal=True),
    "at_most": lambda a, b: js.less(a, b, or_equal=True),
    "below": js.less,
    "block": _block,
    "call": _call,
    "call_with": _call_with,
    "caller": _caller,
    "capture": _capture,
    "chain": _or_unknown(_chain),
    "compat lookup": _compat_lookup,
    "compat member": _compat_member,
    "compat method": cookiecutter.method,
    "contains": _or_unknown(js.contains),
    "encode": _encode,
    "different": lambda a, b: not js.strictly_equal(a, b),
    "equal": js.loosely_equal,
    "floor": lambda a: calculate("//", a, 1),
    "given": given,
    "keywords": Keywords,
    "last": _last,
    "lookup": _lookup,
    "loop": _loop,
    "macro": _macro,
    "member": _member,
    "method": _or_unknown(methods.method),
    "negative": _negative,
    "numeric": lambda a: js.normal(js.number(a)),
    "parameter": set_parameter,
    "power": lambda a, b: calculate("**", a, b),
    "print": _print,
    "same": js.strictly_equal,
    "text": _text,
    "truthy": js.truthy,
    "unequal": lambda a, b: not js.loosely_equal(a, b),
    "unknown filter": lambda value, name: (
        value if isinstance(value, Unknown) else Unknown.at(f"filter {name}")
    ),
    "untrue": lambda a: not js.truthy(a),
    **{f"| {name}": _filter(name) for name in builtins.FILTERS},
    **{f"is {name}": test.checked(name) for name, test in TESTS.items()},
}
