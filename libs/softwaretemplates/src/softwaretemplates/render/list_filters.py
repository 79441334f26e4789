"""
Filters on lists and maps: select, order, group, cut and join.

Sorting compares as JavaScript does. It refuses values of different types, because there the result
depends on the engine's sorting algorithm.
"""

from __future__ import annotations

from collections.abc import Callable

from softwaretemplates.render import javascript as js
from softwaretemplates.render import refusals
from softwaretemplates.render.javascript import UNDEFINED, Safe, Undefined, Value
from softwaretemplates.render.operands import (
    in_order,
    limited,
    limited_list,
    must_be_list,
    sequence,
    size,
    used,
)
from softwaretemplates.render.predicates import TESTS, run_test
from softwaretemplates.render.refusals import OperationFault, UnsupportedFault

_Fold = Callable[[str], str]


def default(value: Value, fallback: Value = UNDEFINED, also_falsy: Value = False) -> Value:  # noqa: FBT002 - the template's own order
    """Replace undefined by `fallback`; with a second true argument, any falsy value."""
    if js.truthy(also_falsy):
        return value if js.truthy(value) else fallback
    return fallback if isinstance(value, Undefined) else value


def dump(value: Value, indent: Value = None) -> Value:
    """Write JSON as ``JSON.stringify`` does; the argument sets the indentation."""
    if js.is_number(indent):
        indent = size(max(indent, 0), "dump")
    return js.to_json(value, indent)


def length(value: Value) -> Value:
    """Count characters (UTF-16 units), items or keys."""
    if isinstance(value, str):
        return js.utf16_length(value)
    if isinstance(value, list | dict):
        return len(js.keyed(value) if isinstance(value, dict) else value)
    used(value)
    return UNDEFINED if value is True or js.is_number(value) else 0


def first(value: Value) -> Value:
    """Take the first item or character."""
    return _edge(value, "first", 0)


def last(value: Value) -> Value:
    """Take the last item or character."""
    return _edge(value, "last", -1)


def _edge(value: Value, name: str, index: int) -> Value:
    if isinstance(value, Safe):
        raise UnsupportedFault.of(refusals.SAFE_VALUE, f"'{name}'")
    if value is None or isinstance(used(value), Undefined):
        raise OperationFault(
            f"filter '{name}' needs a list or text", hint=f"write `(x or []) | {name}`"
        )
    if isinstance(value, dict):
        if "length" in value:
            raise UnsupportedFault.of(refusals.ARGUMENTS, name)
        return value.get("NaN" if index else "0", UNDEFINED)
    if not isinstance(value, list | str):
        return UNDEFINED
    if isinstance(value, str):
        js.whole(value)
    return value[index] if value else UNDEFINED


def to_list(value: Value) -> Value:
    """Make a list of characters, or of {key, value} for a map."""
    if isinstance(value, Safe):
        raise UnsupportedFault.of(refusals.SAFE_VALUE, "'list'")
    if isinstance(value, str):
        return list(js.whole(value))
    if isinstance(value, dict):
        return [{"key": key, "value": item} for key, item in js.ordered(value)]
    return value if isinstance(value, list) else must_be_list(value, "list")


def reverse(value: Value) -> Value:
    """Reverse a list or text."""
    if isinstance(value, Safe):
        raise UnsupportedFault.of(refusals.SAFE_VALUE, "'reverse'")
    if isinstance(value, str):
        return js.whole(value)[::-1]
    return _mapped(value, "reverse")[::-1]


def _mapped(value: Value, name: str) -> list[Value]:
    """Return the items as Nunjucks' own `map` sees them: none for null, numbers and maps."""
    if value is None or isinstance(value, Undefined):
        used(value)
        return []
    return sequence(value, name)


def join(value: Value, separator: Value = "", attribute: Value = UNDEFINED) -> Value:
    """Join items with a separator; the second argument names an attribute of the items."""
    if js.truthy(attribute):
        items = [attribute_of(item, attribute, "join") for item in _mapped(value, "join")]
    else:
        items = must_be_list(value, "join")
    glue = js.text(separator) if js.truthy(separator) else ""
    return limited(joined(items, glue), "join")


def joined(items: list[Value], glue: str) -> str:
    """Return ``items.join(glue)``."""
    limited(glue * min(len(items), 2), "join")
    if len(glue) * len(items) > js.TEXT_MAX:
        limited(glue * (js.TEXT_MAX // max(len(glue), 1) + 1), "join")
    return glue.join(
        "" if item is None or isinstance(item, Undefined) else js.text(item) for item in items
    )


def attribute_of(item: Value, key: Value, name: str) -> Value:
    """Return ``item[key]``; null and undefined have no members."""
    if item is None or isinstance(item, Undefined):
        raise OperationFault(f"filter '{name}' cannot read an attribute of null or undefined")
    return js.member(item, key)


def total(value: Value, attribute: Value = UNDEFINED, start: Value = 0) -> Value:
    """Add up the items, or an attribute of them, beginning with a start value."""
    if js.truthy(attribute):
        items = [attribute_of(item, attribute, "sum") for item in _mapped(value, "sum")]
    else:
        items = must_be_list(value, "sum")
    result: Value = 0
    for item in items:
        result = js.add(result, item)
    return js.add(0 if isinstance(start, Undefined) else start, result)


def batch(value: Value, count: Value = UNDEFINED, fill: Value = UNDEFINED) -> Value:
    """Cut a list into rows of `count`; the last is padded with `fill`."""
    items = sequence(value, "batch")
    width = size(count, "batch", least=1)
    rows = [items[at : at + width] for at in range(0, len(items), width)]
    if rows and js.truthy(fill):
        rows[-1] += [fill] * (width - len(rows[-1]))
    return rows


def slices(value: Value, count: Value = UNDEFINED, fill: Value = UNDEFINED) -> Value:
    """Cut a list or text into `count` parts."""
    if isinstance(value, Safe) or not isinstance(used(value), list | str):
        raise OperationFault("filter 'slice' needs a list or text")
    parts = size(count, "slice", least=1)
    items = js.whole(value) if isinstance(value, str) else value
    base, extra = divmod(len(items), parts)
    pieces: list[Value] = []
    at = 0
    for number in range(parts):
        step = base + (number < extra)
        piece: Value = items[at : at + step]
        if js.truthy(fill) and number >= extra:
            if isinstance(piece, str):
                raise OperationFault("filter 'slice' cannot fill up text")
            piece = [*piece, fill]
        pieces.append(piece)
        at += step
    return pieces


def chooser(*, keep: bool) -> Callable[..., Value]:
    """Return ``select`` or ``reject``."""
    name = "select" if keep else "reject"

    def choose(value: Value, test: Value = UNDEFINED, *arguments: Value) -> Value:
        test_name = "truthy" if isinstance(test, Undefined) else test
        if not isinstance(test_name, str) or test_name not in TESTS:
            raise OperationFault(
                f"filter '{name}': there is no test {js.text(test_name)!r}",
                hint=f"tests: {', '.join(sorted(TESTS))}",
            )
        items = sequence(value, name)
        if len(arguments) != TESTS[test_name].arguments:
            raise UnsupportedFault.of(refusals.ARGUMENTS, name)
        return [item for item in items if run_test(test_name, item, *arguments) is keep]

    return choose


def chooser_by(*, keep: bool) -> Callable[..., Value]:
    """Return ``selectattr`` or ``rejectattr``; both ignore further arguments."""
    name = "selectattr" if keep else "rejectattr"

    def choose(value: Value, attribute: Value = UNDEFINED, *_ignored: Value) -> Value:
        items = must_be_list(value, name)
        return [item for item in items if js.truthy(attribute_of(item, attribute, name)) is keep]

    return choose


def _path_of(item: Value, attribute: Value, name: str) -> Value:
    """Follow ``a.b.c`` through own members; undefined as soon as one is missing."""
    if not js.truthy(attribute):
        return item
    keys = attribute.split(".") if isinstance(attribute, str) else [attribute]
    for key in keys:
        item = _own(item, key, name)
        if isinstance(item, Undefined):
            return UNDEFINED
    return item


def _own(item: Value, key: Value, name: str) -> Value:
    """Return an own member. A text's only own members are its characters, which are refused."""
    if item is None or isinstance(item, Undefined):
        raise OperationFault(f"filter '{name}' cannot read an attribute of null or undefined")
    if isinstance(item, dict | list):
        return js.member(item, key)
    if isinstance(item, str) and (isinstance(item, Safe) or key == "length" or js.is_number(key)):
        raise UnsupportedFault.of(refusals.ARGUMENTS, name)
    return js.member(item, key)


def group_by(value: Value, attribute: Value = UNDEFINED) -> Value:
    """Group the items by an attribute into a map of lists."""
    groups: dict[str, Value] = {}
    for item in sequence(value, "groupby"):
        key = js.text(_path_of(item, attribute, "groupby"))
        if isinstance(js.member({}, key), Undefined):
            groups.setdefault(key, []).append(item)
    return groups


def sort(
    value: Value,
    reverse: Value = False,  # noqa: FBT002 - the template's own order
    case_sensitive: Value = False,  # noqa: FBT002
    attribute: Value = UNDEFINED,
) -> Value:
    """Sort by value or attribute (``a.b``), ignoring case by default."""
    items = _mapped(value, "sort")
    keys = [_path_of(item, attribute, "sort") for item in items]
    fold = None if js.truthy(case_sensitive) else str.lower
    return _sorted(items, keys, "sort", fold=fold, back=js.truthy(reverse))


def _sorted(
    items: list[Value], keys: list[Value], name: str, *, fold: _Fold | None, back: bool
) -> list[Value]:
    if len(items) < 2:  # noqa: PLR2004 - nothing to compare
        return list(items)
    order = in_order(_folded(keys, name, fold) if fold else keys, name, alike=name == "dictsort")
    places = sorted(range(len(items)), key=lambda at: order[at], reverse=back)
    return [items[at] for at in places]


def _folded(keys: list[Value], name: str, fold: _Fold) -> list[Value]:
    """
    Return the keys with the case of texts folded.

    Raises:
        UnsupportedFault: JavaScript folds a text only in some comparisons: not next to a list or a
            map, so that no order fits all of them, and safe text not in every engine.
    """
    folded = [fold(key) if isinstance(key, str) else key for key in keys]
    plain = all(isinstance(key, str) and not isinstance(key, Safe) for key in keys)
    if not plain and folded != keys:
        raise UnsupportedFault.of(refusals.MIXED_ORDER, name)
    return folded


def dictsort(value: Value, case_sensitive: Value = False, by: Value = UNDEFINED) -> Value:  # noqa: FBT002 - the template's own order
    """Make a list of [key, value], ordered by 'key' or 'value'."""
    if not isinstance(used(value), dict):
        raise OperationFault("filter 'dictsort' needs a map")
    if not isinstance(by, Undefined) and by not in {"key", "value"}:
        raise OperationFault("filter 'dictsort' sorts by 'key' or 'value'")
    entries: list[Value] = [[key, item] for key, item in js.ordered(value)]
    keys = [entry[by == "value"] for entry in entries]
    fold = None if js.truthy(case_sensitive) else str.upper
    return _sorted(entries, keys, "dictsort", fold=fold, back=False)


def concatenated(items: list[Value], *lists: Value) -> list[Value]:
    """Return ``items.concat(...others)``."""
    parts = [other if isinstance(other, list) else [other] for other in lists]
    return limited_list([*items, *(item for entries in parts for item in entries)], "concat")
