r"""
Read the edits that people write on a command line, and show a YAML text before and after them.

| Written | Meaning |
|---|---|
| ``spec.stage=stage3`` | set the value; a missing key is added |
| ``spec.hosts+=a.example.org`` | append to the list |
| ``spec.hosts-=a.example.org`` | remove that item from the list |
| ``spec.lease-`` | remove the key |

A path is keys joined by dots. ``[0]`` is an item of a list; ``["a.b/c"]`` or ``a\.b/c`` is a key
that contains dots. A value has the type that YAML 1.2 gives it: ``3`` is a number, ``true`` a
boolean, ``null`` null, ``yes`` a string, ``[a, b]`` a list and ``{a: 1}`` a map. Quotes force a
string: ``version="1.10"`` with the quotes in the value. Nothing after ``=`` is the empty string.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ground.errors import InvalidInputError
from ground.unified_diff import unified_diff
from yamlfiles import edit, yaml12
from yamlfiles.edit import Edit, Op, Step, Value
from yamlfiles.edit.writing import is_json, read_12

__all__ = ["Assignment", "EditedText", "edit_bytes", "parse", "parse_path", "parse_value"]

_STEP = re.compile(
    r"""
      \[ (?P<index> -?[0-9]+ ) \]
    | \[ (?: "(?P<double> [^"]* )" | '(?P<single> [^']* )' ) \]
    | \.? (?P<key> (?: \\. | [^.\[\]\\="'+-] | [+-](?!=|\Z) )+ )
    """,
    re.VERBOSE,
)
_OPERATORS = {"=": Op.SET, "+=": Op.ADD, "-=": Op.REMOVE}
_HINT = "for example spec.stage=stage3, spec.hosts+=a, spec.hosts-=a, spec.lease-"


@dataclass(frozen=True, slots=True)
class Assignment:
    """One edit as a person wrote it."""

    path: tuple[Step, ...]
    op: Op
    value: Value = None

    def edit(self, document: int | None = None) -> Edit:
        """Return the assignment as an edit of a file."""
        return Edit(self.path, self.op, self.value, document)


def parse(text: str, *, as_text: bool = False) -> Assignment:
    """
    Read one assignment.

    Args:
        as_text: The value is a string, whatever it looks like.

    Raises:
        InvalidInputError: It is not an assignment, or its value is not readable YAML.
    """
    path, end = _path(text)
    assignment = text[end:]
    if assignment == "-" and path:
        return Assignment(path, Op.UNSET)
    operator = next((sign for sign in ("+=", "-=", "=") if assignment.startswith(sign)), None)
    if operator is None or not path:
        raise InvalidInputError("edit", text, "is not an edit", hint=_HINT)
    value_text = assignment[len(operator) :]
    value = value_text if as_text else parse_value(value_text, edit_text=text)
    return Assignment(path, _OPERATORS[operator], value)


def parse_path(text: str) -> tuple[Step, ...]:
    """
    Read a path on its own.

    Raises:
        InvalidInputError: It is not a path.
    """
    path, end = _path(text)
    if not path or end != len(text):
        raise InvalidInputError(
            "path", text, "is not a path", hint='for example spec.hosts[0] or metadata["a.b/c"]'
        )
    return path


def _path(text: str) -> tuple[tuple[Step, ...], int]:
    steps: list[Step] = []
    at = 0
    while match := _STEP.match(text, at):
        if match["key"] is not None:
            if bool(steps) != match[0].startswith("."):
                break
            steps.append(re.sub(r"\\(.)", r"\1", match["key"]))
        elif match["index"] is not None:
            steps.append(int(match["index"]))
        else:
            steps.append(match["double"] if match["double"] is not None else match["single"])
        at = match.end()
    return tuple(steps), at


def parse_value(value_text: str, *, edit_text: str = "") -> Value:
    """
    Return the value as YAML 1.2 reads it; the empty string if there is none.

    Raises:
        InvalidInputError: Quotes or brackets are not closed, or JSON has no such value.
    """
    if not value_text:
        return ""
    if value_text[0] in "[{\"'":
        value: Value = yaml12.load(value_text.encode(), name=edit_text or "value")
    else:
        value = read_12(value_text)
    if not is_json(value):
        raise InvalidInputError(
            "edit",
            edit_text or value_text,
            "has a value that JSON cannot hold",
            hint="put it in quotes",
        )
    return value


@dataclass(frozen=True, slots=True)
class EditedText:
    """A text before and after its edits."""

    name: str
    before: bytes
    after: bytes

    @property
    def changed(self) -> bool:
        """Say whether the edits changed anything."""
        return self.before != self.after

    def diff(self) -> str:
        """Return the difference as ``diff -u`` writes it; empty if there is none."""
        return unified_diff(self.before, self.after, f"a/{self.name}", f"b/{self.name}")


def edit_bytes(name: str, before: bytes, edits: Sequence[Edit]) -> EditedText:
    """
    Make all edits, or none.

    Raises:
        EditRefusedError: One of them cannot be made, or not be proved.
    """
    return EditedText(name, before, edit.edit(before, edits, name=name))
