"""
Find the fields that a rule of a parent is about, so that a refusal names them and not the parent.

These are the fields that the rule reads and the change touches. Without a change, or if it touches
none of them, they are all fields that the rule reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kubeschema.cel.syntax_tree import ExpressionNode
from kubeschema.cel.type_shapes import CelType

Steps = tuple[str, ...]
_OBJECTS = ("self", "oldSelf")
_MEMBERS = ("_?._", "_[_]", "_[?_]")
_ASKS_FOR_OLD = "hasValue"
_INSIDE_OPTIONAL = "value"


@dataclass(frozen=True, slots=True)
class RuleField:
    """A field that a broken rule is about; None where it is not set."""

    path: str
    """Below the value that has the rule: ``.zone``, ``.tags[cost]``."""
    new: Any
    old: Any


def rule_fields(
    tree: ExpressionNode, shape: CelType, new: Any, old: Any = None
) -> tuple[RuleField, ...]:
    """
    Return the fields that a rule on a value is about, those that are set first.

    Empty if the rule reads the value as a whole and nothing is known to have changed.
    """
    read = tuple(dict.fromkeys(_plain(shape, steps) for steps in _read(tree)))
    changed = tuple(_changed(new, old)) if old is not None else ()
    touched = [max(r, c, key=len) for r in read for c in changed if _is_along(r, c)]
    steps_of_all = tuple(dict.fromkeys(touched)) or read
    fields = [
        RuleField(_text(shape, steps), _at(new, steps), _at(old, steps))
        for steps in steps_of_all
        if steps and not any(_is_along(steps, o) and len(o) > len(steps) for o in steps_of_all)
    ]
    return () if () in steps_of_all else tuple(sorted(fields, key=lambda f: f.new is None))


def _read(node: ExpressionNode) -> Iterator[Steps]:
    """Yield what is read of the objects; of a list, all of it. Names are escaped."""
    steps = _steps(node)
    if steps is not None:
        yield steps
    elif node.name != _ASKS_FOR_OLD:
        is_old = node.kind == "fold" and node.name in _OBJECTS  # bound around the rule
        for child in node.children[-1:] if is_old else node.children:
            yield from _read(child)


def _steps(node: ExpressionNode) -> Steps | None:
    """Return the way from an object to what an expression names; None if it names nothing of it."""
    if node.kind == "ident":
        return () if node.name in _OBJECTS else None
    if not node.children or node.kind not in ("select", "call"):
        return None
    above = _steps(node.children[0])
    if above is None or node.kind == "select":
        return None if above is None else (*above, node.name)
    if node.name in _MEMBERS and node.children[1].kind == "constant" and node.children[1].name:
        return (*above, node.children[1].name)
    return above if node.name == _INSIDE_OPTIONAL and len(node.children) == 1 else None


def _plain(shape: CelType, escaped: Steps) -> Steps:
    """Return the names in the object of what a rule reads."""
    steps: list[str] = []
    for name in escaped:
        inner = shape.items if shape.kind == "map" else None
        for plain, (escaped_name, child) in shape.fields.items():
            if escaped_name == name:
                name, inner = plain, child  # noqa: PLW2901 - the same step, as the object has it
        if inner is None:
            break
        steps.append(name)
        shape = inner
    return tuple(steps)


def _text(shape: CelType, steps: Iterable[str]) -> str:
    text = ""
    for step in steps:
        text += f"[{step}]" if shape.kind == "map" else f".{step}"
        shape = shape.fields.get(step, ("", shape.items or CelType("dyn")))[1]
    return text


def _changed(new: Any, old: Any, at: Steps = ()) -> Iterator[Steps]:
    if isinstance(new, dict) and isinstance(old, dict):
        for name in {**old, **new}:
            yield from _changed(new.get(name), old.get(name), (*at, name))
    elif new != old:
        yield at


def _is_along(steps: Steps, others: Steps) -> bool:
    """Say whether one of two ways leads along the other."""
    shorter = min(len(steps), len(others))
    return steps[:shorter] == others[:shorter]


def _at(value: Any, steps: Steps) -> Any:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value
