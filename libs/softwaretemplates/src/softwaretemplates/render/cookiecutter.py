"""
The effect of ``cookiecutterCompat``: Python's names, and methods on lists and maps.

Old releases install Nunjucks' compatibility layer for it, newer ones have their own. This module
implements what both do alike. A key with the name of such a method is refused, because the layer
returns the method and newer releases the data.
"""

from __future__ import annotations

from collections.abc import Mapping

from softwaretemplates.render import javascript as js
from softwaretemplates.render import refusals
from softwaretemplates.render.javascript import UNDEFINED, Undefined, Value
from softwaretemplates.render.methods import Method, push, run_method, table_of
from softwaretemplates.render.operands import used
from softwaretemplates.render.refusals import OperationFault, UnsupportedFault

__all__ = ["LIST_METHODS", "MAP_METHODS"]

CONSTANTS: Mapping[str, Value] = {"True": True, "False": False, "None": None}


def _get(value: dict[str, Value], key: Value, fallback: Value = UNDEFINED) -> Value:
    member = js.member(value, key)
    return fallback if isinstance(member, Undefined) else member


def _count(value: list[Value], target: Value) -> int:
    return sum(js.strictly_equal(item, target) for item in value)


def _index(value: list[Value], target: Value) -> int:
    index = _find(value, target)
    if index < 0:
        raise UnsupportedFault.of(refusals.COMPAT_FAILED, "index")
    return index


def _find(value: list[Value], target: Value) -> int:
    return next((at for at, item in enumerate(value) if js.strictly_equal(item, target)), -1)


def _remove(value: list[Value], target: Value) -> list[Value]:
    at = _find(value, target)
    if at < 0:
        raise UnsupportedFault.of(refusals.COMPAT_FAILED, "remove")
    return [value.pop(at)]


MAP_METHODS: Mapping[str, Method] = {
    "get": Method(_get, 1, 2),
    "has_key": Method(lambda value, key: js.text(key) in value, 1, 1),
    "items": Method(lambda value: [[key, item] for key, item in js.ordered(value)]),
    "keys": Method(lambda value: [key for key, _ in js.ordered(value)]),
    "values": Method(lambda value: [item for _, item in js.ordered(value)]),
}
LIST_METHODS: Mapping[str, Method] = {
    "append": Method(push, 1, 1, changes=True),
    "count": Method(_count, 1, 1),
    "find": Method(_find, 1, 1),
    "index": Method(_index, 1, 1),
    "remove": Method(_remove, 1, 1, changes=True),
}
METHODS = frozenset(MAP_METHODS) | frozenset(LIST_METHODS)
CHANGING = frozenset({"append", "remove"})
_MAP_NAMES = frozenset(MAP_METHODS) | {
    "iteritems", "iterkeys", "itervalues", "pop", "popitem", "setdefault", "update",
}  # fmt: skip
_LIST_NAMES = frozenset(LIST_METHODS) | {"insert"}


def member(value: Value, key: Value) -> Value:
    """
    Return ``value[key]`` as `javascript.member` does, but refuse the names of Python's methods.

    Raises:
        UnsupportedFault: The key has the name of such a method.
    """
    name = js.text(key) if isinstance(value, list | dict) else ""
    if isinstance(value, dict) and name in _MAP_NAMES:
        raise UnsupportedFault.of(refusals.COMPAT_MEMBER, name)
    if isinstance(value, list) and name in _LIST_NAMES:
        raise UnsupportedFault.of(refusals.OBJECT_MEMBER, name)
    if value == "" and isinstance(value, str):
        raise OperationFault("a member of an empty text", hint="ask first: `x and x.length`")
    return js.member(value, key)


def method(value: Value, name: str, *arguments: Value) -> Value:
    """
    Call a method of JavaScript or Python.

    Raises:
        Fault: The value has no such method.
    """
    used(value)
    if isinstance(value, dict):
        if name in value:
            raise UnsupportedFault.of(refusals.COMPAT_MEMBER, name)
        return run_method(MAP_METHODS.get(name), value, name, arguments)
    methods = LIST_METHODS if isinstance(value, list) else {}
    return run_method(methods.get(name) or table_of(value).get(name), value, name, arguments)
