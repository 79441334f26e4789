"""
Filters, tests, methods and functions that templates may use, and their argument counts.

Exact for what stands in the tables; what Backstage has beyond them is listed in
``FILTERS_OF_BACKSTAGE`` and refused with a hint. Pure functions on JSON-like values; what
needs to know forges (``parseRepoUrl``) knows only the shape of their addresses.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from orderkit.core.render import javascript as js
from orderkit.core.render.faults import Fault, LimitFault, UnsupportedFault
from orderkit.core.render.javascript import UNDEFINED, Undefined, Value

RANGE_MAX = 100_000
"""Most entries of a list that `range` builds; Backstage has the same limit."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter and how many arguments it takes besides the value."""

    run: Callable[..., Value]
    arity: tuple[int, int]


def literal_number(digits: str) -> float:
    """Return the number a template writes as ``12`` or ``1.5``."""
    return js.normal(float(digits))


# --- engine filters


def _whole(value: Value, name: str) -> int:
    found = js.number(value)
    if not math.isfinite(found) or not float(found).is_integer():
        raise Fault(f"filter '{name}' takes a whole number")
    return int(found)


def _plain(value: Value, name: str) -> str:
    """Return a text, "" for null, undefined and false as Nunjucks' `normalize` does."""
    if isinstance(value, Undefined):
        value.use()
        return ""
    if value is None or value is False:
        return ""
    return _must_be_text(value, name)


def _must_be_text(value: Value, name: str) -> str:
    if isinstance(value, Undefined):
        value.use()
    if not isinstance(value, str):
        raise Fault(
            f"filter '{name}' needs text",
            hint=f"write `x | string | {name}`, or `x | default('') | {name}`",
        )
    return value


def _upper(value: Value) -> Value:
    return _plain(value, "upper").upper()


def _lower(value: Value) -> Value:
    return _plain(value, "lower").lower()


def _capitalize(value: Value) -> Value:
    lowered = _plain(value, "capitalize").lower()
    return lowered[:1].upper() + lowered[1:]


def _title(value: Value) -> Value:
    return " ".join(_capitalize(word) for word in _plain(value, "title").split(" "))


def _trim(value: Value) -> Value:
    return _must_be_text(value, "trim").strip(js.SPACE)


def _default(value: Value, fallback: Value = UNDEFINED, also_falsy: Value = False) -> Value:  # noqa: FBT002 - the template's own order
    if js.truthy(also_falsy):
        return value if js.truthy(value) else fallback
    return fallback if isinstance(value, Undefined) else value


def _dump(value: Value, indent: Value = None) -> Value:
    if js.is_number(indent):
        indent = _whole(indent, "dump")
    return js.to_json(value, indent)


def _replace(value: Value, old: Value, new: Value, most: Value = -1) -> Value:
    if isinstance(value, Undefined):
        value.use()
    if js.is_number(old):
        old = js.text(old)
    if not isinstance(old, str):
        return value
    if js.is_number(value):
        value = js.text(value)
    if not isinstance(value, str):
        return value
    replacement = js.text(new)
    if len(replacement) * (value.count(old) if old else len(value) + 1) > js.TEXT_MAX:
        raise LimitFault(f"`replace` builds a text of more than {js.TEXT_MAX} characters")
    if old == "":
        return replacement + replacement.join(value) + replacement
    return value.replace(old, replacement, _whole(most, "replace"))


def _join(value: Value, separator: Value = "", attribute: Value = UNDEFINED) -> Value:
    items = _must_be_list(value, "join")
    if not isinstance(attribute, Undefined):
        if any(item is None or isinstance(item, Undefined) for item in items):
            raise Fault("filter 'join' cannot read an attribute of null or undefined")
        items = [js.member(item, attribute) for item in items]
    glue = "," if isinstance(separator, Undefined) else js.text(separator or "")
    return glue.join(
        "" if item is None or isinstance(item, Undefined) else js.text(item) for item in items
    )


def _must_be_list(value: Value, name: str) -> list[Value]:
    if isinstance(value, Undefined):
        value.use()
    if not isinstance(value, list):
        raise Fault(f"filter '{name}' needs a list", hint=f"write `(x or []) | {name}`")
    return value


def _length(value: Value) -> Value:
    if isinstance(value, str):
        return js.utf16_length(value)
    if isinstance(value, list | dict):
        return len(value)
    if isinstance(value, Undefined):
        value.use()
    return UNDEFINED if value is True or js.is_number(value) else 0


def _end(value: Value, name: str, index: int) -> Value:
    if isinstance(value, Undefined):
        value.use()
    if not isinstance(value, list | str):
        raise Fault(f"filter '{name}' needs a list or text")
    if isinstance(value, str) and not value.isascii() and js.utf16_length(value) != len(value):
        raise Fault(f"filter '{name}' on text with characters above U+FFFF splits one of them")
    return value[index] if value else UNDEFINED


def _first(value: Value) -> Value:
    return _end(value, "first", 0)


def _last(value: Value) -> Value:
    return _end(value, "last", -1)


def _string(value: Value) -> Value:
    if value is None or isinstance(value, Undefined):
        if isinstance(value, Undefined):
            value.use()
        raise Fault("filter 'string' needs a value", hint='write `x | default("", true) | string`')
    return js.text(value)


def _indent(value: Value, width: Value = 4, first: Value = False) -> Value:  # noqa: FBT002 - the template's own order
    lines = _plain(value, "indent").split("\n")
    columns = _whole(width, "indent")
    if not 0 <= columns <= 1000:  # noqa: PLR2004
        raise Fault("filter 'indent' takes 0 to 1000 columns")
    pad = " " * columns
    if lines == [""]:
        return ""
    return "\n".join(
        line if at == 0 and not js.truthy(first) else pad + line for at, line in enumerate(lines)
    )


def _list(value: Value) -> Value:
    if isinstance(value, Undefined):
        value.use()
    if isinstance(value, str):
        return list(value)
    if isinstance(value, dict):
        return [{"key": key, "value": item} for key, item in js.ordered(value)]
    return _must_be_list(value, "list")


def _reverse(value: Value) -> Value:
    return value[::-1] if isinstance(value, str) else _must_be_list(value, "reverse")[::-1]


def _abs(value: Value) -> Value:
    return js.normal(abs(js.number(value)))


def _dictsort(value: Value) -> Value:
    if isinstance(value, Undefined):
        value.use()
    if not isinstance(value, dict):
        raise Fault("filter 'dictsort' needs a map")

    def order(entry: tuple[str, Value]) -> bytes:
        return entry[0].upper().encode("utf-16-be", "surrogatepass")

    return [[key, item] for key, item in sorted(js.ordered(value), key=order)]


# --- Backstage's filters


def _parse_repo_url(value: Value) -> Value:
    """Split ``host?owner=o&repo=r``; the keys are Backstage's."""
    source = _must_be_text(value, "parseRepoUrl")
    host, _, query = source.partition("?")
    host = re.sub(r"^https?://", "", host)
    found = dict(parse_qsl(query))
    if not host or "repo" not in found:
        raise Fault(
            f"parseRepoUrl: '{source}' has no host or no repo",
            hint="the form is 'host?owner=team&repo=name'",
        )
    bare, slash, _ = host.partition("/")
    names = ("owner", "organization", "workspace", "project", "repo")
    return {"host": bare if slash else host} | {n: found[n] for n in names if n in found}


_REF = re.compile(r"(?:([^:/]+):)?(?:([^:/]+)/)?([^:/]+)\Z")


def _parse_entity_ref(value: Value, context: Value = None) -> Value:
    source = value
    if isinstance(value, Undefined):
        value.use()
    defaults = context if isinstance(context, dict) else {}
    found = _REF.match(source) if isinstance(source, str) else None
    if found is None:
        raise Fault(f"parseEntityRef: {js.to_json(source)} is no entity reference")
    kind = found[1] or defaults.get("defaultKind")
    if not kind:
        raise Fault(
            f"parseEntityRef: '{source}' has no kind",
            hint="write kind:namespace/name, or pass {defaultKind: 'component'}",
        )
    namespace = found[2] or defaults.get("defaultNamespace") or "default"
    return {"kind": kind, "namespace": namespace, "name": found[3]}


def _pick(value: Value, path: Value) -> Value:
    keys: list[Value]
    if isinstance(path, list):
        keys = path
    else:
        keys = [
            a or b or c
            for a, b, c in re.findall(
                r"""\[["']([^"']*)["']\]|\[([^\]]*)\]|([^.\[\]]+)""", js.text(path)
            )
        ]
    return functools.reduce(js.member, keys, value)


def _project_slug(value: Value) -> Value:
    found = _parse_repo_url(value)
    return f"{found.get('owner', 'undefined')}/{found['repo']}"


FILTERS: Mapping[str, Filter] = {
    "abs": Filter(_abs, (0, 0)),
    "capitalize": Filter(_capitalize, (0, 0)),
    "d": Filter(_default, (0, 2)),
    "default": Filter(_default, (0, 2)),
    "dictsort": Filter(_dictsort, (0, 0)),
    "dump": Filter(_dump, (0, 1)),
    "first": Filter(_first, (0, 0)),
    "indent": Filter(_indent, (0, 2)),
    "join": Filter(_join, (0, 2)),
    "last": Filter(_last, (0, 0)),
    "length": Filter(_length, (0, 0)),
    "list": Filter(_list, (0, 0)),
    "lower": Filter(_lower, (0, 0)),
    "parseEntityRef": Filter(_parse_entity_ref, (0, 1)),
    "parseRepoUrl": Filter(_parse_repo_url, (0, 0)),
    "pick": Filter(_pick, (1, 1)),
    "projectSlug": Filter(_project_slug, (0, 0)),
    "replace": Filter(_replace, (2, 3)),
    "reverse": Filter(_reverse, (0, 0)),
    "string": Filter(_string, (0, 0)),
    "title": Filter(_title, (0, 0)),
    "trim": Filter(_trim, (0, 0)),
    "upper": Filter(_upper, (0, 0)),
}
FILTERS_OF_BACKSTAGE = frozenset(
    {
        "batch", "center", "e", "escape", "float", "forceescape", "groupby", "int", "nl2br",
        "random", "reject", "rejectattr", "round", "safe", "select", "selectattr", "slice",
        "sort", "striptags", "sum", "truncate", "urlencode", "urlize", "wordcount",
    }
)  # fmt: skip
"""Filters Backstage has and this module does not (yet): refused, never approximated."""


# --- tests


def _defined(value: Value) -> bool:
    return not isinstance(value, Undefined)


def _remainder_is(value: Value, divisor: Value, rest: int) -> bool:
    return bool(js.calculate("%", value, divisor) == rest)


def _iterable(value: Value) -> bool:
    if value is None or isinstance(value, Undefined):
        raise Fault("test 'iterable' needs a value", hint="write `x and x is iterable`")
    return isinstance(value, str | list)


TESTS: Mapping[str, Callable[..., bool]] = {
    "defined": _defined,
    "divisibleby": lambda value, by: _remainder_is(value, by, 0),
    "eq": js.strictly_equal,
    "equalto": js.strictly_equal,
    "even": lambda value: _remainder_is(value, 2, 0),
    "falsy": lambda value: not js.truthy(value),
    "iterable": _iterable,
    "mapping": lambda value: isinstance(value, dict),
    "ne": lambda value, other: not js.strictly_equal(value, other),
    "null": lambda value: value is None,
    "number": js.is_number,
    "odd": lambda value: _remainder_is(value, 2, 1),
    "sameas": js.strictly_equal,
    "string": lambda value: isinstance(value, str),
    "truthy": js.truthy,
    "undefined": lambda value: not _defined(value),
}
TEST_ARGUMENTS = {"divisibleby": 1, "eq": 1, "equalto": 1, "ne": 1, "sameas": 1}


# --- methods of texts and lists


def _offset(value: str, found: int) -> int:
    return found if found < 0 else js.utf16_length(value[:found])


def _method_replace(value: str, old: Value, new: Value) -> str:
    replacement = js.text(new)
    if "$" in replacement:
        raise UnsupportedFault("`$` in the replacement of .replace()", hint="use `| replace(a, b)`")
    return value.replace(js.text(old), replacement, 1)


def _method_split(value: str, separator: Value = UNDEFINED) -> list[Value]:
    if isinstance(separator, Undefined):
        return [value]
    glue = js.text(separator)
    if not glue and not value.isascii():
        raise UnsupportedFault("split('') of text beyond ASCII", hint="pass a list")
    return list(value) if not glue else list(value.split(glue))


_TEXT_METHODS: Mapping[str, tuple[Callable[..., Value], int, int]] = {
    "endsWith": (lambda value, end: value.endswith(js.text(end)), 1, 1),
    "includes": (lambda value, part: js.text(part) in value, 1, 1),
    "indexOf": (lambda value, part: _offset(value, value.find(js.text(part))), 1, 1),
    "lastIndexOf": (lambda value, part: _offset(value, value.rfind(js.text(part))), 1, 1),
    "replace": (_method_replace, 2, 2),
    "split": (_method_split, 0, 1),
    "startsWith": (lambda value, start: value.startswith(js.text(start)), 1, 1),
    "toLowerCase": (str.lower, 0, 0),
    "toUpperCase": (str.upper, 0, 0),
    "trim": (lambda value: value.strip(js.SPACE), 0, 0),
    "trimEnd": (lambda value: value.rstrip(js.SPACE), 0, 0),
    "trimStart": (lambda value: value.lstrip(js.SPACE), 0, 0),
}


def _index_of(value: list[Value], wanted: Value) -> int:
    return next((at for at, item in enumerate(value) if js.strictly_equal(item, wanted)), -1)


def _concat(value: list[Value], *others: Value) -> list[Value]:
    result = list(value)
    for other in others:
        result.extend(other if isinstance(other, list) else [other])
    return result


_LIST_METHODS: Mapping[str, tuple[Callable[..., Value], int, int]] = {
    "concat": (_concat, 0, 100),
    "includes": (lambda value, wanted: _index_of(value, wanted) >= 0, 1, 1),
    "indexOf": (_index_of, 1, 1),
    "join": (lambda value, glue=UNDEFINED: _join(value, glue), 0, 1),
}
METHODS = frozenset(_TEXT_METHODS) | frozenset(_LIST_METHODS)


def method(value: Value, name: str, *arguments: Value) -> Value:
    """
    Call a method that JavaScript's texts and lists have.

    Raises:
        Fault: The value has no such method.
    """
    if isinstance(value, Undefined):
        value.use()
    table = _TEXT_METHODS if isinstance(value, str) else _LIST_METHODS
    found = table.get(name) if isinstance(value, str | list) else None
    if found is None:
        raise Fault(f"the value has no method '{name}'")
    run, least, most = found
    if not least <= len(arguments) <= most:
        raise UnsupportedFault(f".{name}() with {len(arguments)} arguments")
    return run(value, *arguments)


# --- functions


def range_(*bounds: Value) -> Value:
    """Return ``range(stop)``, ``range(start, stop)`` or ``range(start, stop, step)``."""
    numbers = [js.number(bound) for bound in bounds]
    if not 1 <= len(numbers) <= 3 or not all(float(n).is_integer() for n in numbers):  # noqa: PLR2004
        raise Fault("range takes one to three whole numbers")
    start, stop, step = ([0, *numbers, 1] if len(numbers) == 1 else [*numbers, 1])[:3]
    if step == 0 or math.isinf(stop):
        raise Fault("range never ends")
    if abs((stop - start) / step) > RANGE_MAX:
        raise LimitFault(f"range of more than {RANGE_MAX} entries")
    return list(range(int(start), int(stop), int(step)))


FUNCTIONS: Mapping[str, Callable[..., Any]] = {"range": range_}
