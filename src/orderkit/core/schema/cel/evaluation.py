"""Run a compiled expression and tell errors of the expression from errors of the CEL library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from orderkit.core.schema.cel.cel_functions import MARK

_INTERNAL_MARK = "orderkit: internal: "
_INTERNAL = re.compile(
    f"{_INTERNAL_MARK}|Non-CEL value type|Unexpected value type|out of range for '"
    r"|No matching overloads found : (?:\([^)]*\)\.)?[A-Za-z]"
)
"""
Errors of the library's Python side, and functions it lacks. They do not mean the rule is wrong.
"""
_LACKING = re.compile(
    r"No overload found in reference resolve step for (\S+)"
    r"|No matching overloads found : ((?:\([^)]*\)\.)?[A-Za-z][^ ]*)"
)


def run(program: Any, data: Mapping[str, Any]) -> tuple[bool | None, str]:
    """Return the rule's verdict, or None and the library's error text if evaluation failed."""
    try:
        result = program.eval(data=data)
    except RuntimeError as error:
        return None, f"{_INTERNAL_MARK}{error}"
    if result.type().name() == "BOOL":
        return bool(result.value()), ""
    return None, str(result.value())


def gap_in(text: str) -> str:
    """Return why the rule could not be evaluated; empty if the error is the rule's own."""
    if MARK in text:
        return text.partition(MARK)[2]
    lacking = _LACKING.search(text)
    if lacking:
        name = lacking.group(1) or lacking.group(2)
        return f"uses what Orderkit's CEL library does not offer: {name}"
    plain = text.removeprefix(_INTERNAL_MARK)
    return f"the CEL library: {plain}" if _INTERNAL.search(text) else ""
